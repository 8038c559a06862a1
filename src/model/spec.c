/* spec.c: parses family descriptions: lines, sections, config values. The language is described in
 * spec.h. Nothing here looks at a checkpoint. */
#include "model/spec.h"
#include "base/buf.h"
#include "base/fail.h"
#include "model/spec_parse.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_MAX = 1 << 17, WORDS_MAX = 64, HEADS_MAX = 16 };

mha_status mha_spec_push(void **array, size_t *count, size_t size, mha_err *err)
{
    /* capacity is the next power of two */
    if ((*count & (*count - 1)) == 0)
        MHA_TRY(mha_grow(array, *count, *count == 0 ? 1 : 2 * *count, size, err));
    (*count)++;
    return MHA_OK;
}

void mha_spec_skip(mha_spec_parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\r')
        p->at++;
}

bool mha_spec_accept(mha_spec_parser *p, const char *symbol)
{
    mha_spec_skip(p);
    size_t n = strlen(symbol);
    if (strncmp(p->at, symbol, n) != 0)
        return false;
    p->at += n;
    return true;
}

mha_status mha_spec_word(mha_spec_parser *p, const char **out, const char *what)
{
    mha_spec_skip(p);
    size_t n = strcspn(p->at, " \t\r|=,[");
    if (n == 0)
        return mha_fail(p->err, MHA_ERR_FORMAT, "expected %s before \"%.24s\"", what,
                        *p->at == '\0' ? "the end of the line" : p->at);
    char *word;
    MHA_TRY(mha_arena_strndup(&word, &p->spec->memory, p->at, n, p->err));
    p->at += n;
    *out = word;
    return MHA_OK;
}

bool mha_spec_knows(const mha_spec *s, const char *name)
{
    if (strcmp(name, "l") == 0 || strcmp(name, "gguf") == 0 || strcmp(name, "arch") == 0)
        return true;
    for (size_t i = 0; i < s->var_count; i++)
        if (strcmp(s->vars[i].name, name) == 0)
            return true;
    return false;
}

static void check_name(void *context, const char *name)
{
    mha_spec_parser *p = context;
    if (p->unknown == NULL && !mha_spec_knows(p->spec, name))
        p->unknown = name;
}

static void check_call(void *context, const char *name, const char *text, size_t arguments)
{
    static const struct {
        const char *name;
        bool text;
        size_t arguments;
    } functions[] = {{"has", true, 1},    {"rows", true, 1}, {"len", false, 1},
                     {"min", false, 2},   {"max", false, 2}, {"floor", false, 1},
                     {"among", false, 2}, {"at", false, 2},  {"holds", false, 2}};
    mha_spec_parser *p = context;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++)
        if (strcmp(name, functions[i].name) == 0 && arguments == functions[i].arguments &&
            (text != NULL || !functions[i].text))
            return;
    p->unknown_call = name;
}

mha_status mha_spec_expr(mha_spec_parser *p, const mha_expr **out)
{
    mha_expr *e;
    MHA_TRY(mha_expr_parse(&e, &p->spec->memory, &p->at, p->err));
    p->unknown = p->unknown_call = NULL;
    mha_expr_names(e, check_name, p);
    mha_expr_calls(e, check_call, p);
    if (p->unknown != NULL)
        return mha_fail(p->err, MHA_ERR_FORMAT, "\"%s\" is not declared above", p->unknown);
    if (p->unknown_call != NULL)
        return mha_fail(p->err, MHA_ERR_FORMAT,
                        "%s(): the functions are has('TENSOR'), rows('TENSOR'), len(list), "
                        "min(a, b), max(a, b), floor(a), among(list, 'WORD…'), at(x, i), "
                        "holds(x, 'WORD')",
                        p->unknown_call);
    *out = e;
    return MHA_OK;
}

mha_status mha_spec_line_end(mha_spec_parser *p)
{
    mha_spec_skip(p);
    if (*p->at == '\0')
        return MHA_OK;
    return mha_fail(p->err, MHA_ERR_FORMAT, "\"%.32s\" is not expected here", p->at);
}

static mha_status words_copy(mha_spec_parser *p, mha_spec_words *out, const char **words,
                             size_t count)
{
    MHA_TRY(
        mha_arena_alloc((void **)&out->word, &p->spec->memory, count, sizeof *out->word, p->err));
    if (count > 0)
        if (count > 0)
            memcpy(out->word, words, count * sizeof *words);
    out->count = count;
    return MHA_OK;
}

/* The rest of the line as words, behind those that earlier lines gave. */
static mha_status parse_words(mha_spec_parser *p, mha_spec_words *out, const char *what)
{
    const char *words[WORDS_MAX];
    size_t n = out->count;
    if (n > 0)
        memcpy(words, out->word, n * sizeof *words);
    do {
        if (n == WORDS_MAX)
            return mha_fail(p->err, MHA_ERR_LIMIT, "more than %d words", WORDS_MAX);
        MHA_TRY(mha_spec_word(p, &words[n++], what));
        mha_spec_skip(p);
    } while (*p->at != '\0');
    return words_copy(p, out, words, n);
}

mha_status mha_spec_alternatives(mha_spec_parser *p, mha_spec_words *plain, mha_spec_words *gguf,
                                 const char *what)
{
    const char *words[2][WORDS_MAX];
    size_t n[2] = {0, 0};
    do {
        const char *word;
        MHA_TRY(mha_spec_word(p, &word, what));
        bool is_gguf = strcmp(word, "gguf") == 0;
        if (is_gguf)
            MHA_TRY(mha_spec_word(p, &word, what));
        if (n[is_gguf] == WORDS_MAX)
            return mha_fail(p->err, MHA_ERR_LIMIT, "more than %d alternatives", WORDS_MAX);
        words[is_gguf][n[is_gguf]++] = word;
    } while (mha_spec_accept(p, "|"));
    MHA_TRY(words_copy(p, plain, words[0], n[0]));
    return words_copy(p, gguf, words[1], n[1]);
}

/* [default EXPR] [null EXPR] */
static mha_status parse_fallbacks(mha_spec_parser *p, mha_spec_var *v)
{
    for (mha_spec_skip(p); *p->at != '\0'; mha_spec_skip(p)) {
        const char *word;
        MHA_TRY(mha_spec_word(p, &word, "default"));
        const mha_expr **out = strcmp(word, "default") == 0 ? &v->value
                               : strcmp(word, "null") == 0  ? &v->if_null
                                                            : NULL;
        if (out == NULL || *out != NULL)
            return mha_fail(p->err, MHA_ERR_FORMAT, "expected \"default\" or \"null\", not \"%s\"",
                            word);
        MHA_TRY(mha_spec_expr(p, out));
    }
    return MHA_OK;
}

/* NAME KEY | KEY … [default EXPR] [null EXPR], NAME = EXPR, or NAME[l] = EXPR */
static mha_status parse_var(mha_spec_parser *p)
{
    mha_spec_var v = {.line = p->line};
    MHA_TRY(mha_spec_word(p, &v.name, "the name of a value"));
    for (const char *c = v.name; *c != '\0'; c++)
        if (!isalnum((unsigned char)*c) && *c != '_')
            return mha_fail(p->err, MHA_ERR_FORMAT, "\"%s\" is not a name", v.name);
    if (isdigit((unsigned char)v.name[0]) || strcmp(v.name, "null") == 0 ||
        mha_spec_knows(p->spec, v.name))
        return mha_fail(p->err, MHA_ERR_FORMAT, "the name \"%s\" is taken", v.name);
    v.per_layer = mha_spec_accept(p, "[l]");
    v.computed = mha_spec_accept(p, "=");
    if (v.per_layer && !v.computed)
        return mha_fail(p->err, MHA_ERR_FORMAT, "expected %s[l] = …", v.name);
    if (v.computed) {
        MHA_TRY(mha_spec_expr(p, &v.value));
    } else {
        MHA_TRY(mha_spec_alternatives(p, &v.keys, &v.gguf, "a config key"));
        MHA_TRY(parse_fallbacks(p, &v));
    }
    MHA_TRY(mha_spec_line_end(p));
    mha_spec *s = p->spec;
    MHA_TRY(mha_spec_push((void **)&s->vars, &s->var_count, sizeof v, p->err));
    s->vars[s->var_count - 1] = v;
    return MHA_OK;
}

bool mha_spec_slot_find(const mha_spec *s, const char *name, int scope, size_t *index)
{
    for (int shared = 0; shared < 2; shared++)
        for (size_t i = 0; i < s->slot_count; i++)
            if (s->slots[i].scope == (shared ? MHA_SCOPE_SHARED : scope) &&
                strcmp(s->slots[i].name, name) == 0) {
                *index = i;
                return true;
            }
    return false;
}

static mha_status parse_stack(mha_spec_parser *p)
{
    mha_spec *s = p->spec;
    const char *word;
    if (s->stack_count == MHA_SPEC_STACKS_MAX)
        return mha_fail(p->err, MHA_ERR_FORMAT, "more than %d stacks", MHA_SPEC_STACKS_MAX);
    mha_spec_stack *stack = &s->stacks[s->stack_count];
    stack->line = p->line;
    MHA_TRY(mha_spec_word(p, &word, "enc, dec or graph"));
    while (stack->id < MHA_STACK_COUNT && strcmp(word, mha_stack_name(stack->id)) != 0)
        stack->id++;
    if (stack->id == MHA_STACK_COUNT)
        return mha_fail(p->err, MHA_ERR_FORMAT, "a stack is enc, dec or graph, not \"%s\"", word);
    if (s->stack_count == 1 && (s->stacks[0].id != MHA_ENC || stack->id != MHA_DEC))
        return mha_fail(p->err, MHA_ERR_FORMAT, "two stacks are enc and then dec");
    MHA_TRY(mha_spec_word(p, &word, "layers"));
    if (strcmp(word, "layers") != 0 || !mha_spec_accept(p, "="))
        return mha_fail(p->err, MHA_ERR_FORMAT, "expected layers=…, not \"%s\"", word);
    MHA_TRY(mha_spec_expr(p, &stack->layers));
    p->scope = (int)s->stack_count++;
    p->section = MHA_SECTION_TOP;
    return MHA_OK;
}

static mha_status parse_head(mha_spec_parser *p)
{
    static const char *const kinds[] = {"next",  "masked", "class",    "target",
                                        "token", "span",   "embedding"};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    mha_spec *s = p->spec;
    const char *word;
    size_t k = 0;
    mha_spec_head head = {.line = p->line};
    if (s->head_count == HEADS_MAX)
        return mha_fail(p->err, MHA_ERR_LIMIT, "more than %d heads", HEADS_MAX);
    MHA_TRY(mha_spec_word(p, &word, "the kind of the head"));
    while (k < KINDS && strcmp(word, kinds[k]) != 0)
        k++;
    if (k == KINDS)
        return mha_fail(
            p->err, MHA_ERR_FORMAT,
            "a head is next, masked, class, target, token, span or embedding, not \"%s\"", word);
    head.kind = (mha_head_kind)(MHA_HEAD_NEXT + (int)k);
    mha_spec_skip(p);
    if (*p->at != '\0') {
        MHA_TRY(mha_spec_word(p, &word, "when"));
        if (strcmp(word, "when") != 0)
            return mha_fail(p->err, MHA_ERR_FORMAT, "expected \"when\", not \"%s\"", word);
        MHA_TRY(mha_spec_expr(p, &head.when));
    }
    MHA_TRY(mha_spec_push((void **)&s->heads, &s->head_count, sizeof head, p->err));
    s->heads[s->head_count - 1] = head;
    p->scope = MHA_SCOPE_HEADS + (int)s->head_count - 1;
    p->section = MHA_SECTION_TOP;
    return MHA_OK;
}

static mha_status begin_steps(mha_spec_parser *p, const char *word)
{
    mha_spec *s = p->spec;
    bool in_head = p->scope >= MHA_SCOPE_HEADS, in_stack = p->scope >= 0 && !in_head;
    if (strcmp(word, "steps") == 0 ? !in_head : !in_stack)
        return mha_fail(p->err, MHA_ERR_FORMAT, "\"%s\" belongs into a %s", word,
                        strcmp(word, "steps") == 0 ? "head" : "stack");
    if (in_head)
        p->steps = &s->heads[s->head_count - 1].steps;
    else if (strcmp(word, "block") == 0)
        p->steps = &s->stacks[p->scope].block;
    else
        p->steps = strcmp(word, "prologue") == 0 ? &s->stacks[p->scope].prologue
                                                 : &s->stacks[p->scope].epilogue;
    p->section = MHA_SECTION_STEPS;
    return MHA_OK;
}

static mha_status parse_check(mha_spec_parser *p)
{
    mha_spec *s = p->spec;
    mha_spec_check check = {.line = p->line};
    MHA_TRY(mha_spec_expr(p, &check.expr));
    MHA_TRY(mha_spec_push((void **)&s->checks, &s->check_count, sizeof check, p->err));
    s->checks[s->check_count - 1] = check;
    return MHA_OK;
}

/* A shared slot of that kind. */
static mha_status parse_shared(mha_spec_parser *p, mha_slot_kind kind, const char *what,
                               size_t *slot)
{
    const char *word;
    MHA_TRY(mha_spec_word(p, &word, what));
    if (!mha_spec_slot_find(p->spec, word, MHA_SCOPE_SHARED, slot) ||
        p->spec->slots[*slot].kind != kind || p->spec->slots[*slot].per_layer)
        return mha_fail(p->err, MHA_ERR_FORMAT, "contacts: \"%s\" is no %s of all layers", word,
                        what);
    return MHA_OK;
}

static mha_status parse_contacts(mha_spec_parser *p)
{
    mha_spec_contacts *c = &p->spec->contacts;
    if (c->line != 0)
        return mha_fail(p->err, MHA_ERR_FORMAT, "contacts a second time");
    MHA_TRY(parse_shared(p, MHA_SLOT_TABLE, "table", &c->table));
    MHA_TRY(parse_shared(p, MHA_SLOT_VECTOR, "vector", &c->bias));
    c->line = p->line;
    return mha_spec_expr(p, &c->end);
}

static mha_status parse_alias(mha_spec_parser *p)
{
    size_t before = p->spec->aliases.count;
    MHA_TRY(parse_words(p, &p->spec->aliases, "SUFFIX OLD"));
    if (p->spec->aliases.count != before + 2)
        return mha_fail(p->err, MHA_ERR_FORMAT, "alias needs two words: SUFFIX OLD");
    return MHA_OK;
}

/* A line of the part that says which checkpoints the family is for. */
static mha_status parse_identity(mha_spec_parser *p, const char *word, bool *found)
{
    mha_spec *s = p->spec;
    const struct {
        const char *name;
        mha_spec_words *words;
        const char *what;
    } lists[] = {{"types", &s->types, "a model_type"},
                 {"gguf", &s->gguf, "a general.architecture"},
                 {"prefix", &s->prefixes, "a prefix"},
                 {"ignore", &s->ignored, "a pattern"},
                 {"pruned", &s->pruned, "a config key"}};
    enum { LISTS = sizeof lists / sizeof *lists };
    size_t i = 0;
    while (i < LISTS && strcmp(word, lists[i].name) != 0)
        i++;
    bool family = strcmp(word, "family") == 0;
    *found = i < LISTS || family || strcmp(word, "alias") == 0;
    if (*found && (p->section != MHA_SECTION_TOP || p->scope != MHA_SCOPE_SHARED))
        return mha_fail(p->err, MHA_ERR_FORMAT, "\"%s\" belongs before the config section", word);
    if (i < LISTS)
        return parse_words(p, lists[i].words, lists[i].what);
    if (family)
        return mha_spec_word(p, &s->name, "the family's name");
    return *found ? parse_alias(p) : MHA_OK;
}

/* A line that starts with a keyword; *found tells whether it did. */
static mha_status parse_keyword(mha_spec_parser *p, const char *word, bool *found)
{
    MHA_TRY(parse_identity(p, word, found));
    if (*found)
        return MHA_OK;
    *found = true;
    if (strcmp(word, "require") == 0)
        return parse_check(p);
    if (strcmp(word, "contacts") == 0)
        return parse_contacts(p);
    if (strcmp(word, "stack") == 0)
        return parse_stack(p);
    if (strcmp(word, "head") == 0)
        return parse_head(p);
    if (strcmp(word, "config") == 0 || strcmp(word, "tensors") == 0) {
        p->section = word[0] == 'c' ? MHA_SECTION_CONFIG : MHA_SECTION_TENSORS;
        return MHA_OK;
    }
    if (strcmp(word, "prologue") == 0 || strcmp(word, "block") == 0 ||
        strcmp(word, "epilogue") == 0 || strcmp(word, "steps") == 0)
        return begin_steps(p, word);
    *found = false;
    return MHA_OK;
}

static mha_status parse_line(mha_spec_parser *p)
{
    const char *start = p->at, *word;
    mha_spec_skip(p);
    if (*p->at == '\0')
        return MHA_OK;
    bool found;
    MHA_TRY(mha_spec_word(p, &word, "a word"));
    MHA_TRY(parse_keyword(p, word, &found));
    if (found)
        return mha_spec_line_end(p);
    p->at = start;
    switch (p->section) {
    case MHA_SECTION_CONFIG:
        return parse_var(p);
    case MHA_SECTION_TENSORS:
        return mha_spec_slot_parse(p);
    case MHA_SECTION_STEPS:
        return mha_spec_step_parse(p);
    case MHA_SECTION_TOP:
        break;
    }
    return mha_fail(p->err, MHA_ERR_FORMAT, "\"%s\" is not known here", word);
}

/* What a whole description must have. */
static mha_status check_whole(const mha_spec *s, mha_err *err)
{
    const char *missing = s->name == NULL                             ? "family NAME"
                          : s->types.count == 0 && s->gguf.count == 0 ? "types or gguf"
                          : s->stack_count == 0                       ? "a stack"
                                                                      : NULL;
    if (missing != NULL)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: the description lacks %s", s->file, missing);
    for (size_t i = 0; i < s->stack_count; i++)
        if (s->stacks[i].block.count == 0 || s->stacks[i].prologue.count == 0)
            return mha_fail(err, MHA_ERR_FORMAT, "%s:%zu: the stack lacks its prologue or block",
                            s->file, s->stacks[i].line);
    return MHA_OK;
}

/* Adds the text between `from` and `to` to the line, without its comment. `#` in quotes is text.
 * *more: the line ends in a backslash and goes on. */
static mha_status line_add(mha_spec_parser *p, mha_buf *line, const char *from, const char *to,
                           bool *more)
{
    bool quoted = false;
    const char *end = from;
    for (; end < to && (quoted || *end != '#'); end++) {
        if (*end == '\0')
            return mha_fail(p->err, MHA_ERR_FORMAT, "a NUL byte");
        quoted = quoted != (*end == '\'');
    }
    while (end > from && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
        end--;
    *more = end > from && end[-1] == '\\';
    if (line->size > 0)
        MHA_TRY(mha_buf_adds(line, " ", p->err));
    return mha_buf_add(line, from, (size_t)(end - from - *more), p->err);
}

static mha_status parse_text(mha_spec_parser *p, const char *text, size_t size, mha_buf *line)
{
    const char *end = text + size;
    bool more = false;
    for (const char *next; text < end; text = next) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        next = newline != NULL ? newline + 1 : end;
        p->line++;
        mha_status status = line_add(p, line, text, newline != NULL ? newline : end, &more);
        if (status == MHA_OK && (!more || next == end)) {
            p->at = line->data;
            status = parse_line(p);
            mha_buf_clear(line);
        }
        if (status != MHA_OK) {
            char where[128];
            snprintf(where, sizeof where, "%.100s:%zu", p->spec->file, p->line);
            return mha_fail_prefix(p->err, status, where);
        }
    }
    return check_whole(p->spec, p->err);
}

mha_status mha_spec_parse(mha_spec **out, const char *text, size_t size, const char *file,
                          mha_err *err)
{
    if (size > TEXT_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: a description of %zu bytes, at most %d", file,
                        size, TEXT_MAX);
    mha_spec *s;
    MHA_TRY(mha_alloc((void **)&s, 1, sizeof *s, err));
    char *name;
    mha_status status = mha_arena_strdup(&name, &s->memory, file, err);
    if (status == MHA_OK) {
        s->file = name;
        mha_spec_parser p = {.spec = s, .scope = MHA_SCOPE_SHARED, .err = err};
        mha_buf line;
        mha_buf_init(&line, TEXT_MAX);
        status = parse_text(&p, text, size, &line);
        mha_buf_release(&line);
    }
    if (status != MHA_OK) {
        mha_spec_free(s);
        return status;
    }
    *out = s;
    return MHA_OK;
}

void mha_spec_free(mha_spec *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->stack_count; i++) {
        mha_free(s->stacks[i].prologue.step);
        mha_free(s->stacks[i].block.step);
        mha_free(s->stacks[i].epilogue.step);
    }
    for (size_t i = 0; i < s->head_count; i++)
        mha_free(s->heads[i].steps.step);
    mha_free(s->heads);
    mha_free(s->vars);
    mha_free(s->checks);
    mha_free(s->slots);
    mha_arena_release(&s->memory);
    mha_free(s);
}
