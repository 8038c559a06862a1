/* wordlevel.c: WordLevel. A word is a piece of the vocabulary as a whole, or it is unknown. */
#include "text/model.h"

#include "base/fail.h"

typedef struct wordlevel {
    const mha_vocab *vocab;
    int32_t unknown;
} wordlevel;

static mha_status tokenize(const void *state, const char *word, size_t n, mha_model_scratch *x,
                           mha_err *err)
{
    const wordlevel *w = state;
    int32_t id = mha_vocab_id(w->vocab, word, n);
    if (id < 0)
        id = w->unknown;
    if (id < 0)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "a word is not in the vocabulary, and neither is unk_token");
    return mha_model_scratch_add(x, id, 0, n, err);
}

static const struct mha_model_kind wordlevel_kind = {"WordLevel", tokenize, mha_free};

mha_status mha_wordlevel_new(mha_model *out, const mha_vocab *vocab, int32_t unknown, mha_err *err)
{
    void *p;
    MHA_TRY(mha_alloc(&p, 1, sizeof(wordlevel), err));
    *(wordlevel *)p = (wordlevel){vocab, unknown};
    *out = (mha_model){&wordlevel_kind, p};
    return MHA_OK;
}
