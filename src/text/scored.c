/* scored.c: unknown characters of SentencePiece models: a run of them is one unknown token, or with
 * byte fallback every byte is a token. It may not know how a model chooses pieces. */
#include "text/scored.h"

#include "base/fail.h"
#include "text/vocab.h"

void mha_scored_unknown_init(mha_scored_unknown *u, const mha_scored_options *options)
{
    size_t known = 0;
    u->id = options->unknown;
    u->runs = options->runs;
    for (size_t i = 0; i < 256; i++)
        u->bytes[i] = -1;
    for (size_t i = 0; i < options->n; i++) {
        const mha_scored_piece *p = &options->pieces[i];
        int byte = mha_byte_of_piece(p->s, p->n);
        if (byte < 0)
            continue;
        known += u->bytes[byte] < 0;
        u->bytes[byte] = p->id;
    }
    u->byte_fallback = options->byte_fallback && known == 256;
}

mha_status mha_scored_unknown_add(const mha_scored_unknown *u, mha_model_scratch *x,
                                  const char *word, size_t start, size_t end, mha_err *err)
{
    int32_t known = u->runs ? mha_vocab_id(u->runs, word + start, end - start) : -1;
    if (known >= 0)
        return mha_model_scratch_add(x, known, start, end, err);
    if (u->byte_fallback) {
        for (size_t i = start; i < end; i++)
            MHA_TRY(mha_model_scratch_add(x, u->bytes[(uint8_t)word[i]], i, i + 1, err));
        return MHA_OK;
    }
    if (u->id < 0)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "a character is not in the vocabulary, and there is no unknown piece");
    return mha_model_scratch_add(x, u->id, start, end, err);
}
