/* pruned.c: for every model of tests/data/models: the model that is written without some heads is
 * the one whose gates for these heads are 0, and keeps their numbers. One head, all heads of a
 * layer, all of the model, random sets, sets taken out in two goes; and with means folded into the
 * output bias it is the one whose closed gates let those means through. Prints the largest
 * difference, relative to the largest value of each array. */
#include "base/rng.h"
#include "mha/prune.h"
#include "mha/trace.h"
#include "support/fixture.h"
#include "support/tempdir.h"
#include "support/test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TOLERANCE 1e-5

typedef struct opened {
    mha_model *m;
    mha_engine *e;
    const mha_model_info *info;
    size_t stride;
} opened;

static void open_model(opened *o, const char *path)
{
    mha_err err = {0};
    if (mha_model_open(&o->m, path, NULL, &err) != MHA_OK ||
        mha_engine_new(&o->e, o->m, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    o->info = mha_model_info_get(o->m);
    o->stride = mha_engine_gate_heads(o->e);
}

static void close_model(opened *o)
{
    mha_engine_free(o->e);
    mha_model_close(o->m);
}

/* The last hidden states, and logits where there are any. */
static mha_trace *run(const opened *o, const mha_document *doc)
{
    mha_trace *t;
    mha_err err = {0};
    mha_trace_options options = {.sites = 1u << MHA_SITE_HIDDEN};
    if (o->info->head != MHA_HEAD_NONE)
        options.sites |= 1u << MHA_SITE_LOGITS;
    if (mha_trace_new(&t, o->m, doc, 1, &options, &err) != MHA_OK)
        fail_msg("%s", err.message);
    const mha_probe *probes[] = {mha_trace_probe(t)};
    if (mha_engine_run(o->e, doc, 1, probes, 1, NULL, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    return t;
}

static double difference(const mha_trace *a, const mha_trace *b)
{
    double worst = 0;
    assert_int_equal(mha_trace_count(a, 0), mha_trace_count(b, 0));
    for (size_t i = 0; i < mha_trace_count(a, 0); i++) {
        const mha_trace_array *x = mha_trace_get(a, 0, i), *y = mha_trace_get(b, 0, i);
        assert_string_equal(x->name, y->name);
        size_t n = 1;
        for (size_t d = 0; d < x->dims; d++) {
            assert_int_equal(x->shape[d], y->shape[d]);
            n *= x->shape[d];
        }
        const float *p = x->data, *q = y->data;
        double error = 0, largest = 0;
        for (size_t k = 0; x->type == MHA_ARRAY_F32 && k < n; k++) {
            assert_true(isfinite(p[k]) && isfinite(q[k]));
            error = fmax(error, fabs((double)p[k] - (double)q[k]));
            largest = fmax(largest, fabs((double)p[k]));
        }
        worst = fmax(worst, largest > 0 ? error / largest : error);
    }
    return worst;
}

static float *gates_of(const opened *o, const bool *remove)
{
    float *gates = calloc(o->info->attn_count * o->stride + 1, sizeof *gates);
    for (size_t i = 0; i < o->info->attn_count * o->stride; i++)
        gates[i] = remove[i] ? 0 : 1;
    return gates;
}

/* The written model has the heads that were not removed, with their numbers. */
static void check_numbers(const opened *whole, const opened *pruned, const bool *remove)
{
    assert_int_equal(whole->info->attn_count, pruned->info->attn_count);
    for (size_t a = 0; a < whole->info->attn_count; a++) {
        const mha_attn_info *x = &whole->info->attn[a], *y = &pruned->info->attn[a];
        uint32_t n = 0;
        for (uint32_t h = 0; h < x->heads; h++)
            if (!remove[a * whole->stride + h]) {
                assert_true(n < y->heads);
                assert_int_equal(y->head_ids[n++], x->head_ids[h]);
            }
        assert_int_equal(n, y->heads);
        assert_int_equal(y->original_heads, x->original_heads);
        assert_int_equal(y->kv_heads * (x->heads / x->kv_heads), y->heads);
    }
}

static void prune(const opened *o, const char *path, const mha_prune *p)
{
    mha_err err = {0};
    mha_pruned out;
    if (mha_prune_write(o->m, path, p, &out, NULL, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    assert_true(out.parameters > 0 && out.bytes > 0 && out.removed > 0);
}

/* Writes the model without the marked heads and compares both on the fixture's documents. */
static double check_set(void **state, const opened *whole, const char *fixtures, const bool *remove,
                        mha_prune_mode mode)
{
    const char *path = tempdir_path(state, "pruned");
    mha_prune p = {.mode = mode, .remove = remove, .force = true};
    opened pruned;
    fixture f;
    double worst = 0, changed = 0;
    prune(whole, path, &p);
    open_model(&pruned, path);
    if (mode == MHA_PRUNE_SLICE)
        check_numbers(whole, &pruned, remove);
    float *gates = gates_of(whole, remove);
    for (int n = 0; fixture_open(&f, fixtures, n); n++) {
        mha_document doc = f.doc;
        mha_trace *found = run(&pruned, &doc), *before = run(whole, &doc);
        doc.gates = gates;
        mha_trace *wanted = run(whole, &doc);
        worst = fmax(worst, difference(wanted, found));
        changed = fmax(changed, difference(wanted, before));
        mha_trace_free(found);
        mha_trace_free(before);
        mha_trace_free(wanted);
        fixture_close(&f);
    }
    assert_true(changed > 1e-4); /* the heads did something */
    free(gates);
    close_model(&pruned);
    return worst;
}

/* Layers that share weights lose the same heads. */
static bool shares_weights(const char *model)
{
    return strncmp(model, "albert", 6) == 0;
}

static void mark_group(const opened *o, bool *remove, size_t a, uint32_t group, bool everywhere)
{
    for (size_t b = 0; b < o->info->attn_count; b++) {
        uint32_t width = o->info->attn[b].heads / o->info->attn[b].kv_heads;
        for (uint32_t h = group * width; (b == a || everywhere) && h < (group + 1) * width; h++)
            remove[b * o->stride + h] = true;
    }
}

static void mark_random(const opened *o, bool *remove, uint64_t seed, bool everywhere)
{
    mha_rng rng;
    mha_rng_seed(&rng, seed, 1);
    size_t marked = 0;
    memset(remove, 0, o->info->attn_count * o->stride);
    while (marked == 0)
        for (size_t a = 0; a < (everywhere ? 1 : o->info->attn_count); a++)
            for (uint32_t g = 0; g < o->info->attn[a].kv_heads; g++)
                if (mha_rng_below(&rng, 3) == 0) {
                    mark_group(o, remove, a, g, everywhere);
                    marked++;
                }
}

/* Half of a random set, then the rest of it: the same as all of it at once. */
static double check_twice(void **state, const opened *whole, const char *fixtures, bool *remove,
                          bool everywhere)
{
    size_t n = whole->info->attn_count * whole->stride;
    bool *first = calloc(n, sizeof *first), *rest = calloc(n, sizeof *rest);
    opened once;
    mark_random(whole, first, 77, everywhere);
    for (size_t i = 0; i < n; i++)
        remove[i] = remove[i] || first[i];
    mha_prune p = {.remove = first};
    const char *path = tempdir_path(state, "first");
    prune(whole, path, &p);
    open_model(&once, path);
    size_t marked = 0;
    for (size_t a = 0; a < once.info->attn_count; a++)
        for (uint32_t h = 0; h < once.info->attn[a].heads; h++)
            if (remove[a * whole->stride + once.info->attn[a].head_ids[h]]) {
                rest[a * once.stride + h] = true;
                marked++;
            }
    fixture f;
    double worst = 0;
    assert_true(fixture_open(&f, fixtures, 0));
    mha_document doc = f.doc;
    float *gates = gates_of(whole, remove);
    p.remove = rest;
    path = tempdir_path(state, "second");
    if (marked > 0) {
        opened twice;
        prune(&once, path, &p);
        open_model(&twice, path);
        check_numbers(whole, &twice, remove);
        mha_trace *found = run(&twice, &doc);
        doc.gates = gates;
        mha_trace *wanted = run(whole, &doc);
        worst = difference(wanted, found);
        mha_trace_free(found);
        mha_trace_free(wanted);
        close_model(&twice);
    }
    fixture_close(&f);
    close_model(&once);
    free(gates);
    free(first);
    free(rest);
    return worst;
}

/* Means over the first document; NULL when the model refuses them, as it then must. */
static mha_head_means *make_means(const opened *whole, const mha_document *doc, mha_prune *p)
{
    mha_head_means *means;
    mha_err err = {0};
    if (mha_head_means_new(&means, whole->e, whole->m, doc, 1, NULL, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    p->mean = mha_head_means_get(means);
    mha_status status = mha_prune_check(whole->m, p, &err);
    if (status == MHA_OK)
        return means;
    assert_int_equal(status, MHA_ERR_UNSUPPORTED);
    mha_head_means_free(means);
    return NULL;
}

static double check_means(void **state, const opened *whole, const char *fixtures, bool *remove,
                          mha_prune_mode mode, bool everywhere)
{
    const char *path = tempdir_path(state, "folded");
    mha_prune p = {.mode = mode, .remove = remove, .force = true};
    opened folded;
    fixture f;
    assert_true(fixture_open(&f, fixtures, 0));
    mark_random(whole, remove, 5, everywhere);
    mha_document doc = f.doc;
    mha_head_means *means = make_means(whole, &doc, &p);
    if (means == NULL) {
        fixture_close(&f);
        return 0;
    }
    prune(whole, path, &p);
    open_model(&folded, path);
    mha_trace *found = run(&folded, &doc);
    float *gates = gates_of(whole, remove);
    mha_fill fill = {.z = p.mean, .rows = 1};
    doc.gates = gates;
    doc.fill = &fill;
    mha_trace *wanted = run(whole, &doc);
    double worst = difference(wanted, found);
    mha_trace_free(found);
    mha_trace_free(wanted);
    free(gates);
    mha_head_means_free(means);
    close_model(&folded);
    fixture_close(&f);
    return worst;
}

/* Is slicing refused for this reason? Any other failure is one of the test. */
static bool refuses(void **state, const opened *whole, const bool *remove, const char *why)
{
    mha_err err = {0};
    mha_pruned out;
    mha_prune p = {.remove = remove, .force = true};
    const char *path = tempdir_path(state, "sliced");
    return mha_prune_write(whole->m, path, &p, &out, NULL, NULL, &err) != MHA_OK &&
           strstr(err.message, why) != NULL;
}

/* Heads that are put side by side or averaged have no W_O: they cannot go, in either mode. */
static bool is_refused(const opened *whole, const bool *remove)
{
    mha_prune p = {.remove = remove};
    mha_err err = {0};
    mha_status status = mha_prune_check(whole->m, &p, &err);
    if (status == MHA_OK || strstr(err.message, "no matrix follows the heads of graph") == NULL)
        return false;
    assert_int_equal(status, MHA_ERR_UNSUPPORTED);
    p.mode = MHA_PRUNE_MASK;
    assert_int_equal(mha_prune_check(whole->m, &p, NULL), MHA_ERR_UNSUPPORTED);
    return true;
}

static void check_all(void **state, const char *model)
{
    char path[1024], fixtures[128];
    opened whole;
    bool everywhere = shares_weights(model);
    fixture_path(path, sizeof path, model, NULL);
    fixture_expected_of(model, fixtures, sizeof fixtures);
    open_model(&whole, path);
    size_t n = whole.info->attn_count * whole.stride, last = whole.info->attn_count - 1;
    bool *remove = calloc(n, sizeof *remove);
    double worst = 0;
    mark_group(&whole, remove, 0, 0, everywhere);
    if (is_refused(&whole, remove)) {
        free(remove);
        close_model(&whole);
        return;
    }
    /* GGUF's lists of rotary divisors have no place in the config of a checkpoint; and where one
     * norm goes over all heads, the others would change without some of them */
    bool unwritable = refuses(state, &whole, remove, "cannot hold its rotary positions");
    if (!unwritable)
        worst = fmax(worst, check_set(state, &whole, fixtures, remove, MHA_PRUNE_MASK));
    if (unwritable || refuses(state, &whole, remove, "mask them instead")) {
        print_message("note: %-22s %s\n", model, unwritable ? "refused" : "masked only");
        assert_true(worst <= TOLERANCE);
        free(remove);
        close_model(&whole);
        return;
    }
    worst = fmax(worst, check_set(state, &whole, fixtures, remove, MHA_PRUNE_SLICE));
    memset(remove, 0, n);
    for (uint32_t g = 0; g < whole.info->attn[last].kv_heads; g++)
        mark_group(&whole, remove, last, g, everywhere);
    worst = fmax(worst, check_set(state, &whole, fixtures, remove, MHA_PRUNE_SLICE));
    for (uint64_t seed = 1; seed <= 3; seed++) {
        mark_random(&whole, remove, seed, everywhere);
        worst = fmax(worst, check_set(state, &whole, fixtures, remove, MHA_PRUNE_SLICE));
    }
    worst = fmax(worst, check_twice(state, &whole, fixtures, remove, everywhere));
    worst = fmax(worst, check_means(state, &whole, fixtures, remove, MHA_PRUNE_SLICE, everywhere));
    worst = fmax(worst, check_means(state, &whole, fixtures, remove, MHA_PRUNE_MASK, everywhere));
    memset(remove, true, n);
    worst = fmax(worst, check_set(state, &whole, fixtures, remove, MHA_PRUNE_SLICE));
    free(remove);
    close_model(&whole);
    print_message("note: %-22s pruned and masked differ by at most %.1e\n", model, worst);
    assert_true(worst <= TOLERANCE);
}

static void check_model(void **state)
{
    void *directory = NULL;
    const char *model = *state;
    assert_int_equal(tempdir_setup(&directory), 0);
    check_all(&directory, model);
    tempdir_teardown(&directory);
}

int main(void)
{
    static fixture_models models;
    static struct CMUnitTest tests[FIXTURE_MODELS_MAX];
    fixture_models_find(&models);
    for (size_t i = 0; i < models.count; i++)
        tests[i] = (struct CMUnitTest){models.name[i], check_model, NULL, NULL, models.name[i]};
    return _cmocka_run_group_tests("pruned", tests, models.count, NULL, NULL);
}
