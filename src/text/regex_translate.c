/* regex_translate.c: one pass over a pattern in Ruby's syntax that writes the same pattern in
 * PCRE2's. The two differ in \h, \v, \u, \w, \b, \s, in the letter for "dot matches newline", in
 * {,n} and {n,m}+, in scripts (PCRE2 reads \p{Greek} as script extensions), and in set operations
 * inside of classes. It may not check the syntax: what is broken stays broken for PCRE2 to report.
 */
#include "text/regex.h"

#include "base/fail.h"

#include <string.h>

/* The contents of character classes. \s and \w are spelt out because PCRE2 counts U+180E as a space
 * and leaves marks out of words. Oniguruma counts the superscripts and fractions of Latin-1 as word
 * characters, and no other numbers of their category. */
#define SPACE_SET                                                                                  \
    "\\x{09}-\\x{0d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}"           \
    "\\x{202f}\\x{205f}\\x{3000}"
#define WORD_SET                                                                                   \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"                        \
    "\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"
#define WORD_CLASS "[" WORD_SET "]"

/* Escaped letters with their translation outside and inside of a character class. "" passes the
 * escape on; NULL refuses it. Letters that are not listed are refused. */
static const struct escape {
    char letter;
    const char *outside, *inside;
} escapes[] = {
    {'s', "[" SPACE_SET "]", SPACE_SET},
    {'S', "[^" SPACE_SET "]", ""},
    {'w', WORD_CLASS, WORD_SET},
    {'W', "[^" WORD_SET "]", NULL},
    {'b', "(?:(?<=" WORD_CLASS ")(?!" WORD_CLASS ")|(?<!" WORD_CLASS ")(?=" WORD_CLASS "))", ""},
    {'B', "(?:(?<=" WORD_CLASS ")(?=" WORD_CLASS ")|(?<!" WORD_CLASS ")(?!" WORD_CLASS "))", NULL},
    {'h', "[0-9a-fA-F]", "0-9a-fA-F"},
    {'H', "[^0-9a-fA-F]", NULL},
    {'v', "\\x{0b}", "\\x{0b}"},
    {'d', "", ""},
    {'D', "", ""},
    {'n', "", ""},
    {'r', "", ""},
    {'t', "", ""},
    {'f', "", ""},
    {'a', "", ""},
    {'e', "", ""},
    {'x', "", ""},
    {'A', "", NULL},
    {'z', "", NULL},
    {'Z', "", NULL},
};

static const char *const categories[] = {
    "Any", "C",  "Cc", "Cf", "Cn", "Co", "Cs", "L",  "Ll", "Lm", "Lo", "Lt", "Lu",
    "M",   "Mc", "Me", "Mn", "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Pe", "Pf",
    "Pi",  "Po", "Ps", "S",  "Sc", "Sk", "Sm", "So", "Z",  "Zl", "Zp", "Zs"};

typedef struct translation {
    const char *s;
    size_t n, at;
    unsigned in_class; /* classes that are open */
    mha_buf *out;
} translation;

static mha_status refuse(const translation *t, const char *what, mha_err *err)
{
    return mha_fail(err, MHA_ERR_UNSUPPORTED, "regular expression, byte %zu: %s is not supported",
                    t->at, what);
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Passes the next n bytes on as they are. */
static mha_status copy(translation *t, size_t n, mha_err *err)
{
    MHA_TRY(mha_buf_add(t->out, t->s + t->at, n, err));
    t->at += n;
    return MHA_OK;
}

static bool starts(const translation *t, const char *word)
{
    size_t n = strlen(word);
    return t->n - t->at >= n && memcmp(t->s + t->at, word, n) == 0;
}

/* \p{Name}, \p{^Name}, \P{Name}: categories pass, everything else is a script. */
static mha_status property(translation *t, mha_err *err)
{
    const char *open = t->s + t->at + 2;
    size_t left = t->n - t->at - 2;
    const char *close = left > 0 && *open == '{' ? memchr(open, '}', left) : NULL;
    if (!close)
        return refuse(t, "\\p without {…}", err);
    const char *name = open + 1;
    bool negated = *name == '^';
    name += negated;
    size_t n = (size_t)(close - name);
    bool category = false;
    for (size_t i = 0; i < sizeof categories / sizeof *categories; i++)
        category = category || (strlen(categories[i]) == n && !memcmp(categories[i], name, n));
    for (size_t i = 0; i < n; i++) {
        if (!is_letter(name[i]) && name[i] != '_')
            return refuse(t, "a property that is neither category nor script", err);
    }
    if (n > 64)
        return refuse(t, "a property that is neither category nor script", err);
    MHA_TRY(mha_buf_addf(t->out, err, "\\%c{%s%s%.*s}", t->s[t->at + 1], negated ? "^" : "",
                         category ? "" : "sc:", (int)n, name));
    t->at += (size_t)(close + 1 - (t->s + t->at));
    return MHA_OK;
}

/* \uHHHH */
static mha_status unicode_escape(translation *t, mha_err *err)
{
    if (t->n - t->at < 6)
        return refuse(t, "\\u without four digits", err);
    MHA_TRY(mha_buf_addf(t->out, err, "\\x{%.4s}", t->s + t->at + 2));
    t->at += 6;
    return MHA_OK;
}

static mha_status escape(translation *t, mha_err *err)
{
    if (t->at + 1 == t->n)
        return copy(t, 1, err);
    char c = t->s[t->at + 1];
    if (c == 'p' || c == 'P')
        return property(t, err);
    if (c == 'u')
        return unicode_escape(t, err);
    if (!is_letter(c))
        return copy(t, 2, err);
    for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++) {
        if (escapes[i].letter != c)
            continue;
        const char *word = t->in_class ? escapes[i].inside : escapes[i].outside;
        if (!word)
            break;
        if (*word == '\0')
            return copy(t, 2, err);
        t->at += 2;
        return mha_buf_adds(t->out, word, err);
    }
    char what[] = "the escape \\?";
    what[sizeof what - 2] = c;
    return refuse(t, what, err);
}

static mha_status open_class(translation *t, mha_err *err)
{
    t->in_class = 1;
    MHA_TRY(copy(t, 1, err));
    if (t->at < t->n && t->s[t->at] == '^')
        MHA_TRY(copy(t, 1, err));
    /* A bracket that closes at once stands for itself. */
    if (t->at < t->n && t->s[t->at] == ']')
        MHA_TRY(copy(t, 1, err));
    return MHA_OK;
}

/* A class inside of a class is a union: its members can stand in the outer one. */
static mha_status open_inner_class(translation *t, mha_err *err)
{
    char next = t->at + 1 < t->n ? t->s[t->at + 1] : '\0';
    if (next == ':')
        return refuse(t, "a POSIX bracket", err);
    if (next == '^' || next == ']')
        return refuse(t, "this class inside of a class", err);
    t->in_class++;
    t->at++;
    return MHA_OK;
}

/* A hyphen at the edge of an inner class must not become a range of the outer one. */
static bool is_edge_hyphen(const translation *t)
{
    bool first = t->s[t->at - 1] == '[';
    bool last = t->at + 1 < t->n && t->s[t->at + 1] == ']';
    return t->in_class > 1 && t->s[t->at] == '-' && (first || last);
}

static mha_status class_member(translation *t, mha_err *err)
{
    char c = t->s[t->at];
    if (c == '\\')
        return escape(t, err);
    if (c == '[')
        return open_inner_class(t, err);
    if (starts(t, "&&"))
        return refuse(t, "the intersection && of classes", err);
    if (is_edge_hyphen(t))
        MHA_TRY(mha_buf_add(t->out, "\\", 1, err));
    if (c == ']' && --t->in_class > 0) {
        t->at++;
        return MHA_OK;
    }
    return copy(t, 1, err);
}

/* "(?" with option letters: Ruby's m is PCRE2's s. */
static mha_status group_options(translation *t, mha_err *err)
{
    MHA_TRY(copy(t, 2, err));
    while (t->at < t->n && t->s[t->at] != ':' && t->s[t->at] != ')') {
        char c = t->s[t->at];
        if (c != 'i' && c != 'm' && c != 'x' && c != '-')
            return refuse(t, "this group option", err);
        MHA_TRY(mha_buf_add(t->out, c == 'm' ? "s" : &c, 1, err));
        t->at++;
    }
    return MHA_OK;
}

static mha_status open_group(translation *t, mha_err *err)
{
    static const char *const plain[] = {"(?:", "(?=", "(?!", "(?>", "(?<=", "(?<!"};
    if (starts(t, "(*"))
        return refuse(t, "(*…)", err);
    if (!starts(t, "(?"))
        return copy(t, 1, err);
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++) {
        if (starts(t, plain[i]))
            return copy(t, strlen(plain[i]), err);
    }
    if (t->at + 2 < t->n && (is_letter(t->s[t->at + 2]) || t->s[t->at + 2] == '-'))
        return group_options(t, err);
    return refuse(t, "this kind of group", err);
}

/* {n}, {n,}, {,n}, {n,m}; anything else is a literal brace. */
static mha_status brace(translation *t, mha_err *err)
{
    size_t i = t->at + 1, digits = 0;
    bool comma = false;
    for (; i < t->n && (is_digit(t->s[i]) || (t->s[i] == ',' && !comma)); i++) {
        comma = comma || t->s[i] == ',';
        digits += is_digit(t->s[i]);
    }
    if (i >= t->n || t->s[i] != '}' || digits == 0)
        return copy(t, 1, err);
    if (i + 1 < t->n && t->s[i + 1] == '+')
        return refuse(t, "+ behind {…}", err);
    if (t->s[t->at + 1] == ',') {
        MHA_TRY(mha_buf_adds(t->out, "{0", err));
        t->at++;
    }
    return copy(t, i + 1 - t->at, err);
}

mha_status mha_regex_translate(mha_buf *out, const char *pattern, size_t n, mha_err *err)
{
    translation t = {.s = pattern, .n = n, .out = out};
    while (t.at < n) {
        mha_status status;
        if (t.in_class)
            status = class_member(&t, err);
        else if (pattern[t.at] == '\\')
            status = escape(&t, err);
        else if (pattern[t.at] == '[')
            status = open_class(&t, err);
        else if (pattern[t.at] == '(')
            status = open_group(&t, err);
        else if (pattern[t.at] == '{')
            status = brace(&t, err);
        else
            status = copy(&t, 1, err);
        MHA_TRY(status);
    }
    return MHA_OK;
}
