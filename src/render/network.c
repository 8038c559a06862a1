/* network.c: the figure of a graph whose edges have weights, or of several heads' weights on one
 * graph side by side. An edge is a bent line with an arrow at its target, so that the two
 * directions between two nodes lie beside each other; strong edges are drawn over weak ones. */
#include "render/heat.h"
#include "render/placement.h"

#include "base/fail.h"
#include "render/figure.h"
#include "store/number.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GAP          8.0   /* between pictures */
#define TITLE_LINE   1.4   /* of the titles' size */
#define WHOLE        190.0 /* width of a picture at which lines have their full width */
#define LINE_LEAST   0.4
#define LINE_MOST    2.3
#define BEND         0.1 /* of an edge's length */
#define NODE_SHARE   0.34
#define NODE_MOST    5.6
#define NODE_LEAST   0.8
#define NODE_BARE    0.45 /* of a numbered one's size: only a dot, so that edges are seen */
#define LABEL_LEAST  5.0  /* size of text that can be read */
#define FLATTEST     0.3
#define FIRST_LEVEL  40 /* of the colour map: paler edges would not be seen */
#define BAR_SHORTEST 36.0

typedef struct network_layout {
    const mha_network *figure;
    mha_point *at;   /* [nodes] in the unit box */
    size_t *order;   /* [edges] by rising weight, of the picture that is drawn */
    mha_heat **maps; /* [rows·cols] weights as heat, for the scale; NULL: empty */
    mha_color_scale scale;
    mha_colorbar bar;
    double width, height; /* of one picture */
    double pad;           /* from its edge to the outermost node's middle */
    double radius, label; /* of a node; size of its number, 0: none */
    double line, title;   /* factor of line widths; height of a title */
} network_layout;

/* The pale end of the colours is left out, for edges and colour bar alike. */
static void palette_raise(mha_figure *f)
{
    mha_color all[MHA_LEVEL_TOP + 1];
    memcpy(all, f->palette, sizeof all);
    for (size_t i = 0; i <= MHA_LEVEL_TOP; i++)
        f->palette[i] = all[FIRST_LEVEL + i * (MHA_LEVEL_TOP - FIRST_LEVEL) / MHA_LEVEL_TOP];
}

static mha_status scale_make(network_layout *l, mha_figure *f, mha_err *err)
{
    const mha_network *g = l->figure;
    void *p = NULL;
    MHA_TRY(mha_arena_alloc(&p, &f->arena, g->rows * g->cols, sizeof *l->maps, err));
    l->maps = p;
    for (size_t i = 0; i < g->rows * g->cols; i++) {
        if (!g->weights[i] || g->edges == 0)
            continue;
        MHA_TRY(mha_heat_new(&l->maps[i], 1, g->edges, SIZE_MAX, MHA_POOL_MAX, err));
        mha_heat_add(l->maps[i], 0, 0, g->weights[i], g->edges);
    }
    return mha_color_scale_of(&l->scale, (const mha_heat *const *)l->maps, g->rows * g->cols,
                              f->options->scale, err);
}

/* Half of the smallest distance between two nodes, in the unit box. */
static double room_of(const network_layout *l)
{
    double least = 1;
    for (size_t i = 0; i < l->figure->nodes; i++)
        for (size_t j = 0; j < i; j++) {
            double x = l->at[i].x - l->at[j].x, y = l->at[i].y - l->at[j].y;
            least = fmin(least, sqrt(x * x + y * y));
        }
    return least / 2;
}

static double widest_number(const network_layout *l, const mha_figure *f)
{
    char text[MHA_LABEL_SIZE];
    mha_number_fixed(text, (double)(l->figure->nodes - 1), 0);
    return mha_figure_width(f, text, 1);
}

static void size_nodes(network_layout *l, const mha_figure *f)
{
    double side = l->width / sqrt((double)l->figure->nodes);
    l->radius = fmin(NODE_SHARE * side, NODE_MOST);
    l->radius = fmin(l->radius, 0.8 * room_of(l) * l->width);
    l->radius = fmax(l->radius, NODE_LEAST);
    l->line = fmin(1, fmax(0.45, l->width / WHOLE));
    l->label = fmin(f->size, 1.7 * l->radius / fmax(1, widest_number(l, f)));
    if (l->figure->bare || l->label < LABEL_LEAST)
        l->label = 0;
    if (l->label == 0)
        l->radius = fmax(NODE_BARE * l->radius, NODE_LEAST);
    l->pad = l->radius + 2 * LINE_MOST * l->line;
}

static mha_status layout_make(network_layout *l, mha_figure *f, mha_err *err)
{
    const mha_network *g = l->figure;
    const char *name = g->value_name ? g->value_name : "attention weight";
    double height;
    void *p = NULL;
    if (g->nodes == 0 || g->rows * g->cols == 0)
        return mha_fail(err, MHA_ERR_ARG, "a graph without nodes or pictures");
    MHA_TRY(mha_arena_alloc(&p, &f->arena, g->nodes, sizeof *l->at, err));
    l->at = p;
    MHA_TRY(mha_arena_alloc(&p, &f->arena, g->edges, sizeof *l->order, err));
    l->order = p;
    MHA_TRY(mha_placement_make(l->at, &height, g->nodes, g->edges, g->source, g->target, err));
    MHA_TRY(scale_make(l, f, err));
    MHA_TRY(mha_colorbar_make(&l->bar, f, &l->scale, name, err));
    l->width = (f->width - l->bar.width - (double)(g->cols - 1) * GAP) / (double)g->cols;
    if (l->width < 12)
        return mha_fail(err, MHA_ERR_ARG, "a figure %.0f mm wide has no room for %zu graphs",
                        f->width / MHA_POINTS_PER_MM, g->cols);
    size_nodes(l, f);
    l->title = g->titles ? f->size * TITLE_LINE : 0;
    l->height = fmax(height, FLATTEST) * (l->width - 2 * l->pad) + 2 * l->pad;
    MHA_TRY(mha_figure_note(f, err,
                            "An arrow goes from the node that is looked at to the one that looks; "
                            "a ring is a node's attention to itself."));
    if (l->label == 0 && !g->bare)
        MHA_TRY(mha_figure_note(f, err, "There is no room for the numbers of nodes."));
    return mha_figure_say(f, err, "Width and colour of an edge follow its weight.");
}

/* ---- drawing ----------------------------------------------------------------------------------
 */

typedef struct picture {
    const network_layout *l;
    mha_figure *f;
    const float *weights;
    double x, y; /* upper left corner, on the canvas */
} picture;

static mha_point place(const picture *p, size_t node)
{
    double inner = p->l->width - 2 * p->l->pad;
    return (mha_point){p->x + p->l->pad + p->l->at[node].x * inner,
                       p->y + p->l->pad + p->l->at[node].y * inner};
}

static mha_point along(mha_point from, mha_point to, double distance)
{
    double x = to.x - from.x, y = to.y - from.y, length = fmax(sqrt(x * x + y * y), 1e-9);
    return (mha_point){from.x + x / length * distance, from.y + y / length * distance};
}

static double line_width(const picture *p, double at)
{
    return (LINE_LEAST + (LINE_MOST - LINE_LEAST) * at) * p->l->line;
}

/* Bends to the right of who goes from source to target. */
static void draw_edge(const picture *p, mha_point from, mha_point to, double line, mha_color color)
{
    double x = to.x - from.x, y = to.y - from.y;
    mha_point middle = {(from.x + to.x) / 2 - BEND * y, (from.y + to.y) / 2 + BEND * x};
    double head = 1.3 * p->l->line + 1.3 * line, half = 0.6 * head;
    mha_point tip = along(to, middle, p->l->radius + 0.4 * p->l->line);
    mha_point base = along(tip, middle, head);
    mha_point curve[3] = {along(from, middle, p->l->radius), middle, base};
    double dx = (tip.x - base.x) / head * half, dy = (tip.y - base.y) / head * half;
    mha_point arrow[3] = {tip, {base.x - dy, base.y + dx}, {base.x + dy, base.y - dx}};
    mha_canvas_curve(p->f->canvas, curve, line, color);
    mha_canvas_path(p->f->canvas, arrow, 3, 0, color);
}

static void draw_weight(const picture *p, size_t e)
{
    const mha_network *g = p->l->figure;
    double weight = (double)p->weights[e], at = mha_color_scale_at(&p->l->scale, weight);
    double line = line_width(p, at);
    mha_color color = p->f->palette[mha_color_scale_level(&p->l->scale, weight)];
    mha_point from = place(p, g->source[e]), to = place(p, g->target[e]);
    if (g->source[e] == g->target[e])
        mha_canvas_disc(p->f->canvas, to, p->l->radius + 0.8 * p->l->line + line / 2, line, color);
    else
        draw_edge(p, from, to, line, color);
}

static void draw_node(const picture *p, size_t node)
{
    const network_layout *l = p->l;
    mha_point at = place(p, node);
    char text[MHA_LABEL_SIZE];
    mha_canvas_disc(p->f->canvas, at, l->radius, 0, l->label > 0 ? p->f->background : p->f->muted);
    mha_canvas_disc(p->f->canvas, at, l->radius, MHA_FIGURE_LINE * l->line, p->f->muted);
    mha_number_fixed(text, (double)node, 0);
    if (l->label > 0)
        mha_canvas_text(p->f->canvas, text, l->label, at.x, at.y + MHA_FONT_MIDDLE * l->label,
                        MHA_ANCHOR_MIDDLE, 0, p->f->text);
}

typedef struct ranked {
    float weight;
    size_t edge;
} ranked;

static int by_weight(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight < y->weight ? -1 : 1;
    return x->edge < y->edge ? -1 : x->edge > y->edge;
}

static mha_status order_edges(const network_layout *l, const float *weights, mha_err *err)
{
    size_t n = l->figure->edges;
    ranked *list;
    MHA_TRY(mha_alloc((void **)&list, n, sizeof *list, err));
    for (size_t e = 0; e < n; e++)
        list[e] = (ranked){weights[e], e};
    if (n > 0)
        qsort(list, n, sizeof *list, by_weight);
    for (size_t e = 0; e < n; e++)
        l->order[e] = list[e].edge;
    mha_free(list);
    return MHA_OK;
}

static mha_status draw_picture(const network_layout *l, mha_figure *f, size_t i, double x, double y,
                               mha_err *err)
{
    const mha_network *g = l->figure;
    picture p = {l, f, g->weights[i], f->left + x, f->top + y + l->title};
    char *title = NULL;
    if (!p.weights)
        return MHA_OK;
    if (g->titles && g->titles[i]) {
        MHA_TRY(mha_figure_text(&title, f, g->titles[i], err));
        mha_figure_put(f, title, f->size, x + l->width / 2, y + f->size * MHA_FONT_ASCENT,
                       MHA_ANCHOR_MIDDLE, 0, f->text);
    }
    MHA_TRY(order_edges(l, p.weights, err));
    for (size_t e = 0; e < g->edges; e++)
        draw_weight(&p, l->order[e]);
    for (size_t node = 0; node < g->nodes; node++)
        draw_node(&p, node);
    return MHA_OK;
}

static mha_status network_draw(const network_layout *l, mha_figure *f, mha_err *err)
{
    const mha_network *g = l->figure;
    double down = l->height + l->title + GAP;
    double all = (double)g->rows * down - GAP;
    double bar = fmax(fmin(all, 160), BAR_SHORTEST);
    double content = fmax(fmax(all, bar), l->bar.name_width);
    MHA_TRY(mha_figure_begin(f, content, 0, err));
    for (size_t r = 0; r < g->rows; r++)
        for (size_t c = 0; c < g->cols; c++)
            MHA_TRY(draw_picture(l, f, r * g->cols + c, (double)c * (l->width + GAP),
                                 (double)r * down, err));
    mha_colorbar_draw(&l->bar, f, f->width - l->bar.width, (content - bar) / 2, bar,
                      (content - bar) / 2);
    return mha_figure_end(f, err);
}

mha_status mha_chart_network(const mha_network *figure, const mha_chart_options *o,
                             const char *path, mha_err *err)
{
    mha_figure f;
    network_layout l = {.figure = figure};
    mha_status status = mha_figure_open(&f, o, path, false, err);
    if (status == MHA_OK) {
        palette_raise(&f);
        status = layout_make(&l, &f, err);
    }
    if (status == MHA_OK)
        status = network_draw(&l, &f, err);
    for (size_t i = 0; l.maps && i < figure->rows * figure->cols; i++)
        mha_heat_free(l.maps[i]);
    mha_figure_close(&f);
    return status;
}
