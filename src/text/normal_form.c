/* normal_form.c: the algorithm of UAX #15: decompose, order marks by combining class, compose.
 *
 * Alignment follows the reference implementation, which describes the result as edits of the
 * source: every result character either replaces the next source character and swallows some
 * behind it, or is inserted and shares the range of the source character before it. The first part
 * of a decomposition replaces (change 0), the others are inserted (change +1), and a composite adds
 * up the changes of its parts, less one. Reordering marks moves their changes along, so the range
 * of a reordered mark can be its neighbour's. */
#include "text/normal_form.h"

#include "base/mem.h"
#include "text/unicode.h"

typedef struct unit {
    uint32_t c;
    int32_t change;
    uint8_t class;
} unit;

typedef struct unit_list {
    unit *v;
    size_t n, capacity;
} unit_list;

typedef struct forming {
    const mha_aligned *src;
    mha_aligned *dst;
    size_t at; /* source bytes that the result accounts for */
    bool compose;
    unit_list pending; /* a starter and the marks behind it, not yet ordered */
    unit starter;      /* what composition adds to */
    bool has_starter;
    int last_class;    /* of the marks in `blocked`, -1 when there are none */
    unit_list blocked; /* marks that did not compose with the starter */
} forming;

static mha_status push(unit_list *list, unit u, mha_err *err)
{
    if (list->n == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 32;
        void *v = list->v;
        mha_status status = mha_grow(&v, list->n, capacity, sizeof *list->v, err);
        if (status != MHA_OK)
            return status;
        list->v = v;
        list->capacity = capacity;
    }
    list->v[list->n++] = u;
    return MHA_OK;
}

static mha_status emit(forming *f, unit u, mha_err *err)
{
    return mha_aligned_put_edit(f->dst, f->src, &f->at, u.c, u.change, err);
}

/* Emits the starter and what it did not swallow. */
static mha_status finish_starter(forming *f, mha_err *err)
{
    mha_status status = MHA_OK;
    if (f->has_starter)
        status = emit(f, f->starter, err);
    for (size_t i = 0; status == MHA_OK && i < f->blocked.n; i++)
        status = emit(f, f->blocked.v[i], err);
    f->has_starter = false;
    f->blocked.n = 0;
    f->last_class = -1;
    return status;
}

static mha_status compose(forming *f, unit u, mha_err *err)
{
    if (!f->has_starter && u.class != 0)
        return emit(f, u, err);
    /* A mark is blocked by one of its own or a higher class before it. */
    if (f->has_starter && f->last_class < (int)u.class) {
        uint32_t composite = mha_char_compose(f->starter.c, u.c);
        if (composite) {
            f->starter.c = composite;
            f->starter.change += u.change - 1;
            return MHA_OK;
        }
    }
    if (u.class == 0) {
        mha_status status = finish_starter(f, err);
        f->starter = u;
        f->has_starter = true;
        return status;
    }
    f->last_class = u.class;
    return push(&f->blocked, u, err);
}

/* Counting sort by class: a run of marks can be as long as the text. Stable, as the order of marks
 * of one class has a meaning. */
static mha_status order_pending(forming *f, mha_err *err)
{
    unit_list *p = &f->pending;
    bool ordered = true;
    for (size_t i = 1; i < p->n; i++)
        ordered = ordered && p->v[i - 1].class <= p->v[i].class;
    if (ordered)
        return MHA_OK;
    size_t place[257] = {0};
    void *sorted;
    mha_status status = mha_alloc_raw(&sorted, p->n, sizeof *p->v, err);
    if (status != MHA_OK)
        return status;
    for (size_t i = 0; i < p->n; i++)
        place[p->v[i].class + 1]++;
    for (size_t k = 1; k < 257; k++)
        place[k] += place[k - 1];
    for (size_t i = 0; i < p->n; i++)
        ((unit *)sorted)[place[p->v[i].class]++] = p->v[i];
    mha_free(p->v);
    p->v = sorted;
    p->capacity = p->n;
    return MHA_OK;
}

static mha_status flush_pending(forming *f, mha_err *err)
{
    mha_status status = order_pending(f, err);
    for (size_t i = 0; status == MHA_OK && i < f->pending.n; i++)
        status = f->compose ? compose(f, f->pending.v[i], err) : emit(f, f->pending.v[i], err);
    f->pending.n = 0;
    return status;
}

static mha_status flush(forming *f, mha_err *err)
{
    mha_status status = flush_pending(f, err);
    return status == MHA_OK ? finish_starter(f, err) : status;
}

static mha_status add(forming *f, uint32_t c, bool compatibility, mha_err *err)
{
    uint32_t parts[MHA_CHAR_DECOMPOSED_MAX];
    size_t n = mha_char_decompose(c, compatibility, parts);
    for (size_t i = 0; i < n; i++) {
        unit u = {parts[i], i > 0, mha_char_combining(parts[i])};
        mha_status status = u.class == 0 ? flush_pending(f, err) : MHA_OK;
        if (status == MHA_OK)
            status = push(&f->pending, u, err);
        if (status != MHA_OK)
            return status;
    }
    return MHA_OK;
}

/* Length of the run of ASCII at i, less its last character, which a mark may follow. */
static size_t plain_run(const mha_aligned *src, size_t i)
{
    size_t end = i;
    while (end < src->n && (unsigned char)src->data[end] < 0x80)
        end++;
    return end > i ? end - i - (end < src->n) : 0;
}

static mha_status form(forming *f, bool compatibility, mha_err *err)
{
    const mha_aligned *src = f->src;
    mha_status status = MHA_OK;
    for (size_t i = 0; status == MHA_OK && i < src->n;) {
        size_t run = plain_run(src, i);
        if (run > 0) {
            status = flush(f, err);
            if (status == MHA_OK)
                status = mha_aligned_put_slice(f->dst, src, i, i + run, err);
            f->at = i += run;
            continue;
        }
        uint32_t c;
        i += mha_char_next(src->data + i, &c);
        status = add(f, c, compatibility, err);
    }
    return status == MHA_OK ? flush(f, err) : status;
}

mha_status mha_normal_form(const mha_aligned *src, mha_aligned *dst, bool compatibility,
                           bool compose, mha_err *err)
{
    forming f = {.src = src, .dst = dst, .compose = compose, .last_class = -1};
    mha_status status = form(&f, compatibility, err);
    mha_free(f.pending.v);
    mha_free(f.blocked.v);
    return status;
}
