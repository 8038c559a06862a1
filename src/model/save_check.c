/* save_check.c: whether heads can be taken out of the weights, and the nearest request that can be
 * met where they cannot. Looks at no values. */
#include "base/fail.h"
#include "base/mem.h"
#include "model/save.h"
#include <stdio.h>
#include <string.h>

enum { LIST_TEXT = 100 };

static size_t stride_of(const mha_model_info *info)
{
    size_t most = 0;
    for (size_t a = 0; a < info->attn_count; a++)
        most = info->attn[a].heads > most ? info->attn[a].heads : most;
    return most;
}

const mha_attn_args *mha_model_attention(const struct mha_model *m, size_t attn)
{
    size_t seen = 0;
    for (size_t i = 0; i < m->stack_count; i++)
        for (uint32_t l = 0; l < m->stack[i].layers; l++)
            for (size_t k = 0; k < m->stack[i].block[l].count; k++) {
                const mha_step *s = &m->stack[i].block[l].step[k];
                if (s->op == MHA_OP_ATTN && seen++ == attn)
                    return &s->attn;
            }
    return NULL;
}

static uint32_t group_width(const mha_attn_info *a)
{
    return a->kv_heads > 0 ? a->heads / a->kv_heads : 1;
}

static uint32_t count_marked(const bool *remove, uint32_t heads)
{
    uint32_t n = 0;
    for (uint32_t h = 0; h < heads; h++)
        n += remove[h];
    return n;
}

/* ---- groups that share keys and values ------------------------------------------------------- */

bool mha_prune_nearest(const mha_model *m, const mha_prune *p, bool *out)
{
    const mha_model_info *info = mha_model_info_get(m);
    size_t stride = stride_of(info), most_at = SIZE_MAX;
    uint32_t most = 0;
    bool same = true, any = false;
    memcpy(out, p->remove, info->attn_count * stride * sizeof *out);
    if (p->mode == MHA_PRUNE_MASK)
        return true;
    for (size_t a = 0; a < info->attn_count; a++) {
        uint32_t width = group_width(&info->attn[a]);
        for (uint32_t h = 0; h < info->attn[a].heads; h += width) {
            bool *group = out + a * stride + h;
            uint32_t marked = count_marked(group, width);
            bool whole = 2 * marked >= width && marked > 0;
            if (marked > most) {
                most = marked;
                most_at = a * stride + h;
            }
            same = same && (marked == 0 || marked == width);
            any = any || whole;
            for (uint32_t i = 0; i < width; i++)
                group[i] = whole;
        }
    }
    if (!any && most_at != SIZE_MAX)
        for (uint32_t i = 0; i < group_width(&info->attn[most_at / stride]); i++)
            out[most_at + i] = true;
    return same;
}

/* "dec.self.0.0-2,dec.self.3.4": as many as there is room for. */
static void list_heads(const mha_model_info *info, const bool *marks, char *out, size_t size)
{
    size_t stride = stride_of(info), used = 0;
    for (size_t a = 0; a < info->attn_count; a++) {
        const mha_attn_info *step = &info->attn[a];
        for (uint32_t h = 0, end; h < step->heads; h = end + 1) {
            char item[64];
            for (end = h; marks[a * stride + h] && end + 1 < step->heads &&
                          marks[a * stride + end + 1] &&
                          step->head_ids[end + 1] == step->head_ids[end] + 1;)
                end++;
            if (!marks[a * stride + h])
                continue;
            int n = snprintf(item, sizeof item, "%s%s.%s.%u.%u", used > 0 ? "," : "",
                             mha_stack_name(step->stack), mha_kind_name(step->kind), step->layer,
                             step->head_ids[h]);
            if (end > h)
                n += snprintf(item + n, sizeof item - (size_t)n, "-%u", step->head_ids[end]);
            if (used + (size_t)n + sizeof ",…" > size) {
                memcpy(out + used, ",…", sizeof ",…");
                return;
            }
            memcpy(out + used, item, (size_t)n + 1);
            used += (size_t)n;
        }
    }
}

static mha_status check_groups(const mha_model *m, const mha_prune *p, mha_err *err)
{
    const mha_model_info *info = mha_model_info_get(m);
    size_t stride = stride_of(info);
    bool *nearest;
    MHA_TRY(mha_alloc((void **)&nearest, info->attn_count * stride, sizeof *nearest, err));
    mha_status status = MHA_OK;
    if (!mha_prune_nearest(m, p, nearest)) {
        char list[LIST_TEXT] = "";
        uint32_t width = 0;
        list_heads(info, nearest, list, sizeof list);
        for (size_t a = 0; a < info->attn_count; a++)
            width = group_width(&info->attn[a]) > width ? group_width(&info->attn[a]) : width;
        status = mha_fail(err, MHA_ERR_ARG,
                          "%u heads share each key/value head, and leave the weights together; the "
                          "nearest request is %s; masks take single heads",
                          width, list);
    }
    mha_free(nearest);
    return status;
}

/* ---- what else stands against it --------------------------------------------------------------
 */

/* Heads that are put side by side or averaged have no W_O in the file. */
static bool has_projection(const struct mha_model *m, size_t attn)
{
    for (size_t i = 0; i < m->part_count; i++)
        if (m->part[i].role == MHA_PART_OUTPUT && m->part[i].attn == attn)
            return true;
    return false;
}

static mha_status check_step(const struct mha_model *m, const mha_prune *p, size_t attn,
                             mha_err *err)
{
    const mha_attn_info *info = &m->info.attn[attn];
    const mha_attn_args *a = mha_model_attention(m, attn);
    char name[48];
    snprintf(name, sizeof name, "%s.%s.%u", mha_stack_name(info->stack), mha_kind_name(info->kind),
             info->layer);
    if (!has_projection(m, attn))
        return mha_fail(
            err, MHA_ERR_UNSUPPORTED,
            "%s: no matrix follows the heads of %s: the layer above reads each of them in "
            "its place, or their mean, so none can go",
            m->info.path, name);
    bool over_all = a->q_norm.n > a->width || a->k_norm.n > a->width;
    if (p->mode == MHA_PRUNE_SLICE && over_all)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "%s: one norm goes over the queries or keys of all heads of %s: without "
                        "some of them the others would change; mask them instead",
                        m->info.path, name);
    if (p->mean != NULL && a->ob == NULL)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "%s: %s has no output bias that mean outputs could be folded into",
                        m->info.path, name);
    return MHA_OK;
}

/* Layers that share a tensor lose the same heads of it. */
static mha_status check_shared(const struct mha_model *m, const mha_prune *p, const mha_part *part,
                               const mha_part *first, mha_err *err)
{
    size_t stride = stride_of(&m->info), heads = m->info.attn[part->attn].heads;
    bool same = memcmp(p->remove + part->attn * stride, p->remove + first->attn * stride,
                       heads * sizeof *p->remove) == 0;
    if (part->steps > 1 || !same)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "%s: layers share tensor %s: the same heads go in all of them",
                        m->info.path, part->tensor->name);
    if (p->mean != NULL)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "%s: layers share tensor %s, and their mean outputs differ", m->info.path,
                        part->tensor->name);
    return MHA_OK;
}

static mha_status check_parts(const struct mha_model *m, const mha_prune *p, mha_err *err)
{
    const mha_checkpoint *c = m->checkpoint;
    const mha_part **first;
    mha_status status = MHA_OK;
    MHA_TRY(mha_alloc((void **)&first, c->tensor_count, sizeof *first, err));
    for (size_t i = 0; i < m->part_count && status == MHA_OK; i++) {
        const mha_part *part = &m->part[i], **seen = &first[part->tensor - c->tensors];
        if (c->gguf != NULL && (part->name == NULL || m->hugging_face == NULL))
            status = mha_fail(err, MHA_ERR_UNSUPPORTED,
                              "%s: tensor %s has no place in a Hugging Face checkpoint of family "
                              "%s; prune the checkpoint that the file was made from",
                              m->info.path, part->tensor->name, m->info.family);
        if (part->role == MHA_PART_PLAIN || status != MHA_OK)
            continue;
        if (*seen == NULL)
            *seen = part;
        else if ((*seen)->attn != part->attn || part->steps > 1)
            status = check_shared(m, p, part, *seen, err);
    }
    mha_free(first);
    return status;
}

mha_status mha_prune_check(const mha_model *m, const mha_prune *p, mha_err *err)
{
    const mha_model_info *info = &m->info;
    size_t stride = stride_of(info), marked = 0;
    for (size_t a = 0; a < info->attn_count; a++) {
        uint32_t n = count_marked(p->remove + a * stride, info->attn[a].heads);
        if (n > 0)
            MHA_TRY(check_step(m, p, a, err));
        marked += n;
    }
    if (marked == 0)
        return mha_fail(err, MHA_ERR_ARG, "no head is marked to go");
    MHA_TRY(check_groups(m, p, err));
    return check_parts(m, p, err);
}
