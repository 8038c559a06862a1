/* axis.h: the labels along one side of a map. */
#ifndef MHA_RENDER_AXIS_H
#define MHA_RENDER_AXIS_H

#include "render/figure.h"

typedef enum mha_axis_kind { MHA_AXIS_BARE = 0, MHA_AXIS_LABELS, MHA_AXIS_NUMBERS } mha_axis_kind;

typedef struct mha_axis_layout {
    const mha_axis *axis;
    const char *name; /* NULL: none */
    size_t cells;     /* that the map's side stands for, whole tiles */
    size_t real;      /* cells that there are */
    bool vertical;
    mha_axis_kind kind;
    double size;   /* of the labels' text */
    size_t every;  /* 1: every label is there */
    double angle;  /* of a horizontal axis's labels */
    bool brackets; /* labels over several cells are marked as such */
    char **texts;  /* [axis->count] labels as they are drawn */
    mha_ticks ticks;
    double room;   /* across the axis, from the map to the outer edge */
    double before; /* how far labels stand out beyond the first cell's edge */
} mha_axis_layout;

/* Lays an axis out along `length` points, its labels not longer than `longest`; `space` is what
 * lies free before the first cell, for labels at a slant. The room it takes follows from it. */
mha_status mha_axis_make(mha_axis_layout *out, mha_figure *f, const mha_axis *axis, size_t real,
                         size_t cells, bool vertical, double length, double longest, double space,
                         mha_err *err);
/* Notes what is missing from the labels of a map's two sides. */
mha_status mha_axes_note(const mha_axis_layout *rows, const mha_axis_layout *cols, mha_figure *f,
                         mha_err *err);
/* Draws it: the left axis of a map whose upper left corner is (x, y), or the one below a map whose
 * lower left corner that is. */
void mha_axis_draw(const mha_axis_layout *a, mha_figure *f, double x, double y, double length);

#endif
