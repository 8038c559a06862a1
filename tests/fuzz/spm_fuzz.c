/* spm_fuzz: a SentencePiece model file, of which a tokenizer is made, and a text for it. What opens
 * must encode or refuse, with ids of the vocabulary and ranges of the text. */
#include "base/mem.h"
#include "text/describe.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static mha_status add_pieces(mha_tokenizer *t, mha_spm *m, mha_err *err)
{
    for (size_t i = 0; i < m->n; i++) {
        mha_scored_piece *p = &m->pieces[i];
        mha_status status = mha_vocab_add(&t->vocab, &t->arena, p->s, p->n, p->id, err);
        if (status != MHA_OK)
            return status;
        p->s = t->vocab.pieces[i].s;
    }
    return MHA_OK;
}

static mha_status make(mha_tokenizer *t, mha_spm *m, mha_err *err)
{
    json_t *description;
    mha_status status = add_pieces(t, m, err);
    if (status == MHA_OK)
        status = mha_describe_sentencepiece(&description, m->dummy_prefix, err);
    if (status != MHA_OK)
        return status;
    status = mha_tokenizer_set_splitting(t, description, err);
    if (status == MHA_OK)
        status = mha_tokenizer_set_sentencepiece(t, m, MHA_SPACE_FIRST, false, err);
    if (status == MHA_OK)
        status = mha_tokenizer_finish(t, description, err);
    json_decref(description);
    return status;
}

static void encode(const mha_tokenizer *t, const char *text, size_t n)
{
    mha_tokens k = {0};
    mha_err err;
    char *decoded = NULL;
    if (mha_tokenizer_encode(t, text, n, NULL, 0, true, &k, &err) == MHA_OK) {
        for (size_t i = 0; i < k.n; i++) {
            if (k.id[i] < 0 || (size_t)k.id[i] >= mha_tokenizer_vocab(t) || k.start[i] > k.end[i] ||
                k.end[i] > n)
                abort();
        }
        mha_tokenizer_decode(t, k.id, k.n, &decoded, &err);
        mha_free(decoded);
    }
    mha_tokens_release(&k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] = "  a b\xc3\xa9  a\xcc\x81\xe2\x96\x81 12\n\xf0\x9f\x98\x80 ab ";
    mha_spm m;
    mha_tokenizer *t;
    mha_err err;
    if (mha_spm_read(&m, data, size, "fuzz", &err) != MHA_OK)
        return 0;
    if (mha_tokenizer_new(&t, &err) == MHA_OK && make(t, &m, &err) == MHA_OK) {
        encode(t, text, sizeof text - 1);
        encode(t, (const char *)data, size < 200 ? size : 200);
    }
    mha_spm_release(&m);
    mha_tokenizer_free(t);
    return 0;
}
