/* rng.c: xoshiro256++ (Blackman and Vigna 2019). Results are part of saved experiments, so nothing
 * here may ever change the sequence that a seed and a stream give. */
#include "base/rng.h"

#include <assert.h>
#include <math.h>

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

/* SplitMix64 (Steele, Lea and Flood 2014). */
static uint64_t splitmix_next(uint64_t *x)
{
    uint64_t z = *x += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* The seed is mixed before the stream joins it, so that no small seed and stream exchange roles;
 * two streams of one seed never start from the same state. */
void mha_rng_seed(mha_rng *r, uint64_t seed, uint64_t stream)
{
    uint64_t x = splitmix_next(&seed) ^ stream;
    for (int i = 0; i < 4; i++)
        r->s[i] = splitmix_next(&x);
}

uint64_t mha_rng_next(mha_rng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotl(s[0] + s[3], 23) + s[0];
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

double mha_rng_uniform(mha_rng *r)
{
    return (double)(mha_rng_next(r) >> 11) * 0x1p-53;
}

/* Draws below 2^64 mod bound are thrown away: what remains is a multiple of bound. */
uint64_t mha_rng_below(mha_rng *r, uint64_t bound)
{
    assert(bound > 0);
    uint64_t reject = (UINT64_MAX - bound + 1) % bound;
    uint64_t x;
    do
        x = mha_rng_next(r);
    while (x < reject);
    return x % bound;
}

/* Marsaglia's polar method: (u, v) uniform in the unit disc, q = u² + v²,
 * x = u √(−2 ln q / q). The second value is dropped: the generator keeps no hidden state. */
double mha_rng_normal(mha_rng *r)
{
    double u, q;
    do {
        u = 2.0 * mha_rng_uniform(r) - 1.0;
        double v = 2.0 * mha_rng_uniform(r) - 1.0;
        q = u * u + v * v;
    } while (q >= 1.0 || q == 0.0);
    return u * sqrt(-2.0 * log(q) / q);
}
