/* contacts.c: contacts against the reference run, whatever the threads and instruction sets; and
 * the checkpoints and documents that have none. */
#include "mha/attribute.h"
#include "support/fixture.h"
#include "support/modeldir.h"
#include "support/tempdir.h"
#include "support/test.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MODEL     "esm-contacts"
#define TOLERANCE 2e-5 /* on probabilities: logits reach 16 there */

enum { DOCUMENTS = 5 };

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

/* The document's map, [R, R]; the caller's. */
static float *contacts(const mha_model *m, const mha_document *doc, size_t threads, const char *isa)
{
    mha_engine *e;
    mha_contacts *c;
    mha_err err = {0};
    mha_engine_options options = {.threads = threads, .isa = isa};
    if (mha_engine_new(&e, m, &options, &err) != MHA_OK)
        fail_msg("%s", err.message);
    if (mha_contacts_new(&c, m, doc, &err) != MHA_OK)
        fail_msg("%s", err.message);
    const mha_probe *probes[] = {mha_contacts_probe(c)};
    if (mha_engine_run(e, doc, 1, probes, 1, NULL, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    size_t R = mha_contacts_residues(c);
    assert_int_equal(R, doc->n - 2);
    assert_true(mha_contacts_bytes(m, doc->n) >= R * R * 12);
    float *map = malloc(R * R * sizeof *map);
    memcpy(map, mha_contacts_map(c), R * R * sizeof *map);
    mha_contacts_free(c);
    mha_engine_free(e);
    return map;
}

static mha_document document_of(const fixture *f, int32_t *ids)
{
    const fixture_array *a = fixture_find(f, "ids");
    for (size_t i = 0; i < a->shape[0]; i++)
        ids[i] = (int32_t)a->value[i];
    return (mha_document){.ids = ids, .n = a->shape[0]};
}

static void test_reference(void **state)
{
    (void)state;
    mha_model *m = open_model(MODEL);
    double worst = 0;
    for (int n = 0; n < DOCUMENTS; n++) {
        fixture f;
        int32_t ids[128];
        assert_true(fixture_contacts_open(&f, MODEL, n));
        mha_document doc = document_of(&f, ids);
        const fixture_array *expected = fixture_find(&f, "contacts");
        assert_int_equal(expected->shape[0], doc.n - 2);
        float *map = contacts(m, &doc, 1, "ref"), *again = contacts(m, &doc, 3, "ref");
        size_t all = (doc.n - 2) * (doc.n - 2);
        assert_memory_equal(map, again, all * sizeof *map);
        float *best = contacts(m, &doc, 2, NULL);
        for (size_t i = 0; i < all; i++) {
            worst = fmax(worst, fabs((double)map[i] - expected->value[i]));
            worst = fmax(worst, fabs((double)best[i] - expected->value[i]));
        }
        free(map);
        free(again);
        free(best);
        fixture_close(&f);
    }
    print_message("contacts: maximum error %.1e\n", worst);
    assert_true(worst <= TOLERANCE);
    mha_model_close(m);
}

static void test_refused(void **state)
{
    (void)state;
    mha_contacts *c;
    mha_err err = {0};
    mha_model *bert = open_model("bert-mlm"), *esm = open_model(MODEL);
    const int32_t ids[] = {0, 5, 6, 2};
    const uint8_t bare[] = {1, 0, 0, 0}, framed[] = {1, 0, 0, 1};
    mha_document doc = {.ids = ids, .n = 4, .special = framed};
    assert_null(mha_model_contacts(bert));
    assert_int_equal(mha_contacts_new(&c, bert, &doc, &err), MHA_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "has no contact head"));
    assert_int_equal(mha_contacts_new(&c, esm, &doc, &err), MHA_OK);
    mha_contacts_free(c);
    doc.special = bare;
    assert_int_equal(mha_contacts_new(&c, esm, &doc, &err), MHA_ERR_ARG);
    assert_non_null(strstr(err.message, "the last token"));
    doc = (mha_document){.ids = ids, .n = 2};
    assert_int_equal(mha_contacts_new(&c, esm, &doc, &err), MHA_ERR_ARG);
    assert_non_null(strstr(err.message, "no residues"));
    mha_model_close(bert);
    mha_model_close(esm);
}

static const char weight[] = "esm.contact_head.regression.weight";

/* Checkpoints whose head is not what the model has heads for, is no number, or is not there. */
static void test_files(void **state)
{
    mha_model *m;
    mha_err err = {0};
    modeldir d;
    size_t n;
    modeldir_load(&d, MODEL);
    modeldir_describe(&d, weight, "shape", "[9, 1]");
    assert_int_equal(modeldir_open(&d, state, &m, NULL, &err), MHA_ERR_FORMAT);
    assert_non_null(strstr(err.message, weight));
    modeldir_describe(&d, weight, "shape", "[1, 9]");
    const float bad = INFINITY;
    memcpy(modeldir_bytes(&d, weight, &n), &bad, sizeof bad);
    assert_int_equal(n, 9);
    assert_int_equal(modeldir_open(&d, state, &m, NULL, &err), MHA_ERR_NUMERIC);
    assert_non_null(strstr(err.message, weight));
    modeldir_rename(&d, weight, "esm.contact_head.other.weight");
    assert_int_equal(modeldir_open(&d, state, &m, NULL, &err), MHA_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "contact_head.other.weight"));
    modeldir_release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference),
        cmocka_unit_test(test_refused),
        cmocka_unit_test_setup_teardown(test_files, tempdir_setup, tempdir_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
