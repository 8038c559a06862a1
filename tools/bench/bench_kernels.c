/* bench_kernels.c: what each vector kernel buys. For every instruction set of this machine it
 * prints nanoseconds an element and the factor over `ref`, then the rate of matrix products of
 * common shapes. Usage: bench_kernels [LENGTH] (default 1024 elements a row). */
#include "kernel/gemm.h"
#include "kernel/kernel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ISAS_MAX = 4, BLOCK_MAX = 256 };

/* One measured call works on these rows; `work` is refilled from `in` where a kernel overwrites. */
typedef struct rows {
    size_t n;
    float *in, *other, *work;
    unsigned char *stored;
} rows;

typedef struct bench {
    const char *name;
    float (*run)(const mha_kernels *k, const rows *r, int which);
    int which; /* dtype or activation */
} bench;

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void refill(const rows *r)
{
    memcpy(r->work, r->in, r->n * sizeof *r->in);
}

static float run_copy(const mha_kernels *k, const rows *r, int which)
{
    (void)k;
    (void)which;
    refill(r);
    return r->work[0];
}

static float run_max(const mha_kernels *k, const rows *r, int which)
{
    (void)which;
    return k->max(r->in, r->n);
}

static float run_exp_sum(const mha_kernels *k, const rows *r, int which)
{
    double l;

    (void)which;
    refill(r);
    k->exp_sum(r->work, r->n, 8.0F, &l);
    return (float)l;
}

static float run_exp_stats(const mha_kernels *k, const rows *r, int which)
{
    mha_exp_sums s;

    (void)which;
    refill(r);
    k->exp_stats(r->work, r->n, 8.0F, &s);
    return (float)s.u;
}

static float run_scale(const mha_kernels *k, const rows *r, int which)
{
    (void)which;
    k->scale(r->work, r->n, 1.0F);
    return 0.0F;
}

static float run_add(const mha_kernels *k, const rows *r, int which)
{
    (void)which;
    k->add(r->work, r->other, r->n);
    return 0.0F;
}

static float run_mul(const mha_kernels *k, const rows *r, int which)
{
    (void)which;
    refill(r);
    k->mul(r->work, r->other, r->n);
    return 0.0F;
}

static float run_softmax_back(const mha_kernels *k, const rows *r, int which)
{
    (void)which;
    refill(r);
    k->softmax_back(r->work, r->other, 0.25F, r->n);
    return 0.0F;
}

static float run_axpy(const mha_kernels *k, const rows *r, int which)
{
    (void)which;
    k->axpy(r->work, 1e-3F, r->other, r->n);
    return 0.0F;
}

static float run_softcap(const mha_kernels *k, const rows *r, int which)
{
    (void)which;
    refill(r);
    k->softcap(r->work, r->n, 5.0F);
    return 0.0F;
}

static float run_layer_norm(const mha_kernels *k, const rows *r, int which)
{
    (void)which;
    k->layer_norm(r->work, r->in, r->other, r->other, r->n, 1e-5F);
    return 0.0F;
}

static float run_rms_norm(const mha_kernels *k, const rows *r, int which)
{
    (void)which;
    k->rms_norm(r->work, r->in, r->other, r->n, 1e-5F);
    return 0.0F;
}

static float run_norm_back(const mha_kernels *k, const rows *r, int center)
{
    k->norm_back(r->work, r->other, r->in, r->other, r->n, 1e-5F, center != 0);
    return 0.0F;
}

static float run_act(const mha_kernels *k, const rows *r, int which)
{
    refill(r);
    k->act[which](r->work, r->n);
    return 0.0F;
}

static float run_act_mul(const mha_kernels *k, const rows *r, int which)
{
    refill(r);
    k->act_mul[which](r->work, r->other, r->n);
    return 0.0F;
}

static float run_act_back(const mha_kernels *k, const rows *r, int which)
{
    refill(r);
    k->act_back[which](r->work, r->in, r->n);
    return 0.0F;
}

static float run_rope_half(const mha_kernels *k, const rows *r, int which)
{
    (void)which;
    refill(r);
    k->rope_half(r->work, r->other, r->in, r->n);
    return 0.0F;
}

static float run_rope_pair(const mha_kernels *k, const rows *r, int which)
{
    (void)which;
    refill(r);
    k->rope_pair(r->work, r->other, r->in, r->n);
    return 0.0F;
}

static float run_widen(const mha_kernels *k, const rows *r, int which)
{
    k->widen[which](r->work, r->stored, r->n);
    return 0.0F;
}

static float run_dot(const mha_kernels *k, const rows *r, int which)
{
    return k->dot[which](r->stored, r->other, r->n);
}

static const bench benches[] = {
    {"copy (in the next ones)", run_copy, 0},
    {"exp_sum", run_exp_sum, 0},
    {"exp_stats", run_exp_stats, 0},
    {"softcap", run_softcap, 0},
    {"gelu", run_act, MHA_ACT_GELU},
    {"gelu_tanh", run_act, MHA_ACT_GELU_TANH},
    {"quick_gelu", run_act, MHA_ACT_QUICK_GELU},
    {"silu", run_act, MHA_ACT_SILU},
    {"relu", run_act, MHA_ACT_RELU},
    {"tanh", run_act, MHA_ACT_TANH},
    {"elu", run_act, MHA_ACT_ELU},
    {"silu_mul", run_act_mul, MHA_ACT_SILU},
    {"gelu_back", run_act_back, MHA_ACT_GELU},
    {"gelu_tanh_back", run_act_back, MHA_ACT_GELU_TANH},
    {"quick_gelu_back", run_act_back, MHA_ACT_QUICK_GELU},
    {"silu_back", run_act_back, MHA_ACT_SILU},
    {"relu_back", run_act_back, MHA_ACT_RELU},
    {"tanh_back", run_act_back, MHA_ACT_TANH},
    {"elu_back", run_act_back, MHA_ACT_ELU},
    {"mul", run_mul, 0},
    {"softmax_back", run_softmax_back, 0},
    {"rope_half", run_rope_half, 0},
    {"rope_pair", run_rope_pair, 0},
    {"max", run_max, 0},
    {"scale", run_scale, 0},
    {"add", run_add, 0},
    {"axpy", run_axpy, 0},
    {"layer_norm", run_layer_norm, 0},
    {"rms_norm", run_rms_norm, 0},
    {"layer_norm_back", run_norm_back, 1},
    {"rms_norm_back", run_norm_back, 0},
};

/* Nanoseconds an element: the best of several rounds of about 2 ms each. */
static double measure(const bench *b, const mha_kernels *k, const rows *r)
{
    volatile float sink = 0.0F;
    size_t calls = 1;
    double best = HUGE_VAL;

    for (int round = 0; round < 8; round++) {
        const double start = now();
        for (size_t i = 0; i < calls; i++)
            sink = sink + b->run(k, r, b->which);
        const double seconds = now() - start;
        if (seconds < 1e-3) {
            calls *= 2; /* too short to time: again, longer */
            round--;
            continue;
        }
        const double ns = 1e9 * seconds / ((double)calls * (double)r->n);
        best = ns < best ? ns : best;
    }
    return best;
}

static void report(const bench *b, const char *name, const mha_kernels *const *isas, size_t count,
                   const rows *r)
{
    double reference = 0.0;

    printf("%-24s", name);
    for (size_t i = 0; i < count; i++) {
        const double ns = measure(b, isas[i], r);
        if (i == 0) {
            reference = ns;
            printf("%10.3f        ", ns);
        } else {
            printf("%10.3f %6.1fx", ns, reference / ns);
        }
    }
    printf("\n");
}

/* Stored bytes whose scales are small numbers in any type: 0x2c is 2^−4 as f16, 2.4e-12 as bf16. */
static void bench_stored(const mha_kernels *const *isas, size_t count, rows *r)
{
    memset(r->stored, 0x2c, 8 * r->n);
    for (int t = 0; t < MHA_DTYPE_FLOAT_COUNT; t++) {
        const bench widen = {"", run_widen, t}, dot = {"", run_dot, t};
        char name[32];
        snprintf(name, sizeof name, "widen %s", mha_dtype_get((mha_dtype)t)->name);
        report(&widen, name, isas, count, r);
        snprintf(name, sizeof name, "dot %s", mha_dtype_get((mha_dtype)t)->name);
        report(&dot, name, isas, count, r);
    }
}

/* The products of attention over one block of 64 query rows, and of one tile of a projection. */
static void bench_gemm(void)
{
    static const struct {
        const char *name;
        bool b_transposed;
        size_t m, n, k;
    } shapes[] = {
        {"projection 256x768x768", true, 256, 768, 768}, {"mlp 256x3072x768", true, 256, 3072, 768},
        {"scores 64x1024x64", true, 64, 1024, 64},       {"values 64x64x1024", false, 64, 64, 1024},
        {"scores 17x17x64", true, 17, 17, 64},           {"values 17x64x17", false, 17, 64, 17},
        {"square 1024", true, 1024, 1024, 1024},
    };
    const size_t cells = (size_t)4096 * 1024;
    float *a = calloc(cells, sizeof *a), *b = calloc(cells, sizeof *b),
          *c = calloc(cells, sizeof *c);

    mha_gemm_init();
    for (size_t i = 0; a != NULL && b != NULL && c != NULL && i < sizeof shapes / sizeof *shapes;
         i++) {
        const size_t m = shapes[i].m, n = shapes[i].n, k = shapes[i].k;
        const double flops = 2.0 * (double)m * (double)n * (double)k;
        const size_t calls = (size_t)(4e9 / flops) + 1;
        double best = HUGE_VAL;
        for (int round = 0; round < 4; round++) {
            const double start = now();
            for (size_t j = 0; j < calls; j++)
                mha_gemm(false, shapes[i].b_transposed, m, n, k, 1.0F, a, k, b,
                         shapes[i].b_transposed ? k : n, 0.0F, c, n);
            const double seconds = (now() - start) / (double)calls;
            best = seconds < best ? seconds : best;
        }
        printf("gemm %-24s %7.1f GFLOP/s\n", shapes[i].name, flops / best * 1e-9);
    }
    free(a);
    free(b);
    free(c);
}

int main(int argc, char **argv)
{
    const mha_kernels *isas[ISAS_MAX];
    const size_t count = mha_kernels_list(isas, ISAS_MAX);
    const long asked = argc > 1 ? strtol(argv[1], NULL, 10) : 1024;

    if (asked < BLOCK_MAX || asked > MHA_ROPE_MAX) {
        fprintf(stderr, "bench_kernels: LENGTH is %d to %d\n", BLOCK_MAX, MHA_ROPE_MAX);
        return 2;
    }
    rows r = {.n = (size_t)asked / BLOCK_MAX * BLOCK_MAX};
    r.in = malloc(r.n * sizeof *r.in);
    r.other = malloc(r.n * sizeof *r.other);
    r.work = malloc(r.n * sizeof *r.work);
    r.stored = malloc(r.n * 8);
    if (r.in == NULL || r.other == NULL || r.work == NULL || r.stored == NULL)
        return 1;
    for (size_t i = 0; i < r.n; i++) {
        r.in[i] = (float)((double)(i * 2654435761U % 16001U) / 1000.0 - 8.0); /* −8 … 8 */
        r.other[i] = (float)(i % 7) * 0.25F - 0.5F;
    }
    refill(&r);
    printf("rows of %zu elements, ns an element%-4s", r.n, "");
    for (size_t i = 0; i < count; i++)
        printf("%s%-18s", i == 0 ? "\n                              " : "", isas[i]->isa);
    printf("\n");
    for (size_t i = 0; i < sizeof benches / sizeof *benches; i++)
        report(&benches[i], benches[i].name, isas, count, &r);
    bench_stored(isas, count, &r);
    bench_gemm();
    free(r.in);
    free(r.other);
    free(r.work);
    free(r.stored);
    return 0;
}
