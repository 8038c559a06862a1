/* rng.h: a small, fast, seedable generator (xoshiro256++, seeded by SplitMix64; Blackman and Vigna
 * 2019). The sequence is part of the results: never change it. */
#ifndef MHA_BASE_RNG_H
#define MHA_BASE_RNG_H

#include <stdint.h>

typedef struct mha_rng {
    uint64_t s[4];
} mha_rng;

/* `stream` separates independent uses of one user seed, e.g. the document's absolute index. */
void mha_rng_seed(mha_rng *r, uint64_t seed, uint64_t stream);
uint64_t mha_rng_next(mha_rng *r);
double mha_rng_uniform(mha_rng *r);                 /* [0, 1), 53 bits */
uint64_t mha_rng_below(mha_rng *r, uint64_t bound); /* [0, bound), unbiased; bound > 0 */
double mha_rng_normal(mha_rng *r);                  /* mean 0, variance 1 */

#endif
