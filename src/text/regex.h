/* regex.h: the regular expressions of tokenizer files, which are hostile input.
 *
 * They are written for Oniguruma with Ruby's syntax. What means the same to PCRE2 is passed on,
 * what can be said in PCRE2's words is rewritten, and the rest is refused by name. Matching is
 * bounded: steps at one place, memory, and processor time over a whole text. */
#ifndef MHA_TEXT_REGEX_H
#define MHA_TEXT_REGEX_H

#include "base/buf.h"
#include "mha/err.h"
#include "text/cuts.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mha_regex mha_regex;

/* Longest pattern, in bytes. */
#define MHA_REGEX_MAX ((size_t)32 << 10)

/* `literal`: the pattern is a plain string. MHA_ERR_UNSUPPORTED names the construct and its byte,
 * MHA_ERR_FORMAT the compiler's complaint. */
mha_status mha_regex_new(mha_regex **out, const char *pattern, size_t n, bool literal,
                         mha_err *err);
void mha_regex_free(mha_regex *r);

/* What one encoding call needs to match; one for each thread. */
typedef struct mha_regex_scratch {
    struct pcre2_real_match_data_8 *data;
    struct pcre2_real_match_context_8 *context;
    int64_t deadline, checked; /* processor time and coarse clock, nanoseconds */
} mha_regex_scratch;

/* `text_n` is the length of the whole text: the time allowed grows with it. */
void mha_regex_scratch_init(mha_regex_scratch *x, size_t text_n);
void mha_regex_scratch_release(mha_regex_scratch *x);

/* Cuts s[0..n), valid UTF-8, at every match; replaces what *cuts held. An empty match right behind
 * the match before it does not count. MHA_ERR_LIMIT when a bound is passed. */
mha_status mha_regex_cut(const mha_regex *r, mha_regex_scratch *x, const char *s, size_t n,
                         mha_cuts *cuts, mha_err *err);

/* The pattern in PCRE2's syntax, appended to *out. Only regex.c and its tests need it. */
mha_status mha_regex_translate(mha_buf *out, const char *pattern, size_t n, mha_err *err);

#endif
