/* pickle.h: what a pickle describes, as data. Nothing that it names is looked up, imported or
 * called: a call stays a node that says which call it would have been, and whoever reads the tree
 * takes those that it knows.
 *
 * Protocols 2 to 5, the opcodes of Python's pickletools that PyTorch writes and a few more; any
 * other is refused. So is the mere name of something that can only serve an attack (os.system). */
#ifndef MHA_IO_PICKLE_H
#define MHA_IO_PICKLE_H

#include "base/mem.h"
#include "io/cursor.h"
#include <stdbool.h>

#define MHA_PICKLE_NAME_MAX 4096

typedef enum mha_pickle_kind {
    MHA_PICKLE_NONE = 0,
    MHA_PICKLE_BOOL,
    MHA_PICKLE_INT,
    MHA_PICKLE_REAL,
    MHA_PICKLE_TEXT,
    MHA_PICKLE_BYTES, /* also whole numbers of more than 8 bytes, little-endian */
    MHA_PICKLE_TUPLE,
    MHA_PICKLE_LIST,
    MHA_PICKLE_DICT,
    MHA_PICKLE_GLOBAL,     /* text: "module.name" */
    MHA_PICKLE_PERSISTENT, /* items[0]: what identifies it */
    MHA_PICKLE_CALL        /* of `callee` with the tuple `args` */
} mha_pickle_kind;

typedef struct mha_pickle_value {
    mha_pickle_kind kind;
    int64_t integer; /* BOOL, INT */
    const char *text;
    size_t length; /* of text, behind which is a NUL */
    /* TUPLE, LIST: the items. DICT, and CALL when items were set on it: key, value, key, value, …
     */
    struct mha_pickle_value **items;
    size_t count, capacity;
    struct mha_pickle_value *callee, *args;
} mha_pickle_value;

typedef struct mha_pickle {
    mha_pickle_value *root;
    mha_pickle_value **persistent; /* all of them, in order */
    size_t persistent_count, persistent_capacity;
    mha_arena arena; /* owns the values */
} mha_pickle;

/* Reads one pickle from the cursor, which stands behind its STOP then. Values may share and even
 * contain each other: walk them with a bound. Release *out in any case.
 * MHA_ERR_FORMAT: broken; MHA_ERR_UNSUPPORTED: an opcode or a name that is not taken;
 * MHA_ERR_LIMIT: more than 1,000,000 values. */
mha_status mha_pickle_read(mha_pickle *out, mha_cursor *c, mha_err *err);
void mha_pickle_release(mha_pickle *p);

/* true for a call of this name; *args = its arguments. */
bool mha_pickle_is_call(const mha_pickle_value *v, const char *name, size_t least_args);
/* true for valid text of at most MHA_PICKLE_NAME_MAX bytes that has no NUL in it. The bound is
 * also one on time: a memo can name one long text a million times. */
bool mha_pickle_is_name(const mha_pickle_value *v);

#endif
