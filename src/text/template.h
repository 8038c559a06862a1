/* template.h: the post-processor of a tokenizer file: which special tokens go around the segments,
 * and whether offsets leave out the white space around words.
 *
 * TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel and sequences of them. Others
 * are refused by name. */
#ifndef MHA_TEXT_TEMPLATE_H
#define MHA_TEXT_TEMPLATE_H

#include "base/mem.h"
#include "io/json.h"
#include "mha/err.h"
#include "text/tokenizer.h"
#include <stdbool.h>

#define MHA_TEMPLATE_ITEMS_MAX 64

typedef struct mha_template_item {
    int segment;        /* 0 the text, 1 its pair, -1 a special token */
    const int32_t *ids; /* of a special token: [n] */
    size_t n;
    uint8_t type;
} mha_template_item;

typedef struct mha_template_list {
    mha_template_item v[MHA_TEMPLATE_ITEMS_MAX];
    size_t n;
} mha_template_list;

typedef struct mha_template {
    mha_template_list single, pair;
    bool parsed;                                /* the lists were read from the file */
    bool trim_prefixed[MHA_TEMPLATE_ITEMS_MAX]; /* per trimming: words start with an added space */
    size_t trims;
} mha_template;

/* One token of a segment before special tokens are added. */
typedef struct mha_segment_token {
    int32_t id;
    uint32_t start, end;
    int32_t word;
    bool special;
} mha_segment_token;

typedef struct mha_segment {
    mha_segment_token *v;
    size_t n, capacity;
} mha_segment;

void mha_segment_release(mha_segment *s);
mha_status mha_segment_add(mha_segment *s, mha_segment_token token, mha_err *err);

/* `json` may be NULL or null: then the segments are just joined. Ids must be below `vocab`. */
mha_status mha_template_parse(mha_template *out, mha_arena *arena, const json_t *json, size_t vocab,
                              mha_err *err);
/* Takes white space at the ends of the token's text (the piece as stored, or what an added token
 * matched) off its range in `original`. `first`: the first token of the segment. */
void mha_template_trim(const mha_template *t, mha_segment_token *token, bool first,
                       const char *text, size_t text_n, const char *original);
/* Fills *out. `pair` may be NULL. */
mha_status mha_template_apply(const mha_template *t, const mha_segment *text,
                              const mha_segment *pair, bool with_special, mha_tokens *out,
                              mha_err *err);

#endif
