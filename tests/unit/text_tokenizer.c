/* text_tokenizer: the tokenizer as its users see it: pieces, bytes, roles, decoding, refusals, and
 * which files a directory is read from. */
#include "support/test.h"

#include "base/filemap.h"
#include "base/mem.h"
#include "base/pool.h"
#include "io/gguf.h"
#include "support/bytes.h"
#include "support/tempdir.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <string.h>

#define DATA "tests/data/tokenizers/"

static mha_tokenizer *open_data(const char *name)
{
    mha_err err;
    char path[128];
    mha_tokenizer *t = NULL;
    snprintf(path, sizeof path, DATA "%s", name);
    if (mha_tokenizer_open(&t, path, &err) != MHA_OK)
        fail_msg("%s", err.message);
    return t;
}

static void encode(const mha_tokenizer *t, const char *text, bool with_special, mha_tokens *out)
{
    mha_err err;
    if (mha_tokenizer_encode(t, text, strlen(text), NULL, 0, with_special, out, &err) != MHA_OK)
        fail_msg("%s", err.message);
}

static void expect_decoded(const mha_tokenizer *t, const int32_t *ids, size_t n, const char *text)
{
    char *out = NULL;
    mha_err err;
    assert_int_equal(mha_tokenizer_decode(t, ids, n, &out, &err), MHA_OK);
    assert_string_equal(out, text);
    mha_free(out);
}

static void test_wordpiece_pieces(void **state)
{
    mha_tokenizer *t = open_data("bert-uncased");
    char bytes[16];
    bool continues = false;
    assert_string_equal(mha_tokenizer_kind(t), "WordPiece");
    assert_int_equal(mha_tokenizer_vocab(t), 2600);
    assert_string_equal(mha_tokenizer_piece(t, 4), "[MASK]");
    assert_null(mha_tokenizer_piece(t, 2600));
    assert_null(mha_tokenizer_piece(t, -1));
    assert_int_equal(mha_tokenizer_id(t, "[SEP]"), 3);
    assert_int_equal(mha_tokenizer_id(t, "no such piece"), -1);
    int32_t ing = mha_tokenizer_id(t, "##ing");
    assert_true(ing >= 0);
    assert_int_equal(mha_tokenizer_bytes(t, ing, bytes, sizeof bytes, &continues), 3);
    assert_memory_equal(bytes, "ing", 3);
    assert_true(continues);
    assert_int_equal(mha_tokenizer_bytes(t, 4, bytes, 3, &continues), 6);
    assert_memory_equal(bytes, "[MA", 3);
    assert_false(continues);
    assert_int_equal(mha_tokenizer_bytes(t, 2600, bytes, sizeof bytes, NULL), 0);
    assert_true(mha_tokenizer_is_special(t, 2));
    assert_false(mha_tokenizer_is_special(t, ing));
    assert_false(mha_tokenizer_is_special(t, -1));
    assert_false(mha_tokenizer_is_special(t, 1 << 30));
    mha_tokenizer_free(t);
}

static void test_roles(void **state)
{
    mha_tokenizer *t = open_data("bert-uncased");
    assert_int_equal(mha_tokenizer_role(t, MHA_TOKEN_PAD), 0);
    assert_int_equal(mha_tokenizer_role(t, MHA_TOKEN_UNK), 1);
    assert_int_equal(mha_tokenizer_role(t, MHA_TOKEN_CLS), 2);
    assert_int_equal(mha_tokenizer_role(t, MHA_TOKEN_SEP), 3);
    assert_int_equal(mha_tokenizer_role(t, MHA_TOKEN_MASK), 4);
    assert_int_equal(mha_tokenizer_role(t, MHA_TOKEN_BOS), -1);
    mha_tokenizer_free(t);
    t = open_data("gpt2-merges");
    assert_int_equal(mha_tokenizer_role(t, MHA_TOKEN_EOS), mha_tokenizer_id(t, "<|endoftext|>"));
    assert_int_equal(mha_tokenizer_role(t, MHA_TOKEN_BOS), mha_tokenizer_id(t, "<|endoftext|>"));
    assert_int_equal(mha_tokenizer_role(t, MHA_TOKEN_MASK), -1);
    mha_tokenizer_free(t);
}

/* Characters that no piece covers are several tokens of one range, whose bytes are the character.
 */
static void test_characters_in_parts(void **state)
{
    static const char text[] = "\xe6\x9d\xb1\xe4\xba\xac";
    mha_tokenizer *t = open_data("gpt2");
    mha_tokens k = {0};
    char bytes[16];
    size_t n = 0;
    encode(t, text, true, &k);
    assert_true(k.n > 2);
    for (size_t i = 0; i < k.n; i++) {
        assert_int_equal(k.start[i] % 3, 0);
        assert_int_equal(k.end[i] % 3, 0);
        n += mha_tokenizer_bytes(t, k.id[i], bytes + n, sizeof bytes - n, NULL);
    }
    assert_int_equal(n, 6);
    assert_memory_equal(bytes, text, 6);
    expect_decoded(t, k.id, k.n, text);
    /* A part of a character decodes to one replacement character. */
    expect_decoded(t, k.id, 1, "\xef\xbf\xbd");
    mha_tokens_release(&k);
    mha_tokenizer_free(t);
}

static void test_decode(void **state)
{
    mha_tokenizer *t = open_data("bert-uncased");
    mha_tokens k = {0};
    encode(t, "[CLS] Don't stop, now!", true, &k);
    /* Clean-up looks at one piece at a time: the apostrophe's spaces stay. */
    expect_decoded(t, k.id, k.n, "don ' t stop, now!");
    expect_decoded(t, NULL, 0, "");
    const int32_t strangers[] = {-1, 2600, INT32_MAX};
    expect_decoded(t, strangers, 3, "");
    mha_tokens_release(&k);
    mha_tokenizer_free(t);
}

static void test_without_special(void **state)
{
    mha_tokenizer *t = open_data("roberta");
    mha_tokens k = {0};
    mha_err err;
    encode(t, "a", false, &k);
    assert_int_equal(k.n, 1);
    encode(t, "a", true, &k);
    assert_int_equal(k.n, 3);
    assert_int_equal(mha_tokenizer_encode(t, "a", 1, "b", 1, true, &k, &err), MHA_OK);
    assert_int_equal(k.n, 6);
    assert_int_equal(mha_tokenizer_encode(t, "", 0, "", 0, true, &k, &err), MHA_OK);
    assert_int_equal(k.n, 4);
    assert_int_equal(mha_tokenizer_encode(t, "", 0, NULL, 0, false, &k, &err), MHA_OK);
    assert_int_equal(k.n, 0);
    mha_tokens_release(&k);
    mha_tokenizer_free(t);
}

static void test_not_text(void **state)
{
    mha_tokenizer *t = open_data("gpt2");
    mha_tokens k = {0};
    mha_err err;
    assert_int_equal(mha_tokenizer_encode(t, "ab\xff", 3, NULL, 0, true, &k, &err), MHA_ERR_FORMAT);
    assert_string_equal(err.message, "text is not UTF-8 at byte 2");
    assert_int_equal(mha_tokenizer_encode(t, "ab", 2, "\xc3", 1, true, &k, &err), MHA_ERR_FORMAT);
    assert_int_equal(mha_tokenizer_encode(t, "a\0b", 3, NULL, 0, true, &k, &err), MHA_OK);
    assert_int_equal(k.end[k.n - 1], 3);
    mha_tokens_release(&k);
    mha_tokenizer_free(t);
}

typedef struct shared {
    const mha_tokenizer *t;
    mha_tokens expected;
    int same[64];
} shared;

static const char shared_text[] =
    "Several threads read one tokenizer: they don't, and can't, meet.";

static mha_status encode_task(void *context, size_t task, size_t worker, mha_err *err)
{
    shared *s = context;
    mha_tokens k = {0};
    mha_status status =
        mha_tokenizer_encode(s->t, shared_text, sizeof shared_text - 1, NULL, 0, true, &k, err);
    (void)worker;
    s->same[task] = status == MHA_OK && k.n == s->expected.n &&
                    memcmp(k.id, s->expected.id, k.n * sizeof *k.id) == 0;
    mha_tokens_release(&k);
    return status;
}

static void test_threads(void **state)
{
    mha_tokenizer *t = open_data("llama3");
    shared s = {.t = t};
    mha_pool *pool;
    mha_err err;
    encode(t, shared_text, true, &s.expected);
    assert_int_equal(mha_pool_new(&pool, 4, &err), MHA_OK);
    assert_int_equal(mha_pool_run(pool, 64, encode_task, &s, &err), MHA_OK);
    for (size_t i = 0; i < 64; i++)
        assert_true(s.same[i]);
    mha_pool_free(pool);
    mha_tokens_release(&s.expected);
    mha_tokenizer_free(t);
}

/* --- directories ----------------------------------------------------------------------------- */

static void write_text(void **state, const char *name, const char *text)
{
    file_write(tempdir_path(state, name), text, strlen(text));
}

static mha_status open_directory(void **state, mha_tokenizer **t, mha_err *err)
{
    return mha_tokenizer_open(t, *state, err);
}

static void test_no_tokenizer(void **state)
{
    mha_tokenizer *t;
    mha_err err;
    assert_int_equal(open_directory(state, &t, &err), MHA_OK);
    assert_null(t);
    write_text(state, "vocab.json", "{}");
    assert_int_equal(open_directory(state, &t, &err), MHA_OK);
    assert_null(t);
}

static void test_sentencepiece(void **state)
{
    mha_tokenizer *t;
    mha_err err;
    write_text(state, "tokenizer.model", "x");
    assert_int_equal(open_directory(state, &t, &err), MHA_ERR_FORMAT);
    assert_null(t);
    assert_non_null(strstr(err.message, "tokenizer.model: at byte 1: "));
    write_text(state, "tokenizer_config.json", "{\"tokenizer_class\":\"PegasusTokenizer\"}");
    assert_int_equal(open_directory(state, &t, &err), MHA_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "the tokenizer class \"PegasusTokenizer\""));
}

static void test_vocab_txt(void **state)
{
    mha_tokenizer *t;
    mha_tokens k = {0};
    mha_err err;
    write_text(state, "vocab.txt", "[PAD]\r\n[UNK]\n\n[CLS]\n[SEP]\nbig\nBig\n##ger\n[MASK]");
    assert_int_equal(open_directory(state, &t, &err), MHA_OK);
    encode(t, "Bigger [MASK]", true, &k);
    assert_int_equal(k.n, 5);
    const int32_t lower[] = {3, 5, 7, 8, 4};
    assert_memory_equal(k.id, lower, sizeof lower);
    mha_tokenizer_free(t);

    write_text(state, "tokenizer_config.json",
               "{\"do_lower_case\":false,\"tokenizer_class\":\"BertTokenizerFast\","
               "\"mask_token\":{\"content\":\"big\"}}");
    assert_int_equal(open_directory(state, &t, &err), MHA_OK);
    encode(t, "Bigger big", true, &k);
    const int32_t cased[] = {3, 6, 7, 5, 4};
    assert_memory_equal(k.id, cased, sizeof cased);
    assert_int_equal(mha_tokenizer_role(t, MHA_TOKEN_MASK), 5);
    assert_true(mha_tokenizer_is_special(t, 5));
    mha_tokenizer_free(t);

    write_text(state, "tokenizer_config.json", "{\"tokenizer_class\":\"OtherTokenizer\"}");
    assert_int_equal(open_directory(state, &t, &err), MHA_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "\"OtherTokenizer\""));
    write_text(state, "tokenizer_config.json", "{\"tokenizer_class\":\"EsmTokenizer\"}");
    assert_int_equal(open_directory(state, &t, &err), MHA_ERR_FORMAT);
    assert_non_null(strstr(err.message, "<cls>, <eos> and <unk> must be there"));
    write_text(state, "tokenizer_config.json", "{\"do_lower_case\":\"yes\"}");
    assert_int_equal(open_directory(state, &t, &err), MHA_ERR_FORMAT);
    assert_non_null(strstr(err.message, "do_lower_case: expected a boolean, found a string"));
    mha_tokens_release(&k);
}

static void test_vocab_txt_of_another_kind(void **state)
{
    mha_tokenizer *t;
    mha_err err;
    write_text(state, "vocab.txt", "<cls>\n<pad>\n<eos>\n<unk>\nL\nA\n");
    assert_int_equal(open_directory(state, &t, &err), MHA_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "vocab.txt: there is no \"[UNK]\""));
    file_write(tempdir_path(state, "vocab.txt"), "a\n\xff\n", 4);
    assert_int_equal(open_directory(state, &t, &err), MHA_ERR_FORMAT);
    assert_non_null(strstr(err.message, "vocab.txt: not UTF-8"));
}

/* The listed tokens go behind the vocabulary; the class decides about specials around the text. */
static void test_vocab_json(void **state)
{
    mha_tokenizer *t;
    mha_tokens k = {0};
    mha_err err;
    write_text(state, "vocab.json", "{\"<s>\":0,\"</s>\":1,\"a\":2,\"b\":3,\"ab\":4,\"Ġ\":5}");
    write_text(state, "merges.txt", "#version: 0.2\na b\n");
    assert_int_equal(open_directory(state, &t, &err), MHA_OK);
    encode(t, "ab b", true, &k);
    const int32_t roberta[] = {0, 4, 5, 3, 1};
    assert_int_equal(k.n, 5);
    assert_memory_equal(k.id, roberta, sizeof roberta);
    mha_tokenizer_free(t);

    write_text(state, "tokenizer_config.json",
               "{\"tokenizer_class\":\"GPT2Tokenizer\",\"add_bos_token\":true,"
               "\"bos_token\":\"</s>\",\"added_tokens_decoder\":{\"7\":{\"content\":\"<y>\","
               "\"special\":true},\"6\":{\"content\":\"<x>\",\"lstrip\":true}}}");
    assert_int_equal(open_directory(state, &t, &err), MHA_OK);
    encode(t, "ab <x><y>", true, &k);
    const int32_t opt[] = {1, 4, 6, 7};
    assert_int_equal(k.n, 4);
    assert_memory_equal(k.id, opt, sizeof opt);
    assert_int_equal(k.start[2], 2);
    assert_true(k.special[3] && !k.special[2]);
    mha_tokenizer_free(t);

    write_text(state, "merges.txt", "a b\n\na c\n");
    assert_int_equal(open_directory(state, &t, &err), MHA_ERR_FORMAT);
    assert_non_null(strstr(err.message, "merges[1]: \"c\" is not in the vocabulary"));
    write_text(state, "merges.txt", "a b\nabc\n");
    assert_int_equal(open_directory(state, &t, &err), MHA_ERR_FORMAT);
    assert_non_null(strstr(err.message, "merges.txt: line 2: expected two pieces"));
    write_text(state, "tokenizer_config.json", "{\"tokenizer_class\":\"OtherTokenizer\"}");
    assert_int_equal(open_directory(state, &t, &err), MHA_ERR_UNSUPPORTED);
    mha_tokens_release(&k);
}

/* --- GGUF ------------------------------------------------------------------------------------ */

#define HEADER(n) "t|GGUF| b3 z3 q0 q" #n " "
#define TOKENS    "s|tokenizer.ggml.tokens| h9 z2 h8 z2 q4 s|a| s|b| s|ab| s|<e>| "
#define MERGES    "s|tokenizer.ggml.merges| h9 z2 h8 z2 q1 s|a b| "
#define MODEL(m)  "s|tokenizer.ggml.model| h8 z2 s|" m "| "
#define TYPES     "s|tokenizer.ggml.token_type| h9 z2 h5 z2 q4 i1 i1 i1 i3 "

static mha_status open_recipe(mha_tokenizer **t, const char *recipe, mha_err *err)
{
    size_t n;
    mha_gguf *g;
    mha_tensor_list tensors = {0};
    unsigned char *data = bytes_make(recipe, &n);
    *t = NULL;
    mha_status status = mha_gguf_parse(&g, &tensors, data, n, "m.gguf", 0, 1, err);
    if (status != MHA_OK)
        fail_msg("%s", err->message);
    status = mha_tokenizer_open_gguf(t, g, err);
    mha_gguf_free(g);
    mha_tensor_list_release(&tensors);
    mha_free(data);
    return status;
}

static void test_gguf(void **state)
{
    mha_tokenizer *t;
    mha_tokens k = {0};
    mha_err err;
    assert_int_equal(open_recipe(&t, HEADER(0), &err), MHA_OK);
    assert_null(t);
    /* Nothing is borrowed from the file once it is open. */
    assert_int_equal(open_recipe(&t, HEADER(4) MODEL("gpt2") TOKENS MERGES TYPES, &err), MHA_OK);
    encode(t, "abb<e>", true, &k);
    const int32_t ids[] = {2, 1, 3};
    assert_int_equal(k.n, 3);
    assert_memory_equal(k.id, ids, sizeof ids);
    assert_true(k.special[2]);
    assert_non_null(strstr(mha_tokenizer_note(t), "does not name its pre-tokenizer"));
    mha_tokenizer_free(t);

    assert_int_equal(open_recipe(&t,
                                 HEADER(7) MODEL("gpt2") TOKENS MERGES TYPES
                                 "s|tokenizer.ggml.pre| h8 z2 s|new-one| "
                                 "s|tokenizer.ggml.add_eos_token| h7 z2 b1 "
                                 "s|tokenizer.ggml.eos_token_id| h4 z2 i3 ",
                                 &err),
                     MHA_OK);
    assert_non_null(strstr(mha_tokenizer_note(t), "\"new-one\" is not known"));
    encode(t, "a", true, &k);
    assert_int_equal(k.n, 2);
    assert_int_equal(k.id[1], 3);
    assert_int_equal(mha_tokenizer_role(t, MHA_TOKEN_EOS), 3);
    mha_tokenizer_free(t);
    mha_tokens_release(&k);
}

static void expect_gguf_error(const char *recipe, mha_status status, const char *says)
{
    mha_tokenizer *t;
    mha_err err;
    if (open_recipe(&t, recipe, &err) != status)
        fail_msg("%s: %s", says, err.message);
    assert_null(t);
    if (!strstr(err.message, says) || strncmp(err.message, "m.gguf: ", 8) != 0)
        fail_msg("expected \"%s\": %s", says, err.message);
}

static void test_gguf_errors(void **state)
{
    expect_gguf_error(HEADER(1) MODEL("rwkv"), MHA_ERR_UNSUPPORTED,
                      "the tokenizer kind \"rwkv\" is not supported");
    expect_gguf_error(HEADER(2) MODEL("llama") TOKENS, MHA_ERR_FORMAT,
                      "there is no tokenizer.ggml.scores");
    expect_gguf_error(HEADER(3) MODEL("llama") TOKENS
                      "s|tokenizer.ggml.token_type| h9 z2 h5 z2 q4 i1 i1 i1 i9 ",
                      MHA_ERR_FORMAT, "tokenizer.ggml.token_type: piece 3 has the type 9");
    expect_gguf_error(HEADER(3) MODEL("t5") TOKENS
                      "s|tokenizer.ggml.precompiled_charsmap| h4 z2 i7 ",
                      MHA_ERR_FORMAT, "precompiled_charsmap is no array of bytes");
    expect_gguf_error(HEADER(1) MODEL("gpt2"), MHA_ERR_FORMAT, "there is no tokenizer.ggml.tokens");
    expect_gguf_error(HEADER(2) MODEL("gpt2") TOKENS, MHA_ERR_FORMAT,
                      "there is no tokenizer.ggml.merges");
    expect_gguf_error(HEADER(2) MODEL("gpt2") "s|tokenizer.ggml.tokens| h9 z2 h8 z2 q0 ",
                      MHA_ERR_FORMAT, "tokenizer.ggml.tokens is empty");
    expect_gguf_error(HEADER(2) MODEL("gpt2") "s|tokenizer.ggml.tokens| h9 z2 h8 z2 q1 q1 xff ",
                      MHA_ERR_FORMAT, "piece 0 is not UTF-8");
    expect_gguf_error(HEADER(3) MODEL("gpt2") TOKENS
                      "s|tokenizer.ggml.merges| h9 z2 h8 z2 q2 s|a b| s|ab| ",
                      MHA_ERR_FORMAT, "merges[1]: expected two pieces");
    expect_gguf_error(HEADER(3) MODEL("gpt2") TOKENS
                      "s|tokenizer.ggml.merges| h9 z2 h8 z2 q1 s|a x| ",
                      MHA_ERR_FORMAT, "merges[0]: \"x\" is not in the vocabulary");
    expect_gguf_error(HEADER(4) MODEL("gpt2") TOKENS MERGES
                      "s|tokenizer.ggml.bos_token_id| h4 z2 i4 ",
                      MHA_ERR_FORMAT, "tokenizer.ggml.bos_token_id: the id 4 is outside");
    expect_gguf_error(HEADER(4) MODEL("gpt2") TOKENS MERGES
                      "s|tokenizer.ggml.add_bos_token| h7 z2 b1 ",
                      MHA_ERR_FORMAT, "its id is not given");
    expect_gguf_error(HEADER(2) MODEL("bert") TOKENS, MHA_ERR_FORMAT,
                      "there is no tokenizer.ggml.unknown_token_id");
    expect_gguf_error(HEADER(1) "s|tokenizer.huggingface.json| h8 z2 s|{}| ", MHA_ERR_FORMAT,
                      "tokenizer.huggingface.json: tokenizer.model: expected an object");
    expect_gguf_error(HEADER(1) "s|tokenizer.huggingface.json| h8 z2 s|{| ", MHA_ERR_FORMAT,
                      "tokenizer.huggingface.json: line 1");
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, tempdir_setup, tempdir_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wordpiece_pieces),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_characters_in_parts),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_without_special),
        cmocka_unit_test(test_not_text),
        cmocka_unit_test(test_threads),
        IN_DIRECTORY(test_no_tokenizer),
        IN_DIRECTORY(test_sentencepiece),
        IN_DIRECTORY(test_vocab_txt),
        IN_DIRECTORY(test_vocab_txt_of_another_kind),
        IN_DIRECTORY(test_vocab_json),
        cmocka_unit_test(test_gguf),
        cmocka_unit_test(test_gguf_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
