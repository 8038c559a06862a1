/* maps: files of maps from other programs, right and wrong, each with the answer of the reader, and
 * what heads make of a small one by hand. */
#include "support/test.h"

#include "base/mem.h"
#include "io/npz_write.h"
#include "mha/analysis.h"
#include "mha/maps.h"
#include "support/bytes.h"
#include "support/corruption.h"
#include "support/tempdir.h"

#include <math.h>
#include <string.h>

#define HEADER(descr, order, shape)                                                                \
    "x934e554d50590100 n~{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", "  \
    "}~ "
#define ONE(values) HEADER("<f4", "False", "(1, 1, 2, 2)") values
#define CAUSAL      ONE("f1 f0 f0.25 f0.75")
#define NAN32       "x0000c07f "
#define INF32       "x0000807f "

static void **directory;

static mha_status open_bytes(mha_maps **out, const unsigned char *data, size_t n, mha_err *err)
{
    const char *path = tempdir_path(directory, "maps.npy");
    file_write(path, data, n);
    return mha_maps_open(out, path, 0, err);
}

static mha_status read_npy(const unsigned char *data, size_t n, mha_err *err)
{
    mha_maps *m;
    mha_status status = open_bytes(&m, data, n, err);
    mha_maps_close(m);
    return status;
}

static const corruption arrays[] = {
    {"causal", CAUSAL, MHA_OK, ""},
    {"float64", HEADER("<f8", "False", "(1, 1, 1, 1)") "d1", MHA_OK, ""},
    {"float16", HEADER("<f2", "False", "(1, 1, 1, 1)") "h15360", MHA_OK, ""},
    {"rounded sums", ONE("f0.996 f0 f0.25 f0.755"), MHA_OK, ""},
    {"empty file", "", MHA_ERR_FORMAT, "magic"},
    {"integers", HEADER("<i4", "False", "(1, 1, 1, 1)") "i1", MHA_ERR_FORMAT, "no floats"},
    {"three axes", HEADER("<f4", "False", "(1, 1, 1)") "f1", MHA_ERR_FORMAT, "3 axes"},
    {"no layers", HEADER("<f4", "False", "(0, 1, 2, 2)"), MHA_ERR_FORMAT, "1 to 9999 layers"},
    {"no heads", HEADER("<f4", "False", "(1, 0, 2, 2)"), MHA_ERR_FORMAT, "0 heads"},
    {"no keys", HEADER("<f4", "False", "(1, 1, 2, 0)"), MHA_ERR_FORMAT, "2 × 0"},
    {"not square", HEADER("<f4", "False", "(1, 1, 1, 2)") "f0.5 f0.5", MHA_ERR_FORMAT,
     "1 queries and 2 keys"},
    {"NaN", ONE("f1 f0 " NAN32 "f0.75"), MHA_ERR_FORMAT, "head 0, row 1, key 0: nan"},
    {"infinity", ONE("f1 f0 f0 " INF32), MHA_ERR_FORMAT, "row 1, key 1: inf"},
    {"negative", ONE("f1.5 f-0.5 f0 f1"), MHA_ERR_FORMAT, "row 0, key 1: -0.5 is not an attention"},
    {"a row of half", ONE("f1 f0 f0.25 f0.25"), MHA_ERR_FORMAT, "row 1 sums to 0.5, not to 1"},
    {"a row of zeros", ONE("f0 f0 f0 f1"), MHA_ERR_FORMAT, "row 0 sums to 0, not to 1"},
    {"scores", ONE("f3 f2 f1 f4"), MHA_ERR_FORMAT, "row 0 sums to 5"},
};

static void test_arrays(void **state)
{
    directory = state;
    corruption_run(arrays, sizeof arrays / sizeof *arrays, read_npy, "maps.npy");
    corruption_sweep(CAUSAL, read_npy);
}

/* ---- archives --------------------------------------------------------------------------------
 */

typedef struct entry {
    const char *name;
    mha_dtype type;
    uint32_t rank;
    uint64_t shape[4];
    const char *values; /* recipe */
} entry;

typedef struct archive {
    const char *name;
    entry entries[3];
    mha_status status;
    const char *says;
} archive;

#define SQUARE(n)                                                                                  \
    {                                                                                              \
        n, MHA_F32, 3, {1, 2, 2}, "f1 f0 f0.25 f0.75"                                              \
    }

static const archive archives[] = {
    {"named", {SQUARE("dec.self.0.pattern"), {"ids", MHA_I64, 1, {2}, "q7 q9"}}, MHA_OK, ""},
    {"single", {{"attentions", MHA_F32, 4, {1, 1, 2, 2}, "f1 f0 f0 f1"}}, MHA_OK, ""},
    {"cross alone", {{"dec.cross.3.pattern", MHA_F32, 3, {1, 1, 2}, "f0.5 f0.5"}}, MHA_OK, ""},
    {"nothing", {{"ids", MHA_I64, 1, {2}, "q7 q9"}}, MHA_ERR_FORMAT, "no maps in it"},
    {"a layer with a zero before it", {SQUARE("enc.self.00.pattern")}, MHA_ERR_FORMAT, "none of"},
    {"a negative layer", {SQUARE("enc.self.-1.pattern")}, MHA_ERR_FORMAT, "none of"},
    {"a layer too far",
     {SQUARE("enc.self.99999999999999999999.pattern")},
     MHA_ERR_FORMAT,
     "none of"},
    {"a graph", {SQUARE("graph.self.0.pattern")}, MHA_ERR_FORMAT, "none of"},
    {"an encoder that crosses", {SQUARE("enc.cross.0.pattern")}, MHA_ERR_FORMAT, "none of"},
    {"axes", {{"enc.self.0.pattern", MHA_F32, 2, {1, 1}, "f1"}}, MHA_ERR_FORMAT, "2 axes"},
    {"two lengths",
     {SQUARE("enc.self.0.pattern"), {"enc.self.1.pattern", MHA_F32, 3, {1, 1, 1}, "f1"}},
     MHA_ERR_FORMAT,
     "enc.self.1.pattern: 1 tokens where other maps of the same text have 2"},
    {"ids of another text",
     {SQUARE("enc.self.0.pattern"), {"ids", MHA_I64, 1, {1}, "q7"}},
     MHA_ERR_FORMAT,
     "ids: 1 ids for maps of 2 tokens"},
    {"a negative id",
     {SQUARE("enc.self.0.pattern"), {"ids", MHA_I64, 1, {2}, "q7 q-1"}},
     MHA_ERR_FORMAT,
     "-1 is not a token id"},
    {"heads of another layer",
     {SQUARE("enc.self.0.pattern"), {"enc.self.0.heads", MHA_I64, 1, {2}, "q0 q1"}},
     MHA_ERR_FORMAT,
     "enc.self.0.heads: 2 numbers for 1 heads"},
    {"a head below 0",
     {SQUARE("enc.self.0.pattern"), {"enc.self.0.heads", MHA_I64, 1, {1}, "q-4"}},
     MHA_ERR_FORMAT,
     "head number -4"},
    {"a row",
     {{"enc.self.2.pattern", MHA_F32, 3, {2, 1, 1}, "f1 f0.5"}},
     MHA_ERR_FORMAT,
     "enc.self.2.pattern: head 1, row 0 sums to 0.5"},
};

static void archive_write(const char *path, const archive *a)
{
    mha_outfile file;
    mha_npz_writer w;
    assert_int_equal(mha_outfile_open(&file, path, true, NULL), MHA_OK);
    mha_npz_writer_init(&w, &file);
    for (const entry *e = a->entries; e < a->entries + 3 && e->name; e++) {
        size_t n = 0;
        unsigned char *bytes = bytes_make(e->values, &n);
        assert_int_equal(mha_npz_writer_begin(&w, e->name, e->type, e->shape, e->rank, NULL),
                         MHA_OK);
        assert_int_equal(mha_npz_writer_add(&w, bytes, n, NULL), MHA_OK);
        mha_free(bytes);
    }
    assert_int_equal(mha_npz_writer_finish(&w, NULL), MHA_OK);
    mha_npz_writer_release(&w);
    assert_int_equal(mha_outfile_commit(&file, NULL), MHA_OK);
}

static void test_archives(void **state)
{
    const char *path = tempdir_path(state, "maps.npz");
    for (size_t i = 0; i < sizeof archives / sizeof *archives; i++) {
        const archive *a = &archives[i];
        mha_err err = {0};
        mha_maps *m;
        archive_write(path, a);
        mha_status status = mha_maps_open(&m, path, 0, &err);
        mha_maps_close(m);
        if (status != a->status || !strstr(err.message, a->says))
            fail_msg("%s: expected %s \"%s\", got %s: %s", a->name, mha_status_name(a->status),
                     a->says, mha_status_name(status), err.message);
    }
}

/* ---- what heads make of them -----------------------------------------------------------------
 */

static void measure(mha_heads **heads, const mha_head_row **rows, mha_maps *m)
{
    size_t count = 0;
    assert_int_equal(mha_heads_new(heads, mha_maps_model(m), NULL, NULL), MHA_OK);
    assert_int_equal(mha_heads_begin(*heads, mha_maps_document(m), NULL, 1, 0, NULL), MHA_OK);
    const mha_probe *probes[] = {mha_heads_probe(*heads)};
    assert_int_equal(mha_maps_run(m, probes, 1, NULL), MHA_OK);
    assert_int_equal(mha_heads_result(*heads, rows, &count, NULL), MHA_OK);
    assert_int_equal(count, 1);
}

static void check(const char *recipe, mha_stack_id stack, const double *want)
{
    static const mha_heads_column columns[] = {
        MHA_HEADS_ROWS,      MHA_HEADS_ENTROPY,   MHA_HEADS_ENTROPY_NORM,
        MHA_HEADS_DISTANCE,  MHA_HEADS_OFFSET,    MHA_HEADS_SELF_MASS,
        MHA_HEADS_PREV_MASS, MHA_HEADS_NEXT_MASS, MHA_HEADS_FIRST_MASS};
    size_t n = 0;
    mha_maps *m;
    mha_heads *heads;
    const mha_head_row *rows;
    unsigned char *bytes = bytes_make(recipe, &n);
    assert_int_equal(open_bytes(&m, bytes, n, NULL), MHA_OK);
    measure(&heads, &rows, m);
    assert_int_equal(rows[0].stack, stack);
    assert_true(isnan(rows[0].values[MHA_HEADS_SPECIAL_MASS]));
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
        double got = rows[0].values[columns[c]];
        if (isnan(want[c]) != isnan(got) || fabs(got - want[c]) > 1e-9)
            fail_msg("column %d: expected %.10g, got %.10g", (int)columns[c], want[c], got);
    }
    mha_heads_free(heads);
    mha_maps_close(m);
    mha_free(bytes);
}

/* −¼ ln ¼ − ¾ ln ¾ = 0.5623351446. A causal map's first row sees one key, and no row the next. */
static void test_heads(void **state)
{
    const double h = 0.56233514461880829, two = 0.69314718055994531;
    const double causal[] = {2, h / 2, h / two, 0.125, -0.125, 0.875, 0.25, (double)NAN, 0.25};
    const double full[] = {2,   (h + two) / 2, (h / two + 1) / 2, 0.375, 0.125, 0.625, 0.25,
                           0.5, 0.25};
    directory = state;
    check(CAUSAL, MHA_DEC, causal);
    check(ONE("f0.5 f0.5 f0.25 f0.75"), MHA_ENC, full);
    /* the same with the first axis fastest, big-endian */
    check(HEADER(">f4", "True", "(1, 1, 2, 2)") "x3f000000 x3e800000 x3f000000 x3f400000", MHA_ENC,
          full);
}

static bool unseen(const char *recipe)
{
    size_t n = 0;
    mha_maps *m;
    unsigned char *bytes = bytes_make(recipe, &n);
    assert_int_equal(open_bytes(&m, bytes, n, NULL), MHA_OK);
    bool zero = mha_maps_unseen(m);
    mha_maps_close(m);
    mha_free(bytes);
    return zero;
}

/* Zeros that may be a narrower mask are told; those of the causal mask, or of one head, are not. */
static void test_unseen(void **state)
{
    directory = state;
    assert_false(unseen(CAUSAL));
    assert_true(unseen(ONE("f1 f0 f0 f1")));
    assert_true(unseen(ONE("f0.5 f0.5 f0 f1")));
    assert_false(unseen(HEADER("<f4", "False", "(1, 2, 2, 2)") "f1 f0 f0 f1 f1 f0 f0.25 f0.75"));
}

static int refuse(void *context, const mha_block *block, size_t worker)
{
    (void)context;
    (void)worker;
    return block->rows > 0;
}

static void test_probes(void **state)
{
    size_t n = 0;
    mha_maps *m;
    unsigned char *bytes = bytes_make(CAUSAL, &n);
    directory = state;
    assert_int_equal(open_bytes(&m, bytes, n, NULL), MHA_OK);
    mha_probe probe = {.sites = 1u << MHA_SITE_Z, .deliver = refuse};
    const mha_probe *probes[] = {&probe};
    assert_int_equal(mha_maps_run(m, probes, 1, NULL), MHA_ERR_ARG);
    probe.sites = 1u << MHA_SITE_PATTERN;
    assert_int_equal(mha_maps_run(m, probes, 1, NULL), MHA_ERR_CANCELLED);
    mha_maps_close(m);
    mha_free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_arrays, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_archives, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_heads, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_unseen, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_probes, tempdir_setup, tempdir_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
