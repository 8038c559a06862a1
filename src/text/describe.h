/* describe.h: parts of a tokenizer.json written for files of other kinds, and the setting up of
 * SentencePiece models that all files with such models share. */
#ifndef MHA_TEXT_DESCRIBE_H
#define MHA_TEXT_DESCRIBE_H

#include "text/spm.h"
#include "text/tokenizer_private.h"

#define MHA_FRAME_MAX 2

/* What goes around a text, and between it and a second one. */
typedef enum mha_frame_pair {
    MHA_PAIR_SHARED,  /* first A last B last; without `last`: first A first B */
    MHA_PAIR_DOUBLED, /* first A last last B last */
    MHA_PAIR_REPEAT,  /* first A last first B last */
    MHA_PAIR_JOINED   /* first A B last */
} mha_frame_pair;

typedef struct mha_frame {
    int32_t first[MHA_FRAME_MAX], last[MHA_FRAME_MAX];
    size_t first_n, last_n;
    mha_frame_pair pair;
    bool second_type; /* the second text and what follows it have type 1 */
} mha_frame;

/* Sets the post-processor; nothing when nothing goes around a text. */
mha_status mha_describe_frame(json_t *description, const mha_frame *f, mha_err *err);

/* *out (json_decref) has the decoder of a SentencePiece model. */
mha_status mha_describe_sentencepiece(json_t **out, bool dummy_prefix, mha_err *err);
/* Adds normalizer and model. The pieces' ids must be in t->vocab, their bytes must outlive t. The
 * normalizer's other parts must have been set before. `find_runs`: unknown text is looked up in
 * t->vocab, which has more than the pieces. */
mha_status mha_tokenizer_set_sentencepiece(mha_tokenizer *t, const mha_spm *m,
                                           mha_space_prefix prefix, bool find_runs, mha_err *err);

#endif
