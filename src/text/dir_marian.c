/* dir_marian.c: Marian's translation models: a SentencePiece model for each language, whose pieces
 * get their ids from vocab.json. Pieces that vocab.json does not have are unknown. Text is taken as
 * it is: that the training data went through Moses' normalisation of punctuation is not imitated.
 */
#include "text/dir_private.h"

#include "base/fail.h"
#include "base/filemap.h"
#include "text/describe.h"
#include "text/field.h"

#include <string.h>

/* Codes of languages, like ">>fra<<", stand in the text as they are. */
static bool is_language(const mha_vocab_piece *p)
{
    return p->s && p->n > 4 && memcmp(p->s, ">>", 2) == 0 && memcmp(p->s + p->n - 2, "<<", 2) == 0;
}

static mha_status add_tokens(mha_tokenizer *t, const mha_model_dir *d, mha_err *err)
{
    static const char *const specials[] = {"</s>", "<unk>", "<pad>"};
    MHA_TRY(mha_dir_add_listed(t, d, err));
    for (size_t i = 0; i < 3; i++)
        MHA_TRY(mha_dir_add_special(t, specials[i], false, err));
    for (size_t id = 0; id < t->vocab.n; id++) {
        if (is_language(&t->vocab.pieces[id]))
            MHA_TRY(mha_dir_add_special(t, t->vocab.pieces[id].s, false, err));
    }
    return MHA_OK;
}

/* Gives the pieces their ids; they keep their own bytes, as text is matched against those. */
static mha_status set_ids(mha_tokenizer *t, mha_spm *m, int32_t unknown, mha_err *err)
{
    for (size_t i = 0; i < m->n; i++) {
        mha_scored_piece *p = &m->pieces[i];
        char *copy;
        int32_t id = mha_vocab_id(&t->vocab, p->s, p->n);
        MHA_TRY(mha_arena_strndup(&copy, &t->arena, p->s, p->n, err));
        p->s = copy;
        p->id = id >= 0 ? id : unknown;
    }
    m->pieces[m->unknown].id = unknown;
    return MHA_OK;
}

static mha_status build(mha_tokenizer *t, const mha_model_dir *d, mha_spm *m, json_t *description,
                        mha_err *err)
{
    int32_t unknown = mha_vocab_id(&t->vocab, "<unk>", 5);
    mha_frame f = {.last_n = 1, .pair = MHA_PAIR_JOINED};
    f.last[0] = mha_vocab_id(&t->vocab, "</s>", 4);
    if (unknown < 0 || f.last[0] < 0)
        return mha_fail(err, MHA_ERR_FORMAT, "%s/vocab.json: there is no \"%s\"", d->path,
                        unknown < 0 ? "<unk>" : "</s>");
    MHA_TRY(set_ids(t, m, unknown, err));
    MHA_TRY(mha_tokenizer_set_splitting(t, description, err));
    MHA_TRY(mha_tokenizer_set_sentencepiece(t, m, MHA_SPACE_ALWAYS, true, err));
    MHA_TRY(add_tokens(t, d, err));
    MHA_TRY(mha_describe_frame(description, &f, err));
    return mha_tokenizer_finish(t, description, err);
}

static mha_status read_file(mha_tokenizer *t, const mha_model_dir *d, const char *file,
                            mha_err *err)
{
    char path[PATH_MAX];
    char *data = NULL;
    size_t size;
    mha_spm m = {0};
    json_t *description = NULL;
    MHA_TRY(mha_dir_read_vocabulary(t, d->path, err));
    MHA_TRY(mha_dir_file(path, d->path, file, err));
    MHA_TRY(mha_file_read(&data, &size, path, MHA_DIR_FILE_MAX, err));
    mha_status status = mha_spm_read(&m, (const unsigned char *)data, size, path, err);
    if (status == MHA_OK)
        status = mha_describe_sentencepiece(&description, m.dummy_prefix, err);
    if (status == MHA_OK)
        status = mha_tokenizer_name_file(err, build(t, d, &m, description, err), d->path);
    json_decref(description);
    mha_spm_release(&m);
    mha_free(data);
    return status;
}

static mha_status check_settings(const mha_model_dir *d, mha_err *err)
{
    bool separate = false;
    char class[64];
    mha_dir_class(class, d);
    if (*class != '\0' && strcmp(class, "MarianTokenizer") != 0)
        return mha_dir_refuse_class(d, class, "source.spm", err);
    MHA_TRY(mha_field_bool(&separate, d->config, "tokenizer_config.json", "separate_vocabs", false,
                           err));
    if (separate)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "tokenizer_config.json: separate_vocabs is not supported");
    return MHA_OK;
}

mha_status mha_dir_read_marian(mha_tokenizer *t, const mha_model_dir *d, mha_err *err)
{
    MHA_TRY(check_settings(d, err));
    MHA_TRY(read_file(t, d, "source.spm", err));
    if (!mha_dir_has(d->path, "target.spm"))
        return MHA_OK;
    MHA_TRY(mha_tokenizer_new(&t->target, err));
    MHA_TRY(read_file(t->target, d, "target.spm", err));
    mha_dir_set_roles(t->target, d);
    return MHA_OK;
}
