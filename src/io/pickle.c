/* pickle.c: the machine that turns a pickle into data: a stack, marks on it, a memo, and nothing
 * else. Every opcode makes at most one value, so memory follows the number of bytes, and that of
 * values is bounded besides. It may not know what the values mean. */
#include "io/pickle.h"

#include "base/fail.h"
#include "base/utf8.h"

#include <string.h>

#define VALUES_MAX ((size_t)1000000)
#define GLOBAL_MAX ((size_t)255) /* bytes of "module.name": a memo could repeat longer ones */

typedef mha_pickle_value value;

typedef struct machine {
    mha_pickle *p;
    mha_cursor *c;
    value **stack, **memo;
    size_t *marks;
    size_t depth, stack_capacity, memo_count, mark_count, mark_capacity, values;
} machine;

static mha_status broken(const machine *m, const char *what, mha_err *err)
{
    return mha_fail(err, MHA_ERR_FORMAT, "%s: pickle, before byte %zu: %s", m->c->file, m->c->at,
                    what);
}

/* ---- values -----------------------------------------------------------------------------------
 */

static mha_status value_new(machine *m, value **out, mha_pickle_kind kind, mha_err *err)
{
    if (m->values++ == VALUES_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: pickle of more than %zu values", m->c->file,
                        VALUES_MAX);
    MHA_TRY(mha_arena_alloc((void **)out, &m->p->arena, 1, sizeof **out, err));
    (*out)->kind = kind;
    return MHA_OK;
}

/* One more pointer at the end of a growing array in the arena. */
static mha_status vector_add(machine *m, value ***items, size_t *count, size_t *capacity, value *v,
                             mha_err *err)
{
    if (*count == *capacity) {
        size_t more = *capacity == 0 ? 4 : *capacity * 2;
        value **wider = NULL;
        MHA_TRY(mha_arena_alloc((void **)&wider, &m->p->arena, more, sizeof *wider, err));
        if (*count > 0)
            memcpy(wider, *items, *count * sizeof *wider);
        *items = wider;
        *capacity = more;
    }
    (*items)[(*count)++] = v;
    return MHA_OK;
}

static mha_status push(machine *m, value *v, mha_err *err)
{
    if (m->depth == m->stack_capacity) {
        size_t more = m->stack_capacity == 0 ? 256 : m->stack_capacity * 2;
        MHA_TRY(mha_grow((void **)&m->stack, m->stack_capacity, more, sizeof *m->stack, err));
        m->stack_capacity = more;
    }
    m->stack[m->depth++] = v;
    return MHA_OK;
}

static mha_status push_new(machine *m, mha_pickle_kind kind, value **out, mha_err *err)
{
    MHA_TRY(value_new(m, out, kind, err));
    return push(m, *out, err);
}

/* What stands above the last mark, or at the bottom of the stack, cannot be reached by popping. */
static size_t ground(const machine *m)
{
    return m->mark_count > 0 ? m->marks[m->mark_count - 1] : 0;
}

static mha_status pop(machine *m, value **out, mha_err *err)
{
    if (m->depth <= ground(m))
        return broken(m, "the stack is empty", err);
    *out = m->stack[--m->depth];
    return MHA_OK;
}

static mha_status top(machine *m, value **out, mha_err *err)
{
    if (m->depth <= ground(m))
        return broken(m, "the stack is empty", err);
    *out = m->stack[m->depth - 1];
    return MHA_OK;
}

/* The values above the last mark, which is taken away; *first = where they begin on the stack. */
static mha_status take_marked(machine *m, size_t *first, mha_err *err)
{
    if (m->mark_count == 0)
        return broken(m, "no mark is left", err);
    *first = m->marks[--m->mark_count];
    return MHA_OK;
}

/* ---- constants --------------------------------------------------------------------------------
 */

static mha_status push_int(machine *m, mha_pickle_kind kind, int64_t n, mha_err *err)
{
    value *v = NULL;
    MHA_TRY(push_new(m, kind, &v, err));
    v->integer = n;
    return MHA_OK;
}

static mha_status push_text(machine *m, mha_pickle_kind kind, uint64_t n, mha_err *err)
{
    const unsigned char *bytes = NULL;
    char *copy = NULL;
    value *v = NULL;
    MHA_TRY(mha_cursor_bytes(m->c, &bytes, n, "text of a pickle", err));
    MHA_TRY(mha_arena_alloc((void **)&copy, &m->p->arena, (size_t)n + 1, 1, err));
    memcpy(copy, bytes, (size_t)n);
    MHA_TRY(push_new(m, kind, &v, err));
    v->text = copy;
    v->length = (size_t)n;
    return MHA_OK;
}

/* A length of 1, 4 or 8 bytes, then that many bytes. */
static mha_status read_text(machine *m, mha_pickle_kind kind, int length_bytes, mha_err *err)
{
    uint8_t n1 = 0;
    uint32_t n4 = 0;
    uint64_t n = 0;
    if (length_bytes == 1) {
        MHA_TRY(mha_cursor_u8(m->c, &n1, "length in a pickle", err));
        n = n1;
    } else if (length_bytes == 4) {
        MHA_TRY(mha_cursor_u32(m->c, &n4, "length in a pickle", err));
        n = n4;
    } else
        MHA_TRY(mha_cursor_u64(m->c, &n, "length in a pickle", err));
    return push_text(m, kind, n, err);
}

/* A whole number in two's complement, of up to 255 bytes. */
static mha_status read_long(machine *m, mha_err *err)
{
    value *v = NULL;
    MHA_TRY(read_text(m, MHA_PICKLE_BYTES, 1, err));
    MHA_TRY(top(m, &v, err));
    if (v->length > 8)
        return MHA_OK;
    uint64_t n = v->length > 0 && v->text[v->length - 1] & 0x80 ? UINT64_MAX : 0;
    for (size_t i = v->length; i-- > 0;)
        n = n << 8 | (unsigned char)v->text[i];
    v->kind = MHA_PICKLE_INT;
    v->integer = (int64_t)n;
    return MHA_OK;
}

static mha_status read_constant(machine *m, uint8_t op, bool *taken, mha_err *err)
{
    uint8_t n1 = 0;
    uint16_t n2 = 0;
    uint32_t n4 = 0;
    const unsigned char *eight = NULL;
    value *v = NULL;
    *taken = true;
    switch (op) {
    case 'N':
        return push_new(m, MHA_PICKLE_NONE, &v, err);
    case 0x88: /* NEWTRUE, NEWFALSE */
    case 0x89:
        return push_int(m, MHA_PICKLE_BOOL, op == 0x88, err);
    case 'K':
        MHA_TRY(mha_cursor_u8(m->c, &n1, "number in a pickle", err));
        return push_int(m, MHA_PICKLE_INT, n1, err);
    case 'M':
        MHA_TRY(mha_cursor_u16(m->c, &n2, "number in a pickle", err));
        return push_int(m, MHA_PICKLE_INT, n2, err);
    case 'J':
        MHA_TRY(mha_cursor_u32(m->c, &n4, "number in a pickle", err));
        return push_int(m, MHA_PICKLE_INT, (int32_t)n4, err);
    case 0x8a: /* LONG1 */
        return read_long(m, err);
    case 'G': /* no number that matters here is a fraction */
        MHA_TRY(mha_cursor_bytes(m->c, &eight, 8, "number in a pickle", err));
        return push_new(m, MHA_PICKLE_REAL, &v, err);
    case 0x8c: /* SHORT_BINUNICODE */
    case 'U':  /* SHORT_BINSTRING */
        return read_text(m, MHA_PICKLE_TEXT, 1, err);
    case 'X': /* BINUNICODE */
    case 'T': /* BINSTRING */
        return read_text(m, MHA_PICKLE_TEXT, 4, err);
    case 0x8d: /* BINUNICODE8 */
        return read_text(m, MHA_PICKLE_TEXT, 8, err);
    case 'C': /* SHORT_BINBYTES */
        return read_text(m, MHA_PICKLE_BYTES, 1, err);
    case 'B': /* BINBYTES */
        return read_text(m, MHA_PICKLE_BYTES, 4, err);
    case 0x8e: /* BINBYTES8, BYTEARRAY8 */
    case 0x96:
        return read_text(m, MHA_PICKLE_BYTES, 8, err);
    default:
        *taken = false;
        return MHA_OK;
    }
}

/* ---- containers -------------------------------------------------------------------------------
 */

/* The last n values as one tuple. */
static mha_status make_tuple(machine *m, size_t n, mha_err *err)
{
    value *v = NULL;
    if (m->depth - ground(m) < n)
        return broken(m, "the stack is empty", err);
    MHA_TRY(value_new(m, &v, MHA_PICKLE_TUPLE, err));
    for (size_t i = m->depth - n; i < m->depth; i++)
        MHA_TRY(vector_add(m, &v->items, &v->count, &v->capacity, m->stack[i], err));
    m->depth -= n;
    return push(m, v, err);
}

/* Adds the stack's values from `first` on to the list or dictionary below them. */
static mha_status add_items(machine *m, size_t first, bool pairs, mha_err *err)
{
    value *to = NULL;
    size_t end = m->depth;
    m->depth = first;
    MHA_TRY(top(m, &to, err));
    bool fits =
        to->kind == MHA_PICKLE_CALL || to->kind == (pairs ? MHA_PICKLE_DICT : MHA_PICKLE_LIST);
    if (!fits || (pairs && (end - first) % 2 != 0))
        return broken(m, "items for something that takes none", err);
    /* Of a set or another object made by a call nothing but its pairs is of use. */
    for (size_t i = first; i < end && (pairs || to->kind == MHA_PICKLE_LIST); i++)
        MHA_TRY(vector_add(m, &to->items, &to->count, &to->capacity, m->stack[i], err));
    return MHA_OK;
}

static mha_status add_last(machine *m, size_t n, bool pairs, mha_err *err)
{
    if (m->depth - ground(m) < n + 1)
        return broken(m, "the stack is empty", err);
    return add_items(m, m->depth - n, pairs, err);
}

static mha_status read_container(machine *m, uint8_t op, bool *taken, mha_err *err)
{
    value *v = NULL;
    size_t first = 0;
    *taken = true;
    switch (op) {
    case '(':
        if (m->mark_count == m->mark_capacity) {
            size_t more = m->mark_capacity == 0 ? 64 : m->mark_capacity * 2;
            MHA_TRY(mha_grow((void **)&m->marks, m->mark_capacity, more, sizeof *m->marks, err));
            m->mark_capacity = more;
        }
        m->marks[m->mark_count++] = m->depth;
        return MHA_OK;
    case ')':
        return make_tuple(m, 0, err);
    case 't':
    case 0x91: /* FROZENSET */
        MHA_TRY(take_marked(m, &first, err));
        return make_tuple(m, m->depth - first, err);
    case 0x85: /* TUPLE1, 2, 3 */
    case 0x86:
    case 0x87:
        return make_tuple(m, op - 0x84u, err);
    case ']':
    case 0x8f: /* EMPTY_SET */
        return push_new(m, MHA_PICKLE_LIST, &v, err);
    case '}':
        return push_new(m, MHA_PICKLE_DICT, &v, err);
    case 'a':
        return add_last(m, 1, false, err);
    case 's':
        return add_last(m, 2, true, err);
    case 'e':
    case 0x90: /* ADDITEMS */
    case 'u':
        MHA_TRY(take_marked(m, &first, err));
        return add_items(m, first, op == 'u', err);
    default:
        *taken = false;
        return MHA_OK;
    }
}

/* ---- the memo ---------------------------------------------------------------------------------
 */

static mha_status memo_put(machine *m, size_t at, mha_err *err)
{
    value *v = NULL;
    MHA_TRY(top(m, &v, err));
    if (at >= VALUES_MAX)
        return broken(m, "a place of the memo that no pickle needs", err);
    if (at >= m->memo_count) {
        size_t more = at + 1 > 2 * m->memo_count ? at + 1 : 2 * m->memo_count;
        MHA_TRY(mha_grow((void **)&m->memo, m->memo_count, more, sizeof *m->memo, err));
        m->memo_count = more;
    }
    m->memo[at] = v;
    return MHA_OK;
}

static mha_status memo_get(machine *m, size_t at, mha_err *err)
{
    if (at >= m->memo_count || m->memo[at] == NULL)
        return broken(m, "a place of the memo that is empty", err);
    return push(m, m->memo[at], err);
}

/* MEMOIZE counts its places itself. */
static mha_status read_memo(machine *m, uint8_t op, size_t *memoized, bool *taken, mha_err *err)
{
    uint8_t n1 = 0;
    uint32_t n4 = 0;
    *taken = true;
    switch (op) {
    case 'q':
    case 'h':
        MHA_TRY(mha_cursor_u8(m->c, &n1, "memo", err));
        return op == 'q' ? memo_put(m, n1, err) : memo_get(m, n1, err);
    case 'r':
    case 'j':
        MHA_TRY(mha_cursor_u32(m->c, &n4, "memo", err));
        return op == 'r' ? memo_put(m, n4, err) : memo_get(m, n4, err);
    case 0x94: /* MEMOIZE */
        return memo_put(m, (*memoized)++, err);
    default:
        *taken = false;
        return MHA_OK;
    }
}

/* ---- names and calls --------------------------------------------------------------------------
 */

/* Types of Python that hold data: defaultdict(list) names one. */
static bool is_plain_type(const char *name)
{
    static const char *const types[] = {"bool",  "bytearray", "bytes", "complex", "dict",
                                        "float", "frozenset", "int",   "list",    "object",
                                        "range", "set",       "slice", "str",     "tuple"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i], name) == 0)
            return true;
    return false;
}

/* Modules that run, load or fetch things. What merely is unknown stays data. */
static bool is_dangerous(const char *module, const char *name)
{
    if (strcmp(module, "builtins") == 0 || strcmp(module, "__builtin__") == 0)
        return !is_plain_type(name);
    static const char *const modules[] = {
        "asyncio", "bdb",       "code", "commands",        "ctypes", "dill",
        "imp",     "importlib", "io",   "multiprocessing", "nt",     "os",
        "pdb",     "pickle",    "pip",  "posix",           "pty",    "runpy",
        "shutil",  "socket",    "ssl",  "subprocess",      "sys",    "tempfile",
        "urllib",  "webbrowser"};
    size_t n = strcspn(module, ".");
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++)
        if (strlen(modules[i]) == n && memcmp(modules[i], module, n) == 0)
            return true;
    return false;
}

static mha_status push_global(machine *m, const char *module, const char *name, mha_err *err)
{
    value *v = NULL;
    char *text = NULL;
    size_t n = strlen(module), k = strlen(name);
    if (n + k + 1 > GLOBAL_MAX)
        return broken(m, "a name of a module that is longer than 255 bytes", err);
    /* Protocol 4 also walks into modules: torch, "os.system". */
    if (is_dangerous(module, name) || (strchr(name, '.') && is_dangerous(name, "")))
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "%s: names %.100s.%.100s, for which a checkpoint has no use: nothing of it "
                        "was run, do not load it elsewhere",
                        m->c->file, module, name);
    MHA_TRY(mha_arena_alloc((void **)&text, &m->p->arena, n + k + 2, 1, err));
    memcpy(text, module, n);
    text[n] = '.';
    memcpy(text + n + 1, name, k);
    MHA_TRY(push_new(m, MHA_PICKLE_GLOBAL, &v, err));
    v->text = text;
    v->length = n + k + 1;
    return MHA_OK;
}

/* A line of text without its end. */
static mha_status read_line(machine *m, char **out, mha_err *err)
{
    const unsigned char *at = m->c->data + m->c->at;
    const unsigned char *end = memchr(at, '\n', mha_cursor_left(m->c));
    const unsigned char *bytes = NULL;
    if (end == NULL || memchr(at, 0, (size_t)(end - at)) != NULL)
        return broken(m, "a name that is not a line of text", err);
    MHA_TRY(mha_arena_strndup(out, &m->p->arena, (const char *)at, (size_t)(end - at), err));
    return mha_cursor_bytes(m->c, &bytes, (uint64_t)(end - at) + 1, "name", err);
}

static mha_status read_global(machine *m, bool from_stack, mha_err *err)
{
    char *module = NULL, *name = NULL;
    if (from_stack) {
        value *first = NULL, *second = NULL;
        MHA_TRY(pop(m, &second, err));
        MHA_TRY(pop(m, &first, err));
        if (!mha_pickle_is_name(first) || !mha_pickle_is_name(second))
            return broken(m, "a name that is not text", err);
        return push_global(m, first->text, second->text, err);
    }
    MHA_TRY(read_line(m, &module, err));
    MHA_TRY(read_line(m, &name, err));
    return push_global(m, module, name, err);
}

static mha_status make_call(machine *m, mha_err *err)
{
    value *v = NULL, *args = NULL, *callee = NULL;
    MHA_TRY(pop(m, &args, err));
    MHA_TRY(pop(m, &callee, err));
    if (args->kind != MHA_PICKLE_TUPLE)
        return broken(m, "arguments that are no tuple", err);
    MHA_TRY(push_new(m, MHA_PICKLE_CALL, &v, err));
    v->callee = callee;
    v->args = args;
    return MHA_OK;
}

static mha_status make_persistent(machine *m, mha_err *err)
{
    value *v = NULL, *id = NULL;
    mha_pickle *p = m->p;
    MHA_TRY(pop(m, &id, err));
    MHA_TRY(push_new(m, MHA_PICKLE_PERSISTENT, &v, err));
    MHA_TRY(vector_add(m, &v->items, &v->count, &v->capacity, id, err));
    return vector_add(m, &p->persistent, &p->persistent_count, &p->persistent_capacity, v, err);
}

static mha_status read_object(machine *m, uint8_t op, mha_err *err)
{
    value *v = NULL;
    const unsigned char *frame = NULL;
    switch (op) {
    case 'c':
    case 0x93: /* STACK_GLOBAL */
        return read_global(m, op == 0x93, err);
    case 'R':  /* REDUCE */
    case 0x81: /* NEWOBJ */
        return make_call(m, err);
    case 'b': /* BUILD: attributes of an object are of no use here */
        MHA_TRY(pop(m, &v, err));
        return top(m, &v, err);
    case 'Q':
        return make_persistent(m, err);
    case '0':
        return pop(m, &v, err);
    case 0x95: /* FRAME: a hint */
        return mha_cursor_bytes(m->c, &frame, 8, "frame", err);
    default:
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "%s: pickle, byte %zu: opcode 0x%02x is not taken", m->c->file,
                        m->c->at - 1, op);
    }
}

/* ---- the machine ------------------------------------------------------------------------------
 */

static mha_status run(machine *m, mha_err *err)
{
    uint8_t op = 0, protocol = 0;
    size_t memoized = 0;
    MHA_TRY(mha_cursor_u8(m->c, &op, "pickle", err));
    if (op != 0x80)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: not a pickle of protocol 2 or later", m->c->file);
    MHA_TRY(mha_cursor_u8(m->c, &protocol, "protocol", err));
    if (protocol < 2 || protocol > 5)
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: pickle protocol %u, not 2 to 5", m->c->file,
                        protocol);
    for (;;) {
        bool taken = false;
        MHA_TRY(mha_cursor_u8(m->c, &op, "opcode", err));
        if (op == '.')
            return pop(m, &m->p->root, err);
        MHA_TRY(read_constant(m, op, &taken, err));
        if (!taken)
            MHA_TRY(read_container(m, op, &taken, err));
        if (!taken)
            MHA_TRY(read_memo(m, op, &memoized, &taken, err));
        if (!taken)
            MHA_TRY(read_object(m, op, err));
    }
}

mha_status mha_pickle_read(mha_pickle *out, mha_cursor *c, mha_err *err)
{
    *out = (mha_pickle){0};
    machine m = {.p = out, .c = c};
    mha_status status = run(&m, err);
    mha_free(m.stack);
    mha_free(m.memo);
    mha_free(m.marks);
    return status;
}

void mha_pickle_release(mha_pickle *p)
{
    mha_arena_release(&p->arena);
    *p = (mha_pickle){0};
}

bool mha_pickle_is_call(const mha_pickle_value *v, const char *name, size_t least_args)
{
    return v->kind == MHA_PICKLE_CALL && v->callee->kind == MHA_PICKLE_GLOBAL &&
           strcmp(v->callee->text, name) == 0 && v->args->count >= least_args;
}

bool mha_pickle_is_name(const mha_pickle_value *v)
{
    return v->kind == MHA_PICKLE_TEXT && v->length <= MHA_PICKLE_NAME_MAX &&
           strlen(v->text) == v->length && mha_utf8_valid(v->text, v->length);
}
