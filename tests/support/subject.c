/* subject.c: see subject.h. */
#include "support/subject.h"
#include "base/buf.h"
#include "base/rng.h"
#include "support/test.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void subject_open(subject *s, const char *name, const char *family, uint64_t memory)
{
    char path[1024], base[128];
    mha_err err = {0};
    mha_model_options model = {.family = family, .family_name = "a test"};
    mha_engine_options options = {.memory = memory};
    memset(s, 0, sizeof *s);
    s->name = name;
    fixture_path(path, sizeof path, name, NULL);
    if (mha_model_open(&s->m, path, &model, &err) != MHA_OK ||
        mha_engine_new(&s->e, s->m, &options, &err) != MHA_OK)
        fail_msg("%s", err.message);
    fixture_expected_of(name, base, sizeof base);
    fixture_path(path, sizeof path, base, "model.safetensors");
    if (access(path, F_OK) == 0) {
        fixture_path(path, sizeof path, base, NULL);
        s->n = naive_open(path);
    }
    s->info = mha_model_info_get(s->m);
    s->heads = mha_engine_gate_heads(s->e);
}

char *subject_family(const char *family, const char *from, const char *to)
{
    const char *root = getenv("MHA_ROOT");
    char path[1024], *text = calloc(1, 1 << 16);
    mha_buf out;
    mha_buf_init(&out, 1 << 17);
    snprintf(path, sizeof path, "%s/src/model/family/%s.family", root != NULL ? root : ".", family);
    FILE *f = fopen(path, "r");
    assert_true(f != NULL && text != NULL);
    text[fread(text, 1, (1 << 16) - 1, f)] = 0;
    fclose(f);
    const char *at = text, *next;
    assert_non_null(strstr(text, from));
    while ((next = strstr(at, from)) != NULL) {
        assert_int_equal(mha_buf_add(&out, at, (size_t)(next - at), NULL), MHA_OK);
        assert_int_equal(mha_buf_adds(&out, to, NULL), MHA_OK);
        at = next + strlen(from);
    }
    assert_int_equal(mha_buf_adds(&out, at, NULL), MHA_OK);
    free(text);
    return out.data;
}

void subject_close(subject *s)
{
    if (s->n != NULL)
        naive_close(s->n);
    mha_engine_free(s->e);
    mha_model_close(s->m);
}

/* ---- documents --------------------------------------------------------------------------------
 */

static void *memory(size_t count, size_t size)
{
    void *p = calloc(count + 1, size);
    assert_non_null(p);
    return p;
}

static int32_t *draw_ids(mha_rng *rng, size_t n, uint32_t vocab)
{
    int32_t *ids = memory(n, sizeof *ids);
    for (size_t i = 0; i < n; i++)
        ids[i] = 3 + (int32_t)(mha_rng_below(rng, vocab - 3));
    return ids;
}

static void draw_gates(subject_document *d, const subject *s, mha_rng *rng, subject_gates kind)
{
    size_t n = s->info->attn_count * s->heads;
    d->gates = memory(n, sizeof *d->gates);
    d->exact = memory(n, sizeof *d->exact);
    for (size_t i = 0; i < n; i++) {
        uint64_t draw = mha_rng_below(rng, 6);
        d->gates[i] = draw == 0 ? 0 : draw == 1 ? 1 : (float)mha_rng_uniform(rng) * 1.5f;
        if (kind <= GATES_ONE)
            d->gates[i] = 1;
        d->exact[i] = (double)d->gates[i];
    }
    if (kind != GATES_NONE)
        d->doc.gates = d->gates;
}

static void draw_fill(subject_document *d, const subject *s, mha_rng *rng, subject_gates kind)
{
    size_t width = 0, T = d->doc.n > d->doc.target_n ? d->doc.n : d->doc.target_n;
    for (size_t a = 0; a < s->info->attn_count; a++) {
        size_t w = (size_t)s->info->attn[a].heads * s->info->attn[a].width;
        width = w > width ? w : width;
    }
    d->fill.rows = kind == GATES_MEAN ? 1 : T;
    d->fill_values = memory(d->fill.rows * width, sizeof *d->fill_values);
    for (size_t i = 0; i < d->fill.rows * width; i++)
        d->fill_values[i] = (float)mha_rng_uniform(rng) - 0.5f;
    d->fill_z = memory(s->info->attn_count, sizeof *d->fill_z);
    for (size_t a = 0; a < s->info->attn_count; a++)
        d->fill_z[a] = kind == GATES_FILL && a == 1 ? NULL : d->fill_values;
    d->fill.z = d->fill_z;
    d->doc.fill = &d->fill;
}

void subject_document_make(subject_document *d, const subject *s, size_t length,
                           subject_gates gates, bool difference, uint64_t seed)
{
    mha_rng rng;
    mha_rng_seed(&rng, seed, length);
    memset(d, 0, sizeof *d);
    d->doc.n = length;
    d->doc.ids = d->ids = draw_ids(&rng, length, s->info->vocab);
    if (s->info->head == MHA_HEAD_TARGET) {
        d->doc.target_n = length / 2 + 2;
        d->doc.target_ids = d->target_ids = draw_ids(&rng, d->doc.target_n, s->info->vocab);
    }
    d->terms = terms_of(s->m, &d->doc, difference);
    d->doc.predict = d->terms.term;
    d->doc.predict_n = d->terms.count;
    draw_gates(d, s, &rng, gates);
    if (gates >= GATES_MEAN)
        draw_fill(d, s, &rng, gates);
}

void subject_document_free(subject_document *d)
{
    free(d->ids);
    free(d->target_ids);
    free(d->gates);
    free(d->exact);
    free(d->fill_values);
    free(d->fill_z);
}

/* ---- gradients --------------------------------------------------------------------------------
 */

void subject_gradient(const subject *s, const mha_document *docs, size_t count, double *loss,
                      double *gates)
{
    mha_err err = {0};
    mha_gradient out = {.loss = loss, .gates = gates};
    if (mha_engine_gradient(s->e, docs, count, &out, NULL, NULL, &err) != MHA_OK)
        fail_msg("%s: %s", s->name, err.message);
}

void subject_differences(const subject *s, const subject_document *d, double *out)
{
    for (size_t i = 0; i < s->info->attn_count * s->heads; i++) {
        double at = d->exact[i];
        d->exact[i] = at + SUBJECT_STEP;
        double above = naive_loss(s->n, &d->doc, d->exact, NULL);
        d->exact[i] = at - SUBJECT_STEP;
        double below = naive_loss(s->n, &d->doc, d->exact, NULL);
        d->exact[i] = at;
        out[i] = (above - below) / (2 * SUBJECT_STEP);
    }
}

double largest_error(const double *a, const double *b, size_t n)
{
    double error = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        if (!(fabs(a[i] - b[i]) <= error) && !isnan(error)) /* keeps NaN */
            error = fabs(a[i] - b[i]);
        most = fmax(most, fabs(b[i]));
    }
    return most > 0 ? error / most : error;
}
