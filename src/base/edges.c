/* edges.c: the edges that attention over a graph goes over. Both who computes the weights and who
 * names or draws them ask here, so that their orders cannot differ. */
#include "mha/input.h"

size_t mha_graph_edges(const mha_graph *g, bool self_loops, uint32_t *source, uint32_t *target)
{
    size_t n = 0;
    for (size_t e = 0; e < g->edges; e++) {
        if (self_loops && g->source[e] == g->target[e])
            continue;
        if (source != NULL)
            source[n] = g->source[e];
        if (target != NULL)
            target[n] = g->target[e];
        n++;
    }
    for (uint32_t i = 0; self_loops && i < g->nodes; i++, n++) {
        if (source != NULL)
            source[n] = i;
        if (target != NULL)
            target[n] = i;
    }
    return n;
}
