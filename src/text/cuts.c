/* cuts.c: the list of cuts, and the five ways of splitting at matches. It may not look at the text:
 * who made the cuts knows what a match is. */
#include "text/cuts.h"

#include "base/mem.h"

void mha_cuts_release(mha_cuts *c)
{
    mha_free(c->v);
    *c = (mha_cuts){0};
}

mha_status mha_cuts_add(mha_cuts *c, size_t start, size_t end, bool match, mha_err *err)
{
    if (c->n == c->capacity) {
        size_t capacity = c->capacity ? c->capacity * 2 : 64;
        void *v = c->v;
        mha_status status = mha_grow(&v, c->n, capacity, sizeof *c->v, err);
        if (status != MHA_OK)
            return status;
        c->v = v;
        c->capacity = capacity;
    }
    c->v[c->n++] = (mha_cut){(uint32_t)start, (uint32_t)end, match};
    return MHA_OK;
}

static void remove_matches(mha_cuts *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->n; i++) {
        if (!c->v[i].match)
            c->v[kept++] = c->v[i];
    }
    c->n = kept;
}

/* Neighbours of one kind become one piece. */
static void join_equal(mha_cuts *c)
{
    size_t kept = 0;
    bool previous = false;
    for (size_t i = 0; i < c->n; i++) {
        bool match = c->v[i].match;
        if (kept > 0 && match == previous)
            c->v[kept - 1].end = c->v[i].end;
        else
            c->v[kept++] = c->v[i];
        previous = match;
    }
    c->n = kept;
}

/* A match joins the piece before it, unless that piece is a match itself. */
static void join_previous(mha_cuts *c)
{
    size_t kept = 0;
    bool previous = false;
    for (size_t i = 0; i < c->n; i++) {
        bool match = c->v[i].match;
        if (kept > 0 && match && !previous)
            c->v[kept - 1].end = c->v[i].end;
        else
            c->v[kept++] = c->v[i];
        previous = match;
    }
    c->n = kept;
}

/* The same from the right: pieces are collected at the end of the list and moved down. */
static void join_next(mha_cuts *c)
{
    size_t first = c->n;
    bool previous = false;
    for (size_t i = c->n; i-- > 0;) {
        bool match = c->v[i].match;
        if (first < c->n && match && !previous)
            c->v[first].start = c->v[i].start;
        else
            c->v[--first] = c->v[i];
        previous = match;
    }
    for (size_t i = first; i < c->n; i++)
        c->v[i - first] = c->v[i];
    c->n -= first;
}

void mha_cuts_fold(mha_cuts *c, mha_cut_behaviour behaviour)
{
    switch (behaviour) {
    case MHA_CUT_REMOVED:
        remove_matches(c);
        break;
    case MHA_CUT_ISOLATED:
        break;
    case MHA_CUT_MERGED_WITH_PREVIOUS:
        join_previous(c);
        break;
    case MHA_CUT_MERGED_WITH_NEXT:
        join_next(c);
        break;
    case MHA_CUT_CONTIGUOUS:
        join_equal(c);
        break;
    }
}
