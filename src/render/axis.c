/* axis.c: labels that stay legible: as large as asked for where there is room, down to a smallest
 * size, then every k-th label only, then positions as numbers. What had to go is said in the notes,
 * never silently left out. */
#include "render/axis.h"

#include "base/fail.h"
#include "store/number.h"

#include <math.h>
#include <string.h>

#define SMALLEST     5.0  /* points; smaller text is not read in print */
#define PITCH        1.12 /* of the size: nearest distance of two lines */
#define SLANT_PITCH  1.5
#define THIN_MAX     3 /* more than that, and the text is no longer there: numbers */
#define LABEL_GAP    2.5
#define BRACKET_GAP  3.0
#define NAME_GAP     2.5
#define BRACKET_FROM 2.0 /* points a cell, below which brackets are a mess */

static double cell_size(const mha_axis_layout *a, double length)
{
    return length / (double)a->cells;
}

/* The smallest distance between the middles of neighbouring labels, in cells. */
static double label_distance(const mha_axis *axis, size_t every)
{
    double nearest = HUGE_VAL;
    for (size_t i = every; i < axis->count; i += every) {
        const mha_label *a = &axis->labels[i - every], *b = &axis->labels[i];
        double d =
            ((double)b->first + (double)b->count / 2) - ((double)a->first + (double)a->count / 2);
        nearest = fmin(nearest, d);
    }
    return nearest;
}

/* Decides kind, size and every. */
static void density_set(mha_axis_layout *a, const mha_figure *f, double cell)
{
    double smallest = fmin(SMALLEST, f->size);
    a->size = f->size;
    a->every = 1;
    a->kind = a->axis->bare                           ? MHA_AXIS_BARE
              : a->axis->labels && a->axis->count > 0 ? MHA_AXIS_LABELS
                                                      : MHA_AXIS_NUMBERS;
    if (a->kind != MHA_AXIS_LABELS)
        return;
    double room = label_distance(a->axis, 1) * cell / PITCH;
    if (room >= a->size)
        return;
    a->size = fmax(room, smallest);
    while (a->every <= THIN_MAX && label_distance(a->axis, a->every) * cell / PITCH < smallest)
        a->every++;
    if (a->every > THIN_MAX) {
        a->kind = MHA_AXIS_NUMBERS;
        a->size = f->size;
        a->every = 1;
    }
}

static mha_status texts_fit(mha_axis_layout *a, mha_figure *f, double longest, mha_err *err)
{
    void *p = NULL;
    MHA_TRY(mha_arena_alloc(&p, &f->arena, a->axis->count, sizeof *a->texts, err));
    a->texts = p;
    for (size_t i = 0; i < a->axis->count; i += a->every) {
        char *clean = NULL;
        MHA_TRY(mha_figure_text(&clean, f, a->axis->labels[i].text, err));
        MHA_TRY(mha_figure_fit(&a->texts[i], f, clean, a->size, longest, err));
    }
    return MHA_OK;
}

static void tick_text(const mha_axis_layout *a, size_t i, char out[MHA_LABEL_SIZE])
{
    mha_number_fixed(out, a->ticks.first + (double)i * a->ticks.step, 0);
}

static double widest_text(const mha_axis_layout *a, const mha_figure *f)
{
    double widest = 0;
    char number[MHA_LABEL_SIZE];
    for (size_t i = 0; a->kind == MHA_AXIS_LABELS && i < a->axis->count; i += a->every)
        widest = fmax(widest, mha_figure_width(f, a->texts[i], a->size));
    for (size_t i = 0; a->kind == MHA_AXIS_NUMBERS && i < a->ticks.count; i++) {
        tick_text(a, i, number);
        widest = fmax(widest, mha_figure_width(f, number, a->size));
    }
    return widest;
}

static double label_middle(const mha_label *label, double cell)
{
    return ((double)label->first + (double)label->count / 2) * cell;
}

/* Labels below the map lie flat when none touches the next. */
static bool lie_flat(const mha_axis_layout *a, const mha_figure *f, double cell)
{
    double end = -HUGE_VAL;
    for (size_t i = 0; i < a->axis->count; i += a->every) {
        double half = mha_figure_width(f, a->texts[i], a->size) / 2;
        double middle = label_middle(&a->axis->labels[i], cell);
        if (middle - half < end + a->size * 0.3)
            return false;
        end = middle + half;
    }
    return true;
}

static bool fit_slanted(const mha_axis_layout *a, const mha_figure *f, double cell, double space)
{
    if (a->every > 1 || label_distance(a->axis, 1) * cell < SLANT_PITCH * a->size)
        return false;
    for (size_t i = 0; i < a->axis->count; i++) {
        double middle = label_middle(&a->axis->labels[i], cell);
        if (mha_figure_width(f, a->texts[i], a->size) * M_SQRT1_2 > middle + space)
            return false;
    }
    return true;
}

/* Height of the labels of a horizontal axis at the angle that suits them. */
static double horizontal_room(mha_axis_layout *a, const mha_figure *f, double cell, double space)
{
    double line = a->size * (MHA_FONT_ASCENT + MHA_FONT_DESCENT), widest = widest_text(a, f);
    a->angle = 0;
    if (a->kind == MHA_AXIS_NUMBERS || lie_flat(a, f, cell))
        return line;
    a->angle = fit_slanted(a, f, cell, space) ? 45 : 90;
    return a->angle == 45 ? (widest + line) * M_SQRT1_2 : widest;
}

static bool has_brackets(const mha_axis_layout *a, double cell)
{
    if (a->kind != MHA_AXIS_LABELS || a->every > 1 || cell < BRACKET_FROM)
        return false;
    for (size_t i = 0; i < a->axis->count; i++)
        if (a->axis->labels[i].count > 1)
            return true;
    return false;
}

mha_status mha_axis_make(mha_axis_layout *out, mha_figure *f, const mha_axis *axis, size_t real,
                         size_t cells, bool vertical, double length, double longest, double space,
                         mha_err *err)
{
    char *name = NULL;
    *out = (mha_axis_layout){.axis = axis, .cells = cells, .real = real, .vertical = vertical};
    double cell = cell_size(out, length);
    if (axis->name && !axis->bare) {
        MHA_TRY(mha_figure_text(&name, f, axis->name, err));
        out->name = name;
    }
    density_set(out, f, cell);
    if (out->kind == MHA_AXIS_LABELS)
        MHA_TRY(texts_fit(out, f, longest, err));
    if (out->kind == MHA_AXIS_NUMBERS) {
        double most = fmax(2, fmin(8, length / (f->size * 4)));
        double last = (double)axis->start + (real > 1 ? (double)real - 1 : 1);
        out->ticks = mha_ticks_of((double)axis->start, last, (size_t)most);
        if (out->ticks.step < 1)
            out->ticks = (mha_ticks){(double)axis->start, 1, real, 0};
    }
    out->brackets = has_brackets(out, cell);
    if (out->kind != MHA_AXIS_BARE)
        out->room = (out->brackets ? BRACKET_GAP : 0) +
                    (out->kind == MHA_AXIS_NUMBERS ? MHA_FIGURE_TICK : 0) + LABEL_GAP +
                    (vertical ? widest_text(out, f) : horizontal_room(out, f, cell, space));
    if (out->name)
        out->room += NAME_GAP + f->size * (MHA_FONT_ASCENT + MHA_FONT_DESCENT);
    return MHA_OK;
}

static mha_status axis_note(const mha_axis_layout *a, mha_figure *f, mha_err *err)
{
    const char *name = a->name ? a->name : a->vertical ? "row" : "column";
    if (a->kind == MHA_AXIS_LABELS && a->every > 1)
        return mha_figure_note(f, err, "One %s label in %zu is shown.", name, a->every);
    if (a->kind == MHA_AXIS_NUMBERS && a->axis->labels)
        return mha_figure_say(f, err, "Positions stand for %zu %s labels.", a->axis->count, name);
    return MHA_OK;
}

mha_status mha_axes_note(const mha_axis_layout *rows, const mha_axis_layout *cols, mha_figure *f,
                         mha_err *err)
{
    if (rows->kind == cols->kind && rows->every == cols->every) {
        if (rows->kind == MHA_AXIS_LABELS && rows->every > 1)
            return mha_figure_note(f, err, "One label in %zu is shown.", rows->every);
        if (rows->kind == MHA_AXIS_NUMBERS && rows->axis->labels && cols->axis->labels)
            return mha_figure_say(f, err, "Positions stand for the labels.");
    }
    MHA_TRY(axis_note(rows, f, err));
    return axis_note(cols, f, err);
}

/* --- drawing -----------------------------------------------------------------------------------
 */

/* A bracket beside the cells of one label. */
static void bracket_draw(const mha_axis_layout *a, mha_figure *f, const mha_label *label, double x,
                         double y, double cell)
{
    double from = (double)label->first * cell + 0.8, length = (double)label->count * cell - 1.6;
    if (label->count < 2)
        return;
    if (a->vertical)
        mha_figure_rect(f, x - MHA_FIGURE_GAP - 1, y + from, MHA_FIGURE_LINE, length, f->text);
    else
        mha_figure_rect(f, x + from, y + MHA_FIGURE_GAP + 1, length, MHA_FIGURE_LINE, f->text);
}

/* One label with its middle at (x, y), which lies at the near end of the labels' room. */
static void label_draw(const mha_axis_layout *a, mha_figure *f, const char *text, double x,
                       double y)
{
    double middle = MHA_FONT_MIDDLE * a->size;
    if (a->vertical)
        mha_figure_put(f, text, a->size, x, y + middle, MHA_ANCHOR_END, 0, f->text);
    else if (a->angle == 90)
        mha_figure_put(f, text, a->size, x + middle, y, MHA_ANCHOR_END, 90, f->text);
    else if (a->angle == 45)
        mha_figure_put(f, text, a->size, x + middle, y + middle, MHA_ANCHOR_END, 45, f->text);
    else
        mha_figure_put(f, text, a->size, x, y + MHA_FONT_ASCENT * a->size, MHA_ANCHOR_MIDDLE, 0,
                       f->text);
}

static void labels_draw(const mha_axis_layout *a, mha_figure *f, double x, double y, double cell)
{
    double off = LABEL_GAP + (a->brackets ? BRACKET_GAP : 0);
    for (size_t i = 0; i < a->axis->count; i += a->every) {
        const mha_label *label = &a->axis->labels[i];
        double middle = label_middle(label, cell);
        if (a->brackets)
            bracket_draw(a, f, label, x, y, cell);
        label_draw(a, f, a->texts[i], a->vertical ? x - off : x + middle,
                   a->vertical ? y + middle : y + off);
    }
}

static void numbers_draw(const mha_axis_layout *a, mha_figure *f, double x, double y, double cell)
{
    char text[MHA_LABEL_SIZE];
    double off = LABEL_GAP + MHA_FIGURE_TICK, half = MHA_FIGURE_LINE / 2;
    for (size_t i = 0; i < a->ticks.count; i++) {
        double at = (a->ticks.first + (double)i * a->ticks.step - (double)a->axis->start + 0.5);
        at *= cell;
        tick_text(a, i, text);
        if (a->vertical)
            mha_figure_rect(f, x - MHA_FIGURE_LINE - MHA_FIGURE_TICK, y + at - half,
                            MHA_FIGURE_TICK, MHA_FIGURE_LINE, f->line);
        else
            mha_figure_rect(f, x + at - half, y + MHA_FIGURE_LINE, MHA_FIGURE_LINE, MHA_FIGURE_TICK,
                            f->line);
        label_draw(a, f, text, a->vertical ? x - off : x + at, a->vertical ? y + at : y + off);
    }
}

void mha_axis_draw(const mha_axis_layout *a, mha_figure *f, double x, double y, double length)
{
    double cell = cell_size(a, length);
    if (a->kind == MHA_AXIS_LABELS)
        labels_draw(a, f, x, y, cell);
    else if (a->kind == MHA_AXIS_NUMBERS)
        numbers_draw(a, f, x, y, cell);
    if (!a->name)
        return;
    if (a->vertical)
        mha_figure_put(f, a->name, f->size, x - a->room + MHA_FONT_ASCENT * f->size, y + length / 2,
                       MHA_ANCHOR_MIDDLE, 90, f->muted);
    else
        mha_figure_put(f, a->name, f->size, x + length / 2,
                       y + a->room - MHA_FONT_DESCENT * f->size, MHA_ANCHOR_MIDDLE, 0, f->muted);
}
