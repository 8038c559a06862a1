/* own.c: a checkpoint that is nobody's family, opened by a description of its own, against PyTorch
 * in float64. */
#include "support/fixture.h"
#include "support/tempdir.h"
#include "support/test.h"
#include <math.h>

#define OWN "../own"

static void open_own(mha_model **m, const char *family)
{
    char path[1024];
    mha_err err = {0};
    mha_model_options options = {.family = family, .family_name = "own.family"};
    fixture_path(path, sizeof path, OWN, NULL);
    if (mha_model_open(m, path, &options, &err) != MHA_OK)
        fail_msg("%s", err.message);
}

static void test_own_family(void **state)
{
    (void)state;
    char path[1024];
    mha_model *m;
    mha_engine *e;
    mha_err err = {0};
    double probability = 0, other = 0;
    fixture_path(path, sizeof path, OWN, "own.family");
    open_own(&m, file_text(path));
    assert_int_equal(mha_engine_new(&e, m, NULL, &err), MHA_OK);
    for (int n = 0; n < 2; n++) {
        fixture f;
        assert_true(fixture_open(&f, OWN, n));
        fixture_check c = {.f = &f, .model = m};
        mha_probe p = fixture_probe(&c);
        p.sites = 1u << MHA_SITE_PATTERN | 1u << MHA_SITE_EMBED | 1u << MHA_SITE_RESID |
                  1u << MHA_SITE_HIDDEN | 1u << MHA_SITE_LOGITS;
        const mha_probe *probes[] = {&p};
        assert_int_equal(mha_engine_run(e, &f.doc, 1, probes, 1, NULL, NULL, &err), MHA_OK);
        assert_int_equal(c.missing, 0);
        assert_true(c.blocks > 0);
        for (mha_site s = 0; s < MHA_SITE_COUNT; s++) {
            if (s == MHA_SITE_PATTERN)
                probability = fmax(probability, c.error[s]);
            else
                other = fmax(other, c.error[s]);
        }
        fixture_close(&f);
    }
    print_message("note: %-20s probabilities %.1e   states, logits %.1e\n", "own", probability,
                  other);
    assert_true(probability <= 1e-5 && other <= 1e-4);
    mha_engine_free(e);
    mha_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_own_family)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
