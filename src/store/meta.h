/* meta.h: the metadata tree behind mha_meta. A tree lives in its table's arena, so nothing of it is
 * freed alone. */
#ifndef MHA_STORE_META_H
#define MHA_STORE_META_H

#include "base/mem.h"
#include "mha/table.h"

#include <stdio.h>

typedef enum mha_meta_type {
    META_NULL = 0,
    META_TEXT,
    META_INT,
    META_REAL,
    META_BOOL,
    META_NODE,
} mha_meta_type;

typedef struct mha_meta_entry {
    struct mha_meta_entry *next;
    const char *name; /* NULL in a list */
    mha_meta_type type;
    union {
        const char *text;
        int64_t integer;
        double real;
        bool boolean;
        mha_meta *node;
    } as;
} mha_meta_entry;

struct mha_meta {
    mha_arena *arena;
    mha_meta_entry *first, *last;
    bool list;
};

mha_status mha_meta_new(mha_meta **out, mha_arena *arena, bool list, mha_err *err);
/* The entry of that name; NULL when there is none. */
mha_meta_entry *mha_meta_find(const mha_meta *m, const char *name);
/* Adds an entry without a look whether the name is there already. */
mha_status mha_meta_append(mha_meta_entry **out, mha_meta *m, const char *name, mha_err *err);
/* Writes m as JSON on one line. */
void mha_meta_write(const mha_meta *m, FILE *f);

#endif
