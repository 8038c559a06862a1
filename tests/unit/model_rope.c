/* model_rope: rotary frequencies against those that the reference implementation computes in
 * float32, to two units in the last place of its own powers, and what is refused. */
#include "support/test.h"

#include "io/json.h"
#include "model/rope.h"

#include <math.h>
#include <string.h>

enum { PAIRS = 8 };

static void near(double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance))
        fail_msg("%.9g, expected %.9g", got, expected);
}

static mha_status fill(float *freq, float *mscale, uint32_t width, double theta, uint32_t positions,
                       const char *scaling, mha_err *err)
{
    json_t *o = scaling == NULL ? NULL : json_loads(scaling, 0, NULL);
    if (scaling != NULL && o == NULL)
        fail_msg("%s", scaling);
    const mha_rope_settings s = {
        .width = width, .head_width = 16, .theta = theta, .scaling = o, .positions = positions};
    mha_status status = mha_rope_fill(freq, mscale, &s, err);
    json_decref(o);
    return status;
}

/* `width` is below the head's width of 16 in some of them: only the leading dims turn. */
static void test_reference(void **state)
{
    static const struct {
        const char *scaling;
        uint32_t width, positions;
        double theta;
        float freq[PAIRS], mscale;
    } cases[] = {
        {NULL, 10, 64, 10000, {1, 0.158489317F, 0.0251188632F, 0.00398107059F, 0.000630957307F}, 1},
        {"{\"rope_type\": \"linear\", \"factor\": 4.0}",
         8,
         64,
         10000,
         {0.25F, 0.0250000004F, 0.00249999994F, 0.000250000012F},
         1},
        {"{\"type\": \"linear\", \"factor\": 4}",
         8,
         64,
         10000, /* the older spelling */
         {0.25F, 0.0250000004F, 0.00249999994F, 0.000250000012F},
         1},
        {"{\"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": 1.0, "
         "\"high_freq_factor\": 4.0, \"original_max_position_embeddings\": 8192}",
         16,
         131072,
         500000,
         {1, 0.193922758F, 0.0376060307F, 0.00729266508F, 0.000524846022F, 3.42810235e-05F,
          6.64786967e-06F, 1.28917316e-06F},
         1},
        {"{\"rope_type\": \"yarn\", \"factor\": 4.0, "
         "\"original_max_position_embeddings\": 1024}",
         16,
         4096,
         10000,
         {1, 0.316227764F, 0.0812500045F, 0.0197642371F, 0.00437500002F, 0.000790569466F,
          0.000250000012F, 7.90569466e-05F},
         1.13862944F},
        /* GGUF's names of the same */
        {"{\"type\": \"yarn\", \"factor\": 4.0, \"original_context_length\": 1024, "
         "\"finetuned\": true, \"yarn_beta_fast\": 32, \"yarn_ext_factor\": 1}",
         16,
         4096,
         10000,
         {1, 0.316227764F, 0.0812500045F, 0.0197642371F, 0.00437500002F, 0.000790569466F,
          0.000250000012F, 7.90569466e-05F},
         1.13862944F},
        /* no factor: the ratio of the lengths */
        {"{\"rope_type\": \"yarn\", \"original_max_position_embeddings\": 1024, "
         "\"attention_factor\": 1.25}",
         16,
         4096,
         10000,
         {1, 0.316227764F, 0.0812500045F, 0.0197642371F, 0.00437500002F, 0.000790569466F,
          0.000250000012F, 7.90569466e-05F},
         1.25F},
        {"{\"rope_type\": \"yarn\", \"factor\": 32.0, \"truncate\": false, "
         "\"original_max_position_embeddings\": 4096, \"beta_fast\": 32, \"beta_slow\": 1}",
         16,
         131072,
         150000,
         {1, 0.225418001F, 0.0508132726F, 0.00679495931F, 0.000456483918F, 1.8188337e-05F,
          4.09997847e-06F, 9.24208962e-07F},
         1.34657359F},
        {"{\"rope_type\": \"yarn\", \"factor\": 40.0, \"mscale\": 0.707, "
         "\"mscale_all_dim\": 1.0, \"original_max_position_embeddings\": 1024}",
         16,
         4096,
         10000,
         {1, 0.316227764F, 0.0756250024F, 0.0162066743F, 0.00268749986F, 7.90569466e-05F,
          2.49999994e-05F, 7.90569447e-06F},
         0.921042355F},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float freq[PAIRS], mscale = 0;
        mha_err err = {0};
        if (fill(freq, &mscale, cases[i].width, cases[i].theta, cases[i].positions,
                 cases[i].scaling, &err) != MHA_OK)
            fail_msg("case %zu: %s", i, err.message);
        assert_true(fabsf(mscale - cases[i].mscale) <= 1.2e-7F * cases[i].mscale);
        for (uint32_t k = 0; k < cases[i].width / 2; k++)
            if (!(fabsf(freq[k] - cases[i].freq[k]) <= 2.4e-7F * cases[i].freq[k]))
                fail_msg("case %zu, pair %u: %.9g, expected %.9g", i, k, (double)freq[k],
                         (double)cases[i].freq[k]);
    }
}

/* Two tables: the second for documents of more than the original length. */
static void test_longrope(void **state)
{
    const char *const text = "{\"type\": \"longrope\", \"partial_rotary_factor\": 0.5, "
                             "\"short_factor\": [1.0, 1.05, 1.25, "
                             "2.5], \"long_factor\": [1.07, 2.0, 9.5, 64.75]}";
    const float expected[2][4] = {{1, 0.095238097F, 0.00800000038F, 0.00039999999F},
                                  {0.934579372F, 0.0500000007F, 0.00105263153F, 1.54440149e-05F}};
    json_t *o = json_loads(text, 0, NULL);
    const mha_rope_settings s = {.width = 8,
                                 .head_width = 16,
                                 .theta = 10000,
                                 .scaling = o,
                                 .positions = 131072,
                                 .original = 4096};
    float freq[2][4], mscale;
    uint32_t from;
    assert_int_equal(mha_rope_fill(freq[0], &mscale, &s, NULL), MHA_OK);
    assert_int_equal(mha_rope_fill_long(freq[1], &from, &s, NULL), MHA_OK);
    assert_int_equal(from, 4096);
    near(mscale, 1.19023807, 1.2e-7);
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; i < 4; i++)
            near(freq[t][i], expected[t][i], 2.4e-7 * (double)expected[t][i]);
    json_decref(o);

    /* the same as GGUF files say it */
    const float shorter[4] = {1, 1.05F, 1.25F, 2.5F}, longer[4] = {1.07F, 2, 9.5F, 64.75F};
    o = json_loads("{\"attn_factor\": 1.5, \"original_context_length\": 4096}", 0, NULL);
    const mha_rope_settings g = {.width = 8,
                                 .head_width = 16,
                                 .theta = 10000,
                                 .scaling = o,
                                 .divisors = shorter,
                                 .long_divisors = longer};
    assert_int_equal(mha_rope_fill(freq[0], &mscale, &g, NULL), MHA_OK);
    assert_int_equal(mha_rope_fill_long(freq[1], &from, &g, NULL), MHA_OK);
    assert_int_equal(from, 4096);
    near(mscale, 1.5, 0);
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; i < 4; i++)
            near(freq[t][i], expected[t][i], 2.4e-7 * (double)expected[t][i]);
    json_decref(o);
    assert_int_equal(fill(freq[0], &mscale, 8, 10000, 64, NULL, NULL), MHA_OK);
    const mha_rope_settings one = {.width = 8, .head_width = 16, .theta = 10000};
    assert_int_equal(mha_rope_fill_long(freq[1], &from, &one, NULL), MHA_OK);
    assert_int_equal(from, 0);
}

static void test_divisors(void **state)
{
    const float divisors[2] = {1, 8};
    const mha_rope_settings s = {.width = 4, .head_width = 4, .theta = 100, .divisors = divisors};
    float freq[2], mscale;
    assert_int_equal(mha_rope_fill(freq, &mscale, &s, NULL), MHA_OK);
    near(freq[0], 1, 0);
    near(freq[1], 0.0125, 1e-9);
}

/* Objects that change nothing. */
static void test_neutral(void **state)
{
    const char *const cases[] = {"{}", "{\"rope_type\": \"default\", \"rope_theta\": 500}",
                                 "{\"type\": \"none\", \"factor\": 1.0}",
                                 "{\"rope_type\": null, \"partial_rotary_factor\": 0.25}",
                                 "{\"rope_type\": \"default\", \"mrope_section\": null}"};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float freq[PAIRS], mscale = 0;
        mha_err err = {0};
        if (fill(freq, &mscale, 4, 10000, 64, cases[i], &err) != MHA_OK)
            fail_msg("%s: %s", cases[i], err.message);
        near(freq[1], 0.01, 1e-9);
        near(mscale, 1, 0);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *scaling;
        mha_status status;
        const char *message;
    } cases[] = {
        {"{\"rope_type\": \"dynamic\", \"factor\": 2}", MHA_ERR_UNSUPPORTED, "\"dynamic\""},
        {"{\"type\": \"longrope\"}", MHA_ERR_FORMAT, "short_factor is not a list of 8"},
        {"{\"type\": \"su\", \"short_factor\": [1, 1, 1, 1, 1, 1, 1, 0]}", MHA_ERR_FORMAT,
         "short_factor[7] is not positive"},
        {"{\"type\": \"yarn\", \"factor\": 2, \"long_factor\": [1]}", MHA_ERR_UNSUPPORTED,
         "long_factor"},
        {"{\"factor\": 2}", MHA_ERR_UNSUPPORTED, "rotary scaling of type"},
        {"{\"rope_type\": 3}", MHA_ERR_FORMAT, "rope_type is not a string"},
        {"{\"rope_type\": \"default\", \"mrope_section\": [1]}", MHA_ERR_UNSUPPORTED,
         "mrope_section"},
        {"{\"rope_type\": \"default\", \"partial_rotary_factor\": 0.5}", MHA_ERR_UNSUPPORTED,
         "partial_rotary_factor"},
        {"{\"rope_type\": \"linear\"}", MHA_ERR_FORMAT, "factor is missing"},
        {"{\"rope_type\": \"linear\", \"factor\": 0}", MHA_ERR_FORMAT, "factor = 0"},
        {"{\"rope_type\": \"linear\", \"factor\": \"8\"}", MHA_ERR_FORMAT, "not a number"},
        {"{\"rope_type\": \"llama3\", \"factor\": 8}", MHA_ERR_FORMAT, "low_freq_factor"},
        {"{\"rope_type\": \"llama3\", \"factor\": 8, \"low_freq_factor\": 4, "
         "\"high_freq_factor\": 1}",
         MHA_ERR_FORMAT, "is not above"},
        {"{\"rope_type\": \"yarn\", \"factor\": 4, \"beta_fast\": -1}", MHA_ERR_FORMAT,
         "beta_fast"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float freq[PAIRS], mscale = 0;
        mha_err err = {0};
        mha_status found = fill(freq, &mscale, 16, 10000, 64, cases[i].scaling, &err);
        if (found != cases[i].status || strstr(err.message, cases[i].message) == NULL)
            fail_msg("%s: %s \"%s\"", cases[i].scaling, mha_status_name(found), err.message);
    }
}

static void test_sizes(void **state)
{
    float freq[PAIRS], mscale;
    assert_int_equal(fill(freq, &mscale, 5, 10000, 64, NULL, NULL), MHA_ERR_FORMAT);
    assert_int_equal(fill(freq, &mscale, 0, 10000, 64, NULL, NULL), MHA_ERR_FORMAT);
    assert_int_equal(fill(freq, &mscale, 18, 10000, 64, NULL, NULL), MHA_ERR_FORMAT);
    assert_int_equal(fill(freq, &mscale, 8, 0, 64, NULL, NULL), MHA_ERR_FORMAT);
    assert_int_equal(fill(freq, &mscale, 8, (double)NAN, 64, NULL, NULL), MHA_ERR_FORMAT);
    assert_int_equal(fill(freq, &mscale, 8, 1e300, 64, NULL, NULL), MHA_ERR_FORMAT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference), cmocka_unit_test(test_divisors),
        cmocka_unit_test(test_neutral),   cmocka_unit_test(test_refused),
        cmocka_unit_test(test_sizes),     cmocka_unit_test(test_longrope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
