/* bind_step.c: fills steps from the arguments of a description and checks that they fit each
 * other: the engine may rely on every shape, width and count of a step. Each step adds one line
 * to the text that `info --program` shows. */
#include "base/fail.h"
#include "model/binder.h"
#include "model/ops.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 600 };

mha_status mha_bind_misfit(const mha_binder *b, const mha_spec_step *s, const char *format, ...)
{
    char text[TEXT_MAX];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return mha_fail(b->err, MHA_ERR_FORMAT, "%s: %s:%zu: %s: %s", b->checkpoint->path,
                    b->spec->file, s->line, s->op->name, text);
}

/* ------------------------------------------------------------------------- arguments */

static void mark_used(const mha_binder *b, const mha_tensor *t)
{
    if (t != NULL)
        b->model->tensor_use[t - b->checkpoint->tensors] = MHA_TENSOR_USED;
}

/* Slots may be absent: optional arguments then stay empty. */
static mha_status bind_slot_arg(mha_binder *b, const mha_spec_step *s, const mha_spec_arg *arg,
                                mha_draft *d)
{
    const mha_bound *bound = &b->bound[arg->slot];
    const mha_op_arg *def = arg->def;
    char *base = (char *)d;
    if (!bound->done)
        return mha_bind_misfit(b, s, "slot %s belongs to layers and is not known here",
                               b->spec->slots[arg->slot].name);
    if (bound->tensor == NULL && !bound->made)
        return def->required ? mha_bind_misfit(b, s, "needs %s, but the file has no %s", def->name,
                                               b->spec->slots[arg->slot].name)
                             : MHA_OK;
    mark_used(b, bound->tensor);
    if (s->op->op == MHA_OP_ATTN)
        mha_bind_part_role(b, def->name, bound);
    switch (def->kind) {
    case MHA_ARG_LINEAR:
        mark_used(b, bound->bias);
        memcpy(base + def->at, &bound->weight, sizeof bound->weight);
        memcpy(base + def->second, &bound->b, sizeof bound->b);
        break;
    case MHA_ARG_MATRIX:
        memcpy(base + def->at, &bound->weight, sizeof bound->weight);
        break;
    case MHA_ARG_NORM: {
        mark_used(b, bound->bias);
        mha_norm_args norm;
        memcpy(&norm, base + def->at, sizeof norm);
        norm.w = bound->w;
        norm.b = bound->b;
        norm.n = bound->shape[0];
        memcpy(base + def->at, &norm, sizeof norm);
        break;
    }
    default: {
        uint32_t n = bound->shape[0] * (bound->rank == 2 ? bound->shape[1] : 1);
        memcpy(base + def->at, &bound->w, sizeof bound->w);
        memcpy(base + def->second, &n, sizeof n);
    }
    }
    return mha_buf_addf(&b->text, b->err, "  %s=%s", def->name, bound->label);
}

static mha_status bind_word_arg(mha_binder *b, const mha_spec_step *s, const mha_spec_arg *arg,
                                int *out)
{
    const char *word = arg->word;
    if (word == NULL) {
        mha_value v;
        MHA_TRY(mha_binder_value(b, arg->expr, s->line, &v));
        word = v.kind == MHA_VALUE_STRING ? v.string : "(not a string)";
    }
    *out = mha_op_word_value(arg->def->words, word);
    if (*out >= 0)
        return mha_buf_addf(&b->text, b->err, " %s=%s", arg->def->name, word);
    char reasons[200] = "", known[200] = "";
    if (arg->expr != NULL)
        mha_binder_reasons(b, arg->expr, reasons, sizeof reasons);
    for (const mha_op_word *w = arg->def->words; w->name != NULL; w++)
        snprintf(known + strlen(known), sizeof known - strlen(known), " %s", w->name);
    return mha_fail(b->err, MHA_ERR_UNSUPPORTED, "%s: %s \"%.60s\" is not supported%s; known:%s",
                    b->config_file, arg->def->name, word, reasons, known);
}

static mha_status bind_real_arg(mha_binder *b, const mha_spec_step *s, const mha_spec_arg *arg,
                                float *out)
{
    double v;
    MHA_TRY(mha_binder_number(b, arg->expr, s->line, &v));
    *out = (float)v;
    if (!isfinite(*out)) {
        char reasons[200];
        mha_binder_reasons(b, arg->expr, reasons, sizeof reasons);
        return mha_fail(b->err, MHA_ERR_FORMAT, "%s: %s = %s is %g%s", b->config_file,
                        arg->def->name, mha_expr_text(arg->expr), v, reasons);
    }
    return mha_buf_addf(&b->text, b->err, " %s=%.6g", arg->def->name, v);
}

/* An optional number that the config gives as null is not given. */
static mha_status is_null(mha_binder *b, const mha_spec_step *s, const mha_spec_arg *arg, bool *out)
{
    mha_value v = {.kind = MHA_VALUE_NUMBER};
    if (arg->expr != NULL && !arg->def->required)
        MHA_TRY(mha_binder_value(b, arg->expr, s->line, &v));
    *out = v.kind == MHA_VALUE_NULL;
    return MHA_OK;
}

static mha_status bind_arg(mha_binder *b, const mha_spec_step *s, const mha_spec_arg *arg,
                           mha_draft *d)
{
    const mha_op_arg *def = arg->def;
    char *to = (char *)d + def->at;
    union {
        uint32_t count;
        float real;
        bool flag;
        int word;
        mha_value value;
    } v;
    bool null;
    if (def->kind <= MHA_ARG_FLOATS)
        return bind_slot_arg(b, s, arg, d);
    MHA_TRY(is_null(b, s, arg, &null));
    if (null && def->kind != MHA_ARG_VALUE)
        return MHA_OK;
    switch (def->kind) {
    case MHA_ARG_COUNT:
        MHA_TRY(mha_binder_count(b, arg->expr, s->line, def->name, &v.count));
        memcpy(to, &v.count, sizeof v.count);
        return mha_buf_addf(&b->text, b->err, " %s=%u", def->name, v.count);
    case MHA_ARG_REAL:
        MHA_TRY(bind_real_arg(b, s, arg, &v.real));
        memcpy(to, &v.real, sizeof v.real);
        return MHA_OK;
    case MHA_ARG_FLAG:
        MHA_TRY(mha_binder_truth(b, arg->expr, s->line, true, &v.flag));
        memcpy(to, &v.flag, sizeof v.flag);
        return v.flag ? mha_buf_addf(&b->text, b->err, " %s", def->name) : MHA_OK;
    case MHA_ARG_WORD:
        MHA_TRY(bind_word_arg(b, s, arg, &v.word));
        memcpy(to, &v.word, sizeof v.word); /* all enums of steps are ints */
        return MHA_OK;
    default:
        MHA_TRY(mha_binder_value(b, arg->expr, s->line, &v.value));
        memcpy(to, &v.value, sizeof v.value);
        return v.value.kind == MHA_VALUE_NUMBER
                   ? mha_buf_addf(&b->text, b->err, " %s=%.9g", def->name, v.value.number)
                   : MHA_OK;
    }
}

/* ---------------------------------------------------------------------------- checks */

mha_status mha_bind_linear_check(const mha_binder *b, const mha_spec_step *s, const char *name,
                                 const mha_weight *w, uint32_t out, uint32_t in)
{
    if (w->out == out && w->in == in)
        return MHA_OK;
    return mha_bind_misfit(b, s, "%s is [%u, %u], needed is [%u, %u]", name, w->out, w->in, out,
                           in);
}

static mha_status finish_mlp(mha_binder *b, const mha_spec_step *s, mha_draft *d)
{
    mha_mlp_args *m = &d->step.mlp;
    m->width = m->up.out;
    MHA_TRY(mha_bind_linear_check(b, s, "up", &m->up, m->width, b->width[s->src]));
    if (m->gate.data != NULL)
        MHA_TRY(mha_bind_linear_check(b, s, "gate", &m->gate, m->width, b->width[s->src]));
    MHA_TRY(mha_bind_linear_check(b, s, "down", &m->down, m->down.out, m->width));
    b->width[s->dst] = m->down.out;
    if (b->model->info.mlp_width < m->width)
        b->model->info.mlp_width = m->width;
    return MHA_OK;
}

/* Rows for certain rows: of features only, whose number is known. */
static mha_status finish_embed_row(const mha_binder *b, const mha_spec_step *s,
                                   const mha_embed_args *e)
{
    uint32_t rows = b->model->info.signal.rows;
    if (b->width[s->dst] == 0 || b->layer >= 0 || b->model->stack_count != 1)
        return mha_bind_misfit(b, s, "row belongs behind features");
    if ((uint64_t)e->offset + e->table.out > rows)
        return mha_bind_misfit(b, s, "a table of %u rows at row %u: the features become %u rows",
                               e->table.out, e->offset, rows);
    return MHA_OK;
}

/* The first embedding of a prologue sets the register, further ones are added. */
static mha_status finish_embed(mha_binder *b, const mha_spec_step *s, mha_draft *d)
{
    mha_embed_args *e = &d->step.embed;
    struct mha_model *m = b->model;
    if (strcmp(s->op->name, "nodes") == 0) {
        if (b->width[s->dst] != 0 || e->width == 0)
            return mha_bind_misfit(b, s, "%u features of nodes, in a register %u wide", e->width,
                                   b->width[s->dst]);
        e->kind = MHA_EMBED_NODE;
        m->features = b->width[s->dst] = e->width;
        return MHA_OK;
    }
    e->width = e->table.in;
    if (b->width[s->dst] != 0 && b->width[s->dst] != e->table.in)
        return mha_bind_misfit(b, s, "table is [%u, %u], the register is %u wide", e->table.out,
                               e->table.in, b->width[s->dst]);
    if (e->kind == MHA_EMBED_ROW)
        return finish_embed_row(b, s, e);
    if (e->kind != MHA_EMBED_POSITION && e->offset != 0)
        return mha_bind_misfit(b, s, "only positions have an offset");
    if (e->kind != MHA_EMBED_TOKEN && e->dropout != 0)
        return mha_bind_misfit(b, s, "only tokens have dropout");
    if (e->dropout < 0 || e->dropout >= 1)
        return mha_bind_misfit(b, s, "dropout = %g is no share", (double)e->dropout);
    if (e->separator != UINT32_MAX && (e->kind != MHA_EMBED_TYPE || e->table.out < 2 || !m->vocab))
        return mha_bind_misfit(b, s, "a separator stands between tokens of types 0 and 1");
    if (e->offset >= e->table.out)
        return mha_bind_misfit(b, s, "offset %u in a table of %u rows", e->offset, e->table.out);
    b->width[s->dst] = e->table.in;
    uint32_t rows = e->table.out - e->offset;
    uint32_t *limit = e->kind == MHA_EMBED_TOKEN  ? &m->vocab
                      : e->kind == MHA_EMBED_TYPE ? &m->types
                                                  : &m->max_positions;
    if (*limit == 0 || rows < *limit)
        *limit = rows;
    return MHA_OK;
}

/* scale by=NUMBER or w=VECTOR */
static mha_status finish_scale(mha_binder *b, const mha_spec_step *s, const mha_draft *d)
{
    const mha_scale_args *a = &d->step.scale;
    bool by = s->args == 1 && a->w == NULL;
    if (!by && (a->w == NULL || s->args != 1))
        return mha_bind_misfit(b, s, "needs by=NUMBER or w=VECTOR");
    if (!by && d->scale_count != b->width[s->src])
        return mha_bind_misfit(b, s, "%u factors for a register %u wide", d->scale_count,
                               b->width[s->src]);
    b->width[s->dst] = b->width[s->src];
    return MHA_OK;
}

mha_status mha_bind_plain(const mha_binder *b, const mha_spec_step *s, const char *name,
                          mha_weight *w, uint32_t out, uint32_t in)
{
    for (size_t i = 0; i < s->args; i++)
        if (strcmp(s->arg[i].def->name, name) == 0)
            return mha_bind_misfit(b, s, "the file has no %s", name);
    *w = (mha_weight){.name = name, .type = MHA_F32, .out = out, .in = in, .mean = true};
    return MHA_OK;
}

/* Without a matrix the source is the logits. */
static mha_status finish_logits(const mha_binder *b, const mha_spec_step *s, mha_draft *d)
{
    mha_logits_args *l = &d->step.logits;
    if (l->separator != UINT32_MAX && (b->model->info.head != MHA_HEAD_SPAN || !b->model->vocab))
        return mha_bind_misfit(b, s, "a separator is for spans of tokens");
    if (l->w.data == NULL)
        MHA_TRY(mha_bind_plain(b, s, "w", &l->w, b->width[s->src], b->width[s->src]));
    MHA_TRY(mha_bind_linear_check(b, s, "w", &l->w, l->w.out, b->width[s->src]));
    if (d->bias_count != 0 && d->bias_count != l->w.out)
        return mha_bind_misfit(b, s, "%u biases for %u rows", d->bias_count, l->w.out);
    if (l->softcap < 0)
        return mha_bind_misfit(b, s, "softcap = %g is negative", (double)l->softcap);
    return MHA_OK;
}

static mha_status finish_norm(mha_binder *b, const mha_spec_step *s, mha_draft *d)
{
    mha_norm_args *n = &d->step.norm;
    n->kind = strcmp(s->op->name, "rms") == 0 ? MHA_NORM_RMS : MHA_NORM_LAYER;
    if (n->n != b->width[s->src])
        return mha_bind_misfit(b, s, "%u gains for a register %u wide", n->n, b->width[s->src]);
    if (n->eps < 0)
        return mha_bind_misfit(b, s, "eps = %g is negative", (double)n->eps);
    b->width[s->dst] = n->n;
    return MHA_OK;
}

/* Checks what the arguments say together, and notes what the step does to register widths. */
static mha_status finish_step(mha_binder *b, const mha_spec_step *s, mha_draft *d)
{
    switch (s->op->op) {
    case MHA_OP_EMBED:
        return finish_embed(b, s, d);
    case MHA_OP_CONV:
        return mha_bind_conv(b, s, d);
    case MHA_OP_SCALE:
        return finish_scale(b, s, d);
    case MHA_OP_LINEAR:
        MHA_TRY(mha_bind_linear_check(b, s, "w", &d->step.linear.w, d->step.linear.w.out,
                                      b->width[s->src]));
        b->width[s->dst] = d->step.linear.w.out;
        return MHA_OK;
    case MHA_OP_NORM:
        return finish_norm(b, s, d);
    case MHA_OP_ATTN:
        return mha_bind_attention(b, s, d);
    case MHA_OP_MLP:
        return finish_mlp(b, s, d);
    case MHA_OP_LOGITS:
        return finish_logits(b, s, d);
    case MHA_OP_POOL:
        if (d->step.pool.kind == MHA_POOL_TOKEN && d->step.pool.id == UINT32_MAX)
            return mha_bind_misfit(b, s, "token needs id=…");
        if (d->step.pool.skip != 0 && d->step.pool.skip >= b->model->info.signal.rows)
            return mha_bind_misfit(b, s, "skip=%u of the %u rows that features become",
                                   d->step.pool.skip, b->model->info.signal.rows);
        b->width[s->dst] = b->width[s->src];
        return MHA_OK;
    case MHA_OP_ADD:
        if (b->width[s->dst] != b->width[s->src])
            return mha_bind_misfit(b, s, "%s is %u wide, %s %u", mha_register_name(s->dst),
                                   b->width[s->dst], mha_register_name(s->src), b->width[s->src]);
        return MHA_OK;
    default:
        b->width[s->dst] = b->width[s->src];
        return MHA_OK;
    }
}

/* ----------------------------------------------------------------------------- steps */

static mha_status note_attention(mha_binder *b, mha_stack_id stack, const mha_attn_args *a)
{
    if ((b->attn_count & (b->attn_count - 1)) == 0)
        MHA_TRY(mha_grow((void **)&b->attn, b->attn_count,
                         b->attn_count == 0 ? 1 : 2 * b->attn_count, sizeof *b->attn, b->err));
    b->attn[b->attn_count++] = (mha_attn_info){
        .stack = stack,
        .kind = a->keys == MHA_KEYS_MEMORY ? MHA_CROSS : MHA_SELF,
        .layer = (uint32_t)b->layer,
        .heads = a->heads,
        .kv_heads = a->kv_heads,
        .width = a->width,
        .causal = a->mask == MHA_MASK_CAUSAL || a->mask == MHA_MASK_CAUSAL_WINDOW,
        .window = a->mask == MHA_MASK_BLOCKS ? 0 : a->window,
        .block = a->mask == MHA_MASK_BLOCKS ? a->window : 0,
        .globals = a->q_global.data != NULL,
        .sink = a->sinks != NULL,
        .head_ids = a->head_ids,
        .original_heads = b->narrow.active ? b->narrow.all_heads : a->heads,
        .out = a->o.out,
        .edges = a->mask == MHA_MASK_EDGES,
        .self_loops = a->self_loops,
    };
    return MHA_OK;
}

static mha_status bind_step(mha_binder *b, const mha_spec_step *s, mha_stack_id stack,
                            mha_step *out)
{
    mha_draft d = {.qk_norm = MHA_NORM_RMS};
    d.step.op = s->op->op;
    d.step.dst = s->dst;
    d.step.src = s->src;
    if (s->op->op == MHA_OP_EMBED) {
        d.step.embed.scale = 1;
        d.step.embed.mask = d.step.embed.separator = UINT32_MAX;
    }
    if (s->op->op == MHA_OP_LOGITS)
        d.step.logits.separator = UINT32_MAX;
    if (s->op->op == MHA_OP_POOL)
        d.step.pool.id = UINT32_MAX;
    if (s->op->op == MHA_OP_SCALE)
        d.step.scale.by = 1;
    if (s->op->has_src && b->width[s->src] == 0)
        return mha_bind_misfit(b, s, "register %s is read before it is written",
                               mha_register_name(s->src));
    if (s->op->op == MHA_OP_ATTN && b->layer < 0)
        return mha_bind_misfit(b, s, "attention belongs into a block");
    MHA_TRY(mha_bind_narrow(b, s->op->op == MHA_OP_ATTN ? s : NULL, stack));
    MHA_TRY(mha_buf_addf(&b->text, b->err, "    "));
    if (s->op->has_dst)
        MHA_TRY(mha_buf_addf(&b->text, b->err, "%s <- ", mha_register_name(s->dst)));
    MHA_TRY(mha_buf_adds(&b->text, s->op->name, b->err));
    if (s->op->has_src)
        MHA_TRY(mha_buf_addf(&b->text, b->err, " %s", mha_register_name(s->src)));
    if (s->op->words != NULL) {
        int word = mha_op_word_value(s->op->words, s->word);
        memcpy((char *)&d + s->op->word_at, &word, sizeof word);
        MHA_TRY(mha_buf_addf(&b->text, b->err, " %s", s->word));
    }
    for (int slots = 0; slots < 2; slots++) /* numbers first: they are short */
        for (size_t i = 0; i < s->args; i++)
            if ((s->arg[i].def->kind <= MHA_ARG_FLOATS) == slots)
                MHA_TRY(bind_arg(b, s, &s->arg[i], &d));
    MHA_TRY(finish_step(b, s, &d));
    if (s->op->has_dst) {
        d.step.width = b->width[s->dst];
        if (d.step.width > b->model->width)
            b->model->width = d.step.width;
    }
    MHA_TRY(mha_buf_adds(&b->text, "\n", b->err));
    if (s->op->op == MHA_OP_ATTN)
        MHA_TRY(note_attention(b, stack, &d.step.attn));
    *out = d.step;
    return mha_bind_narrow(b, NULL, stack);
}

/* A block holds at most one step of each kind of attention: their heads have names by layer. */
static mha_status check_attention(const mha_binder *b, const mha_spec_step *s,
                                  const mha_steps *steps)
{
    const mha_step *last = &steps->step[steps->count - 1];
    for (size_t i = 0; i + 1 < steps->count; i++)
        if (last->op == MHA_OP_ATTN && steps->step[i].op == MHA_OP_ATTN &&
            steps->step[i].attn.keys == last->attn.keys)
            return mha_bind_misfit(
                b, s, "a block has one step of self- and one of cross-attention at most");
    return MHA_OK;
}

mha_status mha_bind_steps(mha_binder *b, const mha_spec_steps *steps, mha_stack_id stack,
                          mha_steps *out)
{
    MHA_TRY(
        mha_arena_alloc((void **)&out->step, b->memory, steps->count, sizeof *out->step, b->err));
    for (size_t i = 0; i < steps->count; i++) {
        const mha_spec_step *s = &steps->step[i];
        bool wanted;
        MHA_TRY(mha_binder_truth(b, s->when, s->line, true, &wanted));
        if (!wanted)
            continue;
        MHA_TRY(bind_step(b, s, stack, &out->step[out->count]));
        out->count++;
        MHA_TRY(check_attention(b, s, out));
    }
    return MHA_OK;
}
