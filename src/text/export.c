/* export.c: the byte-level BPE tokenizer of a GGUF file as a tokenizer.json, for a model that
 * leaves GGUF. May not invent anything: merges and pieces are the file's, the rest is what the
 * reader made of its keys. */
#include "base/buf.h"
#include "base/fail.h"
#include "base/mem.h"
#include "io/checkpoint.h"
#include "text/tokenizer_private.h"

static mha_status out_of_memory(mha_err *err)
{
    return mha_fail(err, MHA_ERR_NOMEM, "out of memory");
}

static int add_text(const char *text, size_t n, void *buf)
{
    return mha_buf_add(buf, text, n, NULL) == MHA_OK ? 0 : -1;
}

mha_status mha_tokenizer_dump(const json_t *value, size_t flags, char **out, mha_err *err)
{
    mha_buf text;
    mha_buf_init(&text, (size_t)256 << 20);
    mha_status status = json_dump_callback(value, add_text, &text, flags) == 0
                            ? mha_strndup(out, text.data, text.size, err)
                            : out_of_memory(err);
    mha_buf_release(&text);
    return status;
}

static json_t *added_tokens(const mha_tokenizer *t)
{
    json_t *list = json_array();
    for (size_t i = 0; i < t->added.n; i++) {
        const mha_added_token *a = &t->added.v[i];
        json_t *item = json_pack("{s:i, s:s%, s:b, s:b, s:b, s:b, s:b}", "id", (int)a->id,
                                 "content", a->content, a->n, "single_word", (int)a->single_word,
                                 "lstrip", (int)a->lstrip, "rstrip", (int)a->rstrip, "normalized",
                                 (int)a->normalized, "special", (int)a->special);
        if (json_array_append_new(list, item) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

static json_t *vocabulary(const mha_tokenizer *t)
{
    json_t *vocab = json_object();
    for (size_t i = 0; i < t->vocab.n; i++) {
        const mha_vocab_piece *p = &t->vocab.pieces[i];
        if (p->s != NULL && json_object_set_new(vocab, p->s, json_integer((json_int_t)i)) != 0) {
            json_decref(vocab);
            return NULL;
        }
    }
    return vocab;
}

static mha_status merges(const mha_gguf *g, json_t **out, mha_err *err)
{
    static const char key[] = "tokenizer.ggml.merges";
    bool found;
    mha_gguf_kind kind;
    size_t n = 0;
    void *p;
    MHA_TRY(mha_gguf_get_array(g, key, &found, &kind, &n, err));
    MHA_TRY(mha_alloc(&p, n, sizeof(mha_gguf_string), err));
    mha_gguf_string *s = p;
    mha_status status = found ? mha_gguf_array_strings(g, key, s, n, err) : MHA_OK;
    *out = json_array();
    for (size_t i = 0; i < n && status == MHA_OK; i++)
        if (json_array_append_new(*out, json_stringn(s[i].s, s[i].n)) != 0)
            status = out_of_memory(err);
    mha_free(s);
    return status;
}

/* The whole document from the reader's description of the parts around the model. */
static mha_status assemble(const mha_tokenizer *t, const mha_gguf *g, char **out, mha_err *err)
{
    json_t *list = NULL, *root = json_loads(t->description, 0, NULL);
    mha_status status = merges(g, &list, err);
    json_t *model = json_pack("{s:s, s:o, s:o, s:b}", "type", "BPE", "vocab", vocabulary(t),
                              "merges", list, "ignore_merges", (int)t->ignore_merges);
    if (status == MHA_OK && (root == NULL || model == NULL ||
                             json_object_set_new(root, "version", json_string("1.0")) != 0 ||
                             json_object_set_new(root, "added_tokens", added_tokens(t)) != 0 ||
                             json_object_set(root, "model", model) != 0))
        status = out_of_memory(err);
    if (status == MHA_OK)
        status = mha_tokenizer_dump(root, JSON_INDENT(1), out, err);
    json_decref(model);
    json_decref(root);
    return status;
}

mha_status mha_tokenizer_export(char **out, const mha_tokenizer *t, const char *path, mha_err *err)
{
    mha_checkpoint *c;
    *out = NULL;
    if (t->description == NULL)
        return MHA_OK;
    MHA_TRY(mha_checkpoint_open(&c, path, NULL, err));
    mha_status status = c->gguf != NULL ? assemble(t, c->gguf, out, err) : MHA_OK;
    mha_checkpoint_close(c);
    return status;
}
