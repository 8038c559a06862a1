/* generation.c: how a checkpoint wants its texts written, as generation_config.json (older ones:
 * config.json) says it. It reads one small JSON file and no tensors. */
#include "base/fail.h"
#include "base/mem.h"
#include "io/json.h"
#include "model/program.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Keys that change what the reference writes, with the number that does not. */
static const struct {
    const char *key;
    double neutral;
} ignored[] = {
    {"encoder_repetition_penalty", 1},
    {"encoder_no_repeat_ngram_size", 0},
    {"exponential_decay_length_penalty", 0},
    {"sequence_bias", 0},
    {"num_beam_groups", 1},
    {"diversity_penalty", 0},
    {"guidance_scale", 1},
    {"penalty_alpha", 0},
    {"watermarking_config", 0},
    {"forced_words_ids", 0},
    {"constraints", 0},
};

static void note_ignored(mha_generation *g, const char *what)
{
    size_t n = strlen(g->ignored);
    snprintf(g->ignored + n, sizeof g->ignored - n, "%s%s", n > 0 ? ", " : "", what);
}

static void find_ignored(mha_generation *g, const json_t *config)
{
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) {
        const json_t *j = json_object_get(config, ignored[i].key);
        if (j == NULL || json_is_null(j) || json_is_false(j) ||
            (json_is_number(j) && json_number_value(j) == ignored[i].neutral))
            continue;
        note_ignored(g, ignored[i].key);
    }
}

static mha_status push_id(mha_ids *list, int32_t id, mha_err *err)
{
    if ((list->count & (list->count - 1)) == 0)
        MHA_TRY(mha_grow((void **)&list->id, list->count, list->count == 0 ? 1 : 2 * list->count,
                         sizeof *list->id, err));
    list->id[list->count++] = id;
    return MHA_OK;
}

static mha_status add_id(mha_ids *list, const struct mha_model *m, const json_t *j, mha_err *err)
{
    json_int_t id = json_is_integer(j) ? json_integer_value(j) : -1;
    return id < 0 || id >= (json_int_t)m->vocab ? MHA_OK : push_id(list, (int32_t)id, err);
}

/* A number or a list of numbers. */
static mha_status read_ids(mha_ids *list, const struct mha_model *m, const json_t *j, mha_err *err)
{
    if (!json_is_array(j))
        return add_id(list, m, j, err);
    for (size_t i = 0; i < json_array_size(j); i++)
        MHA_TRY(add_id(list, m, json_array_get(j, i), err));
    return MHA_OK;
}

static bool is_end(const mha_generation *g, const json_t *j)
{
    for (size_t i = 0; i < g->ends.count; i++)
        if (json_is_integer(j) && json_integer_value(j) == g->ends.id[i])
            return true;
    return false;
}

/* Bad words of one token; the reference leaves out those that are the end token. */
static mha_status read_bad_words(mha_generation *g, const struct mha_model *m, const json_t *list,
                                 mha_err *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *word = json_array_get(list, i);
        if (json_array_size(word) > 1)
            note_ignored(g, "bad_words_ids of several tokens");
        else if (!is_end(g, json_array_get(word, 0)))
            MHA_TRY(add_id(&g->never, m, json_array_get(word, 0), err));
    }
    return MHA_OK;
}

/* forced_decoder_ids: pairs of a position, counted from the start token's 0, and an id. */
static mha_status read_prompt(mha_generation *g, const struct mha_model *m, const json_t *list,
                              mha_err *err)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *pair = json_array_get(list, i), *at = json_array_get(pair, 0);
        if (json_is_integer(at) && json_integer_value(at) == (json_int_t)g->prompt.count + 1)
            MHA_TRY(add_id(&g->prompt, m, json_array_get(pair, 1), err));
    }
    return MHA_OK;
}

static size_t read_size(const json_t *config, const char *key, size_t absent)
{
    const json_t *j = json_object_get(config, key);
    json_int_t v = json_is_integer(j) ? json_integer_value(j) : -1;
    return v >= 0 && v <= INT32_MAX ? (size_t)v : absent;
}

static double read_real(const json_t *config, const char *key, double absent)
{
    const json_t *j = json_object_get(config, key);
    return json_is_number(j) && isfinite(json_number_value(j)) ? json_number_value(j) : absent;
}

static int32_t read_id(const struct mha_model *m, const json_t *config, const char *key)
{
    const json_t *j = json_object_get(config, key);
    if (json_is_array(j))
        j = json_array_get(j, 0);
    json_int_t id = json_is_integer(j) ? json_integer_value(j) : -1;
    return id >= 0 && id < (json_int_t)m->vocab ? (int32_t)id : -1;
}

static mha_status fill(mha_generation *g, const struct mha_model *m, const json_t *config,
                       mha_err *err)
{
    MHA_TRY(read_ids(&g->ends, m, json_object_get(config, "eos_token_id"), err));
    MHA_TRY(read_bad_words(g, m, json_object_get(config, "bad_words_ids"), err));
    MHA_TRY(read_ids(&g->never, m, json_object_get(config, "suppress_tokens"), err));
    MHA_TRY(read_ids(&g->never_first, m, json_object_get(config, "begin_suppress_tokens"), err));
    MHA_TRY(read_prompt(g, m, json_object_get(config, "forced_decoder_ids"), err));
    g->first = read_id(m, config, "forced_bos_token_id");
    g->last = read_id(m, config, "forced_eos_token_id");
    g->min_length = read_size(config, "min_length", 0);
    g->min_new = read_size(config, "min_new_tokens", 0);
    g->no_repeat = read_size(config, "no_repeat_ngram_size", 0);
    g->length = read_size(config, "max_length", 0);
    g->length = read_size(config, "max_new_tokens", g->length > 0 ? g->length - 1 : 0);
    g->repeat_penalty = read_real(config, "repetition_penalty", 1);
    g->repeat_penalty = g->repeat_penalty > 0 ? g->repeat_penalty : 1;
    g->beams = read_size(config, "num_beams", 1);
    g->length_penalty = read_real(config, "length_penalty", 1);
    const json_t *early = json_object_get(config, "early_stopping");
    g->stop_when_full = json_is_true(early);
    g->stop_never_early = json_is_string(early) && strcmp(json_string_value(early), "never") == 0;
    find_ignored(g, config);
    return MHA_OK;
}

mha_status mha_model_generation(const mha_model *m, mha_generation *out, mha_err *err)
{
    char path[PATH_MAX];
    json_t *file = NULL;
    *out = (mha_generation){.first = -1, .last = -1, .repeat_penalty = 1, .length_penalty = 1};
    int n = snprintf(path, sizeof path, "%s/generation_config.json", m->info.path);
    if (m->checkpoint->gguf == NULL && n > 0 && (size_t)n < sizeof path && access(path, F_OK) == 0)
        MHA_TRY(mha_json_open(&file, path, err));
    mha_status status = MHA_OK;
    if (m->checkpoint->gguf == NULL)
        status = fill(out, m, file != NULL ? file : m->checkpoint->config, err);
    json_decref(file);
    if (status == MHA_OK && out->ends.count == 0)
        status = mha_generation_end(out, m->info.eos, err);
    if (status != MHA_OK)
        mha_generation_release(out);
    return status;
}

mha_status mha_generation_end(mha_generation *g, int32_t id, mha_err *err)
{
    return id < 0 ? MHA_OK : push_id(&g->ends, id, err);
}

void mha_generation_release(mha_generation *g)
{
    mha_free(g->ends.id);
    mha_free(g->never.id);
    mha_free(g->never_first.id);
    mha_free(g->prompt.id);
    *g = (mha_generation){.first = -1, .last = -1};
}
