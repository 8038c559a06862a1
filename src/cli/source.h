/* source.h: the documents of the command line before they are tokens. */
#ifndef MHA_CLI_SOURCE_H
#define MHA_CLI_SOURCE_H

#include "cli/args.h"
#include "mha/input.h"

/* A document as it was given: text, or ids (then text is NULL). */
typedef struct mha_source {
    const char *text, *pair, *target; /* borrowed from argv or a corpus */
    size_t text_n, pair_n, target_n;
    const char *label;         /* a field of files; NULL: none */
    int32_t *ids, *target_ids; /* owned, NULL: none */
    size_t ids_n, target_ids_n;
    mha_graph *graph; /* instead of text and ids; owned until somebody takes it; NULL: none */
    const char *image, *features; /* files of a picture or of features; NULL: none */
    const char *file;             /* where it came from; NULL: the command line */
    size_t
        place; /* line of the file from 1; of ids or from the command line: their number from 0 */
} mha_source;

typedef struct mha_sources {
    mha_source *items;
    size_t count, capacity;
    size_t empty_lines;   /* of files: no documents, but to be told */
    mha_corpus **corpora; /* opened files, kept for their strings */
    size_t corpus_count;
} mha_sources;

/* Everything that --text, --pair, --target, --file, --ids, --target-ids, --ids-file and --graph
 * name, in their order. Release in any case. */
mha_status mha_sources_read(mha_sources *s, const mha_args *args, uint64_t max_bytes, mha_err *err);
/* The documents of one file alone. */
mha_status mha_sources_read_file(mha_sources *s, const char *path, uint64_t max_bytes,
                                 mha_err *err);
void mha_sources_release(mha_sources *s);

/* "corpus.txt:17" or "document 2", for messages. */
void mha_source_name(const mha_source *s, char *out, size_t size);

#endif
