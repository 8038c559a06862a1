/* generate.c: texts that the reference wrote for the tiny models, token by token: greedy and beam
 * search under the rules of each generation_config.json (generate.N.npz). */
#include "mha/analysis.h"
#include "support/fixture.h"
#include "support/test.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH_MAX = 64 };

typedef struct writer {
    const char *name;
    mha_model *m;
    mha_engine *e;
    mha_generation rules;
} writer;

static void show(char *out, size_t cap, const int32_t *ids, size_t n)
{
    out[0] = '\0';
    for (size_t i = 0; i < n; i++)
        snprintf(out + strlen(out), cap - strlen(out), " %d", ids[i]);
}

static void check_text(const writer *w, const mha_document *doc, const fixture_array *want,
                       size_t beams, size_t length)
{
    int32_t ours[LENGTH_MAX], theirs[LENGTH_MAX];
    size_t n;
    double score;
    mha_err err = {0};
    mha_writing how = {.rules = &w->rules, .length = length, .beams = beams};
    assert_in_range(length, 1, LENGTH_MAX);
    if (mha_write(w->e, w->m, doc, &how, ours, &n, &score, &err) != MHA_OK)
        fail_msg("%s: %s", w->name, err.message);
    bool same = n == want->shape[0];
    for (size_t i = 0; i < want->shape[0] && i < LENGTH_MAX; i++) {
        theirs[i] = (int32_t)want->value[i];
        same = same && i < n && ours[i] == theirs[i];
    }
    char a[512], b[512];
    show(a, sizeof a, ours, n);
    show(b, sizeof b, theirs, (size_t)want->shape[0]);
    if (!same)
        fail_msg("%s, %s: wrote%s, the reference%s", w->name, want->name, a, b);
}

static void check_document(const writer *w, int n, size_t *texts)
{
    fixture f, g;
    if (!fixture_generate_open(&g, w->name, n))
        return;
    assert_true(fixture_open(&f, w->name, n));
    int32_t start = mha_model_info_get(w->m)->decoder_start;
    if (mha_model_info_get(w->m)->layers[MHA_ENC] > 0) {
        f.doc.target_ids = &start;
        f.doc.target_n = 1;
    }
    size_t length = (size_t)fixture_find(&g, "length")->value[0];
    for (size_t i = 0; i < g.count; i++) {
        const fixture_array *a = &g.array[i];
        if (strcmp(a->name, "greedy") == 0)
            check_text(w, &f.doc, a, 1, length);
        else if (strncmp(a->name, "beam.", 5) == 0)
            check_text(w, &f.doc, a, strtoul(a->name + 5, NULL, 10), length);
        else
            continue;
        (*texts)++;
    }
    fixture_close(&f);
    fixture_close(&g);
}

static void check_model(void **state)
{
    writer w = {.name = *state};
    char path[1024];
    size_t texts = 0;
    mha_err err = {0};
    fixture_path(path, sizeof path, w.name, NULL);
    if (mha_model_open(&w.m, path, NULL, &err) != MHA_OK ||
        mha_engine_new(&w.e, w.m, NULL, &err) != MHA_OK ||
        mha_model_generation(w.m, &w.rules, &err) != MHA_OK)
        fail_msg("%s", err.message);
    for (int n = 0; n < 2; n++)
        check_document(&w, n, &texts);
    assert_true(texts > 0);
    print_message("note: %-18s %zu texts, all tokens the same\n", w.name, texts);
    mha_generation_release(&w.rules);
    mha_engine_free(w.e);
    mha_model_close(w.m);
}

static bool has_texts(const char *model)
{
    fixture g;
    if (!fixture_generate_open(&g, model, 0))
        return false;
    fixture_close(&g);
    return true;
}

int main(void)
{
    static fixture_models models;
    static struct CMUnitTest tests[FIXTURE_MODELS_MAX];
    size_t n = 0;
    fixture_models_find(&models);
    for (size_t i = 0; i < models.count; i++)
        if (has_texts(models.name[i]))
            tests[n++] =
                (struct CMUnitTest){models.name[i], check_model, NULL, NULL, models.name[i]};
    return _cmocka_run_group_tests("generate", tests, n, NULL, NULL);
}
