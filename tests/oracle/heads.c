/* heads.c: descriptors of whole models against their definitions in double from the scores of the
 * same run, with and without special keys; the same bytes with one thread and two; the run's checks
 * of itself. Prints the largest error of each model. Limit: 1e-6 + 1e-5 relative. */
#include "support/attention.h"
#include "support/fixture.h"
#include "support/test.h"

#include "base/rng.h"
#include "mha/analysis.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOCS = 3, LONGEST = 90 };

static char models[][16] = {"bert-mlm", "roberta-class", "distilbert-mlm", "gpt2-lm", "llama-gqa",
                            "mistral",  "qwen2",         "qwen3",          "gemma3",  "t5",
                            "t5-gated"};

typedef struct corpus {
    mha_document docs[DOCS];
    int32_t ids[DOCS][LONGEST], target_ids[DOCS][LONGEST];
    uint8_t special[DOCS][LONGEST], target_special[DOCS][LONGEST];
} corpus;

static size_t length(const mha_model_info *info, mha_rng *r, size_t d)
{
    size_t most =
        info->max_positions > 0 && info->max_positions < LONGEST ? info->max_positions : LONGEST;
    return d == 0 ? most : d == 1 ? 1 : 2 + (size_t)mha_rng_below(r, most - 2);
}

static void make_corpus(corpus *c, const mha_model_info *info)
{
    mha_rng r;
    mha_rng_seed(&r, 12, 0);
    memset(c, 0, sizeof *c);
    for (size_t d = 0; d < DOCS; d++) {
        bool both = info->layers[MHA_ENC] > 0 && info->layers[MHA_DEC] > 0;
        size_t n = length(info, &r, d), target_n = both ? length(info, &r, d) : 0;
        for (size_t t = 0; t < LONGEST; t++) {
            c->ids[d][t] = (int32_t)mha_rng_below(&r, info->vocab);
            c->target_ids[d][t] = (int32_t)mha_rng_below(&r, info->vocab);
            c->special[d][t] = t == 0 || mha_rng_below(&r, 5) == 0;
            c->target_special[d][t] = t == 0 || mha_rng_below(&r, 5) == 0;
        }
        c->docs[d] = (mha_document){.ids = c->ids[d],
                                    .n = n,
                                    .special = c->special[d],
                                    .target_ids = both ? c->target_ids[d] : NULL,
                                    .target_n = target_n,
                                    .target_special = c->target_special[d]};
    }
}

/* Softmax over the scores that count; returns how many those are. */
static size_t weigh(const float *s, size_t n, const uint8_t *left_out, double *p, uint8_t *visible)
{
    double most = -(double)INFINITY, sum = 0;
    size_t count = 0;
    for (size_t j = 0; j < n; j++) {
        visible[j] = (double)s[j] > -(double)INFINITY && (left_out == NULL || !left_out[j]);
        count += visible[j];
        if (visible[j])
            most = fmax(most, (double)s[j]);
    }
    for (size_t j = 0; j < n; j++)
        sum += p[j] = visible[j] ? exp((double)s[j] - most) : 0;
    for (size_t j = 0; j < n; j++)
        p[j] /= sum;
    return count;
}

typedef struct tally {
    double sum[MHA_HEADS_COLUMNS];
    size_t rows[MHA_HEADS_COLUMNS];
} tally;

static void count(tally *t, mha_heads_column c, double x)
{
    if (!isnan(x)) {
        t->sum[c] += x;
        t->rows[c]++;
    }
}

static void count_row(tally *t, const mha_row_stats *s, size_t i, const mha_attn_info *step)
{
    t->rows[MHA_HEADS_ROWS]++;
    count(t, MHA_HEADS_ENTROPY, s->entropy);
    count(t, MHA_HEADS_ENTROPY_NORM,
          s->visible > 1 ? s->entropy / log((double)s->visible) : (double)NAN);
    count(t, MHA_HEADS_EFFECTIVE_KEYS, exp(s->entropy));
    count(t, MHA_HEADS_MAX_WEIGHT, s->max_weight);
    count(t, MHA_HEADS_DISTANCE, s->distance);
    count(t, MHA_HEADS_OFFSET, s->offset);
    count(t, MHA_HEADS_SELF_MASS, s->self);
    count(t, MHA_HEADS_PREV_MASS, s->prev);
    count(t, MHA_HEADS_NEXT_MASS, step->causal ? (double)NAN : s->next);
    count(t, MHA_HEADS_FIRST_MASS, i > 0 ? s->first : (double)NAN);
    count(t, MHA_HEADS_SPECIAL_MASS, s->special);
}

/* One head on one document, from its scores [T, S]. */
static void define_head(const mha_attn_info *step, const float *scores, size_t T, size_t S,
                        const uint8_t *special, bool renorm, tally *t)
{
    double p[LONGEST], left[LONGEST];
    uint8_t visible[LONGEST];
    for (size_t i = 0; i < T; i++) {
        long query = step->kind == MHA_SELF ? (long)i : -1;
        if (weigh(scores + i * S, S, NULL, p, visible) == 0)
            continue;
        mha_row_stats s = define_stats(p, visible, S, query, special);
        if (renorm) {
            double mass = s.special;
            if (1 - mass < 1e-6 || weigh(scores + i * S, S, special, left, visible) == 0)
                continue;
            s = define_stats(left, visible, S, query, special);
            s.special = mass;
        }
        count_row(t, &s, i, step);
    }
}

static double compare(const mha_head_row *row, const tally *t)
{
    double worst = 0;
    assert_true(row->values[MHA_HEADS_ROWS] == (double)t->rows[MHA_HEADS_ROWS]);
    for (int c = MHA_HEADS_ROWS + 1; c < MHA_HEADS_COLUMNS; c++) {
        double want = t->rows[c] > 0 ? t->sum[c] / (double)t->rows[c] : (double)NAN;
        double got = row->values[c];
        if (isnan(want) != isnan(got))
            fail_msg("%s: %g, expected %g", mha_heads_columns()[c].name, got, want);
        if (isnan(want))
            continue;
        double error = fabs(got - want) / (1e-6 + 1e-5 * fabs(want));
        if (!(error <= 1))
            fail_msg("%s.%u.%u %s: %.9g, expected %.9g", mha_stack_name(row->stack), row->layer,
                     row->head, mha_heads_columns()[c].name, got, want);
        worst = fmax(worst, error);
    }
    return worst;
}

static double compare_document(const mha_model_info *info, const mha_trace *scores, const corpus *c,
                               size_t d, const mha_head_row *rows, bool renorm)
{
    double worst = 0;
    size_t row = 0;
    for (size_t a = 0; a < info->attn_count; a++) {
        const mha_attn_info *step = &info->attn[a];
        char name[64];
        snprintf(name, sizeof name, "%s.%s.%u.scores", mha_stack_name(step->stack),
                 mha_kind_name(step->kind), step->layer);
        const mha_trace_array *array = mha_trace_find(scores, d, name);
        assert_non_null(array);
        size_t T = array->shape[1], S = array->shape[2];
        bool target = step->stack == MHA_DEC && step->kind == MHA_SELF && c->docs[d].target_n > 0;
        for (uint32_t h = 0; h < step->heads; h++) {
            tally t = {{0}, {0}};
            define_head(step, (const float *)array->data + h * T * S, T, S,
                        target ? c->target_special[d] : c->special[d], renorm, &t);
            worst = fmax(worst, compare(&rows[row++], &t));
        }
    }
    return worst;
}

/* Runs heads, and the scores beside them where `trace` is not NULL. */
static mha_heads *run(mha_engine *e, const mha_model *m, const corpus *c, mha_special special,
                      mha_trace **trace)
{
    const mha_heads_options options = {.special = special, .resamples = 50};
    const mha_trace_options scores = {.sites = 1u << MHA_SITE_SCORES};
    mha_heads *h;
    mha_err err = {0};
    if (mha_heads_new(&h, m, &options, &err) != MHA_OK ||
        mha_heads_begin(h, c->docs, NULL, DOCS, 0, &err) != MHA_OK)
        fail_msg("%s", err.message);
    const mha_probe *probes[2] = {mha_heads_probe(h), NULL};
    if (trace != NULL) {
        if (mha_trace_new(trace, m, c->docs, DOCS, &scores, &err) != MHA_OK)
            fail_msg("%s", err.message);
        probes[1] = mha_trace_probe(*trace);
    }
    if (mha_engine_run(e, c->docs, DOCS, probes, trace != NULL ? 2 : 1, NULL, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    return h;
}

static double check_definitions(mha_engine *e, const mha_model *m, const corpus *c,
                                mha_special special)
{
    mha_trace *trace;
    mha_heads *h = run(e, m, c, special, &trace);
    mha_head_row *rows = calloc(mha_heads_count(h), sizeof *rows);
    double worst = 0;
    for (size_t d = 0; d < DOCS; d++) {
        assert_true(mha_heads_document(h, d, rows));
        worst = fmax(worst, compare_document(mha_model_info_get(m), trace, c, d, rows,
                                             special == MHA_SPECIAL_RENORM));
    }
    free(rows);
    mha_trace_free(trace);
    mha_heads_free(h);
    return worst;
}

static void check_threads(mha_engine *const e[2], const mha_model *m, const corpus *c)
{
    const mha_head_row *rows[2];
    mha_heads *h[2];
    size_t n;
    mha_err err = {0};
    for (int i = 0; i < 2; i++) {
        h[i] = run(e[i], m, c, MHA_SPECIAL_KEEP, NULL);
        assert_int_equal(mha_heads_result(h[i], &rows[i], &n, &err), MHA_OK);
    }
    for (size_t k = 0; k < n; k++) {
        assert_memory_equal(rows[0][k].values, rows[1][k].values, sizeof rows[0][k].values);
        assert_memory_equal(rows[0][k].lo, rows[1][k].lo, sizeof rows[0][k].lo);
        assert_memory_equal(rows[0][k].hi, rows[1][k].hi, sizeof rows[0][k].hi);
    }
    mha_heads_free(h[0]);
    mha_heads_free(h[1]);
}

static mha_checks check_checks(mha_engine *e, const mha_model *m, const corpus *c)
{
    mha_checks checks;
    mha_err err = {0};
    if (mha_checks_run(&checks, e, m, &c->docs[0], 0, &err) != MHA_OK)
        fail_msg("%s", err.message);
    size_t n = c->docs[0].n, target_n = c->docs[0].target_n;
    assert_int_equal(checks.tokens, (n < 32 ? n : 32) + (target_n < 32 ? target_n : 32));
    assert_true(checks.row_sum_error > 0 && checks.row_sum_error <= 1e-6);
    assert_true(checks.masked_mass == 0);
    assert_true(checks.head_sum_error > 0 && checks.head_sum_error <= 2e-6);
    return checks;
}

static void check_model(void **state)
{
    static corpus c;
    const char *name = *state;
    char path[1024];
    mha_model *m;
    mha_engine *e[2];
    mha_err err = {0};
    fixture_path(path, sizeof path, name, NULL);
    if (mha_model_open(&m, path, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    for (size_t i = 0; i < 2; i++) {
        mha_engine_options options = {.threads = i + 1};
        assert_int_equal(mha_engine_new(&e[i], m, &options, &err), MHA_OK);
    }
    make_corpus(&c, mha_model_info_get(m));
    double keep = check_definitions(e[1], m, &c, MHA_SPECIAL_KEEP);
    double renorm = check_definitions(e[1], m, &c, MHA_SPECIAL_RENORM);
    check_threads(e, m, &c);
    mha_checks checks = check_checks(e[1], m, &c);
    print_message(
        "note: %-16s statistics: %.3f of the limit, without special keys %.3f; rows sum to "
        "1 within %.1e, heads to the output %.1e\n",
        name, keep, renorm, checks.row_sum_error, checks.head_sum_error);
    mha_engine_free(e[0]);
    mha_engine_free(e[1]);
    mha_model_close(m);
}

/* What a pass of statistics plans for is linear in the length, to 100,000 tokens: 1.1 kB a token of
 * a model whose maps there would take 480 GB. */
static void memory_is_linear(void **state)
{
    enum { MOST = 100000 };
    (void)state;
    char path[1024];
    mha_model *m;
    mha_engine *e;
    mha_err err = {0};
    fixture_path(path, sizeof path, "llama-gqa", NULL);
    assert_int_equal(mha_model_open(&m, path, NULL, &err), MHA_OK);
    assert_int_equal(mha_engine_new(&e, m, &(mha_engine_options){.threads = 2}, &err), MHA_OK);
    const mha_probe stats = {.sites = 1u << MHA_SITE_STATS};
    const mha_probe *probes[] = {&stats};
    mha_plan_info plan[3];
    for (size_t i = 0; i < 3; i++) {
        int32_t *ids = calloc(MOST, sizeof *ids);
        mha_document doc = {.ids = ids, .n = MOST >> (2 - i)};
        assert_int_equal(mha_engine_plan(e, &doc, 1, probes, 1, &plan[i], &err), MHA_OK);
        free(ids);
    }
    double first = (double)(plan[1].bytes - plan[0].bytes);
    double second = (double)(plan[2].bytes - plan[1].bytes);
    assert_true(fabs(second / first - 2) < 0.01);
    assert_true((double)plan[2].bytes < 120e6);
    mha_engine_free(e);
    mha_model_close(m);
}

int main(void)
{
    enum { COUNT = sizeof models / sizeof models[0] };
    struct CMUnitTest tests[COUNT + 1] = {cmocka_unit_test(memory_is_linear)};
    for (size_t i = 0; i < COUNT; i++)
        tests[1 + i] = (struct CMUnitTest){models[i], check_model, NULL, NULL, models[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
