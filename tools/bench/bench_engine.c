/* bench_engine: what statistics cost over the plain forward pass, and which part of the machine's
 * matrix product rate a whole run reaches. Pairs of runs take turns, so that a drifting machine
 * does not matter.
 *
 *   bench_engine MODEL TOKENS [PAIRS]     prints medians, their ratio, and GFLOP/s */
#include "kernel/gemm.h"
#include "mha/run.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *x, size_t n)
{
    qsort(x, n, sizeof *x, by_value);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

static int ignore(void *context, const mha_block *b, size_t worker)
{
    (void)context;
    (void)b;
    (void)worker;
    return 0;
}

/* GFLOP/s of one thread on a product of the size that the engine's tiles have. */
static double gemm_rate(void)
{
    enum { M = 256, N = 768, K = 768 };
    float *a = calloc(M * K, sizeof *a), *b = calloc(N * K, sizeof *b),
          *c = calloc(M * N, sizeof *c);
    double best = 1e9;
    for (int i = 0; i < 30 && a != NULL && b != NULL && c != NULL; i++) {
        double t = now();
        mha_gemm(false, true, M, N, K, 1, a, K, b, K, 0, c, N);
        t = now() - t;
        best = t < best ? t : best;
    }
    free(a);
    free(b);
    free(c);
    return 2.0 * M * N * K / best / 1e9;
}

static double timed(mha_engine *e, const mha_document *d, uint32_t sites)
{
    mha_probe p = {.sites = sites, .deliver = ignore};
    const mha_probe *probes[] = {&p};
    mha_err err;
    double t = now();
    if (mha_engine_run(e, d, 1, probes, 1, NULL, NULL, &err) != MHA_OK) {
        fprintf(stderr, "bench_engine: %s\n", err.message);
        exit(1);
    }
    return now() - t;
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: bench_engine MODEL TOKENS [PAIRS]\n");
        return 2;
    }
    size_t n = strtoul(argv[2], NULL, 10), pairs = argc > 3 ? strtoul(argv[3], NULL, 10) : 5;
    mha_model *m;
    mha_engine *e;
    mha_err err;
    if (mha_model_open(&m, argv[1], NULL, &err) != MHA_OK ||
        mha_engine_new(&e, m, NULL, &err) != MHA_OK) {
        fprintf(stderr, "bench_engine: %s\n", err.message);
        return 1;
    }
    uint32_t vocab = mha_model_info_get(m)->vocab;
    int32_t *ids = malloc(n * sizeof *ids);
    double *plain = malloc(pairs * sizeof *plain), *stats = malloc(pairs * sizeof *stats);
    double *alone = malloc(pairs * sizeof *alone);
    if (ids == NULL || plain == NULL || stats == NULL || alone == NULL || pairs == 0)
        return 1;
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)((i * 7919 + 13) % vocab);
    mha_document d = {.ids = ids, .n = n};
    uint32_t hidden = 1u << MHA_SITE_HIDDEN, rows = 1u << MHA_SITE_STATS;
    timed(e, &d, hidden);
    for (size_t i = 0; i < pairs; i++) {
        plain[i] = timed(e, &d, hidden);
        stats[i] = timed(e, &d, hidden | rows);
        alone[i] = timed(e, &d, rows); /* what `heads` runs: the last block ends at its scores */
    }
    mha_probe p = {.sites = hidden, .deliver = ignore};
    const mha_probe *probes[] = {&p};
    mha_plan_info plan;
    if (mha_engine_plan(e, &d, 1, probes, 1, &plan, &err) != MHA_OK)
        return 1;
    double a = median(plain, pairs), b = median(stats, pairs), rate = gemm_rate();
    double threads = (double)mha_engine_threads(e), flops = 2e-9 * (double)plan.multiply_adds;
    printf("%zu tokens, %zu pairs of runs, %.0f threads, %s\n", n, pairs, threads,
           mha_engine_isa(e));
    printf("forward %.3f s   with the statistics of every row %.3f s   ratio %.3f\n", a, b, b / a);
    printf("heads %.3f s\n", median(alone, pairs));
    printf("forward %.0f GFLOP/s, %.0f %% of %.0f threads at %.0f GFLOP/s of SGEMM\n", flops / a,
           100 * flops / a / (rate * threads), threads, rate);
    free(ids);
    free(plain);
    free(stats);
    free(alone);
    mha_engine_free(e);
    mha_model_close(m);
    return 0;
}
