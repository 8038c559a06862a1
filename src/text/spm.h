/* spm.h: SentencePiece model files (spiece.model, tokenizer.model, sentencepiece.bpe.model):
 * protocol buffers, of which the pieces and what encoding needs are read.
 *
 *     ModelProto      1 pieces, repeated   2 trainer   3 normalizer
 *     SentencePiece   1 piece   2 score (float)   3 type
 *     TrainerSpec     3 model type   24 space as suffix   35 byte fallback   40–43 ids of the
 *                     unknown, first, last and padding piece, −1 for none
 *     NormalizerSpec  2 character rules   3 dummy prefix   4 extra spaces removed   5 spaces marked
 *
 * Fields that are not named here say how the model was trained. The file is hostile input. */
#ifndef MHA_TEXT_SPM_H
#define MHA_TEXT_SPM_H

#include "mha/err.h"
#include "text/model.h"

typedef struct mha_spm {
    mha_scored_piece *pieces; /* [n], ids are places */
    size_t n;
    bool bpe; /* else Unigram */
    bool byte_fallback;
    int32_t unknown, bos, eos, pad; /* ids, -1: none */
    const unsigned char *charsmap;  /* NULL: none */
    size_t charsmap_n;
    bool dummy_prefix, remove_extra_spaces;
} mha_spm;

/* Borrows from data. MHA_ERR_UNSUPPORTED for models of other types (words, characters) and for
 * spaces that are kept or put behind words; MHA_ERR_FORMAT for everything that is broken. */
mha_status mha_spm_read(mha_spm *out, const unsigned char *data, size_t size, const char *file,
                        mha_err *err);
void mha_spm_release(mha_spm *m);

#endif
