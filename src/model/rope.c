/* rope.c: rotary frequencies. With R = width and i = 0 … R/2−1:
 *
 *   plain    f_i = theta^(−2i/R)
 *   linear   f_i / factor
 *   llama3   λ = 2π/f_i, L the original length: λ < L/high keeps f_i, λ > L/low gives f_i/factor,
 *            between them s = (L/λ − low)/(high − low) gives f_i·((1 − s)/factor + s)
 *   yarn     c(r) = R·ln(L/(2πr))/(2·ln theta); low = ⌊c(beta_fast)⌋, high = ⌈c(beta_slow)⌉ in
 *            0 … R−1; ramp = clamp((i − low)/(high − low), 0, 1);
 *            f_i·(1 − ramp) + f_i/factor·ramp; cos and sin times 0.1·ln(factor) + 1
 *   longrope f_i / short_i, in documents of more than L tokens f_i / long_i; cos and sin times
 *            sqrt(1 + ln(factor)/ln L), where factor is the longest text over L
 *
 * Sources: Su et al. 2021; Peng et al. 2023 (YaRN); Ding et al. 2024 (LongRoPE); the Llama 3.1
 * release. Frequencies are float32 in the reference implementation, rounded at each step: the same
 * is done here, because at long positions the rounding of the frequency is what one sees in the
 * scores. */
#include "model/rope.h"
#include "base/fail.h"
#include "model/expr.h"
#include <math.h>
#include <stdbool.h>
#include <string.h>

static const double pi = 3.14159265358979323846;
static const double required = (double)NAN; /* as the value of an absent key: there must be one */

/* The first of up to two keys that is a number; `absent` when there is none. */
static mha_status get_number(const json_t *o, const char *key, const char *other, double absent,
                             double *out, mha_err *err)
{
    mha_value v = mha_value_of_json(json_object_get(o, key));
    if (v.kind == MHA_VALUE_NULL && other != NULL)
        v = mha_value_of_json(json_object_get(o, other));
    if (v.kind != MHA_VALUE_NULL && v.kind != MHA_VALUE_NUMBER)
        return mha_fail(err, MHA_ERR_FORMAT, "rotary scaling: %s is not a number", key);
    *out = v.kind == MHA_VALUE_NULL ? absent : v.number;
    if (!isfinite(*out))
        return mha_fail(err, MHA_ERR_FORMAT, "rotary scaling: %s is %s", key,
                        v.kind == MHA_VALUE_NULL ? "missing" : "not finite");
    return MHA_OK;
}

static mha_status get_positive(const json_t *o, const char *key, const char *other, double absent,
                               double *out, mha_err *err)
{
    MHA_TRY(get_number(o, key, other, absent, out, err));
    if (!(*out > 0))
        return mha_fail(err, MHA_ERR_FORMAT, "rotary scaling: %s = %g is not positive", key, *out);
    return MHA_OK;
}

/* L, the length of texts before scaling. */
static mha_status get_original(const mha_rope_settings *s, double *out, mha_err *err)
{
    double absent = s->original != 0 ? s->original : s->positions;
    return get_positive(s->scaling, "original_max_position_embeddings", "original_context_length",
                        absent, out, err);
}

static mha_status scale_linear(float *freq, const mha_rope_settings *s, mha_err *err)
{
    double factor;
    MHA_TRY(get_positive(s->scaling, "factor", NULL, required, &factor, err));
    for (uint32_t i = 0; i < s->width / 2; i++)
        freq[i] /= (float)factor;
    return MHA_OK;
}

static mha_status scale_llama3(float *freq, const mha_rope_settings *s, mha_err *err)
{
    double factor, low, high, length;
    MHA_TRY(get_positive(s->scaling, "factor", NULL, required, &factor, err));
    MHA_TRY(get_positive(s->scaling, "low_freq_factor", NULL, required, &low, err));
    MHA_TRY(get_positive(s->scaling, "high_freq_factor", NULL, required, &high, err));
    MHA_TRY(get_original(s, &length, err));
    if (!(high > low))
        return mha_fail(err, MHA_ERR_FORMAT,
                        "rotary scaling: high_freq_factor = %g is not above low_freq_factor = %g",
                        high, low);
    for (uint32_t i = 0; i < s->width / 2; i++) {
        float f = freq[i], wave = (float)(2 * pi) / f;
        if (wave > (float)(length / low)) {
            freq[i] = f / (float)factor;
        } else if (wave >= (float)(length / high)) {
            float smooth = ((float)length / wave - (float)low) / (float)(high - low);
            freq[i] = (1 - smooth) * (f / (float)factor) + smooth * f;
        }
    }
    return MHA_OK;
}

/* Index of the frequency that turns `turns` times within the original length. */
static double yarn_index(const mha_rope_settings *s, double turns, double length)
{
    return s->width * log(length / (turns * 2 * pi)) / (2 * log(s->theta));
}

static double yarn_mscale(double factor, double mscale)
{
    return factor <= 1 ? 1 : 0.1 * mscale * log(factor) + 1;
}

/* attention_factor, or what factor (or mscale over mscale_all_dim) gives; GGUF's attn_factor
 * multiplies that. */
static mha_status yarn_attention(const mha_rope_settings *s, double factor, float *out,
                                 mha_err *err)
{
    double given, one, all, extra;
    MHA_TRY(get_number(s->scaling, "attention_factor", NULL, 0, &given, err));
    MHA_TRY(get_number(s->scaling, "mscale", NULL, 0, &one, err));
    MHA_TRY(get_number(s->scaling, "mscale_all_dim", NULL, 0, &all, err));
    MHA_TRY(get_positive(s->scaling, "attn_factor", "yarn_attn_factor", 1, &extra, err));
    if (given < 0)
        return mha_fail(err, MHA_ERR_FORMAT, "rotary scaling: attention_factor = %g is negative",
                        given);
    double value = yarn_mscale(factor, 1) * extra;
    if (json_is_number(json_object_get(s->scaling, "attention_factor")))
        value = given;
    else if (one != 0 && all != 0)
        value = yarn_mscale(factor, one) / yarn_mscale(factor, all);
    *out = (float)value;
    return MHA_OK;
}

static mha_status scale_yarn(float *freq, float *mscale, const mha_rope_settings *s, mha_err *err)
{
    double factor, length, fast, slow;
    MHA_TRY(get_original(s, &length, err));
    MHA_TRY(get_positive(s->scaling, "factor", NULL, s->positions / length, &factor, err));
    MHA_TRY(get_positive(s->scaling, "beta_fast", "yarn_beta_fast", 32, &fast, err));
    MHA_TRY(get_positive(s->scaling, "beta_slow", "yarn_beta_slow", 1, &slow, err));
    MHA_TRY(yarn_attention(s, factor, mscale, err));
    double low = yarn_index(s, fast, length), high = yarn_index(s, slow, length);
    const json_t *truncate = json_object_get(s->scaling, "truncate");
    if (!json_is_false(truncate)) {
        low = floor(low);
        high = ceil(high);
    }
    low = fmax(low, 0);
    high = fmin(high, s->width - 1.0);
    if (low == high)
        high += 0.001;
    for (uint32_t i = 0; i < s->width / 2; i++) {
        float ramp = ((float)i - (float)low) / (float)(high - low);
        float keep = 1 - fminf(fmaxf(ramp, 0), 1);
        float slowed =
            1 / ((float)factor * powf((float)s->theta, (float)(2 * i) / (float)s->width));
        freq[i] = slowed * (1 - keep) + freq[i] * keep;
    }
    return MHA_OK;
}

/* Divides by the numbers of a list, one a frequency. */
static mha_status divide_list(float *freq, const mha_rope_settings *s, const char *key,
                              mha_err *err)
{
    const json_t *list = json_object_get(s->scaling, key);
    if (!json_is_array(list) || json_array_size(list) != s->width / 2)
        return mha_fail(err, MHA_ERR_FORMAT, "rotary scaling: %s is not a list of %u numbers", key,
                        s->width / 2);
    for (uint32_t i = 0; i < s->width / 2; i++) {
        const json_t *divisor = json_array_get(list, i);
        float d = (float)json_number_value(divisor);
        if (!(d > 0) || !isfinite(d))
            return mha_fail(err, MHA_ERR_FORMAT, "rotary scaling: %s[%u] is not positive", key, i);
        freq[i] = 1 / (d * powf((float)s->theta, (float)(2 * i) / (float)s->width));
    }
    return MHA_OK;
}

static mha_status scale_longrope(float *freq, float *mscale, const mha_rope_settings *s,
                                 mha_err *err)
{
    double length, factor, attention;
    MHA_TRY(get_original(s, &length, err));
    if (!(length > 1))
        return mha_fail(err, MHA_ERR_FORMAT, "rotary scaling: an original length of %g", length);
    MHA_TRY(get_positive(s->scaling, "factor", NULL, s->positions / length, &factor, err));
    attention = factor <= 1 ? 1 : sqrt(1 + log(factor) / log(length));
    MHA_TRY(get_positive(s->scaling, "attention_factor", NULL, attention, &attention, err));
    *mscale = (float)attention;
    return divide_list(freq, s, "short_factor", err);
}

static bool is_in(const char *key, const char *const *keys)
{
    for (; *keys != NULL; keys++)
        if (strcmp(key, *keys) == 0)
            return true;
    return false;
}

static bool is_longrope(const char *name)
{
    return strcmp(name, "longrope") == 0 || strcmp(name, "su") == 0;
}

/* A key that nobody knows may change the frequencies: only null and false are passed over. */
static mha_status check_keys(const mha_rope_settings *s, const char *name, mha_err *err)
{
    static const char *const known[] = {"rope_type",
                                        "type",
                                        "rope_theta",
                                        "factor",
                                        "original_max_position_embeddings",
                                        "original_context_length",
                                        "low_freq_factor",
                                        "high_freq_factor",
                                        "beta_fast",
                                        "beta_slow",
                                        "attention_factor",
                                        "mscale",
                                        "mscale_all_dim",
                                        "truncate",
                                        "finetuned",
                                        "attn_factor",
                                        "yarn_attn_factor",
                                        "yarn_beta_fast",
                                        "yarn_beta_slow",
                                        NULL};
    static const char *const lists[] = {"short_factor", "long_factor", NULL};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)s->scaling, key, value)
    {
        mha_value v = mha_value_of_json(value);
        if (is_in(key, known) || !mha_value_truth(&v) || (is_longrope(name) && is_in(key, lists)))
            continue;
        bool whole = strcmp(key, "partial_rotary_factor") == 0 && v.kind == MHA_VALUE_NUMBER &&
                     floor(v.number * s->head_width) == s->width;
        /* GGUF writes the strength of yarn's ramp; 1 is the method as published */
        bool full =
            strcmp(key, "yarn_ext_factor") == 0 && v.kind == MHA_VALUE_NUMBER && v.number == 1;
        if (!whole && !full)
            return mha_fail(err, MHA_ERR_UNSUPPORTED,
                            "rotary scaling: the key %s is not supported here", key);
    }
    return MHA_OK;
}

/* The name of the scaling; *given is false when there is none in the object. */
static mha_status scaling_name(const mha_rope_settings *s, const char **name, bool *given,
                               mha_err *err)
{
    *name = "default";
    *given = false;
    if (s->scaling == NULL)
        return MHA_OK;
    if (!json_is_object(s->scaling))
        return mha_fail(err, MHA_ERR_FORMAT, "rotary scaling is not an object");
    const json_t *type = json_object_get(s->scaling, "rope_type");
    if (type == NULL || json_is_null(type))
        type = json_object_get(s->scaling, "type");
    *given = type != NULL && !json_is_null(type);
    if (*given && !json_is_string(type))
        return mha_fail(err, MHA_ERR_FORMAT, "rotary scaling: rope_type is not a string");
    if (*given)
        *name = json_string_value(type);
    return MHA_OK;
}

static mha_status scale(float *freq, float *mscale, const mha_rope_settings *s, mha_err *err)
{
    const char *name;
    bool given;
    double attention;
    MHA_TRY(scaling_name(s, &name, &given, err));
    if (s->scaling == NULL)
        return MHA_OK;
    MHA_TRY(check_keys(s, name, err));
    if (strcmp(name, "linear") == 0)
        return scale_linear(freq, s, err);
    if (strcmp(name, "llama3") == 0)
        return scale_llama3(freq, s, err);
    if (strcmp(name, "yarn") == 0)
        return scale_yarn(freq, mscale, s, err);
    if (is_longrope(name))
        return scale_longrope(freq, mscale, s, err);
    bool plain = strcmp(name, "default") == 0 || strcmp(name, "none") == 0;
    /* without a type, a factor would be dropped in silence */
    const json_t *factor = json_object_get(s->scaling, "factor");
    if (!plain || (!given && json_is_number(factor) && json_number_value(factor) != 1))
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "rotary scaling of type \"%s\" is not supported: default, linear, llama3, "
                        "yarn, longrope",
                        given ? name : "");
    MHA_TRY(get_positive(s->scaling, "attn_factor", NULL, 1, &attention, err)); /* GGUF's own */
    *mscale = (float)attention;
    return MHA_OK;
}

static mha_status check_finite(const float *freq, uint32_t n, mha_err *err)
{
    for (uint32_t i = 0; i < n; i++)
        if (!isfinite(freq[i]))
            return mha_fail(err, MHA_ERR_NUMERIC, "rotary frequency %u is not finite", i);
    return MHA_OK;
}

mha_status mha_rope_fill(float *freq, float *mscale, const mha_rope_settings *s, mha_err *err)
{
    if (s->width == 0 || s->width % 2 != 0 || s->width > s->head_width)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "rotary positions turn pairs: %u dims of a head of %u cannot turn",
                        s->width, s->head_width);
    if (!(s->theta > 1) || !isfinite((float)s->theta))
        return mha_fail(err, MHA_ERR_FORMAT, "rotary base theta = %g is not above 1", s->theta);
    *mscale = 1;
    for (uint32_t i = 0; i < s->width / 2; i++)
        freq[i] = 1 / powf((float)s->theta, (float)(2 * i) / (float)s->width);
    MHA_TRY(scale(freq, mscale, s, err));
    for (uint32_t i = 0; i < s->width / 2 && s->divisors != NULL; i++)
        freq[i] /= s->divisors[i];
    return check_finite(freq, s->width / 2, err);
}

mha_status mha_rope_fill_long(float *freq, uint32_t *from, const mha_rope_settings *s, mha_err *err)
{
    const char *name;
    bool given;
    double length;
    *from = 0;
    MHA_TRY(scaling_name(s, &name, &given, err));
    if (!is_longrope(name) && s->long_divisors == NULL)
        return MHA_OK;
    MHA_TRY(get_original(s, &length, err));
    if (!(length >= 1 && length <= INT32_MAX && length == floor(length)))
        return mha_fail(err, MHA_ERR_FORMAT, "rotary scaling: an original length of %g", length);
    *from = (uint32_t)length;
    if (is_longrope(name))
        return divide_list(freq, s, "long_factor", err);
    for (uint32_t i = 0; i < s->width / 2; i++)
        freq[i] =
            1 / (s->long_divisors[i] * powf((float)s->theta, (float)(2 * i) / (float)s->width));
    return check_finite(freq, s->width / 2, err);
}
