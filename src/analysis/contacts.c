/* contacts.c: contacts of residues from the maps of all heads, without keeping any of the maps.
 *
 * Of head h let A be the map [R, R] without start and end token (rows and columns of further end
 * tokens are 0), B = A + Aᵀ, r its row sums and t = Σ r. With weight w_h and bias b
 *   logit_ij = b + Σ_h w_h·(B_ij − r_i·r_j / t)
 *            = b + M_ij + M_ji − Σ_h w_h/t_h · r_hi·r_hj,     M = Σ_h w_h·A_h,
 * so one sum M and the row sums of each head are enough.
 *
 * Heads come at the same time and in any order, and sums must not tell: terms of M are rounded to
 * multiples of one grid, fine enough to be exact in a double with room for Σ|w|, and then sums are
 * exact too. */
#include "base/fail.h"
#include "base/lock.h"
#include "base/mem.h"
#include "mha/attribute.h"
#include <assert.h>
#include <math.h>
#include <string.h>

struct mha_contacts {
    const mha_model_info *info;
    const mha_contact_head *head;
    const mha_document *doc;
    mha_probe probe;
    size_t residues;
    size_t *first;  /* [A] where a step's heads begin among the weights */
    double *sum;    /* [R, R] M */
    double *rows;   /* [count, R] r of each head: row sums plus column sums of A */
    double *total;  /* [count] t of each head */
    double *keep;   /* [R] 0 for end tokens, else 1 */
    double *row;    /* [R] scratch */
    float *map;     /* [R, R] */
    double rounder; /* x + rounder − rounder is x on the grid */
    mha_lock lock;  /* of sum */
};

static bool wants(void *context, mha_site site, mha_stack_id stack, mha_kind kind, uint32_t layer,
                  uint32_t head)
{
    (void)context, (void)site, (void)stack, (void)layer, (void)head;
    return kind == MHA_SELF;
}

/* The head's place among the weights. */
static size_t place_of(const mha_contacts *c, const mha_block *b)
{
    size_t a = 0;
    while (c->info->attn[a].stack != b->stack || c->info->attn[a].kind != b->kind ||
           c->info->attn[a].layer != b->layer)
        a++;
    return c->first[a] + c->info->attn[a].head_ids[b->head];
}

/* One row's part of r and t. Blocks of one head come one after the other. */
static void add_sums(mha_contacts *c, size_t place, size_t i, const float *p)
{
    double *r = c->rows + place * c->residues, sum = 0;
    for (size_t j = 0; j < c->residues; j++) {
        double x = (double)p[j] * c->keep[j];
        r[j] += x;
        sum += x;
    }
    r[i] += sum;
    c->total[place] += 2 * sum;
}

static void add_row(const mha_contacts *c, double w, size_t i, const float *p)
{
    double *sum = c->sum + i * c->residues;
    for (size_t j = 0; j < c->residues; j++)
        sum[j] += (w * (double)p[j] * c->keep[j] + c->rounder) - c->rounder;
}

static int deliver(void *context, const mha_block *b, size_t worker)
{
    mha_contacts *c = context;
    (void)worker;
    assert(b->cols == c->residues + 2);
    size_t place = place_of(c, b);
    size_t lo = b->first > 0 ? b->first : 1, hi = b->first + b->rows;
    hi = hi < c->residues + 1 ? hi : c->residues + 1;
    for (size_t i = lo; i < hi; i++)
        if (c->keep[i - 1] > 0)
            add_sums(c, place, i - 1, b->data + (i - b->first) * b->stride + 1);
    mha_lock_take(&c->lock);
    for (size_t i = lo; i < hi; i++)
        if (c->keep[i - 1] > 0)
            add_row(c, (double)c->head->weights[place], i - 1,
                    b->data + (i - b->first) * b->stride + 1);
    mha_lock_give(&c->lock);
    return 0;
}

static mha_status check(const mha_contacts *c, mha_err *err)
{
    const mha_document *d = c->doc;
    if (c->head == NULL)
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s has no contact head", c->info->path);
    if (d->n < 3 || d->ids == NULL)
        return mha_fail(err, MHA_ERR_ARG, "contacts: a document of %zu tokens has no residues",
                        d->n);
    if (d->special != NULL && !(d->special[0] && d->special[d->n - 1]))
        return mha_fail(err, MHA_ERR_ARG,
                        "contacts: the %s token of the document is no special token, but "
                        "residues stand between a start and an end token",
                        d->special[0] ? "last" : "first");
    return MHA_OK;
}

/* The grid: Σ|w| is at most 2^e, so that sums of terms below it, each off by half a step of the
 * grid at most, stay under 2^(e + 1); 1.5·2^(e + 1) has steps of the size that fits all of them. */
static void choose_grid(mha_contacts *c)
{
    double size = 0;
    int e;
    for (size_t i = 0; i < c->head->count; i++)
        size += fabs((double)c->head->weights[i]);
    (void)frexp(size, &e);
    c->rounder = ldexp(1.5, e + 1);
}

static mha_status fill(mha_contacts *c, mha_err *err)
{
    MHA_TRY(check(c, err));
    choose_grid(c);
    size_t R = c->doc->n - 2, all, heads = c->head->count, at = 0;
    c->residues = R;
    if (mha_mul_overflows(R, R, &all))
        return mha_fail(err, MHA_ERR_NOMEM, "no memory for a map of %zu residues", R);
    MHA_TRY(mha_alloc((void **)&c->first, c->info->attn_count, sizeof *c->first, err));
    MHA_TRY(mha_alloc((void **)&c->sum, all, sizeof *c->sum, err));
    MHA_TRY(mha_alloc((void **)&c->map, all, sizeof *c->map, err));
    MHA_TRY(mha_alloc((void **)&c->rows, R, heads * sizeof *c->rows, err));
    MHA_TRY(mha_alloc((void **)&c->total, heads, sizeof *c->total, err));
    MHA_TRY(mha_alloc((void **)&c->keep, R, sizeof *c->keep, err));
    MHA_TRY(mha_alloc((void **)&c->row, R, sizeof *c->row, err));
    for (size_t a = 0; a < c->info->attn_count; a++) {
        c->first[a] = at;
        at += c->info->attn[a].original_heads;
    }
    assert(at == heads);
    for (size_t i = 0; i < R; i++)
        c->keep[i] = c->doc->ids[i + 1] != c->head->end;
    return MHA_OK;
}

mha_status mha_contacts_new(mha_contacts **out, const mha_model *model, const mha_document *doc,
                            mha_err *err)
{
    mha_contacts *c;
    MHA_TRY(mha_alloc((void **)&c, 1, sizeof *c, err));
    mha_lock_init(&c->lock);
    c->info = mha_model_info_get(model);
    c->head = mha_model_contacts(model);
    c->doc = doc;
    c->probe = (mha_probe){1u << MHA_SITE_PATTERN, wants, deliver, c};
    mha_status status = fill(c, err);
    if (status != MHA_OK) {
        mha_contacts_free(c);
        return status;
    }
    *out = c;
    return MHA_OK;
}

void mha_contacts_free(mha_contacts *c)
{
    if (c == NULL)
        return;
    mha_lock_release(&c->lock);
    mha_free(c->first);
    mha_free(c->sum);
    mha_free(c->map);
    mha_free(c->rows);
    mha_free(c->total);
    mha_free(c->keep);
    mha_free(c->row);
    mha_free(c);
}

const mha_probe *mha_contacts_probe(const mha_contacts *c)
{
    return &c->probe;
}

size_t mha_contacts_residues(const mha_contacts *c)
{
    return c->residues;
}

/* row[j] = Σ_h w_h/t_h · r_hi·r_hj for j <= i; a head that was pruned has no map, and t = 0. */
static void products(const mha_contacts *c, size_t i, double *row)
{
    memset(row, 0, (i + 1) * sizeof *row);
    for (size_t h = 0; h < c->head->count; h++) {
        const double *r = c->rows + h * c->residues;
        double factor = (double)c->head->weights[h] * r[i] / c->total[h];
        for (size_t j = 0; c->total[h] > 0 && j <= i; j++)
            row[j] += factor * r[j];
    }
}

const float *mha_contacts_map(mha_contacts *c)
{
    size_t R = c->residues;
    for (size_t i = 0; i < R; i++) {
        products(c, i, c->row);
        for (size_t j = 0; j <= i; j++) {
            double logit =
                (double)c->head->bias + (c->sum[i * R + j] + c->sum[j * R + i]) - c->row[j];
            c->map[i * R + j] = c->map[j * R + i] = (float)(1 / (1 + exp(-logit)));
        }
    }
    return c->map;
}

uint64_t mha_contacts_bytes(const mha_model *model, size_t n)
{
    const mha_contact_head *head = mha_model_contacts(model);
    uint64_t R = n > 2 ? n - 2 : 0, heads = head != NULL ? head->count : 0;
    return R * R * (sizeof(double) + sizeof(float)) + (heads + 2) * R * sizeof(double);
}
