/* dir_chars.c: tokenizers that need no model: the characters of ESM's vocab.txt, and ByT5's bytes,
 * which have no file of their own. */
#include "text/dir_private.h"

#include "base/fail.h"
#include "base/utf8.h"
#include "text/bytelevel.h"
#include "text/describe.h"
#include "text/field.h"

#include <stdio.h>
#include <string.h>

/* --- ESM ------------------------------------------------------------------------------------- */

/* Every piece is found in the text as it is, the longest first; what is left between them is split
 * at white space and unknown. */
static mha_status add_all_pieces(mha_tokenizer *t, const mha_model_dir *d, mha_err *err)
{
    static const char *const specials[] = {"<cls>", "<pad>", "<eos>", "<unk>", "<mask>"};
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
        MHA_TRY(mha_dir_add_special(t, specials[i], false, err));
    MHA_TRY(mha_dir_add_listed(t, d, err));
    for (size_t id = 0; id < t->vocab.n; id++) {
        const mha_vocab_piece *p = &t->vocab.pieces[id];
        if (!p->s || p->n == 0 || mha_added_find(&t->added, p->s, p->n) ||
            mha_vocab_id(&t->vocab, p->s, p->n) != (int32_t)id)
            continue;
        mha_added_token token = {.id = (int32_t)id, .content = p->s, .n = p->n};
        MHA_TRY(mha_added_add(&t->added, &t->arena, &t->vocab, token, err));
    }
    return MHA_OK;
}

static mha_status build_esm(mha_tokenizer *t, const mha_model_dir *d, json_t *description,
                            mha_err *err)
{
    mha_frame f = {.first_n = 1, .last_n = 1};
    f.first[0] = mha_vocab_id(&t->vocab, "<cls>", 5);
    f.last[0] = mha_vocab_id(&t->vocab, "<eos>", 5);
    if (f.first[0] < 0 || f.last[0] < 0 || mha_vocab_id(&t->vocab, "<unk>", 5) < 0)
        return mha_fail(err, MHA_ERR_FORMAT, "%s/vocab.txt: <cls>, <eos> and <unk> must be there",
                        d->path);
    MHA_TRY(mha_tokenizer_set_splitting(t, description, err));
    MHA_TRY(mha_tokenizer_set_wordlevel(t, "<unk>", 5, err));
    MHA_TRY(add_all_pieces(t, d, err));
    MHA_TRY(mha_describe_frame(description, &f, err));
    return mha_tokenizer_finish(t, description, err);
}

mha_status mha_dir_read_esm(mha_tokenizer *t, const mha_model_dir *d, mha_err *err)
{
    MHA_TRY(mha_dir_read_pieces(t, d->path, err));
    json_t *description = json_pack("{s:{s:s}}", "pre_tokenizer", "type", "WhitespaceSplit");
    if (!description)
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory");
    mha_status status = build_esm(t, d, description, err);
    json_decref(description);
    return status;
}

/* --- ByT5 ------------------------------------------------------------------------------------ */

#define BYT5_EXTRA 125

/* Pieces are written in the byte alphabet: byte-level BPE without any merges. */
static mha_status add_bytes(mha_tokenizer *t, mha_err *err)
{
    static const char *const specials[] = {"<pad>", "</s>", "<unk>"};
    for (int64_t i = 0; i < 3; i++)
        MHA_TRY(mha_vocab_add(&t->vocab, &t->arena, specials[i], strlen(specials[i]), i, err));
    for (unsigned byte = 0; byte < 256; byte++) {
        char c[4];
        size_t n = mha_utf8_encode(mha_byte_to_char((uint8_t)byte), c);
        MHA_TRY(mha_vocab_add(&t->vocab, &t->arena, c, n, 3 + (int64_t)byte, err));
    }
    return MHA_OK;
}

static mha_status add_token(mha_tokenizer *t, const char *content, int32_t id, bool strip,
                            mha_err *err)
{
    mha_added_token token = {.id = id,
                             .content = content,
                             .n = strlen(content),
                             .lstrip = strip,
                             .rstrip = strip,
                             .special = true};
    return mha_added_add(&t->added, &t->arena, &t->vocab, token, err);
}

static mha_status add_byt5_tokens(mha_tokenizer *t, const mha_model_dir *d, mha_err *err)
{
    int64_t extra = BYT5_EXTRA;
    MHA_TRY(mha_dir_add_listed(t, d, err));
    for (int32_t id = 0; id < 3; id++) {
        const char *s = t->vocab.pieces[id].s;
        if (!mha_added_find(&t->added, s, strlen(s)))
            MHA_TRY(add_token(t, s, id, true, err));
    }
    MHA_TRY(mha_field_int(&extra, d->config, "tokenizer_config.json", "extra_ids", false, err));
    /* Files that list their tokens say 0 here and mean those. */
    for (int64_t i = 0; i < extra && i < BYT5_EXTRA; i++) {
        char name[32];
        int n = snprintf(name, sizeof name, "<extra_id_%lld>", (long long)i);
        if (!mha_added_find(&t->added, name, (size_t)n))
            MHA_TRY(add_token(t, name, (int32_t)(259 + i), false, err));
    }
    return MHA_OK;
}

static mha_status build_byt5(mha_tokenizer *t, const mha_model_dir *d, json_t *description,
                             mha_err *err)
{
    mha_bpe_options options = {.prefix = "", .suffix = ""};
    mha_frame f = {.last = {1}, .last_n = 1};
    MHA_TRY(add_bytes(t, err));
    MHA_TRY(mha_tokenizer_set_splitting(t, description, err));
    MHA_TRY(mha_tokenizer_set_bpe(t, &options, err));
    MHA_TRY(add_byt5_tokens(t, d, err));
    MHA_TRY(mha_describe_frame(description, &f, err));
    return mha_tokenizer_finish(t, description, err);
}

mha_status mha_dir_read_byt5(mha_tokenizer *t, const mha_model_dir *d, mha_err *err)
{
    json_t *description =
        json_pack("{s:{s:s, s:b, s:b}, s:{s:s}}", "pre_tokenizer", "type", "ByteLevel",
                  "add_prefix_space", 0, "use_regex", 0, "decoder", "type", "ByteLevel");
    if (!description)
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory");
    mha_status status = build_byt5(t, d, description, err);
    json_decref(description);
    return status;
}
