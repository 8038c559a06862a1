/* ref_widen.c: portable decoding of stored types. Layouts and formulas: widen.h.
 *
 * Products with a vector decode a part of a row at a time and sum in double. */
#include "kernel/widen.h"

enum { PART = 32 }; /* every block type decodes this many elements at once */

const int8_t mha_iq4_nl_levels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113};

static int nibble(const uint8_t *qs, size_t j)
{
    return j < 16 ? qs[j] & 15 : qs[j - 16] >> 4;
}

static uint32_t load_u32(const uint8_t *p)
{
    return (uint32_t)mha_load_u16(p) | (uint32_t)mha_load_u16(p + 2) << 16;
}

/* v[32] ← elements 32·part … 32·part + 31 of one block. */
typedef void decoder(float *v, const uint8_t *block, size_t part);

static void decode_q4_0(float *v, const uint8_t *block, size_t part)
{
    const float d = mha_load_f16(block);

    (void)part;
    for (size_t j = 0; j < PART; j++)
        v[j] = d * (float)(nibble(block + 2, j) - 8);
}

static void decode_q4_1(float *v, const uint8_t *block, size_t part)
{
    const float d = mha_load_f16(block), m = mha_load_f16(block + 2);

    (void)part;
    for (size_t j = 0; j < PART; j++) {
        const float product = d * (float)nibble(block + 4, j);
        v[j] = product + m;
    }
}

static void decode_q5_0(float *v, const uint8_t *block, size_t part)
{
    const float d = mha_load_f16(block);
    const uint32_t qh = load_u32(block + 2);

    (void)part;
    for (size_t j = 0; j < PART; j++)
        v[j] = d * (float)((nibble(block + 6, j) | (int)(qh >> j & 1) << 4) - 16);
}

static void decode_q5_1(float *v, const uint8_t *block, size_t part)
{
    const float d = mha_load_f16(block), m = mha_load_f16(block + 2);
    const uint32_t qh = load_u32(block + 4);

    (void)part;
    for (size_t j = 0; j < PART; j++) {
        const float product = d * (float)(nibble(block + 8, j) | (int)(qh >> j & 1) << 4);
        v[j] = product + m;
    }
}

static void decode_q8_0(float *v, const uint8_t *block, size_t part)
{
    const float d = mha_load_f16(block);

    (void)part;
    for (size_t j = 0; j < PART; j++)
        v[j] = d * (float)(int8_t)block[2 + j];
}

static void decode_iq4_nl(float *v, const uint8_t *block, size_t part)
{
    const float d = mha_load_f16(block);

    (void)part;
    for (size_t j = 0; j < PART; j++)
        v[j] = d * (float)mha_iq4_nl_levels[nibble(block + 2, j)];
}

static void decode_q2_k(float *v, const uint8_t *block, size_t part)
{
    const uint8_t *scales = block + 2 * part, *qs = block + 16 + 32 * (part / 4);
    const float d = mha_load_f16(block + 80), dmin = mha_load_f16(block + 82);

    for (size_t l = 0; l < PART; l++) {
        const uint8_t scale = scales[l / 16];
        const float product = d * (float)(scale & 15) * (float)(qs[l] >> 2 * (part % 4) & 3);
        v[l] = product - dmin * (float)(scale >> 4);
    }
}

static void decode_q3_k(float *v, const uint8_t *block, size_t part)
{
    const uint8_t *hmask = block, *qs = block + 32 + 32 * (part / 4);
    const float d = mha_load_f16(block + 108);

    for (size_t l = 0; l < PART; l++) {
        const int sc = mha_k3_scale(block + 96, 2 * part + l / 16);
        const int q = (qs[l] >> 2 * (part % 4) & 3) - ((hmask[l] >> part & 1) != 0 ? 0 : 4);
        v[l] = d * (float)sc * (float)q;
    }
}

static void decode_q4_k(float *v, const uint8_t *block, size_t part)
{
    const uint8_t *qs = block + 16 + 32 * (part / 2);
    uint8_t sc, mn;

    mha_k4_scales(block + 4, part, &sc, &mn);
    const float d = mha_load_f16(block) * (float)sc, m = mha_load_f16(block + 2) * (float)mn;
    for (size_t l = 0; l < PART; l++) {
        const float product = d * (float)(qs[l] >> 4 * (part % 2) & 15);
        v[l] = product - m;
    }
}

static void decode_q5_k(float *v, const uint8_t *block, size_t part)
{
    const uint8_t *qh = block + 16, *qs = block + 48 + 32 * (part / 2);
    uint8_t sc, mn;

    mha_k4_scales(block + 4, part, &sc, &mn);
    const float d = mha_load_f16(block) * (float)sc, m = mha_load_f16(block + 2) * (float)mn;
    for (size_t l = 0; l < PART; l++) {
        const int q = (qs[l] >> 4 * (part % 2) & 15) | (qh[l] >> part & 1) << 4;
        const float product = d * (float)q;
        v[l] = product - m;
    }
}

static void decode_q6_k(float *v, const uint8_t *block, size_t part)
{
    const size_t h = part / 4, k = part % 4;
    const uint8_t *ql = block + 64 * h + 32 * (k % 2), *qh = block + 128 + 32 * h;
    const uint8_t *scales = block + 192 + 2 * part;
    const float d = mha_load_f16(block + 208);

    for (size_t l = 0; l < PART; l++) {
        const int q = (ql[l] >> 4 * (k / 2) & 15) | (qh[l] >> 2 * k & 3) << 4;
        v[l] = d * (float)(int8_t)scales[l / 16] * (float)(q - 32);
    }
}

/* Loops over the parts of a row. */
static void widen_blocks(float *dst, const void *src, size_t n, mha_dtype type, decoder *decode)
{
    const mha_dtype_info *info = mha_dtype_get(type);
    const uint8_t *block = src;

    for (size_t i = 0; i < n; i += info->block, block += info->bytes) {
        for (size_t part = 0; part < info->block / PART; part++)
            decode(dst + i + part * PART, block, part);
    }
}

static float dot_blocks(const void *row, const float *x, size_t n, mha_dtype type, decoder *decode)
{
    const mha_dtype_info *info = mha_dtype_get(type);
    const uint8_t *block = row;
    double sum = 0.0;

    for (size_t i = 0; i < n; i += info->block, block += info->bytes) {
        for (size_t part = 0; part < info->block / PART; part++) {
            float v[PART];
            decode(v, block, part);
            for (size_t j = 0; j < PART; j++)
                sum += (double)v[j] * (double)x[i + part * PART + j];
        }
    }
    return (float)sum;
}

/* Plain types. Elements are fetched by memcpy: rows of mapped files need not be aligned. */
static float fetch_f32(const uint8_t *src, size_t i)
{
    float v;

    memcpy(&v, src + 4 * i, sizeof v);
    return v;
}

static double fetch_f64(const uint8_t *src, size_t i)
{
    double v;

    memcpy(&v, src + 8 * i, sizeof v);
    return v;
}

void mha_ref_widen_f32(float *dst, const void *src, size_t n)
{
    if (n > 0)
        memcpy(dst, src, n * sizeof *dst);
}

void mha_ref_widen_f16(float *dst, const void *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = mha_load_f16((const uint8_t *)src + 2 * i);
}

void mha_ref_widen_bf16(float *dst, const void *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = mha_bf16_widen(mha_load_u16((const uint8_t *)src + 2 * i));
}

void mha_ref_widen_f64(float *dst, const void *src, size_t n)
{
    for (size_t i = 0; i < n; i++)
        dst[i] = (float)fetch_f64(src, i);
}

float mha_ref_dot_f32(const void *row, const float *x, size_t n)
{
    double sum = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += (double)fetch_f32(row, i) * (double)x[i];
    return (float)sum;
}

float mha_ref_dot_f16(const void *row, const float *x, size_t n)
{
    double sum = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += (double)mha_load_f16((const uint8_t *)row + 2 * i) * (double)x[i];
    return (float)sum;
}

float mha_ref_dot_bf16(const void *row, const float *x, size_t n)
{
    double sum = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += (double)mha_bf16_widen(mha_load_u16((const uint8_t *)row + 2 * i)) * (double)x[i];
    return (float)sum;
}

float mha_ref_dot_f64(const void *row, const float *x, size_t n)
{
    double sum = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += (double)(float)fetch_f64(row, i) * (double)x[i];
    return (float)sum;
}

void mha_ref_widen_q4_0(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, MHA_Q4_0, decode_q4_0);
}

float mha_ref_dot_q4_0(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, MHA_Q4_0, decode_q4_0);
}

void mha_ref_widen_q4_1(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, MHA_Q4_1, decode_q4_1);
}

float mha_ref_dot_q4_1(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, MHA_Q4_1, decode_q4_1);
}

void mha_ref_widen_q5_0(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, MHA_Q5_0, decode_q5_0);
}

float mha_ref_dot_q5_0(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, MHA_Q5_0, decode_q5_0);
}

void mha_ref_widen_q5_1(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, MHA_Q5_1, decode_q5_1);
}

float mha_ref_dot_q5_1(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, MHA_Q5_1, decode_q5_1);
}

void mha_ref_widen_q8_0(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, MHA_Q8_0, decode_q8_0);
}

float mha_ref_dot_q8_0(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, MHA_Q8_0, decode_q8_0);
}

void mha_ref_widen_iq4_nl(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, MHA_IQ4_NL, decode_iq4_nl);
}

float mha_ref_dot_iq4_nl(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, MHA_IQ4_NL, decode_iq4_nl);
}

void mha_ref_widen_q2_k(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, MHA_Q2_K, decode_q2_k);
}

float mha_ref_dot_q2_k(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, MHA_Q2_K, decode_q2_k);
}

void mha_ref_widen_q3_k(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, MHA_Q3_K, decode_q3_k);
}

float mha_ref_dot_q3_k(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, MHA_Q3_K, decode_q3_k);
}

void mha_ref_widen_q4_k(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, MHA_Q4_K, decode_q4_k);
}

float mha_ref_dot_q4_k(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, MHA_Q4_K, decode_q4_k);
}

void mha_ref_widen_q5_k(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, MHA_Q5_K, decode_q5_k);
}

float mha_ref_dot_q5_k(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, MHA_Q5_K, decode_q5_k);
}

void mha_ref_widen_q6_k(float *dst, const void *src, size_t n)
{
    widen_blocks(dst, src, n, MHA_Q6_K, decode_q6_k);
}

float mha_ref_dot_q6_k(const void *row, const float *x, size_t n)
{
    return dot_blocks(row, x, n, MHA_Q6_K, decode_q6_k);
}
