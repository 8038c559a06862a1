/* concrete.c: see concrete.h.
 *
 *     c = σ((ln u − ln(1 − u) + ln α)/τ),   g = min(1, max(0, c(ζ − γ) + γ)),
 *     P(g ≠ 0) = σ(ln α − τ ln(−γ/ζ)),      τ = 0.33, γ = −0.1, ζ = 1.1 */
#include "analysis/concrete.h"
#include <math.h>
#include <stddef.h>

#define TAU   0.33
#define GAMMA (-0.1)
#define ZETA  1.1
#define EDGE  1e-6

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double clip(double x, double lo, double hi)
{
    return x < lo ? lo : x > hi ? hi : x;
}

mha_concrete mha_concrete_draw(double log_alpha, double uniform)
{
    double u = clip(uniform, EDGE, 1 - EDGE);
    double c = sigmoid((log(u) - log(1 - u) + log_alpha) / TAU);
    double s = c * (ZETA - GAMMA) + GAMMA;
    double slope = s > 0 && s < 1 ? (ZETA - GAMMA) * c * (1 - c) / TAU : 0;
    return (mha_concrete){clip(s, 0, 1), slope};
}

double mha_concrete_gate(double log_alpha)
{
    return clip(sigmoid(log_alpha) * (ZETA - GAMMA) + GAMMA, 0, 1);
}

double mha_concrete_open(double log_alpha, double *slope)
{
    double p = sigmoid(log_alpha - TAU * log(-GAMMA / ZETA));
    if (slope != NULL)
        *slope = p * (1 - p);
    return p;
}
