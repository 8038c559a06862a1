/* tokenizer_gguf_spm.c: SentencePiece models in GGUF metadata, turned back into what their own file
 * said. It may not know how they are used. */
#include "text/tokenizer_gguf_private.h"

#include "base/buf.h"
#include "base/fail.h"

#include <stdio.h>
#include <string.h>

#define KEY    MHA_GGUF_KEY
#define MARK   "\xe2\x96\x81"
#define MARK_N ((size_t)3)

/* Sentinels of T5 that the converter had no names for. */
#define EXTRA_IDS 100

static bool architecture_is(const mha_gguf *g, const char *start)
{
    bool found;
    mha_gguf_string s;
    if (mha_gguf_get_string(g, "general.architecture", &found, &s, NULL) != MHA_OK || !found)
        return false;
    return s.n >= strlen(start) && memcmp(s.s, start, strlen(start)) == 0;
}

static mha_status read_scores(const mha_gguf *g, mha_spm *m, mha_err *err)
{
    bool found;
    void *p;
    mha_gguf_kind kind;
    size_t count = 0;
    MHA_TRY(mha_gguf_get_array(g, KEY("scores"), &found, &kind, &count, err));
    if (!found)
        return mha_fail(err, MHA_ERR_FORMAT, "there is no " KEY("scores"));
    MHA_TRY(mha_alloc(&p, m->n, sizeof(float), err));
    float *scores = p;
    mha_status status = mha_gguf_array_reals(g, KEY("scores"), scores, m->n, err);
    for (size_t i = 0; status == MHA_OK && i < m->n; i++)
        m->pieces[i].score = (double)scores[i];
    mha_free(scores);
    return status;
}

/* --- pieces ---------------------------------------------------------------------------------- */

/* Runs of spaces are sometimes stored as such: *out is the piece with marks for spaces. */
static mha_status respell(mha_tokenizer *t, const mha_gguf_string *s, mha_gguf_string *out,
                          mha_err *err)
{
    mha_buf b;
    char *copy;
    mha_buf_init(&b, SIZE_MAX / 2);
    mha_status status = MHA_OK;
    for (size_t i = 0; status == MHA_OK && i < s->n; i++) {
        bool space = s->s[i] == ' ';
        status = mha_buf_add(&b, space ? MARK : s->s + i, space ? MARK_N : 1, err);
    }
    if (status == MHA_OK)
        status = mha_arena_strndup(&copy, &t->arena, b.data ? b.data : "", b.size, err);
    if (status == MHA_OK)
        *out = (mha_gguf_string){copy, b.size};
    mha_buf_release(&b);
    return status;
}

/* A name that the converter made up. */
static bool is_placeholder(const mha_gguf_string *s)
{
    if (s->n < 6 || memcmp(s->s, "[PAD", 4) != 0 || s->s[s->n - 1] != ']')
        return false;
    for (size_t i = 4; i + 1 < s->n; i++) {
        if (s->s[i] < '0' || s->s[i] > '9')
            return false;
    }
    return true;
}

static mha_status add_piece(mha_tokenizer *t, mha_spm *m, const mha_gguf_pieces *list, size_t i,
                            mha_err *err)
{
    mha_gguf_string s = list->pieces[i], marked;
    int64_t type = list->types[i];
    if (type < MHA_PIECE_NORMAL || type > MHA_PIECE_BYTE)
        return mha_fail(err, MHA_ERR_FORMAT, KEY("token_type") ": piece %zu has the type %lld", i,
                        (long long)type);
    if (type != MHA_PIECE_CONTROL && memchr(s.s, ' ', s.n)) {
        MHA_TRY(respell(t, &s, &marked, err));
        if (mha_vocab_id(&t->vocab, marked.s, marked.n) < 0)
            s = marked;
    }
    MHA_TRY(mha_vocab_add(&t->vocab, &t->arena, s.s, s.n, (int64_t)i, err));
    m->pieces[i] =
        (mha_scored_piece){t->vocab.pieces[i].s, s.n, 0, (mha_piece_type)type, (int32_t)i};
    if (type == MHA_PIECE_UNKNOWN)
        m->unknown = (int32_t)i;
    return MHA_OK;
}

static mha_status add_pieces(mha_tokenizer *t, const mha_gguf *g, mha_spm *m,
                             const mha_gguf_pieces *list, mha_err *err)
{
    void *p;
    MHA_TRY(mha_alloc(&p, list->n, sizeof *m->pieces, err));
    m->pieces = p;
    m->n = list->n;
    for (size_t i = 0; i < list->n; i++)
        MHA_TRY(add_piece(t, m, list, i, err));
    MHA_TRY(read_scores(g, m, err));
    MHA_TRY(mha_gguf_read_roles(t, g, err));
    if (t->roles[MHA_TOKEN_UNK] >= 0)
        m->unknown = t->roles[MHA_TOKEN_UNK];
    return MHA_OK;
}

/* --- settings -------------------------------------------------------------------------------- */

static mha_status read_charsmap(const mha_gguf *g, mha_spm *m, mha_err *err)
{
    const mha_gguf_entry *e = mha_gguf_find(g, KEY("precompiled_charsmap"));
    if (!e)
        return MHA_OK;
    if (e->kind != MHA_GGUF_ARRAY || mha_gguf_kind_size(e->element) != 1)
        return mha_fail(err, MHA_ERR_FORMAT, KEY("precompiled_charsmap") " is no array of bytes");
    m->charsmap = e->count > 0 ? e->value : NULL;
    m->charsmap_n = (size_t)e->count;
    return MHA_OK;
}

static mha_status read_settings(const mha_gguf *g, mha_spm *m, mha_err *err)
{
    m->dummy_prefix = true;
    m->byte_fallback = true;
    MHA_TRY(mha_gguf_get_flag(g, KEY("add_space_prefix"), &m->dummy_prefix, err));
    MHA_TRY(mha_gguf_get_flag(g, KEY("remove_extra_whitespaces"), &m->remove_extra_spaces, err));
    return read_charsmap(g, m, err);
}

/* The part that both kinds have in common, from the model to the end. */
static mha_status build(mha_tokenizer *t, const mha_spm *m, const mha_gguf_pieces *list,
                        mha_space_prefix prefix, mha_frame *f, mha_err *err)
{
    json_t *description;
    f->pair = MHA_PAIR_REPEAT;
    MHA_TRY(mha_describe_sentencepiece(&description, m->dummy_prefix, err));
    mha_status status = mha_tokenizer_set_splitting(t, description, err);
    if (status == MHA_OK)
        status = mha_tokenizer_set_sentencepiece(t, m, prefix, false, err);
    if (status == MHA_OK)
        status = mha_gguf_add_added(t, list, false, -1, err);
    if (status == MHA_OK)
        status = mha_describe_frame(description, f, err);
    if (status == MHA_OK)
        status = mha_tokenizer_finish(t, description, err);
    json_decref(description);
    return status;
}

/* --- the kinds ------------------------------------------------------------------------------- */

static mha_status fill_llama(mha_tokenizer *t, const mha_gguf *g, const mha_gguf_pieces *list,
                             mha_spm *m, mha_err *err)
{
    mha_frame f;
    MHA_TRY(read_settings(g, m, err));
    MHA_TRY(add_pieces(t, g, m, list, err));
    m->bpe = true;
    /* The scores of Gemma's files are not in the order of its merges: the pieces are. */
    bool gemma = architecture_is(g, "gemma");
    for (size_t i = 0; gemma && i < m->n; i++)
        m->pieces[i].score = -(double)i;
    MHA_TRY(mha_gguf_read_frame(&f, t, g, true, false, false, err));
    mha_space_prefix prefix = architecture_is(g, "phi3") ? MHA_SPACE_ALWAYS : MHA_SPACE_FIRST;
    return build(t, m, list, prefix, &f, err);
}

mha_status mha_gguf_read_llama(mha_tokenizer *t, const mha_gguf *g, mha_gguf_pieces *list,
                               mha_err *err)
{
    mha_spm m = {0};
    mha_status status = fill_llama(t, g, list, &m, err);
    mha_spm_release(&m);
    return status;
}

/* The sentinels, the first one last, have lost their names. */
static mha_status name_sentinels(mha_tokenizer *t, mha_gguf_pieces *list, mha_err *err)
{
    int next = EXTRA_IDS;
    for (size_t i = 0; i < list->n && next > 0; i++) {
        char name[32];
        char *copy;
        if (!is_placeholder(&list->pieces[i]))
            continue;
        int n = snprintf(name, sizeof name, "<extra_id_%d>", --next);
        MHA_TRY(mha_arena_strndup(&copy, &t->arena, name, (size_t)n, err));
        list->pieces[i] = (mha_gguf_string){copy, (size_t)n};
        list->types[i] = MHA_PIECE_CONTROL;
    }
    return MHA_OK;
}

static mha_status fill_t5(mha_tokenizer *t, const mha_gguf *g, mha_gguf_pieces *list, mha_spm *m,
                          mha_err *err)
{
    mha_frame f;
    MHA_TRY(name_sentinels(t, list, err));
    MHA_TRY(read_settings(g, m, err));
    MHA_TRY(add_pieces(t, g, m, list, err));
    MHA_TRY(mha_gguf_read_frame(&f, t, g, false, true, false, err));
    return build(t, m, list, MHA_SPACE_ALWAYS, &f, err);
}

mha_status mha_gguf_read_t5(mha_tokenizer *t, const mha_gguf *g, mha_gguf_pieces *list,
                            mha_err *err)
{
    mha_spm m = {0};
    mha_status status = fill_t5(t, g, list, &m, err);
    mha_spm_release(&m);
    return status;
}
