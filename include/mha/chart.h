/* mha/chart.h: figures for papers: heatmaps, grids of heatmaps, head maps, bars and lines, as PNG,
 * PDF or SVG from one drawing routine.
 *
 * Sizes are in millimetres and points. The text is set in a bundled font, so that a figure is the
 * same on every machine; in PDF and SVG it is text, not outlines. A figure says what it shows: the
 * colour bar names scale and range, and what was pooled, thinned or clipped stands in a note under
 * the figure. */
#ifndef MHA_CHART_H
#define MHA_CHART_H

#include "mha/table.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --- maps ---------------------------------------------------------------------------------- */

typedef enum mha_pooling {
    MHA_POOL_MAX = 0, /* the largest weight of a tile: single peaks stay visible */
    MHA_POOL_MEAN,    /* the mean of the tile's visible weights */
} mha_pooling;

/* One map [rows, cols], pooled to tiles as its rows arrive: 100,000 tokens take no more memory than
 * `limit` tiles a side. Weights that never arrive are masked, which is not the same as 0. */
typedef struct mha_heat mha_heat;

#define MHA_HEAT_LIMIT 1024 /* a good limit for one map; 256 will do in a grid */

/* rows, cols >= 1; limit >= 1 is the largest number of tiles a side: a tile is the smallest square
 * of whole cells that gets there, so nothing is pooled where rows and cols are within it. */
mha_status mha_heat_new(mha_heat **out, size_t rows, size_t cols, size_t limit, mha_pooling pooling,
                        mha_err *err);
void mha_heat_free(mha_heat *h);
/* n weights of row `row` for the keys first_col ..., which must be inside the map (an assert).
 * Different maps may be filled by different threads. */
void mha_heat_add(mha_heat *h, size_t row, size_t first_col, const float *weights, size_t n);
size_t mha_heat_rows(const mha_heat *h);
size_t mha_heat_cols(const mha_heat *h);
/* Cells on the side of a tile, 1 when nothing is pooled. */
size_t mha_heat_tile(const mha_heat *h);
/* Value of one tile, NaN when masked throughout. */
double mha_heat_get(const mha_heat *h, size_t tile_row, size_t tile_col);

/* --- what all figures share ------------------------------------------------------------------ */

typedef enum mha_scale {
    MHA_SCALE_LINEAR = 0,
    MHA_SCALE_LOG,  /* down to a power of ten three to four decades below the largest */
    MHA_SCALE_CLIP, /* linear up to the 99th percentile; what is above has the top colour */
} mha_scale;

/* Zero-initialise, then set what differs. */
typedef struct mha_chart_options {
    double width_mm;  /* 0: 85, a single column */
    double dpi;       /* of PNG; in PDF and SVG how fine a map may be before it is pooled; 0: 300 */
    const char *font; /* family of a system font; NULL: the bundled one */
    double font_pt;   /* 0: 7 */
    const char *colormap; /* mha_colormap_name; NULL: the figure's own default */
    mha_scale scale;      /* of colours */
    bool dark;            /* dark background */
    const char *title;    /* above the figure; NULL: none */
    const char *about;    /* opens the caption, e.g. the model and the text; NULL: nothing */
    const char *caption;  /* file that gets the caption as text; NULL: none */
    mha_format format;    /* PNG, PDF or SVG; AUTO: by suffix */
    bool force;           /* replaces existing files */
    const char *creator;  /* e.g. "mha-inspect 1.0", into the file's metadata; NULL: none */
} mha_chart_options;

/* The names of the colour maps, or NULL from index mha_colormap_count() on. */
const char *mha_colormap_name(size_t index);
size_t mha_colormap_count(void);

/* MHA_ERR_ARG when the options make no sense (unknown colour map, size out of range, a format that
 * is not one of figures). The first thing that every call below does. */
mha_status mha_chart_check(const mha_chart_options *o, const char *path, mha_err *err);

/* A label over `count` cells from cell `first` on: a character that is made of several byte tokens
 * has one label over all of them. */
typedef struct mha_label {
    const char *text; /* UTF-8 */
    size_t first, count;
} mha_label;

/* One axis of a map. With `labels` NULL it has positions as numbers; with `bare` nothing at all. */
typedef struct mha_axis {
    const char *name;        /* e.g. "query"; NULL: none */
    const mha_label *labels; /* ascending, not overlapping; borrowed */
    size_t count;
    size_t start; /* number of the first cell, when only a part of the map is shown */
    bool bare;
} mha_axis;

/* --- figures ------------------------------------------------------------------------------- */

/* One map: rows are queries, from the top; columns are keys. */
typedef struct mha_heatmap {
    const mha_heat *map;
    mha_axis rows, cols;
    const char *value_name; /* at the colour bar; NULL: "attention weight" */
} mha_heatmap;
mha_status mha_chart_heatmap(const mha_heatmap *figure, const mha_chart_options *o,
                             const char *path, mha_err *err);

/* Small maps side by side: the whole layer×head grid, or chosen heads. All maps have the same
 * number of rows and of columns, or are NULL (an empty place). */
typedef struct mha_grid {
    const mha_heat *const *maps; /* [rows, cols] */
    size_t rows, cols;
    const char *const *row_labels;   /* [rows], e.g. layer numbers; NULL: none */
    const char *const *col_labels;   /* [cols], e.g. head numbers; NULL: none */
    const char *const *titles;       /* [rows, cols], one above each map, e.g. "4.7"; NULL: none */
    const char *row_name, *col_name; /* e.g. "layer", "head"; NULL: none */
    bool own_scale;                  /* every map has its own colour range: said in the note */
    const char *value_name;
} mha_grid;
mha_status mha_chart_grid(const mha_grid *figure, const mha_chart_options *o, const char *path,
                          mha_err *err);

/* A graph with the weights of its edges: one picture for each head, with the same nodes in the same
 * places. Width and colour of an edge follow its weight; loops are rings. */
typedef struct mha_network {
    size_t nodes, edges;             /* at most 4096 nodes */
    const uint32_t *source, *target; /* [edges] */
    const float *const *weights;     /* [rows, cols] of [edges]; NULL: an empty place */
    size_t rows, cols;
    const char *const *titles; /* [rows, cols], one above each picture; NULL: none */
    bool bare;                 /* no numbers in the nodes */
    const char *value_name;    /* NULL: "attention weight" */
} mha_network;
mha_status mha_chart_network(const mha_network *figure, const mha_chart_options *o,
                             const char *path, mha_err *err);

/* One weight, one pixel, indexed colour. PNG only; no axes, nothing pooled unless the map is. */
mha_status mha_chart_exact(const mha_heat *map, const mha_chart_options *o, const char *path,
                           mha_err *err);

/* Maps over a picture: the picture, then one panel a map. Each map [patch rows, patch columns]
 * holds a value for every square of `patch` pixels, line by line from the upper left corner. */
typedef struct mha_overlay {
    const unsigned char *rgb; /* [picture_height, picture_width, 3] */
    size_t picture_width, picture_height, patch;
    const mha_heat *const *maps; /* [count] */
    size_t count;
    const char *const *titles; /* [count], e.g. "4.7"; NULL: none */
    int mark_row, mark_col;    /* the patch to frame; row −1: none */
    const char *note;          /* a sentence under the figure; NULL: none */
    const char *value_name;    /* at the colour bar; NULL: "attention weight" */
} mha_overlay;
mha_status mha_chart_overlay(const mha_overlay *figure, const mha_chart_options *o,
                             const char *path, mha_err *err);

/* One number for each head, as a coloured cell with the number in it. */
typedef struct mha_headmap {
    const double *values; /* [rows, cols]; NaN: no such head, or undefined */
    size_t rows, cols;
    const char *const *row_labels, *const *col_labels; /* NULL: 0, 1, … */
    const char *row_name, *col_name;                   /* NULL: "layer", "head" */
    const char *value_name;                            /* e.g. "entropy" */
    const char *unit;                                  /* e.g. "nats"; NULL or "": none */
    bool diverging; /* 0 is the middle of the colours: for signed values */
} mha_headmap;
mha_status mha_chart_headmap(const mha_headmap *figure, const mha_chart_options *o,
                             const char *path, mha_err *err);

/* Horizontal bars in the order given, with whiskers where lo and hi are not NaN. */
typedef struct mha_bar {
    const char *label;
    double value, lo, hi;
} mha_bar;
typedef struct mha_bars {
    const mha_bar *bars;
    size_t count;
    const char *value_name, *unit;
    const char *whiskers; /* what they are, e.g. "95 % interval"; NULL: not said */
} mha_bars;
mha_status mha_chart_bars(const mha_bars *figure, const mha_chart_options *o, const char *path,
                          mha_err *err);
/* Both in one figure: the map above, bars of some of its heads below. */
mha_status mha_chart_heads(const mha_headmap *map, const mha_bars *bars, const mha_chart_options *o,
                           const char *path, mha_err *err);

/* Lines over one axis, in panels one above the other; in every panel the same ones. */
typedef struct mha_line {
    const double *y;       /* [count]; NaN: a gap */
    const double *lo, *hi; /* [count], a band about it; NULL: none */
} mha_line;
typedef struct mha_line_panel {
    const char *value_name, *unit;
    const mha_line *lines; /* [lines] */
} mha_line_panel;
typedef struct mha_lines {
    const double *x; /* [count] ascending, at least two */
    size_t count;
    const char *x_name;
    const char *const *names; /* [lines], at most 4 */
    size_t lines;
    const mha_line_panel *panels;
    size_t panel_count;
    double mark;      /* x of an upright line; NaN: none */
    const char *note; /* a sentence under the figure; NULL: none */
} mha_lines;
mha_status mha_chart_lines(const mha_lines *figure, const mha_chart_options *o, const char *path,
                           mha_err *err);

#ifdef __cplusplus
}
#endif
#endif
