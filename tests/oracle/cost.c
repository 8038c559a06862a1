/* cost.c: what a run takes against what was planned for it, over all models and the sites that
 * decide how far a pass goes. A plan that is too small lets a run exceed its limit on memory, one
 * that is too large refuses runs that would fit. */
#include "engine/engine.h"
#include "support/subject.h"
#include "support/test.h"
#include <string.h>

static int ignore(void *context, const mha_block *b, size_t worker)
{
    (void)context;
    (void)b;
    (void)worker;
    return 0;
}

static size_t taken(const mha_engine *e)
{
    size_t bytes = 0;
    for (size_t i = 0; i < MHA_SCRATCH_COUNT; i++)
        bytes += e->scratch_bytes[i];
    return bytes;
}

/* Every product is foreseen, and every byte. */
static void check_run(const char *name, uint32_t sites, const mha_document *docs, size_t count)
{
    subject s;
    mha_err err = {0};
    mha_plan_info info;
    mha_probe p = {.sites = sites, .deliver = ignore};
    const mha_probe *probes[] = {&p};
    subject_open(&s, name, NULL, 0);
    if (s.m->head.count == 0 && sites == 1u << MHA_SITE_LOGITS) {
        subject_close(&s);
        return;
    }
    s.e->multiply_adds = 0;
    if (mha_engine_plan(s.e, docs, count, probes, 1, &info, &err) != MHA_OK ||
        mha_engine_run(s.e, docs, count, probes, 1, NULL, NULL, &err) != MHA_OK)
        fail_msg("%s: %s", name, err.message);
    size_t bytes = taken(s.e);
    if (info.bytes != bytes)
        fail_msg("%s, sites %x: %zu bytes planned, %zu taken", name, (unsigned)sites,
                 (size_t)info.bytes, bytes);
    if (info.multiply_adds != (uint64_t)s.e->multiply_adds)
        fail_msg("%s, sites %x: %zu multiply-adds planned, %.0f done", name, (unsigned)sites,
                 (size_t)info.multiply_adds, s.e->multiply_adds);
    subject_close(&s);
}

static void check_model(void **state)
{
    static const uint32_t sites[] = {
        1u << MHA_SITE_STATS,
        1u << MHA_SITE_PATTERN,
        1u << MHA_SITE_Q | 1u << MHA_SITE_V,
        1u << MHA_SITE_HEAD_OUT,
        1u << MHA_SITE_STATS | 1u << MHA_SITE_HIDDEN,
        1u << MHA_SITE_Q_GLOBAL,
        1u << MHA_SITE_LOGITS,
    };
    char base[128];
    fixture f[2];
    mha_document docs[2];
    size_t count = 0;
    fixture_expected_of(*state, base, sizeof base);
    for (int n = 0; n < 2; n++)
        if (fixture_open(&f[count], base, n))
            docs[count] = f[count].doc, count++;
    assert_true(count > 0);
    for (size_t i = 0; i < sizeof sites / sizeof *sites; i++) {
        check_run(*state, sites[i], docs, 1);
        check_run(*state, sites[i], docs, count);
    }
    while (count > 0)
        fixture_close(&f[--count]);
}

/* A window and blocks on long documents take what grows like the text, not like its square. */
static void check_growth(void **state)
{
    enum { SHORT = 1 << 14, FACTOR = 4 };
    subject s;
    mha_err err = {0};
    mha_plan_info info[2];
    mha_probe p = {.sites = 1u << MHA_SITE_STATS, .deliver = ignore};
    const mha_probe *probes[] = {&p};
    static int32_t ids[SHORT * FACTOR];
    subject_open(&s, *state, NULL, 0);
    s.m->max_positions = SHORT * FACTOR;
    for (size_t i = 0; i < 2; i++) {
        mha_document doc = {.ids = ids, .n = i == 0 ? SHORT : SHORT * FACTOR};
        if (mha_engine_plan(s.e, &doc, 1, probes, 1, &info[i], &err) != MHA_OK)
            fail_msg("%s: %s", s.name, err.message);
    }
    assert_true(info[1].bytes <= FACTOR * info[0].bytes);
    assert_true(info[1].multiply_adds <=
                FACTOR * info[0].multiply_adds + info[0].multiply_adds / 2);
    subject_close(&s);
}

int main(void)
{
    static fixture_models models;
    static struct CMUnitTest tests[FIXTURE_MODELS_MAX + 2];
    static char window[] = "longformer-base", blocks[] = "big-bird-mlm";
    fixture_models_find(&models);
    size_t n = models.count;
    for (size_t i = 0; i < n; i++)
        tests[i] = (struct CMUnitTest){models.name[i], check_model, NULL, NULL, models.name[i]};
    tests[n++] = (struct CMUnitTest){"growth of a window", check_growth, NULL, NULL, window};
    tests[n++] = (struct CMUnitTest){"growth of blocks", check_growth, NULL, NULL, blocks};
    return _cmocka_run_group_tests("cost", tests, n, NULL, NULL);
}
