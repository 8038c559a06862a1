/* merging.c: neighbours form a doubly linked list over an array, and candidate pairs wait in a heap
 * ordered by (rank, position), so a word of n symbols takes O(n log n). A candidate is stale when
 * its symbols have changed since; the test, as in the reference implementation, is whether the pair
 * that is there now would make the same piece. It may not know where ranks come from. */
#include "text/merging.h"

#include "base/fail.h"

#define NO_SYMBOL UINT32_MAX

typedef struct mha_candidate {
    uint32_t rank, at;
    int32_t id;
    int32_t left, right; /* ids of the symbols when it was found */
} candidate;

mha_status mha_merging_init(mha_merging *w, mha_model_scratch *x, size_t most, mha_err *err)
{
    /* There are never more candidates than twice the symbols: every merge takes one candidate and
     * one symbol away and adds at most two candidates. */
    void *memory;
    MHA_TRY(mha_model_scratch_memory(&memory, x, most, sizeof(mha_symbol) + 2 * sizeof(candidate),
                                     err));
    *w = (mha_merging){.symbols = memory};
    w->heap = (candidate *)(w->symbols + most);
    return MHA_OK;
}

void mha_merging_add(mha_merging *w, int32_t id, size_t n)
{
    uint32_t at = (uint32_t)w->n++;
    w->symbols[at] = (mha_symbol){id, at > 0 ? at - 1 : NO_SYMBOL, NO_SYMBOL, w->end, (uint32_t)n};
    w->end += (uint32_t)n;
    if (at > 0)
        w->symbols[at - 1].next = at;
}

/* --- the heap of candidates ------------------------------------------------------------------ */

static bool before(candidate a, candidate b)
{
    return a.rank != b.rank ? a.rank < b.rank : a.at < b.at;
}

static void heap_push(mha_merging *w, candidate c)
{
    size_t i = w->waiting++;
    for (; i > 0 && before(c, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = c;
}

static candidate heap_pop(mha_merging *w)
{
    candidate top = w->heap[0], last = w->heap[--w->waiting];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= w->waiting)
            break;
        if (child + 1 < w->waiting && before(w->heap[child + 1], w->heap[child]))
            child++;
        if (!before(w->heap[child], last))
            break;
        w->heap[i] = w->heap[child];
        i = child;
    }
    w->heap[i] = last;
    return top;
}

/* --- joining --------------------------------------------------------------------------------- */

static void consider(mha_merging *w, mha_merging_find find, const void *state, uint32_t left,
                     uint32_t right)
{
    if (left == NO_SYMBOL || right == NO_SYMBOL)
        return;
    const mha_symbol *l = &w->symbols[left], *r = &w->symbols[right];
    candidate c = {.at = left, .left = l->id, .right = r->id};
    if (find(state, w, l, r, &c.rank, &c.id))
        heap_push(w, c);
}

/* Whether the symbols of a candidate, possibly others by now, still make its piece. */
static bool is_current(const mha_merging *w, mha_merging_find find, const void *state,
                       const candidate *c, const mha_symbol *left, const mha_symbol *right)
{
    uint32_t rank;
    int32_t id;
    if (c->left == left->id && c->right == right->id)
        return true;
    return find(state, w, left, right, &rank, &id) && id == c->id;
}

void mha_merging_run(mha_merging *w, mha_merging_find find, const void *state)
{
    for (size_t i = 0; i + 1 < w->n; i++)
        consider(w, find, state, (uint32_t)i, (uint32_t)i + 1);
    while (w->waiting > 0) {
        candidate c = heap_pop(w);
        mha_symbol *left = &w->symbols[c.at];
        if (left->n == 0 || left->next == NO_SYMBOL)
            continue;
        mha_symbol *right = &w->symbols[left->next];
        if (!is_current(w, find, state, &c, left, right))
            continue;
        left->id = c.id;
        left->n += right->n;
        right->n = 0;
        left->next = right->next;
        if (left->next != NO_SYMBOL)
            w->symbols[left->next].previous = c.at;
        consider(w, find, state, left->previous, c.at);
        consider(w, find, state, c.at, left->next);
    }
}

mha_status mha_merging_emit(const mha_merging *w, mha_model_scratch *x, mha_err *err)
{
    for (size_t i = 0; i < w->n; i++) {
        const mha_symbol *s = &w->symbols[i];
        if (s->n > 0)
            MHA_TRY(mha_model_scratch_add(x, s->id, s->at, (size_t)s->at + s->n, err));
    }
    return MHA_OK;
}
