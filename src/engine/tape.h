/* tape.h: what a recording forward pass leaves for the reverse pass: one record a step. */
#ifndef MHA_ENGINE_TAPE_H
#define MHA_ENGINE_TAPE_H

#include "engine/engine.h"

/* Appends a record for the step and makes it f->saved. A no-op without a tape. */
mha_status mha_tape_step(mha_forward *f, const mha_step *s, mha_err *err);
/* *out = `count` floats of the tape's own memory, undefined contents. */
mha_status mha_tape_alloc(mha_tape *t, size_t count, float **out, mha_err *err);
/* *out = a copy of src[0..count) in the tape's memory. */
mha_status mha_tape_keep(mha_tape *t, const float *src, size_t count, float **out, mha_err *err);
/* Keeps the source of a matrix product when weight gradients will need it. */
mha_status mha_tape_source(mha_forward *f, mha_register src, mha_err *err);
/* Drops all records; their buffers serve the next pass. */
void mha_tape_clear(mha_tape *t);
void mha_tape_release(mha_tape *t);

#endif
