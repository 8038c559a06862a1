/* rows.h: rows of floats for the tests of kernels: awkward lengths and starts, with guards on both
 * sides that show a write outside. */
#ifndef MHA_TESTS_SUPPORT_ROWS_H
#define MHA_TESTS_SUPPORT_ROWS_H

#include "base/rng.h"
#include "kernel/kernel.h"
#include <stddef.h>

enum { ROW_MAX = 2200, ISA_MAX = 4 };

/* 0 … 70, then larger ones around powers of two and one beyond all of them. */
size_t row_length_count(void);
size_t row_length(size_t i);

typedef struct row {
    float cells[ROW_MAX + 32];
    size_t start, n;
} row;

/* An unaligned row of n floats; returns its first element. */
float *row_start(row *r, size_t n, size_t offset);
/* Fails the test when something outside the n floats was written. */
void row_check_guards(const row *r);

void fill_uniform(float *x, size_t n, mha_rng *g, double lo, double hi);

/* |got − want| in units of the spacing of floats at `want`; 0 for equal infinities and two NaN. */
double ulp_distance(float got, double want);

/* All tables of this machine, `ref` first. */
size_t isas(const mha_kernels **out);

#endif
