/* sha256.c: SHA-256 as in FIPS 180-4, for fingerprints. It is not used where secrets are at stake
 * and makes no attempt to be constant in time. */
#include "base/sha256.h"

#include <string.h>

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotr(uint32_t x, int k)
{
    return x >> k | x << (32 - k);
}

static uint32_t load_be32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The compression function of one 64-byte block, FIPS 180-4 section 6.2.2. */
static void compress(uint32_t state[8], const unsigned char *block)
{
    uint32_t w[64], v[8];
    for (int t = 0; t < 16; t++)
        w[t] = load_be32(block + 4 * t);
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = rotr(w[t - 15], 7) ^ rotr(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotr(w[t - 2], 17) ^ rotr(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    memcpy(v, state, sizeof v);
    for (int t = 0; t < 64; t++) {
        uint32_t sum1 = rotr(v[4], 6) ^ rotr(v[4], 11) ^ rotr(v[4], 25);
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t t1 = v[7] + sum1 + choice + round_constants[t] + w[t];
        uint32_t sum0 = rotr(v[0], 2) ^ rotr(v[0], 13) ^ rotr(v[0], 22);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += t1;
        v[0] = t1 + sum0 + majority;
    }
    for (int i = 0; i < 8; i++)
        state[i] += v[i];
}

void mha_sha256_init(mha_sha256 *h)
{
    *h = (mha_sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void mha_sha256_add(mha_sha256 *h, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    size_t filled = (size_t)(h->bytes % 64);
    h->bytes += n;
    if (filled > 0) {
        size_t take = n < 64 - filled ? n : 64 - filled;
        if (take > 0)
            memcpy(h->block + filled, p, take);
        if (filled + take < 64)
            return;
        compress(h->state, h->block);
        p += take;
        n -= take;
    }
    for (; n >= 64; p += 64, n -= 64)
        compress(h->state, p);
    if (n > 0)
        memcpy(h->block, p, n);
}

void mha_sha256_hex(mha_sha256 *h, char out[65])
{
    static const unsigned char padding[64] = {0x80};
    static const char digits[] = "0123456789abcdef";
    uint64_t bits = h->bytes * 8;
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    size_t filled = (size_t)(h->bytes % 64);
    mha_sha256_add(h, padding, filled < 56 ? 56 - filled : 120 - filled);
    mha_sha256_add(h, length, sizeof length);
    for (int i = 0; i < 64; i++)
        out[i] = digits[h->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    out[64] = '\0';
}
