/* graphs.c: what holds of attention over graphs beside its numbers: the edges that arrays name are
 * those of the reference, several graphs at once are each alone, threads and instruction sets
 * change nothing they should not, and the checks find nothing. */
#include "mha/analysis.h"
#include "support/fixture.h"
#include "support/test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const models[] = {"gat",         "gat-old",  "gat-oldest",
                                     "gat-v2",      "gat-mean", "gat-v2-mean",
                                     "gat-v2-open", "gat-one",  "gat-open"};
enum { MODELS = sizeof models / sizeof *models, GRAPHS = 3 };

static mha_model *open_model(const char *name)
{
    mha_model *m;
    mha_err err = {0};
    char path[1024];
    fixture_path(path, sizeof path, name, NULL);
    if (mha_model_open(&m, path, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    return m;
}

static mha_engine *open_engine(const mha_model *m, size_t threads)
{
    mha_engine *e;
    mha_err err = {0};
    mha_engine_options options = {.threads = threads};
    if (mha_engine_new(&e, m, &options, &err) != MHA_OK)
        fail_msg("%s", err.message);
    return e;
}

static void open_graphs(fixture *f, mha_document *docs, const char *name)
{
    char base[128];
    fixture_expected_of(name, base, sizeof base);
    for (int n = 0; n < GRAPHS; n++) {
        assert_true(fixture_open(&f[n], base, n));
        docs[n] = f[n].doc;
    }
}

static mha_trace *trace(const mha_model *m, mha_engine *e, const mha_document *docs, size_t count)
{
    mha_trace *t;
    mha_err err = {0};
    mha_trace_options options = {.sites = 1u << MHA_SITE_PATTERN | 1u << MHA_SITE_SCORES |
                                          1u << MHA_SITE_Z | 1u << MHA_SITE_HEAD_OUT |
                                          1u << MHA_SITE_RESID | 1u << MHA_SITE_LOGITS};
    if (mha_trace_new(&t, m, docs, count, &options, &err) != MHA_OK)
        fail_msg("%s", err.message);
    const mha_probe *probes[] = {mha_trace_probe(t)};
    if (mha_engine_run(e, docs, count, probes, 1, NULL, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    return t;
}

static size_t bytes_of(const mha_trace_array *a)
{
    size_t n = a->type == MHA_ARRAY_I64 ? sizeof(int64_t) : sizeof(float);
    for (size_t i = 0; i < a->dims; i++)
        n *= a->shape[i];
    return n;
}

static void same_arrays(const mha_trace *a, size_t i, const mha_trace *b, size_t k)
{
    assert_int_equal(mha_trace_count(a, i), mha_trace_count(b, k));
    for (size_t n = 0; n < mha_trace_count(a, i); n++) {
        const mha_trace_array *x = mha_trace_get(a, i, n), *y = mha_trace_get(b, k, n);
        assert_string_equal(x->name, y->name);
        assert_memory_equal(x->shape, y->shape, sizeof x->shape);
        if (bytes_of(x) > 0 && memcmp(x->data, y->data, bytes_of(x)) != 0)
            fail_msg("%s differs", x->name);
    }
}

static double largest_difference(const mha_trace_array *a, const fixture_array *want)
{
    double worst = 0;
    size_t n = bytes_of(a) / (a->type == MHA_ARRAY_I64 ? sizeof(int64_t) : sizeof(float));
    assert_int_equal(a->dims, want->rank);
    for (size_t i = 0; i < a->dims; i++)
        assert_int_equal(a->shape[i], want->shape[i]);
    for (size_t i = 0; i < n; i++) {
        double v = a->type == MHA_ARRAY_I64 ? (double)((const int64_t *)a->data)[i]
                                            : (double)((const float *)a->data)[i];
        if (!(fabs(v - want->value[i]) <= worst))
            worst = fabs(v - want->value[i]);
    }
    return worst;
}

/* Whole arrays as `maps` writes them, with the edges. */
static void test_arrays(void **state)
{
    for (size_t i = 0; i < MODELS; i++) {
        mha_model *m = open_model(models[i]);
        mha_engine *e = open_engine(m, 2);
        fixture f[GRAPHS];
        mha_document docs[GRAPHS];
        open_graphs(f, docs, models[i]);
        mha_trace *t = trace(m, e, docs, GRAPHS);
        for (size_t d = 0; d < GRAPHS; d++) {
            size_t edges = 0, compared = 0;
            for (size_t n = 0; n < mha_trace_count(t, d); n++) {
                const mha_trace_array *a = mha_trace_get(t, d, n);
                const fixture_array *want = fixture_find(&f[d], a->name);
                bool ends = strstr(a->name, ".edge_index") != NULL;
                if (want == NULL) /* heads */
                    continue;
                if (!(largest_difference(a, want) <= (ends ? 0 : 1e-5)))
                    fail_msg("%s, graph %zu, %s", models[i], d, a->name);
                edges += ends;
                compared++;
            }
            assert_int_equal(edges, mha_model_info_get(m)->attn_count);
            assert_true(compared >= 6 * edges);
            fixture_close(&f[d]);
        }
        mha_trace_free(t);
        mha_engine_free(e);
        mha_model_close(m);
    }
}

/* A graph among others gives the bits that it gives alone, on any number of threads. */
static void test_alone(void **state)
{
    for (size_t i = 0; i < MODELS; i++) {
        mha_model *m = open_model(models[i]);
        mha_engine *one = open_engine(m, 1), *three = open_engine(m, 3);
        fixture f[GRAPHS];
        mha_document docs[GRAPHS];
        open_graphs(f, docs, models[i]);
        mha_trace *all = trace(m, one, docs, GRAPHS), *more = trace(m, three, docs, GRAPHS);
        for (size_t d = 0; d < GRAPHS; d++) {
            same_arrays(all, d, more, d);
            fixture_close(&f[d]);
        }
        mha_trace_free(more);
        mha_trace_free(all);
        mha_engine_free(three);
        mha_engine_free(one);
        mha_model_close(m);
    }
}

static void test_checks(void **state)
{
    for (size_t i = 0; i < MODELS; i++) {
        mha_model *m = open_model(models[i]);
        mha_engine *e = open_engine(m, 2);
        fixture f[GRAPHS];
        mha_document docs[GRAPHS];
        mha_checks c;
        mha_err err = {0};
        open_graphs(f, docs, models[i]);
        for (size_t d = 0; d < GRAPHS; d++) {
            if (mha_checks_run(&c, e, m, &docs[d], 16, &err) != MHA_OK)
                fail_msg("%s", err.message);
            assert_int_equal(c.tokens, docs[d].n < 16 ? docs[d].n : 16);
            assert_true(c.row_sum_error <= 1e-6 && c.head_sum_error <= 1e-6);
            assert_true(c.masked_mass == 0);
            fixture_close(&f[d]);
        }
        mha_engine_free(e);
        mha_model_close(m);
    }
}

/* Descriptors of a head against their definitions on the reference pattern. */
static void test_heads(void **state)
{
    mha_model *m = open_model("gat-open");
    mha_engine *e = open_engine(m, 2);
    fixture f;
    mha_heads *h;
    mha_err err = {0};
    const mha_head_row *rows;
    size_t count;
    assert_true(fixture_open(&f, "gat-open", 0));
    assert_int_equal(mha_heads_new(&h, m, NULL, &err), MHA_OK);
    assert_int_equal(mha_heads_begin(h, &f.doc, NULL, 1, 0, &err), MHA_OK);
    const mha_probe *probes[] = {mha_heads_probe(h)};
    assert_int_equal(mha_engine_run(e, &f.doc, 1, probes, 1, NULL, NULL, &err), MHA_OK);
    assert_int_equal(mha_heads_result(h, &rows, &count, &err), MHA_OK);
    const fixture_array *p = fixture_find(&f, "graph.self.0.pattern");
    const fixture_array *ends = fixture_find(&f, "graph.self.0.edge_index");
    size_t E = (size_t)p->shape[1], seen = 0;
    double entropy = 0, most = 0;
    for (size_t node = 0; node < f.doc.n; node++) {
        double own = 0, largest = 0, in = 0;
        for (size_t k = 0; k < E; k++)
            if (ends->value[E + k] == (double)node) {
                own -= p->value[k] * log(p->value[k]);
                largest = fmax(largest, p->value[k]);
                in++;
            }
        seen += in > 0;
        entropy += own;
        most += largest;
    }
    assert_true(seen < f.doc.n); /* no edge ends in node 4 */
    assert_true(rows[0].stack == MHA_GRAPH && rows[0].layer == 0 && rows[0].head == 0);
    assert_true(rows[0].values[MHA_HEADS_ROWS] == (double)seen);
    assert_true(fabs(rows[0].values[MHA_HEADS_ENTROPY] - entropy / (double)seen) <= 1e-6);
    assert_true(fabs(rows[0].values[MHA_HEADS_MAX_WEIGHT] - most / (double)seen) <= 1e-6);
    assert_true(isnan(rows[0].values[MHA_HEADS_DISTANCE]));
    assert_true(isnan(rows[0].values[MHA_HEADS_SELF_MASS]));
    mha_heads_free(h);
    fixture_close(&f);
    mha_engine_free(e);
    mha_model_close(m);
}

/* One head taken out at a time, by branching and by gates. */
static void test_ablation(void **state)
{
    for (size_t i = 0; i < MODELS; i++) {
        mha_model *m = open_model(models[i]);
        mha_engine *e = open_engine(m, 2);
        const mha_model_info *info = mha_model_info_get(m);
        fixture f[GRAPHS];
        mha_document docs[GRAPHS];
        mha_prediction term[] = {{0, 1, -1}, {3, 0, -1}};
        float gates[32];
        double base[2], variant[64], loss[2];
        mha_err err = {0};
        size_t n = info->attn_count * mha_engine_gate_heads(e);
        open_graphs(f, docs, models[i]);
        for (size_t d = 0; d < 2; d++) {
            docs[d].predict = term;
            docs[d].predict_n = 2;
        }
        mha_ablation out = {.base = base, .variant = variant};
        assert_in_range(n, 1, 32);
        assert_int_equal(mha_engine_ablate(e, docs, 2, &out, NULL, NULL, &err), MHA_OK);
        for (size_t g = 0; g < n; g++) {
            for (size_t k = 0; k < n; k++)
                gates[k] = k != g;
            docs[0].gates = docs[1].gates = gates;
            assert_int_equal(mha_engine_loss(e, docs, 2, loss, NULL, NULL, NULL, &err), MHA_OK);
            for (size_t d = 0; d < 2; d++)
                assert_true(fabs(loss[d] - variant[d * n + g]) <= 1e-5);
        }
        for (size_t d = 0; d < GRAPHS; d++)
            fixture_close(&f[d]);
        mha_engine_free(e);
        mha_model_close(m);
    }
}

/* What does not fit the model is refused before anything runs. */
static void test_refused(void **state)
{
    mha_model *m = open_model("gat"), *text = open_model("gpt2-lm");
    mha_engine *e = open_engine(m, 1), *other = open_engine(text, 1);
    static const int32_t ids[] = {1, 2};
    const mha_document words = {.ids = ids, .n = 2};
    fixture f;
    mha_err err = {0};
    mha_map_rows *rows;
    assert_true(fixture_open(&f, "gat", 0));
    assert_int_equal(mha_engine_check(e, &f.doc, &err), MHA_OK);
    assert_int_equal(mha_engine_check(e, &words, &err), MHA_ERR_ARG);
    assert_int_equal(mha_engine_check(other, &f.doc, &err), MHA_ERR_ARG);
    assert_int_equal(mha_map_rows_new(&rows, m, &f.doc, 1, NULL, NULL, NULL, NULL, &err),
                     MHA_ERR_UNSUPPORTED);
    f.graph.features++;
    assert_int_equal(mha_engine_check(e, &f.doc, &err), MHA_ERR_LIMIT);
    f.graph.features--;
    f.doc.n--;
    assert_int_equal(mha_engine_check(e, &f.doc, &err), MHA_ERR_LIMIT);
    f.doc.n++;
    f.ends[3] = f.graph.nodes;
    assert_int_equal(mha_engine_check(e, &f.doc, &err), MHA_ERR_LIMIT);
    f.ends[3] = 0;
    f.features[2] = NAN;
    double loss;
    mha_prediction term = {0, 0, -1};
    f.doc.predict = &term;
    f.doc.predict_n = 1;
    assert_int_equal(mha_engine_loss(e, &f.doc, 1, &loss, NULL, NULL, NULL, &err), MHA_ERR_NUMERIC);
    assert_non_null(strstr(err.message, "graph layer 0"));
    fixture_close(&f);
    mha_engine_free(other);
    mha_engine_free(e);
    mha_model_close(text);
    mha_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays),   cmocka_unit_test(test_alone),
        cmocka_unit_test(test_checks),   cmocka_unit_test(test_heads),
        cmocka_unit_test(test_ablation), cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
