/* bias.c: what positions add to the scores: tables over j − i, or over j, of one head. */
#include "base/half.h"
#include "engine/attention.h"
#include <math.h>

uint32_t mha_bias_bucket(int64_t r, uint32_t buckets, uint32_t max_distance, bool bidirectional)
{
    uint32_t base = 0, n = buckets;
    if (bidirectional) {
        n /= 2;
        base = r > 0 ? n : 0;
        r = r < 0 ? -r : r;
    } else
        r = r < 0 ? -r : 0;
    uint32_t exact = n / 2;
    if (r < (int64_t)exact)
        return base + (uint32_t)r;
    float scaled = logf((float)r / (float)exact) /
                   (float)log((double)max_distance / (double)exact) * (float)(n - exact);
    uint32_t bucket = exact + (uint32_t)scaled;
    return base + (bucket < n ? bucket : n - 1);
}

static void fill_alibi(const mha_attn_args *a, float slope, size_t S, float *bias)
{
    for (size_t j = 0; j < S; j++) {
        float x =
            a->bias_bf16 ? mha_bf16_round(slope * mha_bf16_round((float)j)) : slope * (float)j;
        bias[j] = a->bias_factor * x;
    }
}

const float *mha_bias_row(const mha_attn_args *a, const float *bias, size_t following)
{
    return a->bias == MHA_BIAS_ALIBI ? bias : bias + following;
}

void mha_bias_fill(const mha_attn_args *a, uint32_t h, size_t T, size_t S, float *bias)
{
    if (a->bias == MHA_BIAS_ALIBI) {
        fill_alibi(a, a->bias_table[h], S, bias);
        return;
    }
    for (size_t x = 0; x < T + S - 1; x++) {
        int64_t d = (int64_t)x - (int64_t)(T - 1);
        uint32_t b =
            mha_bias_bucket(d, a->bias_buckets, a->bias_max_distance, a->bias_bidirectional);
        bias[x] = a->bias_table[(size_t)b * a->heads + h];
    }
}
