/* gates.c: gradients of gates against central differences of the naive double-precision pass: every
 * family and kind of head, both kinds of loss, gates of 1 and others, with and without fills, short
 * documents and such as take several row blocks. Prints the largest error of each model. */
#include "support/subject.h"
#include "support/test.h"
#include <math.h>
#include <stdlib.h>

static char models[][24] = {"bert-mlm",
                            "bert-class",
                            "bert-tf",
                            "roberta-mlm",
                            "roberta-class",
                            "distilbert-mlm",
                            "distilbert-class",
                            "gpt2-lm",
                            "gpt2-inverse",
                            "gpt2-class",
                            "gpt2-f16",
                            "gpt2-lm.gguf",
                            "llama-gqa",
                            "llama-gqa.gguf",
                            "llama-bf16",
                            "llama-rope3",
                            "mistral",
                            "qwen2",
                            "qwen3",
                            "qwen3.gguf",
                            "gemma3",
                            "gemma3.gguf",
                            "t5",
                            "t5-gated",
                            "t5-resaved",
                            "deberta-mlm",
                            "deberta-class",
                            "deberta-original",
                            "deberta-conv"};

/* Of gates and, in *loss_error, of losses. */
static double check(const subject *s, const subject_document *docs, size_t count,
                    double *loss_error)
{
    size_t n = s->info->attn_count * s->heads;
    mha_document *batch = calloc(count, sizeof *batch);
    double *loss = calloc(count, sizeof *loss), *ours = calloc(count * n, sizeof *ours);
    double *theirs = calloc(n, sizeof *theirs), worst = 0;
    for (size_t d = 0; d < count; d++)
        batch[d] = docs[d].doc;
    subject_gradient(s, batch, count, loss, ours);
    for (size_t d = 0; d < count; d++) {
        double reference = naive_loss(s->n, &docs[d].doc, docs[d].exact, NULL);
        subject_differences(s, &docs[d], theirs);
        double e = largest_error(ours + d * n, theirs, n), l = fabs(loss[d] - reference);
        if (!(e <= 1e-4))
            fail_msg("%s, document %zu: gate gradients differ by %g", s->name, d, e);
        if (!(l <= 1e-5 * (1 + fabs(reference))))
            fail_msg("%s, document %zu: loss differs by %g", s->name, d, l);
        worst = fmax(worst, e);
        *loss_error = fmax(*loss_error, l);
    }
    free(batch);
    free(loss);
    free(ours);
    free(theirs);
    return worst;
}

static void check_model(void **state)
{
    static const size_t lengths[] = {2, 7, 19};
    double worst = 0, losses = 0;
    subject s;
    subject_open(&s, *state, NULL, 0);
    for (int difference = 0; difference < 2; difference++)
        for (subject_gates g = 0; g < GATES_COUNT; g++) {
            subject_document d[3];
            for (size_t i = 0; i < 3; i++)
                subject_document_make(&d[i], &s, lengths[i], g, difference, 7 * g + i);
            worst = fmax(worst, check(&s, d, 3, &losses));
            for (size_t i = 0; i < 3; i++)
                subject_document_free(&d[i]);
        }
    print_message("note: %-18s gate gradients %.1e of the largest   losses %.1e\n", s.name, worst,
                  losses);
    subject_close(&s);
}

/* Several blocks of 64 rows, windows that leave whole blocks out, buckets beyond the last. */
static void check_long(void **state)
{
    double losses = 0;
    subject s;
    subject_document d[2];
    subject_open(&s, *state, NULL, 0);
    subject_document_make(&d[0], &s, 150, GATES_RANDOM, false, 1);
    subject_document_make(&d[1], &s, 64, GATES_FILL, false, 2);
    double worst = check(&s, d, 2, &losses);
    print_message("note: %-18s gate gradients %.1e of the largest, 150 tokens\n", s.name, worst);
    subject_document_free(&d[0]);
    subject_document_free(&d[1]);
    subject_close(&s);
}

int main(void)
{
    enum { MODELS = sizeof models / sizeof models[0], LONG = 6 };
    static char long_models[][20] = {"llama-rope3", "mistral",     "gemma3",
                                     "t5",          "deberta-mlm", "deberta-original"};
    struct CMUnitTest tests[MODELS + LONG];
    for (size_t i = 0; i < MODELS; i++)
        tests[i] = (struct CMUnitTest){models[i], check_model, NULL, NULL, models[i]};
    for (size_t i = 0; i < LONG; i++)
        tests[MODELS + i] =
            (struct CMUnitTest){"several row blocks", check_long, NULL, NULL, long_models[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
