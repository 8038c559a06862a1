/* families.c: every family against float64 runs of the reference implementation on tiny models with
 * awkward dims: attention maps, scores, q, k, v, z, head outputs, residuals, hidden states, logits.
 * Prints the largest error of each model. Limits: 1e-5 on probabilities, 1e-4 + 1e-4 relative
 * elsewhere. */
#include "support/fixture.h"
#include "support/test.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static double worst_hidden(const fixture_check *c)
{
    double worst = 0;
    for (mha_site s = 0; s < MHA_SITE_COUNT; s++)
        if (s != MHA_SITE_PATTERN && !(c->error[s] <= worst))
            worst = c->error[s];
    return worst;
}

static void check_document(const char *model, mha_engine *e, const mha_model *m,
                           const char *expected, int n, double *probability, double *other)
{
    fixture f;
    if (!fixture_open(&f, expected, n))
        return;
    fixture_check c = {.f = &f, .model = m};
    mha_probe p = fixture_probe(&c);
    const mha_probe *probes[] = {&p};
    mha_err err = {0};
    if (mha_engine_run(e, &f.doc, 1, probes, 1, NULL, NULL, &err) != MHA_OK)
        fail_msg("%s, document %d: %s", model, n, err.message);
    assert_true(c.blocks > 0);
    if (c.missing > 0)
        fail_msg("%s, document %d: no reference for %s", model, n, c.first_missing);
    for (mha_site s = 0; s < MHA_SITE_COUNT; s++)
        if (!(c.error[s] <= (s == MHA_SITE_PATTERN ? 1e-5 : 1e-4)))
            fail_msg("%s, document %d: %s differs by %g", model, n, mha_site_name(s), c.error[s]);
    *probability = fmax(*probability, c.error[MHA_SITE_PATTERN]);
    *other = fmax(*other, worst_hidden(&c));
    fixture_close(&f);
}

static void check_model(void **state)
{
    const char *model = *state;
    char path[1024], expected[128];
    fixture_path(path, sizeof path, model, NULL);
    fixture_expected_of(model, expected, sizeof expected);
    mha_model *m;
    mha_engine *e;
    mha_err err = {0};
    if (mha_model_open(&m, path, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    if (mha_engine_new(&e, m, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    double probability = 0, other = 0;
    for (int n = 0; n < 3; n++)
        check_document(model, e, m, expected, n, &probability, &other);
    print_message("note: %-20s probabilities %.1e   scores, states, logits %.1e\n", model,
                  probability, other);
    mha_engine_free(e);
    mha_model_close(m);
}

int main(void)
{
    static fixture_models models;
    static struct CMUnitTest tests[FIXTURE_MODELS_MAX];
    fixture_models_find(&models);
    for (size_t i = 0; i < models.count; i++)
        tests[i] = (struct CMUnitTest){models.name[i], check_model, NULL, NULL, models.name[i]};
    return _cmocka_run_group_tests("families", tests, models.count, NULL, NULL);
}
