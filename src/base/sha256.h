/* sha256.h: SHA-256 (FIPS 180-4), for fingerprints of files. */
#ifndef MHA_BASE_SHA256_H
#define MHA_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct mha_sha256 {
    uint32_t state[8];
    uint64_t bytes;
    unsigned char block[64];
} mha_sha256;

void mha_sha256_init(mha_sha256 *h);
void mha_sha256_add(mha_sha256 *h, const void *bytes, size_t n);
void mha_sha256_hex(mha_sha256 *h, char out[65]); /* finishes; lower-case hex and NUL */

#endif
