/* rows.c: rows of floats with guards, for the tests of kernels. */
#include "support/rows.h"

#include "support/test.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { GUARD = 16, SMALL = 71 };

static const float guard_value = -12345.678F;
static const size_t large[] = {127, 255, 257, 511, 512, 513, 1023, 1025, 2047, 2185};

size_t row_length_count(void)
{
    return SMALL + sizeof large / sizeof *large;
}

size_t row_length(size_t i)
{
    return i < SMALL ? i : large[i - SMALL];
}

float *row_start(row *r, size_t n, size_t offset)
{
    assert_true(n <= ROW_MAX && offset <= GUARD);
    for (size_t i = 0; i < sizeof r->cells / sizeof *r->cells; i++)
        r->cells[i] = guard_value;
    r->start = offset;
    r->n = n;
    return r->cells + offset;
}

void row_check_guards(const row *r)
{
    for (size_t i = 0; i < sizeof r->cells / sizeof *r->cells; i++) {
        if (i < r->start || i >= r->start + r->n)
            assert_memory_equal(&r->cells[i], &guard_value, sizeof guard_value);
    }
}

void fill_uniform(float *x, size_t n, mha_rng *g, double lo, double hi)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(lo + (hi - lo) * mha_rng_uniform(g));
}

double ulp_distance(float got, double want)
{
    const float nearest = (float)want;

    if (isnan(want) || isnan(got))
        return isnan(want) && isnan(got) ? 0.0 : HUGE_VAL;
    if (isinf(got) || isinf(nearest))
        return got == nearest ? 0.0 : HUGE_VAL;
    int exponent;
    frexp(want, &exponent);
    const int lowest = FLT_MIN_EXP - FLT_MANT_DIG;
    const int spacing = exponent - FLT_MANT_DIG;
    return ldexp(fabs((double)got - want), -(spacing < lowest ? lowest : spacing));
}

size_t isas(const mha_kernels **out)
{
    const size_t count = mha_kernels_list(out, ISA_MAX);

    assert_true(count >= 1 && count <= ISA_MAX);
    assert_string_equal(out[0]->isa, "ref");
    return count;
}
