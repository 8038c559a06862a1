/* inputs.h: the documents of the command line, as tokens. */
#ifndef MHA_CLI_INPUTS_H
#define MHA_CLI_INPUTS_H

#include "cli/options.h"
#include "mha/input.h"
#include "mha/run.h"
#include "mha/trace.h"

/* One document as it is fed. Tokens own their arrays. */
typedef struct mha_input {
    size_t index; /* absolute: skipped documents count */
    mha_tokens source, target;
    bool from_text;   /* source: start, end and word are those of the text */
    bool has_pair;    /* of two texts, though the second may have been cut off */
    bool target_text; /* target likewise */
    bool has_target;
    bool has_special;    /* the special flags mean something */
    mha_tokens unmasked; /* with truths: the text behind the masks; empty when it was not given */
    int32_t label;       /* with truths: the class, −1: none */
    float *features;     /* owned; NULL: it is not a picture or a spectrum */
    mha_picture seen;    /* what the model sees of a picture; without pixels otherwise */
    uint8_t *global;     /* [source.n] owned, of --global; NULL: not given */
    mha_graph *graph;    /* owned; the tokens of `source` are then its nodes; NULL: none */
} mha_input;

/* Whether token i is one that a template puts around the text. */
bool mha_token_added(const mha_tokens *t, size_t i);

typedef struct mha_inputs {
    mha_input *items;        /* [count] */
    mha_document *documents; /* [count] the same, as the engine takes them */
    size_t count;
    size_t given;     /* before any were skipped */
    size_t skipped;   /* too long, empty, an id outside the vocabulary */
    size_t truncated; /* cut by --max-tokens */
    size_t tokens;    /* all that are fed, targets too */
    bool targets;     /* every document has a target */
    bool truths;      /* set before loading: labels and the texts behind masks are wanted too */
} mha_inputs;

/* Reads, tokenises and checks everything that the command line names; cli->model must be open.
 * A document that the model cannot take is an error when it is the only one, and is skipped and
 * named otherwise. */
mha_status mha_inputs_load(mha_cli *cli, mha_err *err);
/* The documents of one more file into `all`, under the same options and with the same notes.
 * Release `all` in any case. */
mha_status mha_inputs_load_file(mha_inputs *all, mha_cli *cli, const char *path, mha_err *err);
/* The document as the engine takes it; borrowed from the input. */
mha_document mha_input_document(const mha_input *in);
/* Document i; a decoder that reads an encoder starts from its start token when there is no target.
 * *start is the caller's room for that token. */
mha_document mha_inputs_complete(const mha_cli *cli, size_t i, int32_t *start);
/* *out = [count] the words of each document, owned (mha_free), the numbers borrowed. MHA_ERR_ARG
 * when they are not known. */
mha_status mha_inputs_words(mha_words **out, const mha_cli *cli, mha_err *err);
/* The one document of dumped maps, without text; what d points to must outlive the inputs. */
mha_status mha_inputs_take(mha_inputs *in, const mha_document *d, mha_err *err);
void mha_inputs_release(mha_inputs *in);

#endif
