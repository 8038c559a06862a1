/* concrete.h: the hard-concrete distribution of a gate (Louizos et al. 2018), with the constants of
 * Voita et al. 2019: a number in [0, 1] that is 0 or 1 with positive probability, and has a
 * derivative by its parameter ln α. */
#ifndef MHA_ANALYSIS_CONCRETE_H
#define MHA_ANALYSIS_CONCRETE_H

typedef struct mha_concrete {
    double gate, slope; /* g and ∂g/∂ln α */
} mha_concrete;

/* A draw; uniform is in [0, 1) and is kept off its ends. */
mha_concrete mha_concrete_draw(double log_alpha, double uniform);
/* The gate without noise: exactly 0 or 1 at |ln α| ≥ 2.3979. */
double mha_concrete_gate(double log_alpha);
/* P(g ≠ 0), and its derivative by ln α in *slope (may be NULL). */
double mha_concrete_open(double log_alpha, double *slope);

#endif
