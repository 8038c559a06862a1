/* bench_graph: time and memory of attention over one graph: the statistics of every head, and the
 * classes of all nodes.
 *
 *   bench_graph MODEL GRAPH.json [RUNS]     prints the fastest run in seconds, and megabytes: of
 *                                           scratch, and of the whole process at its peak */
#include "mha/input.h"
#include "mha/run.h"
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double megabytes(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)r.ru_maxrss / 1024;
}

static int ignore(void *context, const mha_block *b, size_t worker)
{
    (void)context;
    (void)b;
    (void)worker;
    return 0;
}

static mha_status measure(const char *name, mha_engine *e, const mha_graph *g, uint32_t sites,
                          size_t runs, mha_err *err)
{
    mha_document d = {.n = g->nodes, .graph = g};
    mha_probe p = {.sites = sites, .deliver = ignore};
    const mha_probe *probes[] = {&p};
    mha_plan_info plan;
    double least = 1e9;
    mha_status status = mha_engine_plan(e, &d, 1, probes, 1, &plan, err);
    for (size_t i = 0; i < runs && status == MHA_OK; i++) {
        double t = now();
        status = mha_engine_run(e, &d, 1, probes, 1, NULL, NULL, err);
        t = now() - t;
        least = t < least ? t : least;
    }
    if (status == MHA_OK)
        printf("%-8s %.4f s   %.1f MB of scratch, the process %.0f MB\n", name, least,
               (double)plan.bytes / (1 << 20), megabytes());
    return status;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: bench_graph MODEL GRAPH.json [RUNS]\n");
        return 2;
    }
    size_t runs = argc > 3 ? strtoul(argv[3], NULL, 10) : 9;
    mha_model *m = NULL;
    mha_engine *e = NULL;
    mha_graph *g = NULL;
    mha_err err = {0};
    mha_status status = mha_model_open(&m, argv[1], NULL, &err);
    if (status == MHA_OK)
        status = mha_engine_new(&e, m, NULL, &err);
    if (status == MHA_OK)
        status = mha_graph_open(&g, argv[2], 0, &err);
    if (status == MHA_OK)
        status = measure("heads", e, g, 1u << MHA_SITE_STATS, runs, &err);
    if (status == MHA_OK)
        status = measure("classes", e, g, 1u << MHA_SITE_LOGITS, runs, &err);
    if (status != MHA_OK)
        fprintf(stderr, "bench_graph: %s\n", err.message);
    mha_graph_close(g);
    mha_engine_free(e);
    mha_model_close(m);
    return status == MHA_OK ? 0 : 1;
}
