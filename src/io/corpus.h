/* corpus.h: the inside of mha_corpus (mha/input.h), shared by the readers of its file formats. */
#ifndef MHA_IO_CORPUS_H
#define MHA_IO_CORPUS_H

#include "base/mem.h"
#include "mha/input.h"

#define MHA_CORPUS_LINE_MAX ((size_t)64 << 20)

typedef enum mha_corpus_kind {
    MHA_CORPUS_TXT = 0,
    MHA_CORPUS_TSV,
    MHA_CORPUS_JSONL,
    MHA_CORPUS_CONLLU,
    MHA_CORPUS_FASTA,
    MHA_CORPUS_IDS_JSON
} mha_corpus_kind;

struct mha_corpus {
    mha_corpus_document *documents;
    size_t count, capacity;
    size_t empty_lines;
    char *text;      /* the whole file; strings of documents point into it or into the arena */
    mha_arena arena; /* strings and arrays made while reading */
};

mha_status mha_corpus_add(mha_corpus *c, const mha_corpus_document *d, mha_err *err);

/* Reads a corpus from memory. text[0..n] (with a NUL behind it) is mha_alloc'ed, changed, and owned
 * by the corpus from here on, also on failure. `file` is used in messages. */
mha_status mha_corpus_parse(mha_corpus **out, mha_corpus_kind kind, char *text, size_t n,
                            const char *file, mha_err *err);
/* NumPy files of ids; an archive when `archive`. data is only read during the call. */
mha_status mha_corpus_parse_numpy(mha_corpus **out, bool archive, const unsigned char *data,
                                  size_t n, const char *file, uint64_t max_bytes, mha_err *err);

/* The lines of a file, each cut off by a NUL, without "\n" or "\r\n", of valid UTF-8 without NUL.
 * A byte order mark before the first is skipped. */
typedef struct mha_lines {
    char *next, *end;
    const char *file;
    char *text; /* the line */
    size_t n, number;
} mha_lines;

/* *more = false behind the last line. */
mha_status mha_lines_next(mha_lines *l, bool *more, mha_err *err);

mha_status mha_corpus_read_conllu(mha_corpus *c, mha_lines *l, mha_err *err);
mha_status mha_corpus_read_ids_json(mha_corpus *c, const char *text, size_t n, const char *file,
                                    mha_err *err);
/* One document from ids[0..n), those kept whose mask is not 0; mask may be NULL. */
mha_status mha_corpus_add_ids(mha_corpus *c, const int64_t *ids, const int64_t *mask, size_t n,
                              const char *file, mha_err *err);

#endif
