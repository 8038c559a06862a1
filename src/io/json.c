/* json.c: jansson behind a scan that bounds its work and rewrites the few tokens that real files
 * hold and strict JSON does not: NaN, Infinity, numbers that fit neither int64 nor double.
 * The scan only needs to tell strings from the rest; whether the text is JSON is jansson's word. */
#include "io/json.h"

#include "base/buf.h"
#include "base/fail.h"
#include "base/filemap.h"
#include "base/mem.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX ((size_t)512 << 20)

/* Numbers need a NUL behind them for strtod; longer ones are refused. */
#define NUMBER_MAX 1023

/* Longest part of a dotted path of mha_json_at, with its NUL. */
#define PART_MAX 128

typedef struct scan {
    const char *text, *file;
    size_t n, at, line;
    size_t copied; /* text[0..copied) is already in `fixed` */
    mha_buf fixed; /* stays empty while nothing had to be rewritten */
    unsigned depth, max_depth;
    uint64_t values, max_values;
} scan;

static bool is_number_char(char c)
{
    return (c >= '0' && c <= '9') || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-';
}

/* Replaces text[at .. at+n) by `token` and goes on behind it. */
static mha_status rewrite(scan *s, size_t n, const char *token, mha_err *err)
{
    MHA_TRY(mha_buf_add(&s->fixed, s->text + s->copied, s->at - s->copied, err));
    MHA_TRY(mha_buf_adds(&s->fixed, token, err));
    s->at += n;
    s->copied = s->at;
    return MHA_OK;
}

static mha_status count_values(scan *s, uint64_t n, mha_err *err)
{
    s->values += n;
    if (s->values > s->max_values)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: line %zu: more than %llu JSON values", s->file,
                        s->line, (unsigned long long)s->max_values);
    return MHA_OK;
}

/* An unclosed string is left for jansson to report. */
static void skip_string(scan *s)
{
    for (s->at++; s->at < s->n && s->text[s->at] != '"'; s->at++) {
        if (s->text[s->at] == '\\')
            s->at++;
        else if (s->text[s->at] == '\n')
            s->line++;
    }
    s->at = s->at < s->n ? s->at + 1 : s->n;
}

static mha_status scan_number(scan *s, mha_err *err)
{
    size_t n = 0;
    bool integer = true;
    while (s->at + n < s->n && is_number_char(s->text[s->at + n])) {
        char c = s->text[s->at + n++];
        integer = integer && (c == '-' || (c >= '0' && c <= '9'));
    }
    if (n > NUMBER_MAX)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: line %zu: a number of %zu characters", s->file,
                        s->line, n);
    char digits[NUMBER_MAX + 3];
    memcpy(digits, s->text + s->at, n);
    digits[n] = '\0';
    char *end = NULL;
    double value = strtod(digits, &end);
    /* What strtod does not take whole is not a number: jansson reports it. */
    if (*end == '\0' && isinf(value))
        return rewrite(s, n, value > 0 ? "1.7976931348623157e308" : "-1.7976931348623157e308", err);
    if (integer && n > 18) {
        errno = 0;
        strtoll(digits, &end, 10);
        if (*end == '\0' && errno == ERANGE) {
            memcpy(digits + n, ".0", 3);
            return rewrite(s, n, digits, err);
        }
    }
    s->at += n;
    return MHA_OK;
}

static bool at_word(const scan *s, const char *word)
{
    size_t n = strlen(word);
    return s->n - s->at >= n && memcmp(s->text + s->at, word, n) == 0;
}

static mha_status scan_open(scan *s, mha_err *err)
{
    s->at++;
    if (++s->depth > s->max_depth)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: line %zu: JSON nested deeper than %u levels",
                        s->file, s->line, s->max_depth);
    return count_values(s, MHA_JSON_CONTAINER, err);
}

static mha_status scan_one(scan *s, mha_err *err)
{
    char c = s->text[s->at];
    if (c == '"') {
        skip_string(s);
    } else if (c == '{' || c == '[') {
        return scan_open(s, err);
    } else if (c == 'N' && at_word(s, "NaN")) {
        return rewrite(s, 3, "\"NaN\"", err);
    } else if (c == 'I' && at_word(s, "Infinity")) {
        return rewrite(s, 8, "1.7976931348623157e308", err);
    } else if (c == '-' && at_word(s, "-Infinity")) {
        return rewrite(s, 9, "-1.7976931348623157e308", err);
    } else if (c == '-' || (c >= '0' && c <= '9')) {
        return scan_number(s, err);
    } else {
        s->at++;
        s->line += c == '\n';
        if (c == '}' || c == ']')
            s->depth -= s->depth > 0;
        else if (c == ',')
            return count_values(s, 1, err);
    }
    return MHA_OK;
}

static mha_status decode(json_t **out, const scan *s, mha_err *err)
{
    const char *text = s->copied ? s->fixed.data : s->text;
    size_t n = s->copied ? s->fixed.size : s->n;
    json_error_t e;
    json_t *root = json_loadb(text ? text : "", n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &e);
    if (!root && json_error_code(&e) == json_error_out_of_memory)
        return mha_fail(err, MHA_ERR_NOMEM, "%s: out of memory", s->file);
    if (!root)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: line %d: %s", s->file, e.line, e.text);
    *out = root;
    return MHA_OK;
}

mha_status mha_json_parse_bounded(json_t **out, const char *text, size_t n, const char *file,
                                  unsigned max_depth, uint64_t max_values, mha_err *err)
{
    if (n >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) {
        text += 3;
        n -= 3;
    }
    scan s = {.text = text,
              .file = file,
              .n = n,
              .line = 1,
              .max_depth = max_depth,
              .max_values = max_values};
    /* The longest rewriting of the shortest token is 5 bytes ("2e308") into 22. */
    mha_buf_init(&s.fixed, 5 * n);
    mha_status status = MHA_OK;
    while (status == MHA_OK && s.at < s.n)
        status = scan_one(&s, err);
    if (status == MHA_OK && s.copied)
        status = mha_buf_add(&s.fixed, s.text + s.copied, s.n - s.copied, err);
    if (status == MHA_OK)
        status = decode(out, &s, err);
    mha_buf_release(&s.fixed);
    return status;
}

mha_status mha_json_parse(json_t **out, const char *text, size_t n, const char *file, mha_err *err)
{
    return mha_json_parse_bounded(out, text, n, file, MHA_JSON_DEPTH_MAX, MHA_JSON_VALUES_MAX, err);
}

mha_status mha_json_open(json_t **out, const char *path, mha_err *err)
{
    char *text = NULL;
    size_t n = 0;
    MHA_TRY(mha_file_read(&text, &n, path, FILE_MAX, err));
    mha_status status = mha_json_parse(out, text, n, path, err);
    mha_free(text);
    return status;
}

json_t *mha_json_at(const json_t *root, const char *path)
{
    while (json_is_object(root)) {
        json_t *whole = json_object_get(root, path);
        if (whole)
            return json_is_null(whole) ? NULL : whole;
        const char *dot = strchr(path, '.');
        if (!dot)
            return NULL;
        char part[PART_MAX];
        size_t n = (size_t)(dot - path);
        if (n >= sizeof part)
            return NULL;
        memcpy(part, path, n);
        part[n] = '\0';
        root = json_object_get(root, part);
        path = dot + 1;
    }
    return NULL;
}

json_t *mha_json_real_new(double value)
{
    if (isnan(value))
        return json_string("NaN");
    if (isinf(value))
        return json_real(value > 0 ? DBL_MAX : -DBL_MAX);
    return json_real(value);
}
