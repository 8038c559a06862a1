/* io_corpus: files of documents and of token ids. Broken ones are in tests/corrupt. */
#include "support/test.h"

#include "base/mem.h"
#include "io/corpus.h"
#include "support/bytes.h"
#include "support/tempdir.h"

#include <string.h>

static mha_corpus *parse(mha_corpus_kind kind, const char *text)
{
    mha_corpus *c = NULL;
    mha_err err = {0};
    char *copy = NULL;
    assert_int_equal(mha_strdup(&copy, text, &err), MHA_OK);
    if (mha_corpus_parse(&c, kind, copy, strlen(text), "f", &err) != MHA_OK)
        fail_msg("%s", err.message);
    return c;
}

/* NULL stands for an absent field. */
static void check_text(const char *found, size_t n, const char *expected)
{
    if (!expected) {
        assert_null(found);
        assert_int_equal(n, 0);
        return;
    }
    assert_non_null(found);
    assert_string_equal(found, expected);
    assert_int_equal(n, strlen(expected));
}

static void check(const mha_corpus *c, size_t i, size_t line, const char *text, const char *pair,
                  const char *target, const char *label)
{
    mha_corpus_document d = mha_corpus_get(c, i);
    assert_int_equal(d.line, line);
    check_text(d.text, d.text_n, text);
    check_text(d.pair, d.pair_n, pair);
    check_text(d.target, d.target_n, target);
    check_text(d.label, d.label_n, label);
    assert_null(d.ids);
}

/* ------------------------------------------------------------------------------------- lines */

static void test_txt(void **state)
{
    mha_corpus *c = parse(MHA_CORPUS_TXT, "\xEF\xBB\xBFone\r\n\n  two \n\t \n\r\nthree\rx");
    assert_int_equal(mha_corpus_count(c), 3);
    assert_int_equal(mha_corpus_empty_lines(c), 3);
    check(c, 0, 1, "one", NULL, NULL, NULL);
    check(c, 1, 3, "  two ", NULL, NULL, NULL);
    check(c, 2, 6, "three\rx", NULL, NULL, NULL);
    mha_corpus_close(c);
}

static void test_nothing(void **state)
{
    static const mha_corpus_kind kinds[] = {MHA_CORPUS_TXT, MHA_CORPUS_JSONL, MHA_CORPUS_CONLLU,
                                            MHA_CORPUS_FASTA};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        mha_corpus *c = parse(kinds[i], "");
        assert_int_equal(mha_corpus_count(c), 0);
        mha_corpus_close(c);
        c = parse(kinds[i], "\n\n");
        assert_int_equal(mha_corpus_count(c), 0);
        mha_corpus_close(c);
    }
    mha_corpus *c = parse(MHA_CORPUS_TSV, "text");
    assert_int_equal(mha_corpus_count(c), 0);
    mha_corpus_close(c);
    mha_corpus_close(NULL);
}

static void test_tsv(void **state)
{
    mha_corpus *c = parse(MHA_CORPUS_TSV, "id\tlabel\ttext\ttarget\r\n"
                                          "7\tpos\ta \"b\" c\tziel\r\n"
                                          "\r\n"
                                          "8\t\t\t\n"
                                          "9\tneg\tü\t");
    assert_int_equal(mha_corpus_count(c), 3);
    assert_int_equal(mha_corpus_empty_lines(c), 1);
    check(c, 0, 2, "a \"b\" c", NULL, "ziel", "pos");
    check(c, 1, 4, "", NULL, NULL, NULL);
    check(c, 2, 5, "ü", NULL, NULL, "neg");
    mha_corpus_close(c);
}

static void test_jsonl(void **state)
{
    mha_corpus *c =
        parse(MHA_CORPUS_JSONL, "{\"text\":\"a\\nb\\u00fc\",\"pair\":\"p\",\"other\":[1]}\n \n"
                                "{\"label\":3,\"text\":\"\",\"target\":null}\r\n"
                                "{\"text\":\"x\\u0000y\",\"label\":\"n\",\"target\":\"t\"}");
    assert_int_equal(mha_corpus_count(c), 3);
    assert_int_equal(mha_corpus_empty_lines(c), 1);
    check(c, 0, 1, "a\nbü", "p", NULL, NULL);
    check(c, 1, 3, "", NULL, NULL, "3");
    mha_corpus_document d = mha_corpus_get(c, 2);
    assert_int_equal(d.text_n, 3);
    assert_memory_equal(d.text, "x\0y", 4);
    mha_corpus_close(c);
}

static void test_fasta(void **state)
{
    mha_corpus *c = parse(MHA_CORPUS_FASTA, "\n>first protein\r\nMKV\r\nL A*\r\n\r\nG\n>empty\n"
                                            ">last\nACGT-\nac");
    assert_int_equal(mha_corpus_count(c), 3);
    check(c, 0, 2, "MKVLA*G", NULL, NULL, NULL);
    check(c, 1, 7, "", NULL, NULL, NULL);
    check(c, 2, 8, "ACGT-ac", NULL, NULL, NULL);
    mha_corpus_close(c);
}

/* ----------------------------------------------------------------------------------- CoNLL-U */

#define ROW(id, form, head, deprel, misc)                                                          \
    id "\t" form "\t_\t_\t_\t_\t" head "\t" deprel "\t_\t" misc "\n"

static void check_word(const mha_corpus_document *d, size_t i, const char *form, int32_t head,
                       const char *deprel)
{
    const mha_corpus_word *w = &d->words[i];
    assert_int_equal(w->end - w->start, strlen(form));
    assert_memory_equal(d->text + w->start, form, strlen(form));
    assert_int_equal(w->head, head);
    assert_string_equal(w->deprel, deprel);
}

static void test_conllu(void **state)
{
    mha_corpus *c =
        parse(MHA_CORPUS_CONLLU,
              "# newdoc\n# sent_id = 1\n# text = Über  don't.\n# text_en = x\n" ROW(
                  "1", "Über", "0", "root", "_") ROW("2-3", "don't", "_", "_", "SpaceAfter=No")
                  ROW("2", "do", "1", "aux", "_") ROW("3", "n't", "2", "advmod", "_")
                      ROW("3.1", "left", "_", "_", "_")
                          ROW("4", ".", "1", "punct", "_") "\n\n" ROW("1", "No", "2", "det", "_")
                              ROW("2", "text", "0", "root", "SpaceAfter=No")
                                  ROW("3", "!", "_", "_", "_"));
    assert_int_equal(mha_corpus_count(c), 2);
    mha_corpus_document d = mha_corpus_get(c, 0);
    assert_string_equal(d.text, "Über  don't.");
    assert_int_equal(d.line, 1);
    assert_int_equal(d.words_n, 4);
    check_word(&d, 0, "Über", -1, "root");
    check_word(&d, 1, "don't", 0, "aux");
    check_word(&d, 2, "don't", 1, "advmod");
    check_word(&d, 3, ".", 0, "punct");
    assert_int_equal(d.words[1].start, 7);
    assert_int_equal(d.words[3].start, 12);
    d = mha_corpus_get(c, 1);
    assert_string_equal(d.text, "No text!");
    assert_int_equal(d.line, 13);
    check_word(&d, 0, "No", 1, "det");
    check_word(&d, 1, "text", -1, "root");
    check_word(&d, 2, "!", -1, "_");
    assert_int_equal(d.words[2].start, 7);
    mha_corpus_close(c);
}

/* --------------------------------------------------------------------------------------- ids */

static void check_ids(const mha_corpus *c, size_t i, const int64_t *ids, size_t n)
{
    mha_corpus_document d = mha_corpus_get(c, i);
    assert_null(d.text);
    assert_non_null(d.ids);
    assert_int_equal(d.ids_n, n);
    assert_int_equal(d.line, i);
    for (size_t k = 0; k < n; k++)
        assert_int_equal(d.ids[k], ids[k]);
}

#define CHECK_IDS(c, i, ...)                                                                       \
    check_ids(c, i, (const int64_t[]){__VA_ARGS__},                                                \
              sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static void test_ids_json(void **state)
{
    mha_corpus *c = parse(MHA_CORPUS_IDS_JSON, "[1, 2, -3]");
    assert_int_equal(mha_corpus_count(c), 1);
    CHECK_IDS(c, 0, 1, 2, -3);
    mha_corpus_close(c);
    c = parse(MHA_CORPUS_IDS_JSON, "[[1, 2], [], [3]]");
    assert_int_equal(mha_corpus_count(c), 3);
    CHECK_IDS(c, 0, 1, 2);
    check_ids(c, 1, NULL, 0);
    CHECK_IDS(c, 2, 3);
    mha_corpus_close(c);
    /* padded on the right, on the left, and a hole */
    c = parse(MHA_CORPUS_IDS_JSON, "{\"ids\":[[5,6,0],[0,7,8],[9,0,9]],"
                                   "\"attention_mask\":[[1,1,0],[false,true,1],[1,0,1]]}");
    assert_int_equal(mha_corpus_count(c), 3);
    CHECK_IDS(c, 0, 5, 6);
    CHECK_IDS(c, 1, 7, 8);
    CHECK_IDS(c, 2, 9, 9);
    mha_corpus_close(c);
    c = parse(MHA_CORPUS_IDS_JSON, "{\"ids\":[5,6],\"attention_mask\":[0,1]}");
    CHECK_IDS(c, 0, 6);
    mha_corpus_close(c);
}

static mha_corpus *parse_npy(const char *recipe)
{
    size_t n = 0;
    mha_corpus *c = NULL;
    mha_err err = {0};
    unsigned char *data = bytes_make(recipe, &n);
    if (mha_corpus_parse_numpy(&c, false, data, n, "f.npy", 0, &err) != MHA_OK)
        fail_msg("%s", err.message);
    mha_free(data);
    return c;
}

static void test_ids_npy(void **state)
{
    mha_corpus *c = parse_npy("x934e554d50590100 n|{'descr': '<i4', 'fortran_order': False, "
                              "'shape': (2, 3), }| i1 i2 i3 i4 i5 i6");
    assert_int_equal(mha_corpus_count(c), 2);
    CHECK_IDS(c, 0, 1, 2, 3);
    CHECK_IDS(c, 1, 4, 5, 6);
    mha_corpus_close(c);
    c = parse_npy("x934e554d50590100 n~{'descr': '|u1', 'fortran_order': False, 'shape': (2,)}~ "
                  "b200 b1");
    assert_int_equal(mha_corpus_count(c), 1);
    CHECK_IDS(c, 0, 200, 1);
    mha_corpus_close(c);
    c = parse_npy("x934e554d50590100 n|{'descr': '<i8', 'fortran_order': False, 'shape': (0,)}|");
    check_ids(c, 0, NULL, 0);
    mha_corpus_close(c);
}

/* ------------------------------------------------------------------------------------- files */

static void test_files(void **state)
{
    mha_corpus *c = NULL;
    mha_err err = {0};
    const char *path = tempdir_path(state, "a.TXT");
    file_write(path, "one\ntwo", 7);
    assert_int_equal(mha_corpus_open(&c, path, 0, &err), MHA_OK);
    assert_int_equal(mha_corpus_count(c), 2);
    mha_corpus_close(c);
    assert_int_equal(mha_corpus_open(&c, path, 6, &err), MHA_ERR_LIMIT);
    path = tempdir_path(state, "empty.txt");
    file_write(path, "", 0);
    assert_int_equal(mha_corpus_open(&c, path, 0, &err), MHA_OK);
    assert_int_equal(mha_corpus_count(c), 0);
    mha_corpus_close(c);
    path = tempdir_path(state, "empty.tsv");
    file_write(path, "", 0);
    assert_int_equal(mha_corpus_open(&c, path, 0, &err), MHA_ERR_FORMAT);
    assert_non_null(strstr(err.message, "empty.tsv: no header line"));
    assert_int_equal(mha_corpus_open(&c, tempdir_path(state, "a.csv"), 0, &err),
                     MHA_ERR_UNSUPPORTED);
    assert_int_equal(mha_corpus_open(&c, tempdir_path(state, ".txt"), 0, &err), MHA_ERR_IO);
    assert_int_equal(mha_corpus_open_ids(&c, tempdir_path(state, "a.txt"), 0, &err),
                     MHA_ERR_UNSUPPORTED);
    assert_int_equal(mha_corpus_open_ids(&c, tempdir_path(state, "a.npy"), 0, &err), MHA_ERR_IO);
    path = tempdir_path(state, "ids.json");
    file_write(path, "[3]", 3);
    assert_int_equal(mha_corpus_open_ids(&c, path, 0, &err), MHA_OK);
    CHECK_IDS(c, 0, 3);
    mha_corpus_close(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_txt),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_tsv),
        cmocka_unit_test(test_jsonl),
        cmocka_unit_test(test_fasta),
        cmocka_unit_test(test_conllu),
        cmocka_unit_test(test_ids_json),
        cmocka_unit_test(test_ids_npy),
        cmocka_unit_test_setup_teardown(test_files, tempdir_setup, tempdir_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
