/* row.h: one row of scores becomes attention weights, and its statistics fall out of the same pass.
 *
 * With m >= max s, e_j = exp(s_j − m), ℓ = Σ e_j, u = Σ (s_j − m) e_j:
 *   p_j = e_j/ℓ,  H = −Σ p ln p = ln ℓ − u/ℓ.
 * A learned sink adds exp(sink − m) to the denominator but is no key (methods H1). */
#ifndef MHA_PROBE_ROW_H
#define MHA_PROBE_ROW_H

#include "kernel/kernel.h"
#include "mha/probe.h"

#define MHA_NO_DIAGONAL SIZE_MAX

/* Scores of neighbouring keys first … first + n − 1. */
typedef struct mha_run {
    float *s; /* [n] becomes e_j */
    size_t n, first;
} mha_run;

typedef struct mha_row {
    const mha_run *runs; /* the visible keys, ascending; one run where the mask is dense */
    size_t run_count;
    size_t query;            /* i among the keys, MHA_NO_DIAGONAL for cross-attention */
    const float *sink;       /* NULL: none */
    const uint32_t *special; /* ascending key positions, [special_count] */
    size_t special_count;
    bool has_special;
    float max; /* out: the largest score */
} mha_row;

/* Exponentiates the row in place. Returns 1/ℓ (with the sink in ℓ), by which e_j becomes p_j: 0 for
 * a row without visible keys, NaN when a score is NaN or +infinity. stats may be NULL. */
float mha_row_weigh(const mha_kernels *k, mha_row *row, mha_row_stats *stats);

/* Statistics of one row by their definitions: p [n] weights, seen [n] the keys that count, i the
 * query's place among the keys or SIZE_MAX for cross-attention. special and sink are left NaN and
 * 0: a row without its special keys does not know them. */
void mha_row_define(const double *p, const uint8_t *seen, size_t n, size_t i, mha_row_stats *st);

#endif
