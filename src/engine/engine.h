/* engine.h: what the files of the engine share: the engine, one forward pass over one batch, and
 * the table of ops. Nothing here or below knows a model family. */
#ifndef MHA_ENGINE_ENGINE_H
#define MHA_ENGINE_ENGINE_H

#include "base/pool.h"
#include "kernel/kernel.h"
#include "mha/run.h"
#include "model/program.h"
#include "probe/watch.h"

/* Query rows of one attention block, and rows of one task of the pointwise ops. */
#define MHA_BLOCK_ROWS 64
/* Tiles of matrix products. Fixed: results must not depend on the number of threads. */
#define MHA_TILE_ROWS     512
#define MHA_TILE_COLS     1024
#define MHA_TILE_COLS_MIN 64
#define MHA_TILES         8
/* Documents are packed into batches of about this many tokens; gradients keep more for each. */
#define MHA_BATCH_TOKENS    4096
#define MHA_GRADIENT_TOKENS 1024
/* Floats of an MLP's chunk of rows [rows, F]; products of fewer rows than the least pack their
 * matrices too often, and more than the most gain nothing. */
#define MHA_MLP_FLOATS     ((size_t)3 << 20)
#define MHA_MLP_LEAST_ROWS 1024
#define MHA_MLP_MOST_ROWS  4096
/* Floats of one chunk of logits, unless 8 rows are more. */
#define MHA_LOGITS_FLOATS ((size_t)32 << 20)
/* Products of at most this many rows multiply by the stored type directly. */
#define MHA_DIRECT_ROWS 4

/* Scratch that is kept from batch to batch and grows when a batch needs more. */
typedef enum mha_scratch {
    MHA_SCRATCH_X,
    MHA_SCRATCH_B,
    MHA_SCRATCH_C,
    MHA_SCRATCH_E,
    MHA_SCRATCH_LINEAR, /* a linear step's output before it becomes its register */
    MHA_SCRATCH_Q,
    MHA_SCRATCH_K,
    MHA_SCRATCH_V,
    MHA_SCRATCH_Q_GLOBAL, /* queries of the global tokens, or of all; then their gradient */
    MHA_SCRATCH_K_GLOBAL,
    MHA_SCRATCH_V_GLOBAL,
    MHA_SCRATCH_GATHER, /* source rows of the global tokens; then their gradient */
    MHA_SCRATCH_UP,
    MHA_SCRATCH_GATE,
    MHA_SCRATCH_WIDE,      /* one weight matrix widened to float */
    MHA_SCRATCH_SCORES,    /* [threads] score rows of a block: [64, S] or less */
    MHA_SCRATCH_SPANS,     /* [threads] which keys a block and its rows see */
    MHA_SCRATCH_STATS,     /* [threads][64] row statistics */
    MHA_SCRATCH_BIAS,      /* [threads][T + S] position bias of one head */
    MHA_SCRATCH_REL_ROWS,  /* row of the table of relative positions for every distance */
    MHA_SCRATCH_REL_TABLE, /* those rows, normed */
    MHA_SCRATCH_REL_KEYS,  /* [2] what they are projected to */
    MHA_SCRATCH_REL_TILES, /* [threads] their terms in one tile of scores */
    MHA_SCRATCH_OUT,       /* [threads][64, D] one head's output, or a chunk of logits */
    MHA_SCRATCH_LISTS,     /* where the edges of each node and each document of a batch begin */
    MHA_SCRATCH_EDGES,     /* the edges of a batch of graphs */
    MHA_SCRATCH_ROWS,      /* rows of X that the read-out needs */
    MHA_SCRATCH_DREAD,     /* gradient where the read-out starts */
    MHA_SCRATCH_DX,        /* gradients of the registers */
    MHA_SCRATCH_DB,
    MHA_SCRATCH_DC,
    MHA_SCRATCH_DE,
    MHA_SCRATCH_DZ,
    MHA_SCRATCH_DK,
    MHA_SCRATCH_DV,
    MHA_SCRATCH_DK_GLOBAL,
    MHA_SCRATCH_DV_GLOBAL,
    MHA_SCRATCH_DREL_KEYS, /* gradients of MHA_SCRATCH_REL_KEYS */
    MHA_SCRATCH_DREL_TABLE,
    MHA_SCRATCH_DUP,
    MHA_SCRATCH_DGATE,
    MHA_SCRATCH_PAIR,  /* [threads][2][64, S] gradients of scores and softcap factors */
    MHA_SCRATCH_DROW,  /* what a backward op adds into a live register */
    MHA_SCRATCH_DGAIN, /* factors of the gradient of a norm's gains */
    MHA_SCRATCH_COUNT
} mha_scratch;

/* Cosines and sines of one set of rotary frequencies, for positions 0 … positions − 1. */
typedef struct mha_rotary {
    const float *freq;
    uint32_t half;
    float mscale;
    size_t positions;
    float *cos, *sin; /* [positions, half] */
} mha_rotary;

#define MHA_ROTARY_KINDS 4

struct mha_engine {
    const mha_model *model;
    const mha_kernels *kernels;
    mha_pool *pool;
    uint64_t memory_limit;
    void *scratch[MHA_SCRATCH_COUNT];
    size_t scratch_bytes[MHA_SCRATCH_COUNT];
    mha_rotary rotary[MHA_ROTARY_KINDS];
    size_t rotary_count, rotary_next; /* the place that a new kind takes when all are taken */
    double multiply_adds, readout_multiply_adds; /* counted as products run; the second a part */
};

/* Tokens of one side (a stack's own input) of the batch: document d has rows offset[d] …
 * offset[d + 1] − 1 of the packed matrix. */
typedef struct mha_rows {
    size_t *offset; /* [docs + 1] */
    size_t docs, total;
    size_t past;       /* rows that came before in a key/value cache; then there is one document */
    uint32_t *special; /* positions of special tokens, document after document */
    size_t *special_offset; /* [documents + 1]; NULL: a document has no flags */
} mha_rows;

/* Keys and values of one attention step kept between the steps of a generation. */
typedef struct mha_kv_cache {
    float *k, *v; /* [capacity, G·K] */
    bool filled;  /* cross-attention: projected once */
} mha_kv_cache;

/* A run of consecutive query rows that one attention task works on: whole blocks of one long
 * document or several short documents. */
typedef struct mha_work {
    size_t document, first; /* first block: rows `first` … of `document` */
    size_t blocks;
} mha_work;

/* How much of the last attention step that anybody wants has to be computed. */
typedef enum mha_depth { MHA_DEPTH_SCORES, MHA_DEPTH_Z, MHA_DEPTH_FULL } mha_depth;

/* What has to run at all, worked out before anything does. */
typedef struct mha_stack_plan {
    bool runs;         /* anything at all */
    uint32_t layers;   /* blocks that run */
    size_t last_steps; /* steps of the last of them; all when the epilogue runs */
    mha_depth last_depth;
    bool epilogue;
} mha_stack_plan;

typedef struct mha_plan {
    mha_stack_plan stack[2];
    bool head;
    bool widens; /* every matrix is needed as floats, by the reverse pass or by branches */
    mha_plan_info info;
} mha_plan;

/* What the reverse pass needs of one step that ran. Buffers belong to the tape; NULL where the op
 * has no use for them. */
typedef struct mha_saved {
    const mha_step *step;
    uint32_t layer;
    size_t at, attn;      /* stack and attention step */
    size_t rows, width;   /* of the source register */
    float *x;             /* NORM, ACT: the source; LINEAR, ATTN, MLP: only for weight gradients */
    float *q, *k, *v, *z; /* ATTN: after norm and rotary; z before the heads' gates */
    float *k_global, *v_global; /* ATTN with global tokens, else NULL */
    float *q_in, *k_in;         /* ATTN with per-head norms: before them */
    float *lse;                 /* ATTN: [H, Nq] log-sum-exp of each row */
    float *open, *opened;       /* ATTN with an output gate: the gate, and z before it */
    float *up, *gate;           /* MLP: before the activation */
    float *y;                   /* MLP, for the direct pass: what it gave */
} mha_saved;

/* What the tape is for: gradients of gates and sites, those of weights too, or the direct pass. */
typedef enum mha_keeping {
    MHA_KEEP_NOTHING,
    MHA_KEEP_STEPS,
    MHA_KEEP_SOURCES,
    MHA_KEEP_DIRECT
} mha_keeping;

typedef struct mha_tape {
    mha_saved *step;
    size_t count, capacity;
    struct mha_tape_buffer {
        float *at;
        size_t floats;
    } * buffer;
    size_t used, owned, buffer_capacity; /* those from `used` on wait for the next pass */
    mha_pool *pool;
} mha_tape;

/* Ascending positions of a document's global tokens. */
typedef struct mha_global_tokens {
    const uint32_t *at;
    size_t count;
} mha_global_tokens;

/* One forward pass over one batch of documents. */
typedef struct mha_forward {
    mha_engine *e;
    const struct mha_model *m;
    const mha_kernels *k;
    const mha_watch *watch;
    const mha_plan *plan;
    const mha_document *docs; /* of this batch */
    size_t doc_count, first_document;
    mha_rows side[2];           /* inputs of stack 0 and 1 */
    mha_global_tokens *globals; /* [documents] of stack 0, of a model that has some, else NULL */
    uint32_t *global_positions; /* what they point to */

    size_t at; /* the stack that runs: index into m->stack and side */
    uint32_t layer;
    size_t attn; /* index of the current attention step in info.attn */
    mha_depth depth;
    float *reg[MHA_REGISTER_COUNT];
    size_t reg_rows[MHA_REGISTER_COUNT], reg_width[MHA_REGISTER_COUNT];
    mha_work *work;              /* attention tasks of the current side */
    size_t work_count, work_at;  /* the stack whose queries they are */
    mha_kv_cache *cache;         /* [attn_count] or NULL */
    size_t gate_stride;          /* row length of a document's gates: most heads of any step */
    float *logits_out;           /* a generation's own: gets the last row's logits, or NULL */
    struct mha_readout *readout; /* losses wanted instead of logits for probes, or NULL */
    mha_tape *tape;              /* NULL: nothing is kept */
    mha_saved *saved;            /* the current step's record, with a tape */
    mha_keeping keeping;         /* what the tape keeps */
    float *embedded;             /* direct pass: X before the first block, kept by the tape */
    float **inputs;              /* [parts] X before every part is copied there, or NULL */
    size_t *starts;              /* [parts + 1] first record of every part and of the head */
    mha_tape *head_tape;         /* the tape from the read-out on, when blocks are not recorded */
    struct mha_fork *fork;   /* a leave-one-out sweep: documents branch at every attention step */
    const size_t *memory_of; /* [documents] whose encoder memory each reads; NULL: its own */
    bool keep_memory;        /* the encoder's memory is there from an earlier step */
    mha_progress progress;
    void *progress_context;
    double done, total; /* work of the whole run, in tokens·layers */
} mha_forward;

/* Cosines and sines of an attention step, for documents whose length calls for them. */
typedef struct mha_rotary_pair {
    const mha_attn_args *a;
    const mha_rotary *usual, *longer; /* NULL: no rotary; no document needs it */
} mha_rotary_pair;
/* Fills *out for the documents of `rows`. */
mha_status mha_rotary_get(mha_engine *e, const mha_attn_args *a, const mha_rows *rows,
                          mha_rotary_pair *out, mha_err *err);
/* The tables of a document of `length` tokens, NULL without rotary. */
const mha_rotary *mha_rotary_of(const mha_rotary_pair *pair, size_t length);

/* Scratch of at least count floats (bytes for STATS); contents are undefined. */
mha_status mha_scratch_get(mha_engine *e, mha_scratch which, size_t count, size_t size, void **out,
                           mha_err *err);

/* Works out which layers and steps have to run; read_out asks for logits whatever probes want. */
void mha_plan_make(mha_plan *plan, const struct mha_model *m, const mha_watch *watch,
                   bool read_out);
/* Adds memory, multiply-adds and batches for these documents. */
mha_status mha_plan_cost(mha_plan *plan, const mha_engine *e, const mha_watch *watch,
                         const mha_document *docs, size_t count, mha_err *err);
/* Work of a whole run in tokens·layers, for progress. */
double mha_plan_work(const mha_plan *p, const struct mha_model *m, const mha_document *docs,
                     size_t count);
/* MHA_ERR_NOMEM when `bytes` is over the engine's limit. */
mha_status mha_plan_check(const mha_engine *e, uint64_t bytes, mha_err *err);
/* Memory of a pass with losses and what is kept for its reverse: the whole tape, or, when that is
 * over the limit, the tape of one block (*recompute). */
mha_status mha_plan_gradient(mha_plan *plan, const mha_engine *e, const mha_watch *watch,
                             const mha_document *docs, size_t count, size_t tokens,
                             mha_keeping keeping, bool *recompute, mha_err *err);
/* How many documents from `first` on form the next batch. Depends on the documents only. */
size_t mha_batch_count(const mha_document *docs, size_t count, size_t first, size_t tokens);
/* Rows of one chunk of an MLP of `rows` rows that is `width` wide. */
size_t mha_mlp_chunk(size_t rows, size_t width);
/* Tokens of a document on the side of stack i. */
size_t mha_side_tokens(const struct mha_model *m, const mha_document *doc, size_t i);
/* Tokens up to the first separator, it included; 1 where there is none. */
size_t mha_question_rows(const mha_document *doc, uint32_t separator);

/* Offsets and special positions of both sides; release also frees the work list. */
mha_status mha_batch_init(mha_forward *f, mha_err *err);
void mha_batch_release(mha_forward *f);
/* The attention tasks of the side that runs now. */
mha_status mha_batch_work(mha_forward *f, mha_err *err);

/* Runs one batch; forward.c. */
mha_status mha_forward_run(mha_forward *f, mha_err *err);
/* Parts of a stack: 0 the prologue, l + 1 block l, layers + 1 the epilogue. */
size_t mha_forward_part(const struct mha_model *m, size_t at, uint32_t part);
/* Runs a part once more from its kept input. */
mha_status mha_forward_again(mha_forward *f, size_t at, uint32_t part, mha_err *err);
/* Hands x [rows, heads·width] to the probes that want `site`, head by head, document by document.
 * `kind` is of the current attention step, MHA_SELF for sites of layers. */
mha_status mha_forward_deliver(const mha_forward *f, const mha_watch *watch, mha_site site,
                               mha_kind kind, uint32_t layer, const float *x, const mha_rows *rows,
                               uint32_t heads, size_t width, mha_err *err);

/* One op = one file with its forward (and its backward beside it). */
typedef mha_status (*mha_op_forward)(mha_forward *f, const mha_step *s, mha_err *err);
mha_status mha_op_embed(mha_forward *f, const mha_step *s, mha_err *err);
mha_status mha_op_conv(mha_forward *f, const mha_step *s, mha_err *err);
mha_status mha_op_linear(mha_forward *f, const mha_step *s, mha_err *err);
mha_status mha_op_norm(mha_forward *f, const mha_step *s, mha_err *err);
mha_status mha_op_attn(mha_forward *f, const mha_step *s, mha_err *err);
mha_status mha_op_mlp(mha_forward *f, const mha_step *s, mha_err *err);
mha_status mha_op_act(mha_forward *f, const mha_step *s, mha_err *err);
mha_status mha_op_scale(mha_forward *f, const mha_step *s, mha_err *err);
mha_status mha_op_add(mha_forward *f, const mha_step *s, mha_err *err);
mha_status mha_op_pool(mha_forward *f, const mha_step *s, mha_err *err);
mha_status mha_op_logits(mha_forward *f, const mha_step *s, mha_err *err);

/* The row that a POOL of one row reads of a document with `rows` rows; false when the token that it
 * looks for is not there. */
bool mha_pool_row(const mha_pool_args *a, const mha_document *doc, size_t rows, size_t *row);

/* Makes register `r` [rows, width] and returns its memory. */
mha_status mha_register_make(mha_forward *f, mha_register r, size_t rows, size_t width, float **out,
                             mha_err *err);

/* The document that packed row `row` belongs to. */
size_t mha_rows_document(const mha_rows *rows, size_t docs, size_t row);

/* Rows of the chunks in which `rows` rows of logits are made: as even as can be, because every
 * chunk packs the read-out matrix anew. */
size_t mha_logits_chunk(size_t rows, size_t vocab);

/* Rows of a document that a CONV unfolds at once. */
size_t mha_conv_chunk(const mha_conv_args *a, size_t rows);

/* Rows of the longest document. */
size_t mha_rows_longest(const mha_rows *rows);

/* Runs a document of which tokens were generated, step by step; `number`: its place in the run. */
mha_status mha_decoder_replay(mha_engine *e, const mha_document *doc, size_t number,
                              const mha_watch *watch, mha_err *err);
/* Calls task(f, …) for row ranges of MHA_BLOCK_ROWS rows in parallel. */
typedef struct mha_row_range {
    size_t first, count;
} mha_row_range;
typedef mha_status (*mha_rows_fn)(void *context, mha_row_range rows, mha_err *err);
mha_status mha_rows_run(mha_forward *f, size_t rows, mha_rows_fn fn, void *context, mha_err *err);

/* Where the pass is, for messages: "enc layer 3". */
void mha_forward_place(const mha_forward *f, char *out, size_t cap);

#endif
