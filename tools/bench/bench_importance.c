/* bench_importance: what the importance of all heads takes on documents of random tokens with a
 * next-token loss: by gradients, and by taking out one head after the other. For the second also
 * the multiply-adds of the matrix products, as a share of one full pass for each head.
 *
 *   bench_importance gradient MODEL DOCUMENTS TOKENS     median of three runs after one
 *   bench_importance ablate MODEL DOCUMENTS TOKENS       one run */
#include "mha/analysis.h"
#include "mha/run.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(mha_status st, const mha_err *err)
{
    if (st == MHA_OK)
        return;
    fprintf(stderr, "bench_importance: %s\n", err->message);
    exit(1);
}

static void *room(size_t count, size_t size)
{
    void *p = calloc(count, size);
    if (p == NULL)
        exit(1);
    return p;
}

static double gradient_seconds(mha_engine *e, const mha_document *docs, size_t count, size_t gates)
{
    mha_gradient out = {.gates = room(count * gates, sizeof(double))};
    mha_err err;
    double t = now();
    must(mha_engine_gradient(e, docs, count, &out, NULL, NULL, &err), &err);
    t = now() - t;
    free(out.gates);
    return t;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void bench_gradient(mha_engine *e, const mha_document *docs, size_t count, size_t gates)
{
    double t[3];
    gradient_seconds(e, docs, count, gates);
    for (int i = 0; i < 3; i++)
        t[i] = gradient_seconds(e, docs, count, gates);
    qsort(t, 3, sizeof *t, by_value);
    printf("gradient %.3f s   %.4f s a document\n", t[1], t[1] / (double)count);
}

static void bench_ablate(mha_engine *e, const mha_document *docs, size_t count, size_t gates)
{
    mha_ablation out = {.base = room(count, sizeof(double)),
                        .variant = room(count * gates, sizeof(double))};
    mha_err err;
    double t = now();
    must(mha_engine_ablate(e, docs, count, &out, NULL, NULL, &err), &err);
    t = now() - t;
    printf("ablate %.3f s   %.3f of the block work and %.3f of the whole work of full passes\n", t,
           (double)out.block_multiply_adds / (double)out.naive_block_multiply_adds,
           (double)out.multiply_adds / (double)out.naive_multiply_adds);
    free(out.base);
    free(out.variant);
}

int main(int argc, char **argv)
{
    if (argc != 5 || (strcmp(argv[1], "gradient") != 0 && strcmp(argv[1], "ablate") != 0)) {
        fprintf(stderr, "usage: bench_importance gradient|ablate MODEL DOCUMENTS TOKENS\n");
        return 2;
    }
    size_t count = strtoul(argv[3], NULL, 10), n = strtoul(argv[4], NULL, 10);
    mha_model *model;
    mha_engine *e;
    mha_losses *losses;
    mha_err err;
    must(mha_model_open(&model, argv[2], NULL, &err), &err);
    must(mha_engine_new(&e, model, NULL, &err), &err);
    const mha_model_info *info = mha_model_info_get(model);
    mha_document *docs = room(count, sizeof *docs);
    int32_t *ids = room(count * n, sizeof *ids);
    for (size_t i = 0; i < count * n; i++)
        ids[i] = (int32_t)((i * 7919 + 13) % info->vocab);
    for (size_t d = 0; d < count; d++)
        docs[d] = (mha_document){.ids = ids + d * n, .n = n};
    mha_loss_options options = {.kind = MHA_LOSS_NEXT};
    must(mha_losses_new(&losses, model, docs, NULL, count, &options, &err), &err);
    const mha_document *predicting = mha_losses_documents(losses, &count);
    (strcmp(argv[1], "ablate") == 0 ? bench_ablate : bench_gradient)(
        e, predicting, count, info->attn_count * mha_engine_gate_heads(e));
    mha_losses_free(losses);
    free(ids);
    free(docs);
    mha_engine_free(e);
    mha_model_close(model);
    return 0;
}
