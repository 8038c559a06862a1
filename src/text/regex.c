/* regex.c: PCRE2 behind bounds. One attempt at one place may take MATCH_STEPS steps and HEAP_KIB of
 * memory; attempts are made in windows of WINDOW places, and between windows the clock is asked, so
 * that no pattern and no text can hold the process for long. It may not depend on the JIT compiler:
 * without it, or when its stack is too small, the interpreter answers the same. */
#include "text/regex.h"

#include "base/fail.h"
#include "base/mem.h"
#include "text/unicode.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <time.h>

#define MATCH_STEPS 5000000
#define MATCH_DEPTH 1000000
#define HEAP_KIB    65536
#define WINDOW      64

/* Processor time allowed for one text: normal patterns take a hundredth of it. */
#define TIME_BASE     ((int64_t)2000000000)
#define TIME_PER_BYTE ((int64_t)5000)

struct mha_regex {
    pcre2_code *code;
};

static mha_status compile(mha_regex *r, const char *pattern, size_t n, bool literal, mha_err *err)
{
    int code = 0;
    PCRE2_SIZE at = 0;
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!context)
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory");
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    uint32_t options = PCRE2_UTF | PCRE2_USE_OFFSET_LIMIT;
    options |= literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C;
    r->code = pcre2_compile((PCRE2_SPTR)pattern, n, options, &code, &at, context);
    pcre2_compile_context_free(context);
    if (!r->code) {
        PCRE2_UCHAR reason[160];
        pcre2_get_error_message(code, reason, sizeof reason);
        return mha_fail(err, MHA_ERR_FORMAT, "regular expression: %s", (const char *)reason);
    }
    /* Failure only means that the interpreter runs. */
    pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE);
    return MHA_OK;
}

static mha_status new_regex(mha_regex *r, const char *pattern, size_t n, bool literal, mha_err *err)
{
    if (n > MHA_REGEX_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "regular expression of %zu bytes, at most %zu", n,
                        MHA_REGEX_MAX);
    if (literal)
        return compile(r, pattern, n, true, err);
    mha_buf translated;
    mha_buf_init(&translated, 64 * MHA_REGEX_MAX);
    mha_status status = mha_regex_translate(&translated, pattern, n, err);
    if (status == MHA_OK)
        status = compile(r, translated.data ? translated.data : "", translated.size, false, err);
    mha_buf_release(&translated);
    return status;
}

mha_status mha_regex_new(mha_regex **out, const char *pattern, size_t n, bool literal, mha_err *err)
{
    void *p;
    *out = NULL;
    MHA_TRY(mha_alloc(&p, 1, sizeof **out, err));
    mha_regex *r = p;
    mha_status status = new_regex(r, pattern, n, literal, err);
    if (status != MHA_OK) {
        mha_regex_free(r);
        return status;
    }
    *out = r;
    return MHA_OK;
}

void mha_regex_free(mha_regex *r)
{
    if (!r)
        return;
    pcre2_code_free(r->code);
    mha_free(r);
}

static int64_t clock_read(clockid_t clock)
{
    struct timespec t = {0};
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void mha_regex_scratch_init(mha_regex_scratch *x, size_t text_n)
{
    *x = (mha_regex_scratch){.deadline = TIME_BASE + TIME_PER_BYTE * (int64_t)text_n};
}

void mha_regex_scratch_release(mha_regex_scratch *x)
{
    pcre2_match_data_free(x->data);
    pcre2_match_context_free(x->context);
    *x = (mha_regex_scratch){0};
}

/* Made on first use: texts that no pattern sees pay nothing. */
static mha_status scratch_open(mha_regex_scratch *x, mha_err *err)
{
    if (x->context)
        return MHA_OK;
    x->data = pcre2_match_data_create(1, NULL);
    x->context = pcre2_match_context_create(NULL);
    if (!x->data || !x->context)
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory");
    pcre2_set_match_limit(x->context, MATCH_STEPS);
    pcre2_set_depth_limit(x->context, MATCH_DEPTH);
    pcre2_set_heap_limit(x->context, HEAP_KIB);
    x->deadline += clock_read(CLOCK_THREAD_CPUTIME_ID);
    x->checked = clock_read(CLOCK_MONOTONIC_COARSE);
    return MHA_OK;
}

/* The coarse clock costs next to nothing; only when it has moved on by a tenth of a second is the
 * processor time asked for, which other programs on the machine cannot run up. */
static mha_status check_time(mha_regex_scratch *x, mha_err *err)
{
    int64_t now = clock_read(CLOCK_MONOTONIC_COARSE);
    if (now - x->checked < 100000000)
        return MHA_OK;
    x->checked = now;
    if (clock_read(CLOCK_THREAD_CPUTIME_ID) <= x->deadline)
        return MHA_OK;
    return mha_fail(err, MHA_ERR_LIMIT,
                    "a regular expression of the tokenizer takes too long on this text");
}

/* The first match that starts in [at, last]; *found false when there is none. */
static mha_status match_window(const mha_regex *r, mha_regex_scratch *x, const char *s, size_t n,
                               size_t at, size_t last, bool *found, mha_err *err)
{
    pcre2_set_offset_limit(x->context, last);
    int rc = pcre2_match(r->code, (PCRE2_SPTR)s, n, at, PCRE2_NO_UTF_CHECK, x->data, x->context);
    /* 32 KiB of the machine's stack are enough for the JIT compiler's code on nearly every text. */
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT)
        rc = pcre2_match(r->code, (PCRE2_SPTR)s, n, at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, x->data,
                         x->context);
    *found = rc >= 0;
    if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH)
        return MHA_OK;
    if (rc == PCRE2_ERROR_NOMEMORY)
        return mha_fail(err, MHA_ERR_NOMEM, "out of memory");
    PCRE2_UCHAR reason[160];
    pcre2_get_error_message(rc, reason, sizeof reason);
    return mha_fail(err, MHA_ERR_LIMIT,
                    "a regular expression of the tokenizer on this text, at byte %zu: %s", at,
                    (const char *)reason);
}

static mha_status match_next(const mha_regex *r, mha_regex_scratch *x, const char *s, size_t n,
                             size_t at, bool *found, mha_err *err)
{
    for (*found = false; at <= n && !*found;) {
        size_t last = n - at > WINDOW ? at + WINDOW : n;
        MHA_TRY(match_window(r, x, s, n, at, last, found, err));
        MHA_TRY(check_time(x, err));
        at = last == n ? n + 1 : mha_char_ceil(s, n, last + 1);
    }
    return MHA_OK;
}

mha_status mha_regex_cut(const mha_regex *r, mha_regex_scratch *x, const char *s, size_t n,
                         mha_cuts *cuts, mha_err *err)
{
    size_t at = 0, previous = 0;
    bool matched = false, found;
    cuts->n = 0;
    MHA_TRY(scratch_open(x, err));
    const PCRE2_SIZE *match = pcre2_get_ovector_pointer(x->data);
    while (at <= n) {
        MHA_TRY(match_next(r, x, s, n, at, &found, err));
        if (!found)
            break;
        size_t start = match[0], end = match[1];
        if (start == end && matched && end == previous) {
            at = at == n ? n + 1 : mha_char_ceil(s, n, at + 1);
            continue;
        }
        if (start > previous)
            MHA_TRY(mha_cuts_add(cuts, previous, start, false, err));
        MHA_TRY(mha_cuts_add(cuts, start, end, true, err));
        at = previous = end;
        matched = true;
    }
    if (previous < n)
        MHA_TRY(mha_cuts_add(cuts, previous, n, false, err));
    return MHA_OK;
}
