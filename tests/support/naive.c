/* naive.c: tensors of the file as doubles, config keys, the loss. */
#include "io/json.h"
#include "support/naive_private.h"
#include "support/test.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the file ---------------------------------------------------------------------------------
 */

static double half(uint16_t h)
{
    int exponent = h >> 10 & 31;
    double m = h & 1023, sign = h >> 15 ? -1 : 1;
    if (exponent == 0)
        return sign * ldexp(m, -24);
    return sign * ldexp(1024 + m, exponent - 25);
}

static double element(const mha_tensor *t, size_t i)
{
    float f;
    uint32_t bits;
    uint16_t h;
    switch (t->type) {
    case MHA_F32:
        memcpy(&f, t->data + 4 * i, 4);
        return (double)f;
    case MHA_BF16:
        memcpy(&h, t->data + 2 * i, 2);
        bits = (uint32_t)h << 16;
        memcpy(&f, &bits, 4);
        return (double)f;
    case MHA_F16:
        memcpy(&h, t->data + 2 * i, 2);
        return half(h);
    default:
        fail_msg("%s: a type that the naive pass does not read", t->name);
    }
    return 0;
}

naive *naive_open(const char *path)
{
    naive *n = calloc(1, sizeof *n);
    mha_err err = {0};
    assert_non_null(n);
    if (mha_checkpoint_open(&n->file, path, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    n->tensor = calloc(n->file->tensor_count, sizeof *n->tensor);
    assert_non_null(n->tensor);
    for (size_t i = 0; i < n->file->tensor_count; i++) {
        const mha_tensor *t = &n->file->tensors[i];
        if (t->type >= MHA_DTYPE_FLOAT_COUNT)
            continue;
        naive_tensor *to = &n->tensor[n->tensor_count++];
        to->name = t->name;
        to->count = 1;
        for (uint32_t d = 0; d < t->rank; d++)
            to->count *= (size_t)t->shape[d];
        to->value = malloc((to->count + 1) * sizeof *to->value);
        assert_non_null(to->value);
        for (size_t j = 0; j < to->count; j++)
            to->value[j] = element(t, j);
    }
    return n;
}

void naive_close(naive *n)
{
    for (size_t i = 0; i < n->tensor_count; i++)
        free(n->tensor[i].value);
    free(n->tensor);
    mha_checkpoint_close(n->file);
    free(n);
}

naive_tensor *naive_tensor_find(naive *n, const char *name)
{
    for (size_t i = 0; i < n->tensor_count; i++)
        if (strcmp(n->tensor[i].name, name) == 0)
            return &n->tensor[i];
    return NULL;
}

double config_number(const naive *n, const char *key, double otherwise)
{
    const json_t *v = mha_json_at(n->file->config, key);
    if (json_is_boolean(v))
        return json_is_true(v);
    return json_is_number(v) ? json_number_value(v) : otherwise;
}

const char *config_text(const naive *n, const char *key, const char *otherwise)
{
    const json_t *v = mha_json_at(n->file->config, key);
    return json_is_string(v) ? json_string_value(v) : otherwise;
}

/* ---- what the families use --------------------------------------------------------------------
 */

double *pass_memory(pass *p, size_t count)
{
    naive_result *r = p->out;
    if (r->memory_count == p->capacity) {
        p->capacity = p->capacity == 0 ? 256 : 2 * p->capacity;
        r->memory = realloc(r->memory, p->capacity * sizeof *r->memory);
        assert_non_null(r->memory);
    }
    double *x = calloc(count + 1, sizeof *x);
    assert_non_null(x);
    r->memory[r->memory_count++] = x;
    return x;
}

double *pass_tensor(pass *p, bool must, const char *format, ...)
{
    char name[256], full[320];
    va_list args;
    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    snprintf(full, sizeof full, "%s%s", p->prefix, name);
    const naive_tensor *t = naive_tensor_find(p->n, full);
    if (t == NULL)
        t = naive_tensor_find(p->n, name);
    if (t == NULL && must)
        fail_msg("no tensor %s", name);
    return t != NULL ? t->value : NULL;
}

void pass_nudge(pass *p, mha_site site, mha_kind kind, double *x, size_t stride, size_t head_stride)
{
    const naive_nudge *n = p->nudge;
    if (n != NULL && n->site == site && n->stack == p->stack && n->kind == kind &&
        n->layer == p->layer)
        x[n->head * head_stride + n->row * stride + n->col] += n->by;
}

void pass_freeze(pass *p, naive_part part, double *x, size_t n)
{
    naive_frozen *f = p->n->frozen;
    if (f == NULL)
        return;
    if (f->again) {
        assert_true(f->at + n <= f->count);
        memcpy(x, f->value + f->at, n * sizeof *x);
        f->at += n;
        if (f->silent & part && part != NAIVE_HEAD)
            memset(x, 0, n * sizeof *x);
        return;
    }
    if (f->count + n > f->capacity) {
        f->capacity = 2 * (f->count + n);
        f->value = realloc(f->value, f->capacity * sizeof *f->value);
        assert_non_null(f->value);
    }
    memcpy(f->value + f->count, x, n * sizeof *x);
    f->count += n;
}

void pass_hidden(pass *p, double *x, size_t rows, size_t D)
{
    p->layer = 0;
    pass_nudge(p, MHA_SITE_HIDDEN, MHA_SELF, x, D, 0);
    p->out->hidden = x;
    p->out->hidden_count = rows * D;
}

void pass_logits(pass *p, double *logits, size_t rows, size_t classes)
{
    double cap = p->n->logit_softcap;
    p->out->uncapped = pass_memory(p, rows * classes);
    memcpy(p->out->uncapped, logits, rows * classes * sizeof *logits);
    for (size_t i = 0; cap > 0 && i < rows * classes; i++)
        logits[i] = cap * tanh(logits[i] / cap);
    p->out->logits = logits;
    p->out->rows = rows;
    p->out->classes = classes;
}

double *pass_pool(pass *p, const double *x, size_t rows, size_t D, bool last)
{
    double *y = pass_memory(p, D);
    if (!p->n->mean_pool) {
        memcpy(y, x + (last ? rows - 1 : 0) * D, D * sizeof *y);
        return y;
    }
    for (size_t r = 0; r < rows; r++)
        add(y, x + r * D, D);
    scale_by(y, D, 1 / (double)rows);
    return y;
}

/* ---- the loss ---------------------------------------------------------------------------------
 */

static double term(const double *s, size_t V, const mha_prediction *t, bool *hit)
{
    if (t->against >= 0) {
        *hit = s[t->id] > s[t->against];
        return s[t->against] - s[t->id];
    }
    double most = s[0], sum = 0;
    for (size_t v = 1; v < V; v++)
        most = fmax(most, s[v]);
    for (size_t v = 0; v < V; v++)
        sum += exp(s[v] - most);
    *hit = s[t->id] >= most;
    return most + log(sum) - s[t->id];
}

void naive_run(naive *n, const mha_document *doc, const double *gates, const naive_nudge *nudge,
               naive_result *out)
{
    memset(out, 0, sizeof *out);
    pass p = {.n = n, .doc = doc, .gates = gates, .nudge = nudge, .out = out, .prefix = ""};
    const char *type = config_text(n, "model_type", "");
    if (strcmp(type, "gpt2") == 0)
        naive_gpt2(&p);
    else if (strcmp(type, "t5") == 0)
        naive_t5(&p);
    else if (strstr(type, "bert") != NULL)
        naive_encoder(&p);
    else
        naive_llama(&p);
    for (size_t t = 0; t < doc->predict_n; t++) {
        bool hit;
        const mha_prediction *at = &doc->predict[t];
        assert_true(at->row < out->rows && at->id >= 0 && (size_t)at->id < out->classes);
        out->loss += term(out->logits + at->row * out->classes, out->classes, at, &hit) /
                     (double)doc->predict_n;
        out->hits += hit;
    }
}

void naive_result_release(naive_result *r)
{
    for (size_t i = 0; i < r->memory_count; i++)
        free(r->memory[i]);
    free(r->memory);
    memset(r, 0, sizeof *r);
}

double naive_loss(naive *n, const mha_document *doc, const double *gates, const naive_nudge *nudge)
{
    naive_result r;
    naive_run(n, doc, gates, nudge, &r);
    double loss = r.loss;
    naive_result_release(&r);
    return loss;
}
