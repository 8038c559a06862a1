/* text.c: a table as aligned text, for a pipe or for a person at a terminal. Texts in a table come
 * from models and inputs, so nothing in them may steer the terminal: control characters are shown
 * as escapes. It may not ask the system what the terminal is like; the caller says so. */
#include "store/number.h"
#include "store/table.h"

#include "base/buf.h"
#include "base/fail.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define GAP       2 /* spaces between columns */
#define BAR_MIN   8 /* a bar that is shorter says nothing */
#define BAR_MAX   24
#define TEXT_MAX  60 /* wider texts are cut, at a terminal */
#define UNDEFINED "-"
#define CELL_MAX  ((size_t)1 << 20)

typedef struct text_column {
    size_t width;
    bool shown, right; /* numbers stand to the right */
    bool same;         /* not shown, because it is the same in every row: said below the table */
    bool scientific;
    int decimals;
} text_column;

typedef struct layout {
    const mha_table *t;
    const mha_text_style *style;
    text_column *columns; /* [column_count] */
    size_t bar;           /* the column that has a bar, or MHA_NO_COLUMN */
    size_t bar_width;
    double bar_scale; /* largest magnitude in that column */
    size_t header_lines;
    FILE *f;
    mha_buf cell; /* the text of the cell being written */
} layout;

/* --- how wide a text is ---------------------------------------------------------------------- */

/* Columns of a character on a terminal: 0, 1 or 2 (East Asian wide and emoji blocks). */
static size_t char_width(uint32_t cp)
{
    static const struct {
        uint32_t first, last;
        size_t width;
    } ranges[] = {
        {0x0300, 0x036F, 0},   {0x200B, 0x200F, 0},   {0x2060, 0x2064, 0},   {0xFE00, 0xFE0F, 0},
        {0x1100, 0x115F, 2},   {0x2E80, 0x303E, 2},   {0x3041, 0xA4CF, 2},   {0xAC00, 0xD7A3, 2},
        {0xF900, 0xFAFF, 2},   {0xFE30, 0xFE6F, 2},   {0xFF00, 0xFF60, 2},   {0xFFE0, 0xFFE6, 2},
        {0x1F300, 0x1F64F, 2}, {0x1F680, 0x1FAFF, 2}, {0x20000, 0x3FFFD, 2},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (cp >= ranges[i].first && cp <= ranges[i].last)
            return ranges[i].width;
    return 1;
}

static size_t text_width(const char *s)
{
    size_t n = strlen(s), width = 0;
    uint32_t cp = 0;
    for (size_t i = 0, len; i < n; i += len) {
        len = mha_utf8_decode(s + i, n - i, &cp);
        if (len == 0)
            break; /* texts in a table are valid UTF-8 */
        width += char_width(cp);
    }
    return width;
}

/* Adds a text, control characters as escapes; stops with an ellipsis before `limit` columns are
 * passed (0: no limit). */
static mha_status text_add(layout *l, const char *s, size_t limit, mha_err *err)
{
    size_t n = strlen(s), width = 0, room = limit && text_width(s) > limit ? limit - 1 : SIZE_MAX;
    uint32_t cp = 0;
    for (size_t i = 0, len; i < n; i += len) {
        char escape[MHA_ESCAPE_SIZE];
        len = mha_utf8_decode(s + i, n - i, &cp);
        if (len == 0)
            break;
        size_t escaped = mha_text_escape(escape, cp);
        width += escaped ? escaped : char_width(cp);
        if (width > room)
            return mha_buf_adds(&l->cell, "…", err);
        MHA_TRY(mha_buf_add(&l->cell, escaped ? escape : s + i, escaped ? escaped : len, err));
    }
    return MHA_OK;
}

/* --- cells ----------------------------------------------------------------------------------- */

static mha_status real_add(layout *l, const text_column *column, double value, mha_err *err)
{
    char text[MHA_NUMBER_SIZE];
    if (!l->style->terminal)
        mha_number_format(text, value, MHA_NUMBER_DIGITS);
    else if (column->scientific)
        mha_number_format(text, value, 4);
    else
        mha_number_fixed(text, value, column->decimals);
    return mha_buf_adds(&l->cell, text, err);
}

/* Leaves the cell's text in l->cell. */
static mha_status cell_format(layout *l, size_t row, size_t i, mha_err *err)
{
    const mha_cell *cell = mha_table_cell(l->t, row, i);
    mha_buf_clear(&l->cell);
    if (!cell->defined)
        return mha_buf_adds(&l->cell, UNDEFINED, err);
    switch (l->t->columns[i].type) {
    case MHA_COLUMN_REAL:
        return real_add(l, &l->columns[i], cell->as.real, err);
    case MHA_COLUMN_INT:
        return mha_buf_addf(&l->cell, err, "%" PRId64, cell->as.integer);
    case MHA_COLUMN_TEXT:
        return text_add(l, cell->as.text, l->style->terminal ? TEXT_MAX : 0, err);
    case MHA_COLUMN_INTS:
        for (size_t k = 0; k < cell->as.ints->n; k++)
            MHA_TRY(
                mha_buf_addf(&l->cell, err, "%s%" PRId64, k ? " " : "", cell->as.ints->values[k]));
        return MHA_OK;
    }
    return MHA_OK;
}

/* --- layout ---------------------------------------------------------------------------------- */

static double column_magnitude(const mha_table *t, size_t i)
{
    double largest = 0;
    for (size_t row = 0; row < t->rows; row++) {
        double v = fabs(mha_table_get_real(t, row, i));
        if (v > largest)
            largest = v;
    }
    return largest;
}

/* Four significant digits of the largest value, the same number of decimals in the whole column. */
static void column_precision(layout *l, size_t i)
{
    double largest = column_magnitude(l->t, i);
    text_column *column = &l->columns[i];
    if (l->t->columns[i].type != MHA_COLUMN_REAL || !l->style->terminal || largest == 0)
        return;
    int digits = (int)floor(log10(largest)) + 1;
    column->scientific = digits < -2 || digits > 9;
    column->decimals = digits >= 4 ? 1 : digits >= 0 ? 4 - digits : 4 - digits - 1;
}

/* Widest line of a column's name; at a terminal a name may break behind every '_'. */
static size_t name_width(const layout *l, const char *name)
{
    size_t widest = 0;
    if (!l->style->terminal)
        return text_width(name);
    for (const char *p = name; *p;) {
        size_t n = strcspn(p, "_");
        n += p[n] == '_';
        if (n > widest)
            widest = n;
        p += n;
    }
    return widest;
}

static mha_status column_measure(layout *l, size_t i, mha_err *err)
{
    text_column *column = &l->columns[i];
    mha_column_type type = l->t->columns[i].type;
    bool defined = false;
    column->right = type == MHA_COLUMN_REAL || type == MHA_COLUMN_INT;
    column->width = name_width(l, l->t->columns[i].name);
    column_precision(l, i);
    for (size_t row = 0; row < l->t->rows; row++) {
        MHA_TRY(cell_format(l, row, i, err));
        size_t width = text_width(l->cell.data ? l->cell.data : "");
        if (width > column->width)
            column->width = width;
        defined = defined || mha_table_cell(l->t, row, i)->defined;
    }
    column->shown = defined || !l->style->terminal || l->t->rows == 0;
    return MHA_OK;
}

static size_t total_width(const layout *l)
{
    size_t total = 0;
    for (size_t i = 0; i < l->t->column_count; i++)
        if (l->columns[i].shown)
            total += l->columns[i].width + (total ? GAP : 0);
    return total;
}

static bool is_same(const mha_table *t, size_t i)
{
    const mha_cell *first = mha_table_cell(t, 0, i);
    for (size_t row = 1; row < t->rows; row++) {
        const mha_cell *cell = mha_table_cell(t, row, i);
        if (cell->defined != first->defined ||
            (cell->defined && mha_cell_compare(cell, first, t->columns[i].type) != 0))
            return false;
    }
    return true;
}

/* Takes columns away until the rest fits: first those that are the same in every row, then from the
 * right. The bar's column stays. */
static void columns_fit(layout *l)
{
    size_t width = l->style->width, bar = l->bar == MHA_NO_COLUMN ? 0 : GAP + BAR_MIN;
    if (!l->style->terminal || width == 0 || total_width(l) + bar <= width)
        return;
    for (size_t i = 0; i < l->t->column_count && l->t->rows > 1; i++) {
        l->columns[i].same = l->columns[i].shown && i != l->bar && is_same(l->t, i);
        l->columns[i].shown = l->columns[i].shown && !l->columns[i].same;
    }
    for (size_t i = l->t->column_count; i-- > 1 && total_width(l) + bar > width;)
        if (i != l->bar)
            l->columns[i].shown = false;
}

static void bar_prepare(layout *l)
{
    const mha_text_style *style = l->style;
    l->bar = MHA_NO_COLUMN;
    if (!style->terminal || !style->bar)
        return;
    size_t i = mha_table_find(l->t, style->bar);
    if (i == MHA_NO_COLUMN || column_magnitude(l->t, i) == 0)
        return;
    l->bar = i;
    l->bar_scale = column_magnitude(l->t, i);
}

static void bar_fit(layout *l)
{
    size_t used = total_width(l) + GAP;
    if (l->bar == MHA_NO_COLUMN)
        return;
    l->bar_width = BAR_MAX;
    if (l->style->width && used + BAR_MAX > l->style->width)
        l->bar_width = used + BAR_MIN > l->style->width ? BAR_MIN : l->style->width - used;
}

/* --- writing --------------------------------------------------------------------------------- */

static void spaces_write(FILE *f, size_t n)
{
    while (n-- > 0)
        fputc(' ', f);
}

/* Spaces that are not followed by anything are not written: `pending` carries them over. */
static void padded_write(layout *l, const char *s, size_t i, size_t *pending)
{
    size_t width = text_width(s);
    size_t pad = l->columns[i].width > width ? l->columns[i].width - width : 0;
    bool right = l->columns[i].right;
    *pending += right ? pad : 0;
    if (*s) {
        spaces_write(l->f, *pending);
        fputs(s, l->f);
        *pending = 0;
    }
    *pending += (right ? 0 : pad) + GAP;
}

/* Line `line` of a column's name broken greedily into lines of the column's width. Returns the
 * number of lines; the line is put into out[0..size). */
static size_t name_line(const layout *l, size_t i, size_t line, char *out, size_t size)
{
    const char *p = l->t->columns[i].name;
    size_t lines = 0, width = l->columns[i].width;
    *out = '\0';
    while (*p) {
        size_t n = 0;
        for (const char *q = p; *q;) {
            size_t part = strcspn(q, "_");
            part += q[part] == '_';
            if (n > 0 && n + part > width)
                break;
            n += part;
            q += part;
        }
        if (lines == line)
            snprintf(out, size, "%.*s", (int)n, p);
        lines++;
        p += n;
    }
    return lines;
}

static void header_write(layout *l)
{
    char text[256];
    size_t lines = 1;
    for (size_t i = 0; i < l->t->column_count && l->style->terminal; i++) {
        size_t n = l->columns[i].shown ? name_line(l, i, SIZE_MAX, text, sizeof text) : 0;
        lines = n > lines ? n : lines;
    }
    for (size_t line = 0; line < lines; line++) {
        size_t pending = 0;
        fputs(l->style->color ? "\033[1m" : "", l->f);
        for (size_t i = 0; i < l->t->column_count; i++) {
            if (!l->columns[i].shown)
                continue;
            /* Names stand on the last lines, just above their values. */
            size_t own = name_line(l, i, SIZE_MAX, text, sizeof text);
            if (line + own < lines)
                *text = '\0';
            else
                name_line(l, i, line + own - lines, text, sizeof text);
            padded_write(l, l->style->terminal ? text : l->t->columns[i].name, i, &pending);
        }
        if (l->bar != MHA_NO_COLUMN && line + 1 == lines) {
            spaces_write(l->f, pending);
            fputs(l->t->columns[l->bar].name, l->f);
        }
        fputs(l->style->color ? "\033[0m\n" : "\n", l->f);
    }
}

/* |value| in eighths of a character, or in whole '#'. Negative values have another shade. */
static void bar_write(layout *l, double value, size_t pending)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    if (isnan(value))
        return;
    double length = fabs(value) / l->bar_scale * (double)l->bar_width;
    size_t n = l->style->ascii ? (size_t)lround(length) : (size_t)lround(8 * length);
    size_t whole = l->style->ascii ? n : n / 8;
    if (n == 0)
        return;
    spaces_write(l->f, pending);
    if (l->style->color)
        fputs(value < 0 ? "\033[33m" : "\033[34m", l->f);
    for (size_t i = 0; i < whole; i++)
        fputs(l->style->ascii ? (value < 0 ? "-" : "#") : (value < 0 ? "▒" : "█"), l->f);
    if (!l->style->ascii)
        fputs(value < 0 ? (n % 8 >= 4 ? "▒" : "") : eighths[n % 8], l->f);
    if (l->style->color)
        fputs("\033[0m", l->f);
}

static mha_status row_write(layout *l, size_t row, mha_err *err)
{
    size_t pending = 0;
    for (size_t i = 0; i < l->t->column_count; i++) {
        if (!l->columns[i].shown)
            continue;
        MHA_TRY(cell_format(l, row, i, err));
        padded_write(l, l->cell.data ? l->cell.data : "", i, &pending);
    }
    if (l->bar != MHA_NO_COLUMN) {
        bar_write(l, mha_table_get_real(l->t, row, l->bar), pending);
    }
    fputc('\n', l->f);
    return MHA_OK;
}

/* Columns that had to go for want of room. */
static mha_status rest_write(layout *l, mha_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < l->t->column_count; i++) {
        if (!l->columns[i].same)
            continue;
        MHA_TRY(cell_format(l, 0, i, err));
        fprintf(l->f, "%s%s %s", n++ ? ", " : "in every row: ", l->t->columns[i].name,
                l->cell.data ? l->cell.data : "");
    }
    fputs(n ? "\n" : "", l->f);
    n = 0;
    for (size_t i = 0; i < l->t->column_count; i++) {
        bool defined = false;
        for (size_t row = 0; row < l->t->rows && !defined; row++)
            defined = mha_table_cell(l->t, row, i)->defined;
        if (!l->columns[i].shown && !l->columns[i].same && defined)
            fprintf(l->f, "%s%s", n++ ? ", " : "not shown: ", l->t->columns[i].name);
    }
    fputs(n ? "\n" : "", l->f);
    return MHA_OK;
}

mha_status mha_table_write_text(const mha_table *t, const mha_text_style *style, FILE *f,
                                mha_err *err)
{
    layout l = {.t = t, .style = style, .f = f};
    void *p = NULL;
    MHA_TRY(mha_alloc(&p, t->column_count, sizeof *l.columns, err));
    l.columns = p;
    mha_buf_init(&l.cell, CELL_MAX);
    bar_prepare(&l);
    mha_status status = MHA_OK;
    for (size_t i = 0; i < t->column_count && status == MHA_OK; i++)
        status = column_measure(&l, i, err);
    if (status == MHA_OK) {
        columns_fit(&l);
        bar_fit(&l);
        header_write(&l);
    }
    for (size_t row = 0; row < t->rows && status == MHA_OK; row++)
        status = row_write(&l, row, err);
    if (status == MHA_OK)
        status = rest_write(&l, err);
    mha_buf_release(&l.cell);
    mha_free(l.columns);
    return status;
}
