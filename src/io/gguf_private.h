/* gguf_private.h: the inside of mha_gguf, shared by the parser and the getters only. */
#ifndef MHA_IO_GGUF_PRIVATE_H
#define MHA_IO_GGUF_PRIVATE_H

#include "base/map.h"
#include "io/gguf.h"

struct mha_gguf {
    char *file; /* for messages */
    mha_gguf_entry *entries;
    size_t entry_count;
    mha_map by_key;
};

#endif
