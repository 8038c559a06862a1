/* trace.h: the arrays of a trace, shared by the two files that make them.
 *
 * Every array has a place: a number that a block's site, stack, kind and layer lead to. */
#ifndef MHA_PROBE_TRACE_H
#define MHA_PROBE_TRACE_H

#include "base/mem.h"
#include "probe/reader.h"

#define MHA_TRACE_HEAD_SITES (MHA_SITE_HEAD_OUT - MHA_SITE_PATTERN + 1)

typedef struct mha_trace_document {
    mha_trace_array *arrays; /* [count] */
    size_t count;
    float *values; /* of all F32 arrays */
    uint32_t *at;  /* [places] index in arrays + 1, 0: none */
} mha_trace_document;

struct mha_trace {
    mha_probe probe;
    const mha_model_info *info;
    const mha_document *docs;
    size_t count;
    mha_trace_options options;
    mha_chosen chosen;
    mha_reader reader; /* of patterns that have a view */
    bool reads;
    mha_trace_document *documents; /* [count] */
    mha_arena memory;              /* lists and whole numbers */
    size_t places, max_layers;
};

/* The place of an array. kind is MHA_SELF for the sites that no head has. */
size_t mha_trace_place(const mha_trace *t, mha_site site, mha_stack_id stack, mha_kind kind,
                       uint32_t layer);
/* Makes every document's list of arrays, without the values that come from the run. */
mha_status mha_trace_list(mha_trace *t, mha_err *err);

#endif
