/* spec_step.c: parses steps, `DST <- OP WORD ARG=VALUE… [when EXPR]`, against the table of ops. */
#include "base/fail.h"
#include "model/ops.h"
#include "model/spec_parse.h"
#include <string.h>

static mha_status parse_register(mha_spec_parser *p, mha_register *out, const char *word)
{
    for (int r = 0; r < MHA_REGISTER_COUNT; r++)
        if (strcmp(word, mha_register_name((mha_register)r)) == 0) {
            *out = (mha_register)r;
            return MHA_OK;
        }
    return mha_fail(p->err, MHA_ERR_FORMAT, "\"%s\" is not a register: X, B, C or E", word);
}

static mha_status parse_slot(mha_spec_parser *p, mha_spec_arg *arg)
{
    const char *name;
    MHA_TRY(mha_spec_word(p, &name, "the name of a tensor slot"));
    if (!mha_spec_slot_find(p->spec, name, p->scope, &arg->slot))
        return mha_fail(p->err, MHA_ERR_FORMAT, "%s: no tensor slot is called \"%s\"",
                        arg->def->name, name);
    mha_slot_kind kind = p->spec->slots[arg->slot].kind;
    bool fits = false;
    switch (arg->def->kind) {
    case MHA_ARG_LINEAR:
        fits = kind == MHA_SLOT_LINEAR || kind == MHA_SLOT_MATRIX;
        break;
    case MHA_ARG_MATRIX:
        fits = kind == MHA_SLOT_MATRIX;
        break;
    case MHA_ARG_NORM:
        fits = kind == MHA_SLOT_NORM;
        break;
    default:
        fits = kind == MHA_SLOT_VECTOR || kind == MHA_SLOT_TABLE;
    }
    static const char *const wanted[] = {"linear or matrix", "matrix", "norm", "vector or table"};
    if (!fits)
        return mha_fail(p->err, MHA_ERR_FORMAT, "%s: slot \"%s\" is not a %s", arg->def->name, name,
                        wanted[arg->def->kind]);
    return MHA_OK;
}

static mha_status parse_value(mha_spec_parser *p, mha_spec_arg *arg)
{
    if (arg->def->kind <= MHA_ARG_FLOATS)
        return parse_slot(p, arg);
    if (arg->def->kind == MHA_ARG_WORD) {
        const char *start = p->at, *word;
        mha_spec_skip(p);
        if (mha_spec_word(p, &word, "a word") == MHA_OK &&
            mha_op_word_value(arg->def->words, word) >= 0) {
            arg->word = word;
            return MHA_OK;
        }
        p->at = start;
    }
    return mha_spec_expr(p, &arg->expr);
}

static mha_status parse_args(mha_spec_parser *p, mha_spec_step *step)
{
    mha_spec_arg args[MHA_OP_ARGS_MAX];
    const char *word;
    for (mha_spec_skip(p); *p->at != '\0'; mha_spec_skip(p)) {
        MHA_TRY(mha_spec_word(p, &word, "an argument"));
        if (strcmp(word, "when") == 0) {
            MHA_TRY(mha_spec_expr(p, &step->when));
            break;
        }
        mha_spec_arg arg = {.def = mha_op_arg_find(step->op, word)};
        if (arg.def == NULL)
            return mha_fail(p->err, MHA_ERR_FORMAT, "%s has no argument \"%s\"", step->op->name,
                            word);
        for (size_t i = 0; i < step->args; i++)
            if (args[i].def == arg.def)
                return mha_fail(p->err, MHA_ERR_FORMAT, "%s is given twice", word);
        if (mha_spec_accept(p, "="))
            MHA_TRY(parse_value(p, &arg));
        else if (arg.def->kind != MHA_ARG_FLAG)
            return mha_fail(p->err, MHA_ERR_FORMAT, "%s needs a value: %s=…", word, word);
        args[step->args++] = arg;
    }
    for (const mha_op_arg *def = step->op->args; def->name != NULL; def++) {
        bool given = !def->required;
        for (size_t i = 0; i < step->args; i++)
            given = given || args[i].def == def;
        if (!given)
            return mha_fail(p->err, MHA_ERR_FORMAT, "%s needs %s=…", step->op->name, def->name);
    }
    MHA_TRY(
        mha_arena_alloc((void **)&step->arg, &p->spec->memory, step->args, sizeof *args, p->err));
    if (step->args > 0)
        memcpy(step->arg, args, step->args * sizeof *args);
    return MHA_OK;
}

mha_status mha_spec_step_parse(mha_spec_parser *p)
{
    mha_spec_step step = {.line = p->line};
    const char *word;
    MHA_TRY(mha_spec_word(p, &word, "a step"));
    bool has_dst = mha_spec_accept(p, "<-");
    if (has_dst) {
        MHA_TRY(parse_register(p, &step.dst, word));
        MHA_TRY(mha_spec_word(p, &word, "an op"));
    }
    step.op = mha_op_find(word);
    if (step.op == NULL)
        return mha_fail(p->err, MHA_ERR_FORMAT, "there is no op \"%s\"", word);
    if (step.op->has_dst != has_dst || step.dst == MHA_E)
        return mha_fail(p->err, MHA_ERR_FORMAT, "%s: %s", word,
                        step.dst == MHA_E  ? "E is the encoder's memory and only read"
                        : step.op->has_dst ? "needs a register to write: X <- …"
                                           : "writes no register");
    if (step.op->has_src) {
        MHA_TRY(mha_spec_word(p, &word, "the register to read"));
        MHA_TRY(parse_register(p, &step.src, word));
    }
    if (step.op->words != NULL) {
        MHA_TRY(mha_spec_word(p, &step.word, "the kind"));
        if (mha_op_word_value(step.op->words, step.word) < 0)
            return mha_fail(p->err, MHA_ERR_FORMAT, "%s does not know \"%s\"", step.op->name,
                            step.word);
    }
    MHA_TRY(parse_args(p, &step));
    MHA_TRY(mha_spec_line_end(p));
    MHA_TRY(mha_spec_push((void **)&p->steps->step, &p->steps->count, sizeof step, p->err));
    p->steps->step[p->steps->count - 1] = step;
    return MHA_OK;
}
