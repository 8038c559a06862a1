/* added.h: tokens that are found in the text as they are, before the model sees it: "[MASK]",
 * "<|endoftext|>". Of several that match at one place the longest counts. */
#ifndef MHA_TEXT_ADDED_H
#define MHA_TEXT_ADDED_H

#include "base/mem.h"
#include "mha/err.h"
#include "text/normalizer.h"
#include "text/pieces.h"
#include "text/trie.h"
#include "text/vocab.h"
#include <stdbool.h>

typedef struct mha_added_token {
    int32_t id;
    const char *content; /* in the arena */
    size_t n;
    bool single_word;    /* not next to a word character */
    bool lstrip, rstrip; /* swallows white space around it */
    bool normalized;     /* sought, normalised itself, in normalised text */
    bool special;        /* not text: left out by the decoder */
    const char *sought;  /* the content as the text is searched for it */
    size_t sought_n;
} mha_added_token;

typedef struct mha_added {
    mha_added_token *v;
    size_t n, capacity;
    mha_map by_content; /* indices into v */
    mha_trie plain, normalized;
    int32_t largest; /* id, -1 when there are none */
} mha_added;

void mha_added_init(mha_added *a);
void mha_added_release(mha_added *a);

/* Adds a token, content copied into the arena. `t.id` is checked against the one that the reference
 * implementation would give: the id of the same content in the vocabulary or added before, or the
 * next free one; MHA_ERR_FORMAT when it is another. */
mha_status mha_added_add(mha_added *a, mha_arena *arena, const mha_vocab *vocab,
                         mha_added_token token, mha_err *err);
/* To be called once when all are added. */
mha_status mha_added_finish(mha_added *a, mha_arena *arena, const mha_normalizers *normalizers,
                            mha_err *err);

/* NULL when there is none. */
const mha_added_token *mha_added_find(const mha_added *a, const char *content, size_t n);

/* Splits the pieces of text at added tokens; a token's piece includes the space that it swallows.
 */
mha_status mha_added_split(const mha_added *a, bool normalized, mha_split *split, mha_err *err);

#endif
