/* naive_private.h: what the files of the naive forward pass share. Not for tests. */
#ifndef MHA_TEST_NAIVE_PRIVATE_H
#define MHA_TEST_NAIVE_PRIVATE_H

#include "support/naive.h"

typedef struct pass {
    naive *n;
    const mha_document *doc;
    const double *gates;
    const naive_nudge *nudge;
    naive_result *out;
    const char *prefix; /* tried in front of every tensor's name, then left out */
    mha_stack_id stack;
    uint32_t layer;
    size_t capacity;
} pass;

/* ---- naive.c ---- */
double *pass_memory(pass *p, size_t count);
/* Value of a tensor by printf-style name; NULL when absent (`must`: fails the test instead). */
double *pass_tensor(pass *p, bool must, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
double config_number(const naive *n, const char *key, double otherwise);
const char *config_text(const naive *n, const char *key, const char *otherwise);
/* Adds the nudge when it is meant for this site of the current stack and layer. */
void pass_nudge(pass *p, mha_site site, mha_kind kind, double *x, size_t stride,
                size_t head_stride);

/* Keeps x [n], or gives back what was kept, see naive_frozen. */
void pass_freeze(pass *p, naive_part part, double *x, size_t n);

/* ---- naive_math.c: y is new memory unless it says "in place" ---- */
/* x[rows, in]·Wᵀ + b with NAME.weight [out, in] and NAME.bias where there is one. */
double *linear(pass *p, const double *x, size_t rows, size_t in, size_t out, const char *format,
               ...) __attribute__((format(printf, 6, 7)));
/* x·Wᵀ + b; with in_out W is [in, width] of which columns from … from + out − 1 count. */
double *product(pass *p, const double *x, size_t rows, size_t in, size_t out, const double *w,
                const double *b);
double *product_in_out(pass *p, const double *x, size_t rows, size_t in, size_t out,
                       const double *w, size_t width, size_t from, const double *b);
double *layer_norm(pass *p, const double *x, size_t rows, size_t n, const double *w,
                   const double *b, double eps);
double *rms_norm(pass *p, const double *x, size_t rows, size_t n, const double *w, double plus,
                 double eps);
void activate(const char *name, double *x, size_t n); /* in place */
void add(double *y, const double *x, size_t n);       /* in place */
void scale_by(double *x, size_t n, double factor);    /* in place */
/* Rotates the pairs of every head of x [rows, heads·K], in place; freq [K/2]. Interleaved pairs
 * come out in half-split order. */
void rotate(double *x, size_t rows, size_t heads, size_t K, const double *freq, bool pair);
/* theta^(−2i/K), stretched as the object under `key` says (none, linear, llama3). */
double *frequencies(pass *p, const char *key, size_t K, double otherwise);

/* ---- naive_attention.c ---- */
typedef struct attend_options {
    size_t heads, kv_heads, width;
    double scale;
    mha_kind kind;
    bool causal;
    size_t window;      /* causal: i − window < j; 0: none */
    const double *bias; /* [H, T, S] or NULL */
    const double *open; /* [T, H·K] factors of z before its gates, or NULL */
    /* score += scale·(q·rel_k[row] + rel_q[row]·k) with rel_row [T, S]; or NULL */
    const double *rel_k, *rel_q, *rel_row;
} attend_options;
/* Gated z [T, H·K] from q [T, H·K], k, v [S, G·K]. Nudges q, k, v, scores, pattern, z. */
double *attend(pass *p, const attend_options *o, double *q, double *k, double *v, size_t T,
               size_t S);

/* ---- naive_deberta.c ---- */
/* DeBERTa's scale and relative terms for self-attention over T tokens. */
void naive_relative(pass *p, attend_options *o, size_t T, size_t D, double eps);
/* What the first block gives: y, or that with the convolution of the block's input x. */
double *naive_convolved(pass *p, const double *x, double *y, size_t T, size_t D, double eps);

/* ---- families ---- */
void naive_encoder(pass *p); /* BERT, RoBERTa, DistilBERT, DeBERTa */
void naive_gpt2(pass *p);
void naive_llama(pass *p); /* and its relatives */
void naive_t5(pass *p);
/* Ends of the families: keep hidden [rows, D] and logits [rows, classes]. */
void pass_hidden(pass *p, double *x, size_t rows, size_t D);
void pass_logits(pass *p, double *logits, size_t rows, size_t classes);
/* Row 0, the last one or the mean, for classifiers. */
double *pass_pool(pass *p, const double *x, size_t rows, size_t D, bool last);

#endif
