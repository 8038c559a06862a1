/* subject.h: one model under test: opened by the library, run by the engine, and beside it the
 * naive pass over the same weights; and what gradients of both are compared by. */
#ifndef MHA_TEST_SUBJECT_H
#define MHA_TEST_SUBJECT_H

#include "support/fixture.h"
#include "support/naive.h"
#include "support/terms.h"

#define SUBJECT_STEP 1e-5 /* of central differences, in double */

typedef struct subject {
    const char *name;
    mha_model *m;
    mha_engine *e;
    naive *n; /* of the safetensors form where `name` is another one; NULL: there is none */
    const mha_model_info *info;
    size_t heads; /* row length of gates */
} subject;

/* family: text of a family description to use instead of the built-in one, or NULL. */
void subject_open(subject *s, const char *name, const char *family, uint64_t memory);
void subject_close(subject *s);
/* The description of a family with `from` replaced by `to` wherever it stands. Freed by the caller
 * (mha_free). */
char *subject_family(const char *family, const char *from, const char *to);

/* A document of its own: ids drawn by a fixed seed, terms of the model's usual loss, gates and
 * fills as asked. */
typedef enum subject_gates {
    GATES_NONE,   /* no gates at all */
    GATES_ONE,    /* all 1 */
    GATES_RANDOM, /* 0, 1 and between */
    GATES_MEAN,   /* random, with one fill row for all positions */
    GATES_FILL,   /* random, with a fill for each position; one step has none */
    GATES_COUNT
} subject_gates;

typedef struct subject_document {
    mha_document doc;
    terms terms;
    int32_t *ids, *target_ids;
    float *gates;       /* [A, H] */
    double *exact;      /* the same in double */
    float *fill_values; /* [rows, most H·K] */
    const float **fill_z;
    mha_fill fill;
} subject_document;

void subject_document_make(subject_document *d, const subject *s, size_t length,
                           subject_gates gates, bool difference, uint64_t seed);
void subject_document_free(subject_document *d);

/* Gradients and losses of the documents by the engine. loss [count], gates [count, A, H]. */
void subject_gradient(const subject *s, const mha_document *docs, size_t count, double *loss,
                      double *gates);
/* ∂loss/∂gate of one document by central differences of the naive pass: out [A, H]. */
void subject_differences(const subject *s, const subject_document *d, double *out);

/* max |a − b| over max |b|. */
double largest_error(const double *a, const double *b, size_t n);

#endif
