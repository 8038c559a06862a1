/* io_graph: graphs from JSON, and the edges that attention goes over. */
#include "support/test.h"

#include "io/graph.h"

#include <string.h>

static mha_graph *parse(const char *text)
{
    mha_graph *g;
    mha_err err = {0};
    if (mha_graph_parse(&g, text, strlen(text), "graph.json", &err) != MHA_OK)
        fail_msg("%s", err.message);
    return g;
}

static const char dense[] =
    "{\"num_nodes\": 3, \"edge_index\": [[0, 2, 2, 1, 0], [1, 2, 0, 1, 1]],"
    " \"x\": [[1, 2.5], [-3e-2, 0], [7, -8]], \"y\": [1, null, -1], \"name\": \"any\"}";

static void test_dense(void **state)
{
    static const uint32_t source[] = {0, 2, 2, 1, 0}, target[] = {1, 2, 0, 1, 1};
    static const float x[] = {1, 2.5f, -3e-2f, 0, 7, -8};
    static const int32_t y[] = {1, -1, -1};
    mha_graph *g = parse(dense);
    assert_int_equal(g->nodes, 3);
    assert_int_equal(g->features, 2);
    assert_int_equal(g->edges, 5);
    assert_memory_equal(g->source, source, sizeof source);
    assert_memory_equal(g->target, target, sizeof target);
    assert_memory_equal(g->x, x, sizeof x);
    assert_memory_equal(g->y, y, sizeof y);
    mha_graph_close(g);
}

static void test_sparse(void **state)
{
    static const float x[] = {0, 0, 1, 0, 0, 0, 1, 1, 0};
    mha_graph *g = parse("{\"x_sparse_rows\": [[2], [], [1, 0, 1]], \"num_features\": 3,"
                         " \"edge_index\": [[], []], \"num_nodes\": 3}");
    assert_int_equal(g->features, 3);
    assert_int_equal(g->edges, 0);
    assert_null(g->y);
    assert_memory_equal(g->x, x, sizeof x);
    mha_graph_close(g);
}

/* Loops of the graph go, one for each node comes last; or all stay as they are. */
static void test_edges(void **state)
{
    static const uint32_t source[] = {0, 2, 0, 0, 1, 2}, target[] = {1, 0, 1, 0, 1, 2};
    uint32_t from[8], to[8];
    mha_graph *g = parse(dense);
    assert_int_equal(mha_graph_edges(g, true, NULL, NULL), 6);
    assert_int_equal(mha_graph_edges(g, true, from, to), 6);
    assert_memory_equal(from, source, sizeof source);
    assert_memory_equal(to, target, sizeof target);
    assert_int_equal(mha_graph_edges(g, false, from, to), 5);
    assert_memory_equal(from, g->source, 5 * sizeof *from);
    assert_memory_equal(to, g->target, 5 * sizeof *to);
    mha_graph_close(g);
}

static void test_files(void **state)
{
    mha_graph *g;
    mha_err err = {0};
    assert_int_equal(mha_graph_open(&g, "no/such/graph.json", 0, &err), MHA_ERR_IO);
    assert_null(g);
    mha_graph_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
