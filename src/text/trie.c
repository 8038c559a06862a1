/* trie.c: a trie built breadth first from sorted keys, so that the children of a node lie side by
 * side in the order of their bytes. It may not be changed once it is built. */
#include "text/trie.h"

#include "base/fail.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

struct mha_trie_node {
    int32_t value;  /* -1 when no key ends here */
    uint32_t first; /* of the children */
    uint32_t count;
};

/* While building: the keys below a node, all sharing their first `depth` bytes. */
typedef struct key_range {
    uint32_t first, last, depth;
} key_range;

/* All keys together: an index of a small multiple of this has to be paid for. */
#define KEY_BYTES_MAX ((size_t)64 << 20)

static int compare_keys(const void *a, const void *b)
{
    const mha_trie_key *x = a, *y = b;
    size_t n = x->n < y->n ? x->n : y->n;
    int order = n > 0 ? memcmp(x->s, y->s, n) : 0;
    if (order != 0)
        return order;
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

static mha_status reserve(mha_trie *t, key_range **ranges, mha_err *err)
{
    if (t->n < t->capacity)
        return MHA_OK;
    if (t->capacity > UINT32_MAX / 2)
        return mha_fail(err, MHA_ERR_LIMIT, "too many vocabulary entries");
    uint32_t capacity = t->capacity ? t->capacity * 2 : 1024;
    void *nodes = t->nodes, *bytes = t->bytes, *r = *ranges;
    MHA_TRY(mha_grow(&nodes, t->n, capacity, sizeof *t->nodes, err));
    t->nodes = nodes;
    MHA_TRY(mha_grow(&bytes, t->n, capacity, 1, err));
    t->bytes = bytes;
    MHA_TRY(mha_grow(&r, t->n, capacity, sizeof **ranges, err));
    *ranges = r;
    t->capacity = capacity;
    return MHA_OK;
}

static mha_status add_node(mha_trie *t, key_range **ranges, uint8_t byte, key_range range,
                           mha_err *err)
{
    MHA_TRY(reserve(t, ranges, err));
    t->nodes[t->n] = (struct mha_trie_node){.value = -1};
    t->bytes[t->n] = byte;
    (*ranges)[t->n++] = range;
    return MHA_OK;
}

/* Gives node `at` its value and its children. */
static mha_status expand(mha_trie *t, key_range **ranges, uint32_t at, const mha_trie_key *keys,
                         mha_err *err)
{
    key_range r = (*ranges)[at];
    uint32_t i = r.first;
    if (i < r.last && keys[i].n == r.depth && r.depth > 0)
        t->nodes[at].value = keys[i].value;
    while (i < r.last && keys[i].n == r.depth)
        i++;
    t->nodes[at].first = t->n;
    while (i < r.last) {
        uint8_t byte = (uint8_t)keys[i].s[r.depth];
        uint32_t first = i;
        while (i < r.last && (uint8_t)keys[i].s[r.depth] == byte)
            i++;
        MHA_TRY(add_node(t, ranges, byte, (key_range){first, i, r.depth + 1}, err));
        t->nodes[at].count++;
    }
    return MHA_OK;
}

mha_status mha_trie_build(mha_trie *t, mha_trie_key *keys, size_t n, mha_err *err)
{
    size_t bytes = 0;
    *t = (mha_trie){0};
    for (size_t i = 0; i < n; i++) {
        if (keys[i].n > MHA_TRIE_KEY_MAX)
            return mha_fail(err, MHA_ERR_LIMIT, "a piece of %zu bytes (\"%.20s…\"), at most %zu",
                            keys[i].n, keys[i].s, MHA_TRIE_KEY_MAX);
        bytes += keys[i].n;
    }
    if (n > KEY_BYTES_MAX || bytes > KEY_BYTES_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "pieces of %zu bytes in all, at most %zu", bytes,
                        KEY_BYTES_MAX);
    if (n > 0)
        qsort(keys, n, sizeof *keys, compare_keys);
    key_range *ranges = NULL;
    mha_status status = add_node(t, &ranges, 0, (key_range){0, (uint32_t)n, 0}, err);
    for (uint32_t at = 0; status == MHA_OK && at < t->n; at++)
        status = expand(t, &ranges, at, keys, err);
    mha_free(ranges);
    if (status != MHA_OK) {
        mha_trie_release(t);
        return status;
    }
    memset(t->top, 0xff, sizeof t->top);
    for (uint32_t i = 0; i < t->nodes[0].count; i++)
        t->top[t->bytes[t->nodes[0].first + i]] = t->nodes[0].first + i;
    return MHA_OK;
}

void mha_trie_release(mha_trie *t)
{
    mha_free(t->nodes);
    mha_free(t->bytes);
    *t = (mha_trie){0};
}

uint32_t mha_trie_step(const mha_trie *t, uint32_t node, uint8_t byte)
{
    if (node == MHA_TRIE_ROOT)
        return t->top[byte];
    uint32_t low = t->nodes[node].first, high = low + t->nodes[node].count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (t->bytes[middle] < byte)
            low = middle + 1;
        else
            high = middle;
    }
    uint32_t end = t->nodes[node].first + t->nodes[node].count;
    return low < end && t->bytes[low] == byte ? low : MHA_TRIE_NONE;
}

int32_t mha_trie_value(const mha_trie *t, uint32_t node)
{
    return t->nodes[node].value;
}

uint32_t mha_trie_walk(const mha_trie *t, const char *s, size_t n)
{
    uint32_t node = MHA_TRIE_ROOT;
    for (size_t i = 0; i < n && node != MHA_TRIE_NONE; i++)
        node = mha_trie_step(t, node, (uint8_t)s[i]);
    return node;
}

size_t mha_trie_longest(const mha_trie *t, uint32_t node, const char *s, size_t n, int32_t *value)
{
    size_t longest = 0;
    for (size_t i = 0; i < n; i++) {
        node = mha_trie_step(t, node, (uint8_t)s[i]);
        if (node == MHA_TRIE_NONE)
            break;
        if (t->nodes[node].value >= 0) {
            longest = i + 1;
            *value = t->nodes[node].value;
        }
    }
    return longest;
}
