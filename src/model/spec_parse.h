/* spec_parse.h: the state of the description parser, shared by spec.c (sections, config),
 * spec_slot.c (tensors) and spec_step.c (steps). Private to the three. */
#ifndef MHA_MODEL_SPEC_PARSE_H
#define MHA_MODEL_SPEC_PARSE_H

#include "model/spec.h"

typedef enum mha_section {
    MHA_SECTION_TOP,
    MHA_SECTION_CONFIG,
    MHA_SECTION_TENSORS,
    MHA_SECTION_STEPS
} mha_section;

typedef struct mha_spec_parser {
    mha_spec *spec;
    const char *at; /* in the current line, which ends with a NUL */
    size_t line;
    mha_section section;
    int scope;                          /* of tensors and steps that follow */
    mha_spec_steps *steps;              /* where steps go */
    const char *unknown, *unknown_call; /* first unknown name of the last expression */
    mha_err *err;
} mha_spec_parser;

/* One more zeroed element at the end of an array that starts as NULL, 0. */
mha_status mha_spec_push(void **array, size_t *count, size_t size, mha_err *err);

/* Lexing. A word ends at a blank, '|', '=', ',' or '['. */
void mha_spec_skip(mha_spec_parser *p);
bool mha_spec_accept(mha_spec_parser *p, const char *symbol);
/* MHA_ERR_FORMAT "expected WHAT before …" when there is none. */
mha_status mha_spec_word(mha_spec_parser *p, const char **out, const char *what);
/* Whether expressions may use that name here. */
bool mha_spec_knows(const mha_spec *s, const char *name);
/* An expression whose names are all known. */
mha_status mha_spec_expr(mha_spec_parser *p, const mha_expr **out);
mha_status mha_spec_line_end(mha_spec_parser *p);

/* WORD | WORD | gguf WORD … */
mha_status mha_spec_alternatives(mha_spec_parser *p, mha_spec_words *plain, mha_spec_words *gguf,
                                 const char *what);

/* One tensor slot of the current section. */
mha_status mha_spec_slot_parse(mha_spec_parser *p);
/* One step of the current section. */
mha_status mha_spec_step_parse(mha_spec_parser *p);

#endif
