/* modeldir.h: a model of tests/data/models, changed in memory and written into a test's directory,
 * to see what opening it says: config keys, tensor names, shapes, types and values. */
#ifndef MHA_TESTS_SUPPORT_MODELDIR_H
#define MHA_TESTS_SUPPORT_MODELDIR_H

#include "mha/model.h"
#include <jansson.h>
#include <stddef.h>

typedef struct modeldir {
    json_t *config, *header; /* of model.safetensors */
    unsigned char *file;     /* the whole of it */
    size_t size, data;       /* where the data begin */
} modeldir;

/* All of these fail the test on any error of their own. */
void modeldir_load(modeldir *m, const char *name);
void modeldir_release(modeldir *m);
/* Config key = JSON text (NULL removes the key). */
void modeldir_set(modeldir *m, const char *key, const char *value);
void modeldir_rename(modeldir *m, const char *tensor, const char *name);
/* Field of a tensor's header = JSON text: "shape", "dtype". */
void modeldir_describe(modeldir *m, const char *tensor, const char *field, const char *value);
/* A further tensor without elements. */
void modeldir_add(modeldir *m, const char *tensor);
/* The tensor's bytes, to be changed; *n elements of four bytes. */
unsigned char *modeldir_bytes(modeldir *m, const char *tensor, size_t *n);
/* Writes it all and opens it. */
mha_status modeldir_open(modeldir *m, void **state, mha_model **out,
                         const mha_model_options *options, mha_err *err);

#endif
