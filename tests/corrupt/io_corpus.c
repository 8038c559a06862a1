/* io_corpus: broken files of documents and ids, each with the answer of the reader. */
#include "support/test.h"

#include "base/fail.h"
#include "base/mem.h"
#include "io/corpus.h"
#include "support/bytes.h"
#include "support/corruption.h"

#include <string.h>

#define FILE_NAME "corpus.file"

static mha_corpus_kind kind;

static mha_status read_text(const unsigned char *data, size_t n, mha_err *err)
{
    mha_corpus *c = NULL;
    char *text = NULL;
    assert_int_equal(mha_alloc((void **)&text, n + 1, 1, NULL), MHA_OK);
    if (n > 0)
        memcpy(text, data, n);
    MHA_TRY(mha_corpus_parse(&c, kind, text, n, FILE_NAME, err));
    mha_corpus_close(c);
    return MHA_OK;
}

#define RUN(table, its_kind)                                                                       \
    do {                                                                                           \
        kind = its_kind;                                                                           \
        corruption_run(table, sizeof table / sizeof *table, read_text, FILE_NAME);                 \
    } while (0)

/* ------------------------------------------------------------------------------------- lines */

static const corruption txt[] = {
    {"invalid byte", "t|ok| x0a t|ab| xff t|c| x0a", MHA_ERR_FORMAT,
     "line 2: byte 3 is not text in UTF-8"},
    {"Latin-1", "t|caf| xe9 x0a", MHA_ERR_FORMAT, "line 1: byte 4"},
    {"overlong form", "xc0af", MHA_ERR_FORMAT, "line 1: byte 1"},
    {"surrogate", "t|a| xeda080", MHA_ERR_FORMAT, "line 1: byte 2"},
    {"character cut at the end", "t|a| xe282", MHA_ERR_FORMAT, "line 1: byte 2"},
    {"above U+10FFFF", "xf4908080", MHA_ERR_FORMAT, "line 1: byte 1"},
    {"NUL", "t|ab| x00 t|c|", MHA_ERR_FORMAT, "line 1: byte 3"},
    {"UTF-16", "xfffe6100", MHA_ERR_FORMAT, "line 1: byte 1"},
    {"a second byte order mark is text", "xefbbbfefbbbf61", MHA_OK, ""},
    {"a line of 64 MiB and a byte", "w97,67108865", MHA_ERR_LIMIT, "line 1: 67108865 bytes"},
};

static const corruption tsv[] = {
    {"empty file", "", MHA_ERR_FORMAT, "no header line"},
    {"only a byte order mark", "xefbbbf", MHA_ERR_FORMAT, "no header line"},
    {"no column text", "t|sentence| x09 t|label| x0a", MHA_ERR_FORMAT,
     "line 1: the header has no column \"text\""},
    {"header in capitals", "t|Text| x0a", MHA_ERR_FORMAT, "no column \"text\""},
    {"a column twice", "t|text| x09 t|text| x0a", MHA_ERR_FORMAT, "column \"text\" is there twice"},
    {"65 columns", "t|text| w9,64 x0a", MHA_ERR_LIMIT, "65 columns, at most 64"},
    {"too few fields", "t|text| x09 t|label| x0a t|a| x0a", MHA_ERR_FORMAT,
     "line 2: 1 fields, the header has 2"},
    {"too many fields", "t|text| x0a x0a t|a| x09 x09 t|b|", MHA_ERR_FORMAT,
     "line 3: 3 fields, the header has 1"},
    {"invalid byte in the header", "t|text| xff x0a", MHA_ERR_FORMAT, "line 1: byte 5"},
};

static const corruption jsonl[] = {
    {"not JSON", "t|hello| x0a", MHA_ERR_FORMAT, "line 1: "},
    {"an array", "t|{\"text\":\"a\"}| x0a t|[\"b\"]|", MHA_ERR_FORMAT, "line 2: not an object"},
    {"text missing", "t|{\"pair\":\"a\"}|", MHA_ERR_FORMAT, "line 1: \"text\" is missing"},
    {"text is null", "t|{\"text\":null}|", MHA_ERR_FORMAT, "\"text\" is missing"},
    {"text is a number", "t|{\"text\":1}|", MHA_ERR_FORMAT, "\"text\" is not a string"},
    {"label is a list", "t|{\"text\":\"a\",\"label\":[1]}|", MHA_ERR_FORMAT,
     "\"label\" is not a string"},
    {"label is a real", "t|{\"text\":\"a\",\"label\":1.5}|", MHA_ERR_FORMAT,
     "\"label\" is not a string"},
    {"target is an integer", "t|{\"text\":\"a\",\"target\":1}|", MHA_ERR_FORMAT,
     "\"target\" is not a string"},
    {"a key twice", "t|{\"text\":\"a\",\"text\":\"b\"}|", MHA_ERR_FORMAT, "duplicate"},
    {"an object over two lines", "t|{\"text\":| x0a t|\"a\"}|", MHA_ERR_FORMAT, "line 1: "},
    {"two objects on a line", "t|{\"text\":\"a\"} {\"text\":\"b\"}|", MHA_ERR_FORMAT, "line 1: "},
    {"nested too deep", "t|{\"text\":\"a\",\"x\":| w91,100", MHA_ERR_LIMIT, "line 1: line 1: JSON"},
    {"invalid byte", "t|{\"text\":\"| xff t|\"}|", MHA_ERR_FORMAT, "line 1: byte 10"},
};

static const corruption fasta[] = {
    {"no name", "t|MKV| x0a", MHA_ERR_FORMAT, "line 1: expected '>' and a name"},
    {"FASTQ", "t|@read| x0a t|ACGT|", MHA_ERR_FORMAT, "line 1: expected '>'"},
    {"digit in a sequence", "t|>a| x0a t|MK7V|", MHA_ERR_FORMAT, "line 2: '7' in a sequence"},
    {"control character", "t|>a| x0a t|MK| x01", MHA_ERR_FORMAT, "line 2: '?' in a sequence"},
    {"letter outside ASCII", "t|>a| x0a t|MKÜ|", MHA_ERR_FORMAT, "line 2: '?' in a sequence"},
    {"old comment", "t|>a| x0a t|;note| x0a", MHA_ERR_FORMAT, "line 2: ';' in a sequence"},
};

static void test_lines(void **state)
{
    RUN(txt, MHA_CORPUS_TXT);
    RUN(tsv, MHA_CORPUS_TSV);
    RUN(jsonl, MHA_CORPUS_JSONL);
    RUN(fasta, MHA_CORPUS_FASTA);
}

/* ----------------------------------------------------------------------------------- CoNLL-U */

#define T                   "\t"
#define L                   "\n"
#define ROW(id, form, head) id T form T "_" T "_" T "_" T "_" T head T "dep" T "_" T "_" L

static const corruption conllu[] = {
    {"spaces for tabs", "t|1 a _ _ _ _ 0 root _ _| x0a", MHA_ERR_FORMAT,
     "line 1: fewer than 10 columns"},
    {"nine columns", "t|1" T "a" T T T T T "0" T "root" T "_" L "|", MHA_ERR_FORMAT,
     "line 1: fewer than 10 columns"},
    {"eleven columns", "t|1" T "a" T T T T T "0" T "root" T T T L "|", MHA_ERR_FORMAT,
     "line 1: more than 10 columns"},
    {"number is a word", "t|" ROW("x", "a", "0") "|", MHA_ERR_FORMAT, "line 1: the first column"},
    {"number with a tail", "t|" ROW("1x", "a", "0") "|", MHA_ERR_FORMAT, "not numbered"},
    {"number 0", "t|" ROW("0", "a", "0") "|", MHA_ERR_FORMAT, "not numbered"},
    {"numbers that jump", "t|" ROW("1", "a", "0") ROW("3", "b", "1") "|", MHA_ERR_FORMAT,
     "line 2: the words are not numbered"},
    {"number of ten digits", "t|" ROW("4294967297", "a", "0") "|", MHA_ERR_FORMAT, "not numbered"},
    {"range of one number", "t|" ROW("1-", "a", "_") "|", MHA_ERR_FORMAT, "the first column"},
    {"range turned round", "t|" ROW("1-0", "a", "_") "|", MHA_ERR_FORMAT, "range of words out of"},
    {"range that jumps", "t|" ROW("2-3", "a", "_") "|", MHA_ERR_FORMAT, "range of words out of"},
    {"ranges that overlap", "t|" ROW("1-2", "ab", "_") ROW("1", "a", "0") ROW("2-3", "bc", "_") "|",
     MHA_ERR_FORMAT, "line 3: a range of words out of order"},
    {"range past the end", "t|" ROW("1-3", "ab", "_") ROW("1", "a", "0") "|", MHA_ERR_FORMAT,
     "a range of words passes"},
    {"empty word with a bad number", "t|" ROW("1", "a", "0") ROW("1.x", "b", "_") "|",
     MHA_ERR_FORMAT, "line 2: the first column"},
    {"empty form", "t|" ROW("1", "", "0") "|", MHA_ERR_FORMAT, "line 1: an empty form"},
    {"head is a word", "t|" ROW("1", "a", "root") "|", MHA_ERR_FORMAT, "the head is not a number"},
    {"head is negative", "t|" ROW("1", "a", "-1") "|", MHA_ERR_FORMAT, "the head is not a number"},
    {"head beyond the words", "t|" ROW("1", "a", "2") "|", MHA_ERR_FORMAT,
     "line 1: word 1 has the head 2 of 1 words"},
    {"head of ten digits", "t|" ROW("1", "a", "4294967296") "|", MHA_ERR_FORMAT, "the head is not"},
    {"form that is not in the text", "t|# text = a b" L ROW("1", "a", "0") ROW("2", "c", "1") "|",
     MHA_ERR_FORMAT, "line 3: the form \"c\" is not next in the sentence's text"},
    {"text longer than its words", "t|# text = a b" L ROW("1", "a", "0") L "|", MHA_ERR_FORMAT,
     "line 3: the sentence's text goes on"},
    {"two texts", "t|# text = a" L "# text = a" L ROW("1", "a", "0") "|", MHA_ERR_FORMAT,
     "line 2: a second"},
    {"comments alone", "t|# text = a" L L ROW("1", "a", "0") "|", MHA_ERR_FORMAT,
     "line 2: a sentence without words"},
    {"comment between words", "t|" ROW("1", "a", "0") "# note" L "|", MHA_ERR_FORMAT, "line 2"},
    {"invalid byte", "t|# text = | xff t|" L "|", MHA_ERR_FORMAT, "line 1: byte 10"},
    {"no empty line at the end", "t|" ROW("1", "a", "0") "|", MHA_OK, ""},
    {"nothing but empty lines", "t|" L L "|", MHA_OK, ""},
};

static void test_conllu(void **state)
{
    RUN(conllu, MHA_CORPUS_CONLLU);
    kind = MHA_CORPUS_CONLLU;
    mha_err err = {0};
    size_t n = 0;
    unsigned char *data = bytes_make("t|# text = ab c" L ROW("1-2", "ab", "_") ROW("1", "a", "0")
                                         ROW("2", "b", "1") ROW("3", "c", "1") L "|",
                                     &n);
    assert_int_equal(read_text(data, n, &err), MHA_OK);
    for (size_t i = 0; i < n; i++) {
        unsigned char kept = data[i];
        for (int value = 0; value < 256; value += 15) {
            data[i] = (unsigned char)value;
            read_text(data, n, &err);
        }
        data[i] = kept;
        read_text(data, i, &err);
    }
    mha_free(data);
}

/* --------------------------------------------------------------------------------------- ids */

static const corruption ids[] = {
    {"empty file", "", MHA_ERR_FORMAT, "line 1"},
    {"a number", "t|5|", MHA_ERR_FORMAT, "line 1"},
    {"a string among the ids", "t|[1,\"2\"]|", MHA_ERR_FORMAT,
     "ids: document 0, position 1 is not an integer"},
    {"a real among the ids", "t|[1.0]|", MHA_ERR_FORMAT, "position 0 is not an integer"},
    {"an id beyond 64 bits", "t|[99999999999999999999]|", MHA_ERR_FORMAT, "is not an integer"},
    {"null among the ids", "t|[null]|", MHA_ERR_FORMAT, "is not an integer"},
    {"list and number", "t|[[1],2]|", MHA_ERR_FORMAT, "document 1 is not a list of integers"},
    {"number and list", "t|[1,[2]]|", MHA_ERR_FORMAT, "position 1 is not an integer"},
    {"three levels", "t|[[[1]]]|", MHA_ERR_FORMAT, "position 0 is not an integer"},
    {"object without ids", "t|{\"input\":[1]}|", MHA_ERR_FORMAT, "\"ids\" is missing"},
    {"ids is a string", "t|{\"ids\":\"1,2\"}|", MHA_ERR_FORMAT, "\"ids\" is missing or not a list"},
    {"mask shorter than the ids", "t|{\"ids\":[1,2],\"attention_mask\":[1]}|", MHA_ERR_FORMAT,
     "document 0: 2 ids, attention_mask of 1"},
    {"mask of fewer documents", "t|{\"ids\":[[1],[2]],\"attention_mask\":[[1]]}|", MHA_ERR_FORMAT,
     "2 documents, attention_mask of 1"},
    {"mask of 2", "t|{\"ids\":[1,2],\"attention_mask\":[1,2]}|", MHA_ERR_FORMAT,
     "document 0, position 1: 2 is neither 0 nor 1"},
    {"mask is a number", "t|{\"ids\":[1,2],\"attention_mask\":1}|", MHA_ERR_FORMAT,
     "not a list of integers"},
    {"mask of reals", "t|{\"ids\":[1],\"attention_mask\":[1.0]}|", MHA_ERR_FORMAT,
     "attention_mask: document 0, position 0 is not an integer"},
};

#define NPY(descr, shape)                                                                          \
    "x934e554d50590100 n~{'descr': '" descr "', 'fortran_order': False, 'shape': " shape "}~ "

static const corruption npy[] = {
    {"reals", NPY("<f4", "(2,)") "f1 f2", MHA_ERR_FORMAT, "expected integers, found F32"},
    {"scalar", NPY("<i8", "()") "q1", MHA_ERR_FORMAT, "ids of 0 dimensions"},
    {"three dimensions", NPY("<i4", "(1, 1, 1)") "i1", MHA_ERR_FORMAT, "ids of 3 dimensions"},
    {"id beyond int64", NPY("<u8", "(1,)") "q-1", MHA_ERR_FORMAT, "element 0 is beyond int64"},
    {"2^62 documents of no ids", NPY("<i8", "(4611686018427387904, 0)"), MHA_ERR_FORMAT,
     "documents of 0 ids"},
    {"cut", NPY("<i8", "(2,)") "z15", MHA_ERR_FORMAT, "needs 16 bytes"},
};

static mha_status read_npy(const unsigned char *data, size_t n, mha_err *err)
{
    mha_corpus *c = NULL;
    mha_status status = mha_corpus_parse_numpy(&c, false, data, n, FILE_NAME, 0, err);
    if (status == MHA_OK)
        mha_corpus_close(c);
    return status;
}

static void test_ids(void **state)
{
    RUN(ids, MHA_CORPUS_IDS_JSON);
    corruption_run(npy, sizeof npy / sizeof *npy, read_npy, FILE_NAME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_conllu),
        cmocka_unit_test(test_ids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
