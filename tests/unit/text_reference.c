/* text_reference: the tokenizers of tests/data against what the reference implementation makes of a
 * few thousand strings: ids, offsets, word indices, special tokens and types, one by one. */
#include "support/test.h"

#include "base/filemap.h"
#include "base/mem.h"
#include "io/gguf.h"
#include "io/json.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA      "tests/data/tokenizers"
#define CASES_MAX ((size_t)64 << 20)

static int64_t at(const json_t *list, size_t i)
{
    return json_integer_value(json_array_get(list, i));
}

/* Whether a token is a special one that stands in the text itself, unlike an unknown word. */
static int stands_there(const mha_tokenizer *t, const mha_tokens *tokens, size_t i,
                        const char *text)
{
    const char *piece = mha_tokenizer_piece(t, tokens->id[i]);
    return mha_tokenizer_is_special(t, tokens->id[i]) &&
           memmem(text + tokens->start[i], tokens->end[i] - tokens->start[i], piece, strlen(piece));
}

/* Reports the first difference of one case and returns whether there is none. Where the reference
 * has no offsets, a case has neither offsets nor words. The reference marks
 * only what its template adds as special; here special tokens in the text are, too. */
static int same(const mha_tokenizer *tokenizer, const mha_tokens *t, const json_t *expected,
                const char *kind, size_t line)
{
    const json_t *ids = json_object_get(expected, "ids");
    const json_t *offsets = json_object_get(expected, "offsets");
    const json_t *words = json_object_get(expected, "words");
    const json_t *special = json_object_get(expected, "special");
    const json_t *types = json_object_get(expected, "types");
    const char *inputs[] = {json_string_value(json_object_get(expected, "text")),
                            json_string_value(json_object_get(expected, "pair"))};
    bool seen = false, second = false;
    if (t->n != json_array_size(ids))
        print_error("%s, line %zu: %zu tokens, expected %zu\n", kind, line, t->n,
                    json_array_size(ids));
    for (size_t i = 0; i < t->n && i < json_array_size(ids); i++) {
        const json_t *range = json_array_get(offsets, i);
        /* The second segment is what follows the separators behind the first words. */
        seen = seen || t->word[i] >= 0;
        second = second || (seen && t->word[i] < 0);
        const char *text = inputs[second && inputs[1]];
        bool placed = !offsets || (t->start[i] == at(range, 0) && t->end[i] == at(range, 1) &&
                                   t->word[i] == at(words, i));
        if (t->id[i] == at(ids, i) && placed &&
            t->special[i] == (at(special, i) || stands_there(tokenizer, t, i, text)) &&
            t->type[i] == at(types, i))
            continue;
        print_error("%s, line %zu, token %zu: id %d [%u,%u) word %d special %d type %d, expected "
                    "id %d [%d,%d) word %d special %d type %d\n",
                    kind, line, i, t->id[i], t->start[i], t->end[i], t->word[i], t->special[i],
                    t->type[i], (int)at(ids, i), (int)at(range, 0), (int)at(range, 1),
                    (int)at(words, i), (int)at(special, i), (int)at(types, i));
        return 0;
    }
    return t->n == json_array_size(ids);
}

static int check_case(const mha_tokenizer *t, mha_tokens *tokens, const char *text, size_t n,
                      const char *kind, size_t line)
{
    mha_err err;
    json_t *c;
    if (mha_json_parse(&c, text, n, "cases.jsonl", &err) != MHA_OK)
        fail_msg("%s, line %zu: %s", kind, line, err.message);
    const json_t *input = json_object_get(c, "text"), *pair = json_object_get(c, "pair");
    if (mha_tokenizer_encode(t, json_string_value(input), json_string_length(input),
                             json_string_value(pair), json_string_length(pair), true, tokens,
                             &err) != MHA_OK)
        fail_msg("%s, line %zu: %s", kind, line, err.message);
    int ok = same(t, tokens, c, kind, line);
    json_decref(c);
    return ok;
}

static void check_cases(const mha_tokenizer *t, const char *kind, const char *cases)
{
    mha_err err;
    char path[256];
    char *text;
    size_t n, count = 0, failed = 0;
    mha_tokens tokens = {0};
    snprintf(path, sizeof path, DATA "/%s/cases.jsonl", cases);
    if (mha_file_read(&text, &n, path, CASES_MAX, &err) != MHA_OK)
        fail_msg("%s", err.message);
    for (size_t i = 0; i < n;) {
        const char *newline = memchr(text + i, '\n', n - i);
        size_t end = newline ? (size_t)(newline - text) : n;
        failed += !check_case(t, &tokens, text + i, end - i, kind, ++count);
        i = end + 1;
    }
    print_message("%s: %zu cases, %zu differ\n", kind, count, failed);
    assert_true(count >= 20);
    assert_int_equal(failed, 0);
    mha_tokens_release(&tokens);
    mha_free(text);
}

static void check_directory(const char *kind, const char *cases)
{
    mha_err err;
    char path[256];
    mha_tokenizer *t;
    snprintf(path, sizeof path, DATA "/%s", kind);
    if (mha_tokenizer_open(&t, path, &err) != MHA_OK)
        fail_msg("%s", err.message);
    assert_non_null(t);
    assert_null(mha_tokenizer_note(t));
    check_cases(t, kind, cases);
    mha_tokenizer_free(t);
}

static void check_gguf(const char *name)
{
    mha_err err;
    char path[256];
    mha_filemap file;
    mha_gguf *g = NULL;
    mha_tensor_list tensors = {0};
    mha_tokenizer *t = NULL;
    snprintf(path, sizeof path, DATA "/%s.gguf", name);
    if (mha_filemap_open(&file, path, &err) != MHA_OK ||
        mha_gguf_parse(&g, &tensors, file.data, file.size, path, 0, 10, &err) != MHA_OK ||
        mha_tokenizer_open_gguf(&t, g, &err) != MHA_OK)
        fail_msg("%s", err.message);
    assert_non_null(t);
    assert_null(mha_tokenizer_note(t));
    check_cases(t, path, name);
    mha_tokenizer_free(t);
    mha_tensor_list_release(&tensors);
    mha_gguf_free(g);
    mha_filemap_close(&file);
}

/* The tokenizer of a GGUF file written as a tokenizer.json splits text in the same way. */
static void check_export(const char *name)
{
    mha_err err;
    char path[256], *text = NULL;
    mha_tokenizer *t, *again;
    snprintf(path, sizeof path, DATA "/%s.gguf", name);
    if (mha_tokenizer_open(&t, path, &err) != MHA_OK ||
        mha_tokenizer_export(&text, t, path, &err) != MHA_OK)
        fail_msg("%s", err.message);
    assert_non_null(text);
    if (mha_tokenizer_parse(&again, text, strlen(text), "tokenizer.json", &err) != MHA_OK)
        fail_msg("%s", err.message);
    check_cases(again, name, name);
    mha_free(text);
    mha_tokenizer_free(again);
    mha_tokenizer_free(t);
}

static void exports(void **state)
{
    (void)state;
    check_export("gpt2");
    check_export("llama3");
    check_export("smollm");
}

/* Every directory, and every GGUF file, that has cases or shares those of another one. */
static void test_directories(void **state)
{
    static const char *const own[] = {
        "bert-uncased", "bert-cased",  "gpt2",   "roberta",   "llama3",   "qwen2",
        "smollm",       "bloom",       "falcon", "gpt4o",     "clip",     "t5",
        "xlmr",         "albert",      "nmt",    "llama2",    "mistral",  "gemma",
        "wordlevel",    "fixedlength", "t5-spm", "llama-spm", "xlmr-spm", "mbart-spm",
        "albert-spm",   "deberta-spm", "marian", "byt5",      "esm",
    };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        check_directory(own[i], own[i]);
}

/* Older files of the same tokenizers. */
static void test_other_forms(void **state)
{
    check_directory("bert-uncased-vocab", "bert-uncased");
    check_directory("bert-cased-vocab", "bert-cased");
    check_directory("gpt2-merges", "gpt2");
    check_directory("clip-merges", "clip");
}

static void test_gguf(void **state)
{
    static const char *const names[] = {"bert-uncased", "gpt2",   "llama3",
                                        "smollm",       "t5-spm", "llama-spm"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        check_gguf(names[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_directories),
        cmocka_unit_test(test_other_forms),
        cmocka_unit_test(test_gguf),
        cmocka_unit_test(exports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
