/* graph.h: reading a graph (mha/input.h) from memory. */
#ifndef MHA_IO_GRAPH_H
#define MHA_IO_GRAPH_H

#include "mha/input.h"

/* text[0..n) is only read during the call. `file` is used in messages. */
mha_status mha_graph_parse(mha_graph **out, const char *text, size_t n, const char *file,
                           mha_err *err);

#endif
