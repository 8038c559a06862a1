/* trie.h: a set of byte strings with values, walked byte by byte: longest matches in one pass. */
#ifndef MHA_TEXT_TRIE_H
#define MHA_TEXT_TRIE_H

#include "mha/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MHA_TRIE_ROOT ((uint32_t)0)
#define MHA_TRIE_NONE UINT32_MAX

/* Longest key, in bytes: a walk that fails costs no more than this. */
#define MHA_TRIE_KEY_MAX ((size_t)4096)

typedef struct mha_trie_key {
    const char *s;
    size_t n;
    int32_t value; /* >= 0 */
} mha_trie_key;

typedef struct mha_trie {
    struct mha_trie_node *nodes;
    uint8_t *bytes; /* the byte on the edge into each node; children of one node are neighbours */
    uint32_t n, capacity;
    uint32_t top[256]; /* children of the root */
} mha_trie;

/* Sorts `keys` in place. Of equal keys the smallest value counts; empty keys are left out. Keys are
 * not needed afterwards. MHA_ERR_LIMIT for a key that is too long. */
mha_status mha_trie_build(mha_trie *t, mha_trie_key *keys, size_t n, mha_err *err);
void mha_trie_release(mha_trie *t);

/* The node behind `node` along `byte`, MHA_TRIE_NONE when there is none. */
uint32_t mha_trie_step(const mha_trie *t, uint32_t node, uint8_t byte);
/* The value of the key that ends at a node, -1 when there is none. */
int32_t mha_trie_value(const mha_trie *t, uint32_t node);
/* The node at the end of a whole string. */
uint32_t mha_trie_walk(const mha_trie *t, const char *s, size_t n);
/* The longest key that s[0..n) starts with, counted from `node`: its length, 0 when there is none.
 */
size_t mha_trie_longest(const mha_trie *t, uint32_t node, const char *s, size_t n, int32_t *value);

#endif
