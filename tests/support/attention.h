/* attention.h: models that consist of nothing but attention steps, patterns handed to probes as a
 * run would, and row statistics by their definitions in double. Shares no code with the library. */
#ifndef MHA_TESTS_SUPPORT_ATTENTION_H
#define MHA_TESTS_SUPPORT_ATTENTION_H

#include "mha/probe.h"
#include "model/program.h"

/* A model of the given steps; heads are numbered 0…H−1 where head_ids is NULL. */
void fake_model(mha_model *m, mha_attn_info *steps, size_t count);

/* Statistics of one row of n weights p, of which the keys with visible[j] count (NULL: all); i is
 * the query's position, −1 for cross-attention; special [n] or NULL. */
mha_row_stats define_stats(const double *p, const uint8_t *visible, size_t n, long i,
                           const uint8_t *special);

/* Hands p [T, S] of a head to a probe in blocks of `height` rows, as MHA_SITE_PATTERN or, where
 * that is what the probe wants, as MHA_SITE_STATS (a causal step shows keys up to the query's).
 * Returns what the probe returned last. */
int feed_pattern(const mha_probe *probe, const mha_attn_info *step, uint32_t head, size_t document,
                 const float *p, size_t T, size_t S, const uint8_t *special, size_t height);

/* Hands x [rows, cols] to a probe in blocks. */
int feed_rows(const mha_probe *probe, mha_site site, const mha_attn_info *step, uint32_t head,
              size_t document, const float *x, size_t rows, size_t cols, size_t height);

#endif
