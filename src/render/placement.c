/* placement.c: nodes as far from each other in the picture as they are in the graph. With d_ij the
 * number of edges between i and j, what is minimised is
 *
 *   Σ_{i<j} (|x_i − x_j| − d_ij)²/d_ij²
 *
 * pair by pair, each moved half of what it is wrong by, in steps that shrink (Zheng, Pawar, Goodman
 * 2019). Order and start come from a generator with a seed of its own. Nodes with much the same
 * neighbours end up on top of each other that way: what is closer than a drawn node needs is moved
 * apart at the end. */
#include "render/placement.h"

#include "base/fail.h"
#include "base/mem.h"
#include "base/rng.h"

#include <math.h>

#define SEED      34
#define ROUNDS    60
#define LAST_STEP 0.05
#define LEAST     0.5 /* between two nodes, in edges */
#define PARTINGS  40
#define APART     UINT16_MAX /* no path */
#define APART_GAP 0.45       /* between components, in roots of their sizes */

typedef struct placement {
    size_t nodes, edges;
    const uint32_t *source, *target;
    size_t *first;       /* [nodes + 1] neighbours of each node, of both directions */
    uint32_t *neighbour; /* [2·edges] */
    uint16_t *distance;  /* [nodes, nodes] */
    uint32_t *queue;     /* [nodes] */
    uint32_t *size;      /* [nodes] nodes of each one's component */
    mha_point *at;       /* [nodes] */
    mha_rng rng;
} placement;

static void list_neighbours(placement *p)
{
    for (size_t e = 0; e < p->edges; e++) {
        p->first[p->source[e] + 1]++;
        p->first[p->target[e] + 1]++;
    }
    for (size_t i = 0; i < p->nodes; i++)
        p->first[i + 1] += p->first[i];
    for (size_t e = p->edges; e-- > 0;) {
        p->neighbour[--p->first[p->source[e] + 1]] = p->target[e];
        p->neighbour[--p->first[p->target[e] + 1]] = p->source[e];
    }
    /* every end has become the beginning of its list */
    for (size_t i = 0; i < p->nodes; i++)
        p->first[i] = p->first[i + 1];
    p->first[p->nodes] = 2 * p->edges;
}

/* Breadth first from node i: its row of distances, and the size of its component. */
static void measure_from(placement *p, size_t i)
{
    uint16_t *row = p->distance + i * p->nodes;
    size_t head = 0, tail = 0;
    for (size_t j = 0; j < p->nodes; j++)
        row[j] = APART;
    row[i] = 0;
    p->queue[tail++] = (uint32_t)i;
    while (head < tail) {
        uint32_t from = p->queue[head++];
        for (size_t e = p->first[from]; e < p->first[from + 1]; e++)
            if (row[p->neighbour[e]] == APART) {
                row[p->neighbour[e]] = (uint16_t)(row[from] + 1);
                p->queue[tail++] = p->neighbour[e];
            }
    }
    p->size[i] = (uint32_t)tail;
}

static double distance_of(const placement *p, size_t i, size_t j)
{
    uint16_t d = p->distance[i * p->nodes + j];
    return d != APART ? d : 1 + APART_GAP * (sqrt(p->size[i]) + sqrt(p->size[j]));
}

static void move_pair(const placement *p, size_t i, size_t j, double step)
{
    mha_point *a = &p->at[i], *b = &p->at[j];
    double d = distance_of(p, i, j), x = a->x - b->x, y = a->y - b->y;
    double length = fmax(sqrt(x * x + y * y), 1e-9);
    double share = fmin(1, step / (d * d)) * (length - d) / 2 / length;
    a->x -= share * x;
    a->y -= share * y;
    b->x += share * x;
    b->y += share * y;
}

static void shuffle(placement *p)
{
    for (size_t i = p->nodes; i > 1; i--) {
        size_t j = mha_rng_below(&p->rng, i);
        uint32_t t = p->queue[i - 1];
        p->queue[i - 1] = p->queue[j];
        p->queue[j] = t;
    }
}

static void relax(placement *p)
{
    double side = sqrt((double)p->nodes), longest = 1;
    for (size_t i = 0; i < p->nodes; i++) {
        p->queue[i] = (uint32_t)i;
        p->at[i].x = side * mha_rng_uniform(&p->rng);
        p->at[i].y = side * mha_rng_uniform(&p->rng);
        for (size_t j = 0; j < p->nodes; j++)
            longest = fmax(longest, distance_of(p, i, j));
    }
    double shrink = pow(LAST_STEP / (longest * longest), 1.0 / (ROUNDS - 1));
    double step = longest * longest;
    for (size_t round = 0; round < ROUNDS; round++, step *= shrink) {
        shuffle(p);
        for (size_t i = 0; i < p->nodes; i++)
            for (size_t j = 0; j < i; j++)
                move_pair(p, p->queue[i], p->queue[j], step);
    }
}

static bool part_pair(mha_point *a, mha_point *b)
{
    double x = a->x - b->x, y = a->y - b->y, length = sqrt(x * x + y * y);
    if (length >= LEAST)
        return false;
    if (length < 1e-6) { /* on one spot: to the sides */
        x = length = 1e-6;
        y = 0;
    }
    double share = (LEAST - length) / 2 / length;
    a->x += share * x;
    a->y += share * y;
    b->x -= share * x;
    b->y -= share * y;
    return true;
}

static void part(const placement *p)
{
    bool moved = true;
    for (size_t round = 0; moved && round < PARTINGS; round++) {
        moved = false;
        for (size_t i = 0; i < p->nodes; i++)
            for (size_t j = 0; j < i; j++)
                moved |= part_pair(&p->at[i], &p->at[j]);
    }
}

/* The long axis becomes horizontal; node 0 lies at the left and above the middle. */
static void turn(const placement *p)
{
    double n = (double)p->nodes, mx = 0, my = 0, xx = 0, yy = 0, xy = 0;
    for (size_t i = 0; i < p->nodes; i++) {
        mx += p->at[i].x / n;
        my += p->at[i].y / n;
    }
    for (size_t i = 0; i < p->nodes; i++) {
        double x = p->at[i].x -= mx, y = p->at[i].y -= my;
        xx += x * x;
        yy += y * y;
        xy += x * y;
    }
    double angle = atan2(2 * xy, xx - yy) / 2, c = cos(angle), s = sin(angle);
    for (size_t i = 0; i < p->nodes; i++) {
        double x = p->at[i].x, y = p->at[i].y;
        p->at[i] = (mha_point){c * x + s * y, c * y - s * x};
    }
    double flip_x = p->at[0].x > 0 ? -1 : 1, flip_y = p->at[0].y > 0 ? -1 : 1;
    for (size_t i = 0; i < p->nodes; i++) {
        p->at[i].x *= flip_x;
        p->at[i].y *= flip_y;
    }
}

/* Into the box: what is wider than high stays so. */
static double fit(const placement *p)
{
    mha_point lo = p->at[0], hi = p->at[0];
    for (size_t i = 1; i < p->nodes; i++) {
        lo = (mha_point){fmin(lo.x, p->at[i].x), fmin(lo.y, p->at[i].y)};
        hi = (mha_point){fmax(hi.x, p->at[i].x), fmax(hi.y, p->at[i].y)};
    }
    double width = hi.x - lo.x, height = hi.y - lo.y, side = fmax(width, height);
    for (size_t i = 0; i < p->nodes; i++) {
        mha_point *a = &p->at[i];
        a->x = side > 0 ? (a->x - lo.x + (side - width) / 2) / side : 0.5;
        a->y = side > 0 ? (a->y - lo.y) / side : 0;
    }
    return side > 0 ? height / side : 0;
}

mha_status mha_placement_make(mha_point *out, double *height, size_t nodes, size_t edges,
                              const uint32_t *source, const uint32_t *target, mha_err *err)
{
    placement p = {.nodes = nodes, .edges = edges, .source = source, .target = target, .at = out};
    mha_status st;
    *height = 0;
    if (nodes > MHA_PLACEMENT_NODES)
        return mha_fail(err, MHA_ERR_LIMIT, "a picture of %zu nodes: at most %d", nodes,
                        MHA_PLACEMENT_NODES);
    MHA_TRY_GOTO(st, mha_alloc((void **)&p.first, nodes + 1, sizeof *p.first, err), end);
    MHA_TRY_GOTO(st, mha_alloc((void **)&p.neighbour, edges, 2 * sizeof *p.neighbour, err), end);
    MHA_TRY_GOTO(st, mha_alloc((void **)&p.distance, nodes * nodes, sizeof *p.distance, err), end);
    MHA_TRY_GOTO(st, mha_alloc((void **)&p.queue, nodes, sizeof *p.queue, err), end);
    MHA_TRY_GOTO(st, mha_alloc((void **)&p.size, nodes, sizeof *p.size, err), end);
    mha_rng_seed(&p.rng, SEED, 0);
    list_neighbours(&p);
    for (size_t i = 0; i < nodes; i++)
        measure_from(&p, i);
    if (nodes > 0) {
        relax(&p);
        part(&p);
        turn(&p);
        *height = fit(&p);
    }
end:
    mha_free(p.first);
    mha_free(p.neighbour);
    mha_free(p.distance);
    mha_free(p.queue);
    mha_free(p.size);
    return st;
}
