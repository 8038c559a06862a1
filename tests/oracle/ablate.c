/* ablate.c: leave-one-out with shared prefixes against one full pass for each head, with zero and
 * with mean fills, on all families that have a read-out; and losses that do not depend on order or
 * company. */
#include "support/fixture.h"
#include "support/test.h"
#include <math.h>
#include <stdlib.h>

static char models[][24] = {"bert-mlm",    "bert-class",  "roberta-mlm", "distilbert-class",
                            "gpt2-lm",     "gpt2-class",  "llama-gqa",   "mistral",
                            "qwen3",       "gemma3",      "t5",          "t5-gated",
                            "deberta-mlm", "deberta-conv"};

#define TERMS 6

/* Some terms at awkward rows; the ids are any that exist. */
static void add_terms(mha_document *d, mha_prediction *p, const mha_model_info *info)
{
    size_t rows = d->target_n > 0 ? d->target_n : d->n;
    uint32_t ids = info->head == MHA_HEAD_CLASS ? info->classes : info->vocab;
    size_t n = info->head == MHA_HEAD_CLASS ? 1 : TERMS < rows ? TERMS : rows;
    for (size_t t = 0; t < n; t++)
        p[t] = (mha_prediction){(uint32_t)(n == 1 ? 0 : t * (rows - 1) / (n - 1)),
                                (int32_t)((t * 7 + 2) % ids), -1};
    d->predict = p;
    d->predict_n = n;
}

static float *make_fill(const mha_model_info *info, mha_fill *fill, const float **z)
{
    size_t most = 0;
    for (size_t a = 0; a < info->attn_count; a++)
        if (info->attn[a].heads * info->attn[a].width > most)
            most = info->attn[a].heads * info->attn[a].width;
    float *values = malloc(most * sizeof *values);
    for (size_t i = 0; i < most; i++)
        values[i] = 0.3f * sinf((float)i * 1.7f);
    for (size_t a = 0; a < info->attn_count; a++)
        z[a] = values;
    fill->z = z;
    fill->rows = 1;
    return values;
}

static double naive_loss(mha_engine *e, const mha_document *doc, size_t a, size_t h, size_t A)
{
    size_t H = mha_engine_gate_heads(e);
    float *gates = malloc(A * H * sizeof *gates);
    for (size_t i = 0; i < A * H; i++)
        gates[i] = 1;
    gates[a * H + h] = 0;
    mha_document d = *doc;
    d.gates = gates;
    double loss;
    mha_err err = {0};
    if (mha_engine_loss(e, &d, 1, &loss, NULL, NULL, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    free(gates);
    return loss;
}

static mha_status sweep_within(const mha_model *m, const mha_document *docs, mha_ablation *out,
                               uint64_t memory)
{
    mha_engine *e;
    mha_err err = {0};
    assert_int_equal(mha_engine_new(&e, m, &(mha_engine_options){.memory = memory}, &err), MHA_OK);
    mha_status st = mha_engine_ablate(e, docs, 2, out, NULL, NULL, &err);
    mha_engine_free(e);
    return st;
}

/* The bytes that are told beforehand are those that the limit goes by. */
static void check_bytes(mha_engine *e, const mha_model *m, const mha_document *docs,
                        mha_ablation *out)
{
    uint64_t bytes;
    mha_err err = {0};
    assert_int_equal(mha_engine_ablate_bytes(e, docs, 2, &bytes, &err), MHA_OK);
    assert_int_equal(sweep_within(m, docs, out, bytes), MHA_OK);
    assert_int_equal(sweep_within(m, docs, out, bytes - 1), MHA_ERR_NOMEM);
}

static void check_model(void **state)
{
    char path[1024];
    fixture_path(path, sizeof path, *state, NULL);
    mha_model *m;
    mha_engine *e;
    mha_err err = {0};
    if (mha_model_open(&m, path, NULL, &err) != MHA_OK ||
        mha_engine_new(&e, m, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    const mha_model_info *info = mha_model_info_get(m);
    size_t A = info->attn_count, H = mha_engine_gate_heads(e);
    fixture f[2];
    mha_document docs[2];
    mha_prediction terms[2][TERMS];
    for (int n = 0; n < 2; n++) {
        assert_true(fixture_open(&f[n], *state, n));
        docs[n] = f[n].doc;
        add_terms(&docs[n], terms[n], info);
    }
    mha_fill fill;
    const float **z = malloc(A * sizeof *z);
    float *values = make_fill(info, &fill, z);
    docs[1].fill = &fill;

    double base[2], *variant = calloc(2 * A * H, sizeof *variant), worst = 0;
    mha_ablation out = {.base = base, .variant = variant};
    if (mha_engine_ablate(e, docs, 2, &out, NULL, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    for (size_t d = 0; d < 2; d++)
        for (size_t a = 0; a < A; a++)
            for (size_t h = 0; h < info->attn[a].heads; h++) {
                double want = naive_loss(e, &docs[d], a, h, A);
                double got = variant[(d * A + a) * H + h];
                worst = fmax(worst, fabs(got - want));
                assert_true(fabs(got - want) <= 1e-5);
                assert_true(fabs(got - base[d]) > 1e-7); /* the head does something */
            }
    assert_true(out.multiply_adds < out.naive_multiply_adds);
    print_message(
        "note: %-18s leave-one-out differs from full passes by at most %.1e; %.2f of their "
        "multiply-adds\n",
        (char *)*state, worst, (double)out.multiply_adds / (double)out.naive_multiply_adds);
    check_bytes(e, m, docs, &out);
    free(variant);
    free(values);
    free(z);
    fixture_close(&f[0]);
    fixture_close(&f[1]);
    mha_engine_free(e);
    mha_model_close(m);
}

int main(void)
{
    struct CMUnitTest tests[sizeof models / sizeof models[0]];
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        tests[i] = (struct CMUnitTest){models[i], check_model, NULL, NULL, models[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
