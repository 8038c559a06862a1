/* own.c: losses of the caller's own. Cross-entropy written by a caller is the engine's, loss and
 * gradients of gates; and the gradients of a loss that the engine knows nothing of are its central
 * differences over gates by the naive pass. One and two stacks, heads that pool, a softcap. */
#include "support/subject.h"
#include "support/test.h"
#include <math.h>
#include <stdlib.h>

static char models[][16] = {"gpt2-lm", "gemma3", "t5", "bert-mlm", "bert-class"};
#define MODELS (sizeof models / sizeof *models)

static double cross_entropy(void *context, const mha_prediction *p, const float *logits, size_t n,
                            float *gradient)
{
    (void)context;
    double max = -INFINITY, sum = 0;
    for (size_t i = 0; i < n; i++)
        max = fmax(max, (double)logits[i]);
    for (size_t i = 0; i < n; i++)
        sum += exp((double)logits[i] - max);
    for (size_t i = 0; gradient != NULL && i < n; i++)
        gradient[i] = (float)(exp((double)logits[i] - max) / sum - (i == (size_t)p->id));
    return max + log(sum) - (double)logits[p->id];
}

/* ½·Σ s²·a, with a of the context. */
static double squares(void *context, const mha_prediction *p, const float *logits, size_t n,
                      float *gradient)
{
    (void)p;
    double a = *(const double *)context, sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += 0.5 * a * (double)logits[i] * (double)logits[i];
    for (size_t i = 0; gradient != NULL && i < n; i++)
        gradient[i] = (float)(a * (double)logits[i]);
    return sum;
}

static double undefined(void *context, const mha_prediction *p, const float *logits, size_t n,
                        float *gradient)
{
    (void)context, (void)p, (void)logits, (void)n, (void)gradient;
    return (double)NAN;
}

static void check_cross_entropy(const subject *s, subject_document *d)
{
    size_t n = s->info->attn_count * s->heads;
    const mha_own_loss own = {cross_entropy, NULL};
    double *want = calloc(n, sizeof *want), *got = calloc(n, sizeof *got), loss[2];
    subject_gradient(s, &d->doc, 1, &loss[0], want);
    d->doc.own = &own;
    subject_gradient(s, &d->doc, 1, &loss[1], got);
    d->doc.own = NULL;
    double error = largest_error(got, want, n);
    if (!(fabs(loss[0] - loss[1]) <= 1e-5 && error <= 1e-5))
        fail_msg("%s: loss %.9g, its own %.9g; gradients differ by %g", s->name, loss[0], loss[1],
                 error);
    free(want);
    free(got);
}

/* The same loss of the naive pass, in double. */
static double squares_at(const subject *s, subject_document *d, size_t gate, double value, double a)
{
    naive_result r;
    double kept = d->exact[gate], sum = 0;
    d->exact[gate] = value;
    naive_run(s->n, &d->doc, d->exact, NULL, &r);
    d->exact[gate] = kept;
    for (size_t t = 0; t < d->doc.predict_n; t++)
        for (size_t i = 0; i < r.classes; i++) {
            double x = r.logits[d->doc.predict[t].row * r.classes + i];
            sum += 0.5 * a * x * x;
        }
    naive_result_release(&r);
    return sum / (double)d->doc.predict_n;
}

static void check_squares(const subject *s, subject_document *d)
{
    size_t n = s->info->attn_count * s->heads;
    double a = 0.25, loss, *got = calloc(n, sizeof *got), *want = calloc(n, sizeof *want);
    const mha_own_loss own = {squares, &a};
    d->doc.own = &own;
    subject_gradient(s, &d->doc, 1, &loss, got);
    d->doc.own = NULL;
    for (size_t g = 0; g < n; g++) {
        double x = d->exact[g];
        want[g] =
            (squares_at(s, d, g, x + SUBJECT_STEP, a) - squares_at(s, d, g, x - SUBJECT_STEP, a)) /
            (2 * SUBJECT_STEP);
    }
    double reference = squares_at(s, d, 0, d->exact[0], a), error = largest_error(got, want, n);
    print_message("note: %-12s a caller's loss against differences of the naive pass: %.1e\n",
                  s->name, error);
    assert_true(error <= 1e-4);
    assert_true(fabs(loss - reference) <= 1e-5 * (1 + fabs(reference)));
    free(got);
    free(want);
}

static void check_model(void **state)
{
    subject s;
    subject_document d;
    subject_open(&s, *state, NULL, 0);
    subject_document_make(&d, &s, 9, GATES_RANDOM, false, 3);
    check_cross_entropy(&s, &d);
    check_squares(&s, &d);
    subject_document_free(&d);
    subject_close(&s);
}

/* Logits behind a softcap, which the naive pass does not have for this family. */
static void check_softcap(void **state)
{
    (void)state;
    subject s;
    subject_document d;
    subject_open(&s, "gemma2", NULL, 0);
    subject_document_make(&d, &s, 9, GATES_RANDOM, false, 3);
    check_cross_entropy(&s, &d);
    subject_document_free(&d);
    subject_close(&s);
}

static void refusals(void **state)
{
    (void)state;
    subject s;
    subject_document d;
    mha_direct direct;
    double loss;
    mha_err err = {0};
    const mha_own_loss own = {undefined, NULL};
    subject_open(&s, "gpt2-lm", NULL, 0);
    subject_document_make(&d, &s, 5, GATES_NONE, false, 3);
    d.doc.own = &own;
    assert_int_equal(mha_engine_loss(s.e, &d.doc, 1, &loss, NULL, NULL, NULL, &err),
                     MHA_ERR_NUMERIC);
    assert_string_equal(err.message, "the caller's loss: NaN or infinity");
    mha_gradient out = {.loss = &loss, .direct = &direct};
    assert_int_equal(mha_engine_gradient(s.e, &d.doc, 1, &out, NULL, NULL, &err), MHA_ERR_ARG);
    subject_document_free(&d);
    subject_close(&s);
}

int main(void)
{
    struct CMUnitTest tests[MODELS + 2] = {cmocka_unit_test(refusals),
                                           cmocka_unit_test(check_softcap)};
    for (size_t i = 0; i < MODELS; i++)
        tests[2 + i] = (struct CMUnitTest){models[i], check_model, NULL, NULL, models[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
