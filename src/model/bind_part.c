/* bind_part.c: notes where each slot's rows lie in the stored tensors, where a Hugging Face
 * checkpoint of the same family has them, and which of them belong to heads: all that is needed to
 * write the weights of a smaller model. May not look at values. */
#include "base/fail.h"
#include "model/binder.h"
#include <stdio.h>
#include <string.h>

mha_part_role mha_part_role_of(const char *argument)
{
    static const struct {
        const char *argument;
        mha_part_role role;
    } roles[] = {{"q", MHA_PART_QUERY},
                 {"k", MHA_PART_KEY},
                 {"v", MHA_PART_KEY},
                 {"q_global", MHA_PART_QUERY},
                 {"k_global", MHA_PART_KEY},
                 {"v_global", MHA_PART_KEY},
                 {"relative_q", MHA_PART_QUERY},
                 {"relative_k", MHA_PART_KEY},
                 {"o", MHA_PART_OUTPUT},
                 {"sinks", MHA_PART_QUERY},
                 {"output_gate", MHA_PART_QUERY},
                 {"pair", MHA_PART_QUERY}};
    for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
        if (strcmp(roles[i].argument, argument) == 0)
            return roles[i].role;
    return MHA_PART_PLAIN;
}

/* The first of the slot's names, with the family's prefix in front of all but read-outs' tensors.
 */
static mha_status part_name(mha_binder *b, const mha_spec_slot *slot, const char *end,
                            const char **out)
{
    char name[MHA_TENSOR_NAME_MAX];
    const mha_spec_words *prefixes = &b->spec->prefixes;
    const char *prefix =
        slot->scope < MHA_SCOPE_HEADS && prefixes->count > 0 ? prefixes->word[0] : "";
    *out = NULL;
    if (slot->names.count == 0)
        return MHA_OK;
    size_t n = strlen(prefix);
    snprintf(name, sizeof name, "%s", prefix);
    MHA_TRY(mha_bind_name(b, slot, name + n, sizeof name - n, slot->names.word[0], end));
    char *copy;
    MHA_TRY(mha_arena_strdup(&copy, b->memory, name, b->err));
    *out = copy;
    return MHA_OK;
}

static mha_status add_part(mha_binder *b, const mha_part *part, size_t *number)
{
    struct mha_model *m = b->model;
    if ((m->part_count & (m->part_count - 1)) == 0)
        MHA_TRY(mha_grow((void **)&m->part, m->part_count,
                         m->part_count == 0 ? 1 : 2 * m->part_count, sizeof *m->part, b->err));
    m->part[m->part_count] = *part;
    *number = ++m->part_count;
    return MHA_OK;
}

/* Where the slot would lie in a checkpoint of the other format. */
static mha_status place_there(mha_binder *b, const mha_spec_slot *slot, uint32_t out,
                              mha_place *place, float *added)
{
    bool gguf = b->gguf, plus_one = false;
    b->gguf = false;
    mha_status status = mha_bind_place(b, slot, out, place);
    if (status == MHA_OK)
        status = mha_binder_truth(b, slot->plus_one, slot->line, false, &plus_one);
    b->gguf = gguf;
    *added = plus_one ? 1 : 0;
    return status;
}

mha_status mha_bind_parts(mha_binder *b, const mha_spec_slot *slot, mha_bound *bound,
                          const mha_place *here)
{
    bool whole = slot->kind == MHA_SLOT_LINEAR || slot->kind == MHA_SLOT_NORM, plus_one;
    mha_part part = {.tensor = bound->tensor,
                     .out = bound->shape[0],
                     .in = bound->rank == 2 ? bound->shape[1] : 0,
                     .here = *here,
                     .there = *here};
    float there = 0;
    if (b->gguf) {
        MHA_TRY(mha_binder_truth(b, slot->plus_one, slot->line, false, &plus_one));
        MHA_TRY(place_there(b, slot, part.out, &part.there, &there));
        part.added = (plus_one ? 1.0f : 0.0f) - there;
    }
    MHA_TRY(part_name(b, slot, whole ? ".weight" : "", &part.name));
    MHA_TRY(add_part(b, &part, &bound->part));
    if (bound->bias == NULL)
        return MHA_OK;
    part.tensor = bound->bias;
    part.in = 0;
    part.added = 0;
    part.here.in_out = part.there.in_out = false;
    MHA_TRY(part_name(b, slot, ".bias", &part.name));
    return add_part(b, &part, &bound->bias_part);
}

static void give_role(mha_binder *b, size_t number, mha_part_role role)
{
    if (number == 0)
        return;
    mha_part *part = &b->model->part[number - 1];
    if (part->steps == 0 || part->attn != b->attn_count) /* a step may use it twice */
        part->steps++;
    part->role = role;
    part->attn = b->attn_count;
}

void mha_bind_part_role(mha_binder *b, const char *argument, const mha_bound *bound)
{
    mha_part_role role = mha_part_role_of(argument);
    if (role == MHA_PART_PLAIN)
        return;
    give_role(b, bound->part, role);
    give_role(b, bound->bias_part, role == MHA_PART_OUTPUT ? MHA_PART_OUTPUT_BIAS : role);
}

/* Whether rotary pairs of q and k are halves in a Hugging Face checkpoint. */
static mha_status is_half_there(mha_binder *b, const mha_spec_step *s, const mha_spec_arg *rope,
                                bool *out)
{
    mha_value v = {.kind = MHA_VALUE_STRING, .string = rope->word};
    bool gguf = b->gguf;
    b->gguf = false;
    mha_status status = MHA_OK;
    if (rope->word == NULL)
        status = mha_binder_value(b, rope->expr, s->line, &v);
    b->gguf = gguf;
    *out = v.kind == MHA_VALUE_STRING &&
           mha_op_word_value(rope->def->words, v.string) == MHA_ROPE_HALF;
    return status;
}

mha_status mha_bind_part_rope(mha_binder *b, const mha_spec_step *s, const mha_attn_args *a)
{
    bool half = false;
    if (!b->gguf || a->rope != MHA_ROPE_PAIR)
        return MHA_OK;
    for (size_t i = 0; i < s->args; i++)
        if (strcmp(s->arg[i].def->name, "rope") == 0)
            MHA_TRY(is_half_there(b, s, &s->arg[i], &half));
    for (size_t i = 0; half && i < s->args; i++) {
        const char *name = s->arg[i].def->name;
        if (strcmp(name, "q") != 0 && strcmp(name, "k") != 0)
            continue;
        const mha_bound *bound = &b->bound[s->arg[i].slot];
        if (bound->part != 0)
            b->model->part[bound->part - 1].paired = a->rope_width;
        if (bound->bias_part != 0)
            b->model->part[bound->bias_part - 1].paired = a->rope_width;
    }
    return MHA_OK;
}
