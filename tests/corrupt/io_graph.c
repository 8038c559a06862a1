/* io_graph: broken graph files, each with the answer of the reader. */
#include "support/test.h"

#include "base/fail.h"
#include "io/graph.h"
#include "support/corruption.h"

#define FILE_NAME "graph.json"

static mha_status read_graph(const unsigned char *data, size_t n, mha_err *err)
{
    mha_graph *g;
    MHA_TRY(mha_graph_parse(&g, (const char *)data, n, FILE_NAME, err));
    mha_graph_close(g);
    return MHA_OK;
}

#define NODES "\"num_nodes\":2"
#define X     "\"x\":[[1],[2]]"
#define EDGES "\"edge_index\":[[0],[1]]"

static const corruption rows[] = {
    {"empty", "", MHA_ERR_FORMAT, ""},
    {"not JSON", "t|graph|", MHA_ERR_FORMAT, ""},
    {"a list", "t|[1,2]|", MHA_ERR_FORMAT, "not an object"},
    {"no nodes", "t|{" X "," EDGES "}|", MHA_ERR_FORMAT, "\"num_nodes\" is missing"},
    {"0 nodes", "t|{\"num_nodes\":0,\"x\":[]," EDGES "}|", MHA_ERR_FORMAT, "\"num_nodes\""},
    {"-1 nodes", "t|{\"num_nodes\":-1," X "," EDGES "}|", MHA_ERR_FORMAT, "\"num_nodes\""},
    {"2^31 nodes", "t|{\"num_nodes\":2147483648," X "," EDGES "}|", MHA_ERR_FORMAT,
     "\"num_nodes\""},
    {"2^70 nodes", "t|{\"num_nodes\":1180591620717411303424," X "," EDGES "}|", MHA_ERR_FORMAT,
     "\"num_nodes\""},
    {"half a node", "t|{\"num_nodes\":1.5," X "," EDGES "}|", MHA_ERR_FORMAT, "\"num_nodes\""},
    {"more nodes than rows", "t|{\"num_nodes\":2147483647," X "," EDGES "}|", MHA_ERR_FORMAT,
     "x has 2 rows for 2147483647 nodes"},
    {"no features", "t|{" NODES "," EDGES "}|", MHA_ERR_FORMAT,
     "neither \"x\" and \"x_sparse_rows\""},
    {"two kinds of features", "t|{" NODES "," EDGES "," X ",\"x_sparse_rows\":[[],[]]}|",
     MHA_ERR_FORMAT, "both \"x\" and"},
    {"features are a string", "t|{" NODES ",\"x\":\"a\"," EDGES "}|", MHA_ERR_FORMAT,
     "\"x\" is missing or not a list"},
    {"a row is a number", "t|{" NODES ",\"x\":[[1],2]," EDGES "}|", MHA_ERR_FORMAT,
     "x[1] is not a list"},
    {"the first row is a number", "t|{" NODES ",\"x\":[1,[2]]," EDGES "}|", MHA_ERR_FORMAT,
     "x[0] is not a list"},
    {"rows of two lengths", "t|{" NODES ",\"x\":[[1],[2,3]]," EDGES "}|", MHA_ERR_FORMAT,
     "x[1] has 2 features, x[0] has 1"},
    {"rows of no length", "t|{" NODES ",\"x\":[[],[]]," EDGES "}|", MHA_ERR_FORMAT,
     "0 features of each of 2 nodes"},
    {"NaN", "t|{" NODES ",\"x\":[[1],[NaN]]," EDGES "}|", MHA_ERR_FORMAT,
     "x[1][0] is not a finite number"},
    {"beyond float", "t|{" NODES ",\"x\":[[1],[1e39]]," EDGES "}|", MHA_ERR_FORMAT,
     "x[1][0] is not a finite number"},
    {"null among features", "t|{" NODES ",\"x\":[[null],[1]]," EDGES "}|", MHA_ERR_FORMAT,
     "x[0][0] is not a finite number"},
    {"sparse without a number of features", "t|{" NODES ",\"x_sparse_rows\":[[0],[0]]," EDGES "}|",
     MHA_ERR_FORMAT, "\"num_features\" is missing"},
    {"sparse beyond the features",
     "t|{" NODES ",\"num_features\":2,\"x_sparse_rows\":[[0],[2]]," EDGES "}|", MHA_ERR_FORMAT,
     "x_sparse_rows[1][0] is not a feature from 0 to 1"},
    {"a little file of huge features",
     "t|{" NODES ",\"num_features\":2147483647,\"x_sparse_rows\":[[0],[0]]," EDGES "}|",
     MHA_ERR_LIMIT, "2147483647 features of each of 2 nodes"},
    {"no edges", "t|{" NODES "," X "}|", MHA_ERR_FORMAT, "\"edge_index\" is missing"},
    {"one row of edges", "t|{" NODES "," X ",\"edge_index\":[[0]]}|", MHA_ERR_FORMAT,
     "edge_index is not a list of sources"},
    {"pairs of edges", "t|{" NODES "," X ",\"edge_index\":[[0,1],[1,0],[0,0]]}|", MHA_ERR_FORMAT,
     "edge_index is not a list of sources"},
    {"rows of numbers", "t|{" NODES "," X ",\"edge_index\":[0,1]}|", MHA_ERR_FORMAT,
     "edge_index is not a list of sources"},
    {"more sources than targets", "t|{" NODES "," X ",\"edge_index\":[[0,1],[1]]}|", MHA_ERR_FORMAT,
     "edge_index has 2 sources and 1 targets"},
    {"a source that is no node", "t|{" NODES "," X ",\"edge_index\":[[2],[1]]}|", MHA_ERR_FORMAT,
     "edge_index[0][0] is not a node from 0 to 1"},
    {"a negative target", "t|{" NODES "," X ",\"edge_index\":[[0],[-1]]}|", MHA_ERR_FORMAT,
     "edge_index[1][0] is not a node from 0 to 1"},
    {"a target of 2^32", "t|{" NODES "," X ",\"edge_index\":[[0],[4294967296]]}|", MHA_ERR_FORMAT,
     "edge_index[1][0] is not a node"},
    {"a real target", "t|{" NODES "," X ",\"edge_index\":[[0],[1.0]]}|", MHA_ERR_FORMAT,
     "edge_index[1][0] is not a node"},
    {"classes of too few nodes", "t|{" NODES "," X "," EDGES ",\"y\":[0]}|", MHA_ERR_FORMAT,
     "y has 1 classes for 2 nodes"},
    {"a class of -2", "t|{" NODES "," X "," EDGES ",\"y\":[0,-2]}|", MHA_ERR_FORMAT,
     "y[1] is neither a class nor null"},
    {"a class of a half", "t|{" NODES "," X "," EDGES ",\"y\":[0.5,0]}|", MHA_ERR_FORMAT,
     "y[0] is neither a class nor null"},
    {"classes are no list", "t|{" NODES "," X "," EDGES ",\"y\":1}|", MHA_ERR_FORMAT,
     "\"y\" is missing or not a list"},
    {"a key twice", "t|{" NODES "," NODES "," X "," EDGES "}|", MHA_ERR_FORMAT, "duplicate"},
    {"nested too deep", "t|{\"x\":| w91,100", MHA_ERR_LIMIT, "JSON"},
    {"classes are null", "t|{" NODES "," X "," EDGES ",\"y\":null}|", MHA_OK, ""},
    {"no edge at all", "t|{" NODES "," X ",\"edge_index\":[[],[]]}|", MHA_OK, ""},
};

static void test_table(void **state)
{
    corruption_run(rows, sizeof rows / sizeof *rows, read_graph, FILE_NAME);
}

static void test_sweep(void **state)
{
    corruption_sweep("t|{" NODES "," X "," EDGES ",\"y\":[1,null]}|", read_graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table), cmocka_unit_test(test_sweep)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
