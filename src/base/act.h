/* act.h: the activation functions that occur in Transformers. */
#ifndef MHA_BASE_ACT_H
#define MHA_BASE_ACT_H

typedef enum mha_act {
    MHA_ACT_NONE = 0,
    MHA_ACT_GELU,       /* x·Φ(x), by erf */
    MHA_ACT_GELU_TANH,  /* ½x(1 + tanh(√(2/π)(x + 0.044715x³))) */
    MHA_ACT_QUICK_GELU, /* x·σ(1.702x) */
    MHA_ACT_SILU,       /* x·σ(x) */
    MHA_ACT_RELU,
    MHA_ACT_TANH,
    MHA_ACT_ELU, /* x for x > 0, e^x − 1 otherwise */
    MHA_ACT_COUNT
} mha_act;

#endif
