/* rope.h: rotary frequencies, with the scalings that checkpoints ask for. */
#ifndef MHA_MODEL_ROPE_H
#define MHA_MODEL_ROPE_H

#include "io/json.h"
#include "mha/err.h"
#include <stdint.h>

typedef struct mha_rope_settings {
    uint32_t width;        /* dims of a head that rotate, even */
    uint32_t head_width;   /* K */
    double theta;          /* base */
    const json_t *scaling; /* rope_scaling, rope_parameters or GGUF's rope.scaling.*; NULL: none */
    const float *divisors; /* [width/2] GGUF's rope_freqs, or NULL */
    const float *long_divisors; /* [width/2] those of documents over the original length, or NULL */
    uint32_t positions;         /* max_position_embeddings */
    uint32_t original; /* the length before scaling where `scaling` does not say it; 0: positions */
} mha_rope_settings;

/* freq[width/2] in radians a position; cos and sin are multiplied by *mscale.
 * MHA_ERR_UNSUPPORTED names a type or key that is not implemented, MHA_ERR_FORMAT a value that
 * makes no sense. The caller puts the file in front. */
mha_status mha_rope_fill(float *freq, float *mscale, const mha_rope_settings *s, mha_err *err);

/* Scalings that go by the length of the document: those of more than *from tokens turn by
 * freq[width/2], the others by what mha_rope_fill gives. *from = 0: there are no others. */
mha_status mha_rope_fill_long(float *freq, uint32_t *from, const mha_rope_settings *s,
                              mha_err *err);

#endif
