/* graph_fuzz: the graph reader on any bytes. What it accepts is whole: every end is a node, every
 * feature finite. */
#include "io/graph.h"

#include <math.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mha_graph *g;
    mha_err err = {0};
    if (mha_graph_parse(&g, (const char *)data, size, "fuzz", &err) != MHA_OK)
        return 0;
    for (size_t e = 0; e < g->edges; e++)
        if (g->source[e] >= g->nodes || g->target[e] >= g->nodes)
            abort();
    for (size_t i = 0; i < (size_t)g->nodes * g->features; i++)
        if (!isfinite(g->x[i]))
            abort();
    for (size_t i = 0; g->y && i < g->nodes; i++)
        if (g->y[i] < -1)
            abort();
    if (mha_graph_edges(g, true, NULL, NULL) > g->edges + g->nodes)
        abort();
    mha_graph_close(g);
    return 0;
}
