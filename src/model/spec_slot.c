/* spec_slot.c: parses tensor slots, `KIND NAME [SHAPE] TENSOR | … OPTIONS`. */
#include "base/fail.h"
#include "model/spec_parse.h"
#include <stdio.h>
#include <string.h>

static mha_status parse_shape(mha_spec_parser *p, mha_spec_slot *slot)
{
    bool flat = slot->kind == MHA_SLOT_NORM || slot->kind == MHA_SLOT_VECTOR;
    size_t least = flat || slot->kind == MHA_SLOT_MATRIX ? 1 : 2;
    size_t most = slot->kind == MHA_SLOT_TABLE ? 2 : MHA_SLOT_DIMS_MAX;
    if (!mha_spec_accept(p, "["))
        return mha_fail(p->err, MHA_ERR_FORMAT,
                        "expected a shape, [OUT, IN] or [N], before \"%.24s\"", p->at);
    do {
        if (slot->dims == most)
            return mha_fail(p->err, MHA_ERR_FORMAT, "more than %zu dims", most);
        MHA_TRY(mha_spec_expr(p, &slot->shape[slot->dims++]));
    } while (mha_spec_accept(p, ","));
    if (!mha_spec_accept(p, "]"))
        return mha_fail(p->err, MHA_ERR_FORMAT, "expected \"]\" before \"%.24s\"", p->at);
    if (slot->dims < least)
        return mha_fail(p->err, MHA_ERR_FORMAT, "this kind of slot has %zu dims, not %zu", least,
                        slot->dims);
    return MHA_OK;
}

/* else=NAME[,EXPR] */
static mha_status parse_tied(mha_spec_parser *p, mha_spec_slot *slot)
{
    size_t other;
    MHA_TRY(mha_spec_word(p, &slot->tied, "the name of a slot"));
    if (!mha_spec_slot_find(p->spec, slot->tied, p->scope, &other))
        return mha_fail(p->err, MHA_ERR_FORMAT, "no tensor slot is called \"%s\"", slot->tied);
    if (p->spec->slots[other].kind != slot->kind)
        return mha_fail(p->err, MHA_ERR_FORMAT, "slot \"%s\" is of another kind", slot->tied);
    return mha_spec_accept(p, ",") ? mha_spec_expr(p, &slot->tied_when) : MHA_OK;
}

static mha_status parse_slot_option(mha_spec_parser *p, mha_spec_slot *slot)
{
    const struct {
        const char *name;
        const mha_expr **expr;
        unsigned kinds;
        bool needs_value;
    } options[] = {
        {"bias", &slot->bias, 1u << MHA_SLOT_LINEAR | 1u << MHA_SLOT_NORM, true},
        {"optional", &slot->optional, ~0u, false},
        {"when", &slot->when, ~0u, true},
        {"columns", &slot->columns, 1u << MHA_SLOT_LINEAR | 1u << MHA_SLOT_MATRIX, true},
        {"column", &slot->column, 1u << MHA_SLOT_LINEAR | 1u << MHA_SLOT_MATRIX, true},
        {"sinusoid", &slot->sinusoid, 1u << MHA_SLOT_MATRIX, false},
        {"plus-one", &slot->plus_one, 1u << MHA_SLOT_NORM, false},
        {"in-out", &slot->in_out, 1u << MHA_SLOT_LINEAR | 1u << MHA_SLOT_MATRIX, false},
        {"from", &slot->from, 1u << MHA_SLOT_LINEAR | 1u << MHA_SLOT_MATRIX, true},
        {"at", &slot->at, 1u << MHA_SLOT_LINEAR | 1u << MHA_SLOT_MATRIX, true},
        {"group", &slot->group, 1u << MHA_SLOT_LINEAR | 1u << MHA_SLOT_MATRIX, true},
        {"step", &slot->step, 1u << MHA_SLOT_LINEAR | 1u << MHA_SLOT_MATRIX, true},
    };
    const char *word;
    MHA_TRY(mha_spec_word(p, &word, "an option"));
    bool has_value = mha_spec_accept(p, "=");
    if (strcmp(word, "else") == 0 && has_value)
        return parse_tied(p, slot);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (strcmp(word, options[i].name) != 0 || (options[i].kinds >> slot->kind & 1) == 0)
            continue;
        if (has_value)
            return mha_spec_expr(p, options[i].expr);
        if (options[i].needs_value)
            break;
        const char *one = "1"; /* the option alone means that it holds */
        mha_expr *e;
        MHA_TRY(mha_expr_parse(&e, &p->spec->memory, &one, p->err));
        *options[i].expr = e;
        return MHA_OK;
    }
    return mha_fail(p->err, MHA_ERR_FORMAT, "\"%s\" is not an option of this kind of slot", word);
}

/* Checks the names in {braces} of tensor names; *layer: there are some, so that the tensor is bound
 * layer by layer. */
static mha_status check_braces(mha_spec_parser *p, const mha_spec_words *w, bool *layer)
{
    for (size_t i = 0; i < w->count; i++)
        for (const char *open = w->word[i]; (open = strchr(open, '{')) != NULL; open++) {
            const char *close = strchr(open, '}');
            char name[64];
            size_t n = close != NULL ? (size_t)(close - open) - 1 : 0;
            snprintf(name, sizeof name, "%.*s", (int)n, open + 1);
            if (n == 0 || n >= sizeof name || !mha_spec_knows(p->spec, name))
                return mha_fail(p->err, MHA_ERR_FORMAT, "\"%s\": {%s} names no value", w->word[i],
                                name);
            *layer = true;
        }
    return MHA_OK;
}

mha_status mha_spec_slot_parse(mha_spec_parser *p)
{
    static const char *const kinds[] = {"linear", "norm", "matrix", "vector", "table"};
    mha_spec_slot slot = {.line = p->line, .scope = p->scope};
    mha_spec *s = p->spec;
    const char *kind;
    size_t k = 0;
    MHA_TRY(mha_spec_word(p, &kind, "a kind of slot"));
    while (k < 5 && strcmp(kind, kinds[k]) != 0)
        k++;
    if (k == 5)
        return mha_fail(p->err, MHA_ERR_FORMAT,
                        "\"%s\" is no kind of slot: linear, norm, matrix, vector, table", kind);
    slot.kind = (mha_slot_kind)k;
    MHA_TRY(mha_spec_word(p, &slot.name, "the name of the slot"));
    size_t other;
    if (mha_spec_slot_find(s, slot.name, p->scope, &other))
        return mha_fail(p->err, MHA_ERR_FORMAT, "slot \"%s\" is declared already in line %zu",
                        slot.name, s->slots[other].line);
    MHA_TRY(parse_shape(p, &slot));
    MHA_TRY(mha_spec_alternatives(p, &slot.names, &slot.gguf, "a tensor name"));
    for (mha_spec_skip(p); *p->at != '\0'; mha_spec_skip(p))
        MHA_TRY(parse_slot_option(p, &slot));
    MHA_TRY(check_braces(p, &slot.names, &slot.per_layer));
    MHA_TRY(check_braces(p, &slot.gguf, &slot.per_layer));
    if (slot.per_layer && (p->scope < 0 || p->scope >= MHA_SCOPE_HEADS))
        return mha_fail(p->err, MHA_ERR_FORMAT, "{l} outside of a stack");
    MHA_TRY(mha_spec_push((void **)&s->slots, &s->slot_count, sizeof slot, p->err));
    s->slots[s->slot_count - 1] = slot;
    return MHA_OK;
}
