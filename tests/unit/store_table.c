/* store_table: tables in memory, as JSON, CSV and text, and back. */
#include "support/test.h"

#include "mha/table.h"
#include "support/tempdir.h"

#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LAYER, ENTROPY, PIECE, IDS };

static const mha_column columns[] = {
    [LAYER] = {"layer", "", "number of the layer", MHA_COLUMN_INT},
    [ENTROPY] = {"entropy", "nats", "mean over rows", MHA_COLUMN_REAL},
    [PIECE] = {"piece", "", "text of the token", MHA_COLUMN_TEXT},
    [IDS] = {"ids", "", "new tokens", MHA_COLUMN_INTS},
};

static mha_table *table_make(void)
{
    mha_table *t = NULL;
    mha_meta *m = NULL, *list = NULL;
    assert_int_equal(mha_table_new(&t, "heads", columns, 4, NULL), MHA_OK);
    assert_int_equal(mha_table_section(&m, t, "model", NULL), MHA_OK);
    assert_int_equal(mha_meta_text(m, "family", "gpt2", NULL), MHA_OK);
    assert_int_equal(mha_meta_int(m, "layers", 12, NULL), MHA_OK);
    assert_int_equal(mha_meta_list(&list, m, "kv_heads", NULL), MHA_OK);
    assert_int_equal(mha_meta_int(list, NULL, 4, NULL), MHA_OK);
    assert_int_equal(mha_meta_int(list, NULL, 2, NULL), MHA_OK);
    assert_int_equal(mha_table_section(&m, t, "checks", NULL), MHA_OK);
    assert_int_equal(mha_meta_real(m, "row_sum_error", 1.25e-7, NULL), MHA_OK);
    assert_int_equal(mha_meta_real(m, "masked_mass", NAN, NULL), MHA_OK);
    assert_int_equal(mha_meta_bool(m, "exact", true, NULL), MHA_OK);

    assert_int_equal(mha_table_add_row(t, NULL), MHA_OK);
    mha_table_set_int(t, LAYER, 0);
    mha_table_set_real(t, ENTROPY, 0.1);
    assert_int_equal(mha_table_set_text(t, PIECE, "say \"a,b\"\n", NULL), MHA_OK);
    assert_int_equal(mha_table_set_ints(t, IDS, (int64_t[]){7, -3}, 2, NULL), MHA_OK);
    assert_int_equal(mha_table_add_row(t, NULL), MHA_OK);
    mha_table_set_int(t, LAYER, 1);
    mha_table_set_real(t, ENTROPY, NAN);
    assert_int_equal(mha_table_set_text(t, PIECE, "東\xE6", NULL), MHA_OK);
    return t;
}

static const char json_wanted[] =
    "{\n"
    "  \"schema\": \"mha-inspect/heads/1\",\n"
    "  \"tool\": {},\n"
    "  \"model\": {\"family\": \"gpt2\", \"layers\": 12, \"kv_heads\": [4, 2]},\n"
    "  \"input\": {},\n"
    "  \"settings\": {},\n"
    "  \"checks\": {\"row_sum_error\": 1.25e-07, \"masked_mass\": null, \"exact\": true},\n"
    "  \"columns\": [\n"
    "    {\"name\": \"layer\", \"unit\": \"\", \"description\": \"number of the layer\"},\n"
    "    {\"name\": \"entropy\", \"unit\": \"nats\", \"description\": \"mean over rows\"},\n"
    "    {\"name\": \"piece\", \"unit\": \"\", \"description\": \"text of the token\"},\n"
    "    {\"name\": \"ids\", \"unit\": \"\", \"description\": \"new tokens\"}\n"
    "  ],\n"
    "  \"rows\": [\n"
    "    {\"layer\": 0, \"entropy\": 0.1, \"piece\": \"say \\\"a,b\\\"\\n\", \"ids\": [7, -3]},\n"
    "    {\"layer\": 1, \"entropy\": null, \"piece\": \"東\xEF\xBF\xBD\", \"ids\": null}\n"
    "  ]\n"
    "}\n";

static const char csv_wanted[] = "layer,entropy,piece,ids\n"
                                 "0,0.1,\"say \"\"a,b\"\"\n\",7 -3\n"
                                 "1,,東\xEF\xBF\xBD,\n";

static void test_json(void **state)
{
    mha_table *t = table_make();
    const char *path = tempdir_path(state, "t.json");
    assert_int_equal(mha_table_write(t, path, MHA_FORMAT_AUTO, false, NULL, NULL), MHA_OK);
    assert_string_equal(file_text(path), json_wanted);
    mha_table_free(t);
}

static void test_json_round_trip(void **state)
{
    mha_table *t = table_make(), *back = NULL;
    const char *first = tempdir_path(state, "t.json"), *second = tempdir_path(state, "u.json");
    int64_t i = 0;
    size_t n = 0;
    const char *text = NULL;
    double real = 0;
    assert_int_equal(mha_table_write(t, first, MHA_FORMAT_AUTO, false, NULL, NULL), MHA_OK);
    assert_int_equal(mha_table_open(&back, first, NULL), MHA_OK);
    assert_string_equal(mha_table_command(back), "heads");
    assert_int_equal(mha_table_rows(back), 2);
    assert_int_equal(mha_table_column(back, LAYER)->type, MHA_COLUMN_INT);
    assert_int_equal(mha_table_column(back, ENTROPY)->type, MHA_COLUMN_REAL);
    assert_int_equal(mha_table_column(back, PIECE)->type, MHA_COLUMN_TEXT);
    assert_int_equal(mha_table_column(back, IDS)->type, MHA_COLUMN_INTS);
    assert_int_equal(mha_table_find(back, "piece"), PIECE);
    assert_true(mha_table_find(back, "score") == MHA_NO_COLUMN);
    assert_true(mha_table_get_int(back, 1, LAYER, &i) && i == 1);
    assert_true(mha_table_get_real(back, 0, ENTROPY) == 0.1);
    assert_true(isnan(mha_table_get_real(back, 1, ENTROPY)));
    assert_string_equal(mha_table_get_text(back, 0, PIECE), "say \"a,b\"\n");
    assert_int_equal(mha_table_get_ints(back, 0, IDS, &n)[1], -3);
    assert_int_equal(n, 2);
    assert_null(mha_table_get_ints(back, 1, IDS, &n));
    const mha_meta *model = mha_table_get_section(back, "model");
    const mha_meta *checks = mha_table_get_section(back, "checks");
    assert_true(mha_meta_get_text(model, "family", &text) && strcmp(text, "gpt2") == 0);
    assert_true(mha_meta_get_real(model, "layers", &real) && real == 12);
    assert_true(mha_meta_get_real(checks, "row_sum_error", &real) && real == 1.25e-7);
    assert_false(mha_meta_get_real(checks, "masked_mass", &real));
    assert_non_null(mha_meta_get(model, "kv_heads"));
    assert_int_equal(mha_table_write(back, second, MHA_FORMAT_AUTO, false, NULL, NULL), MHA_OK);
    assert_string_equal(file_text(second), json_wanted);
    mha_table_free(t);
    mha_table_free(back);
}

static void test_csv_and_back(void **state)
{
    mha_table *t = table_make(), *back = NULL;
    const char *path = tempdir_path(state, "t.csv");
    int64_t i = 0;
    assert_int_equal(mha_table_write(t, path, MHA_FORMAT_AUTO, false, NULL, NULL), MHA_OK);
    assert_string_equal(file_text(path), csv_wanted);
    assert_int_equal(mha_table_open(&back, path, NULL), MHA_OK);
    assert_string_equal(mha_table_command(back), "");
    assert_int_equal(mha_table_rows(back), 2);
    assert_true(mha_table_get_int(back, 1, LAYER, &i) && i == 1);
    assert_true(mha_table_get_real(back, 0, ENTROPY) == 0.1);
    assert_true(isnan(mha_table_get_real(back, 1, ENTROPY)));
    assert_string_equal(mha_table_get_text(back, 0, PIECE), "say \"a,b\"\n");
    assert_string_equal(mha_table_get_text(back, 0, IDS), "7 -3");
    assert_null(mha_table_get_text(back, 1, IDS));
    mha_table_free(t);
    mha_table_free(back);
}

static void test_csv_of_others(void **state)
{
    static const char text[] = "\xEF\xBB\xBF\"na,me\",b,c\r\n1,-2.5e-3,\r\n\"\",.5,nan";
    mha_table *t = NULL;
    const char *path = tempdir_path(state, "t.csv");
    file_write(path, text, sizeof text - 1);
    assert_int_equal(mha_table_open(&t, path, NULL), MHA_OK);
    assert_string_equal(mha_table_column(t, 0)->name, "na,me");
    assert_string_equal(mha_table_get_text(t, 0, 0), "1");
    assert_string_equal(mha_table_get_text(t, 1, 0), "");
    assert_true(mha_table_get_real(t, 0, 1) == -2.5e-3);
    assert_true(mha_table_get_real(t, 1, 1) == 0.5);
    assert_null(mha_table_get_text(t, 0, 2));
    assert_string_equal(mha_table_get_text(t, 1, 2), "nan");
    mha_table_free(t);
}

static void test_broken_files(void **state)
{
    static const struct {
        const char *name, *text;
        mha_status status;
        const char *message;
    } cases[] = {
        {"a.json", "{\"rows\": []}", MHA_ERR_FORMAT, "no schema"},
        {"a.json", "[1]", MHA_ERR_FORMAT, "no schema"},
        {"a.json", "{\"schema\": \"other/1\"}", MHA_ERR_UNSUPPORTED, "found \"other/1\""},
        {"a.json", "{\"schema\": \"mha-inspect/heads/2\"}", MHA_ERR_UNSUPPORTED, "COMMAND/1"},
        {"a.json", "{\"schema\": \"mha-inspect/heads/1\"}", MHA_ERR_FORMAT, "\"columns\""},
        {"a.json", "{\"schema\": \"mha-inspect/x/1\", \"columns\": [3], \"rows\": []}",
         MHA_ERR_FORMAT, "columns[0]"},
        {"a.json",
         "{\"schema\": \"mha-inspect/x/1\", \"columns\": [{\"name\": \"a\"}, {\"name\": \"a\"}], "
         "\"rows\": []}",
         MHA_ERR_FORMAT, "a comes twice"},
        {"a.json", "{\"schema\": \"mha-inspect/x/1\", \"columns\": [], \"rows\": [7]}",
         MHA_ERR_FORMAT, "row 0: expected an object"},
        {"a.json",
         "{\"schema\": \"mha-inspect/x/1\", \"columns\": [{\"name\": \"a\"}], "
         "\"rows\": [{\"a\": 1}, {\"a\": \"b\"}]}",
         MHA_ERR_FORMAT, "column a: values of different types"},
        {"a.json",
         "{\"schema\": \"mha-inspect/x/1\", \"columns\": [{\"name\": \"a\"}], "
         "\"rows\": [{\"a\": [1, \"x\"]}]}",
         MHA_ERR_FORMAT, "row 0: a"},
        {"a.csv", "", MHA_ERR_FORMAT, "empty"},
        {"a.csv", "a,b\n1\n", MHA_ERR_FORMAT, "line 2: expected 2 fields, found 1"},
        {"a.csv", "a,a\n1,2\n", MHA_ERR_FORMAT, "a comes twice"},
        {"a.csv", "a,\n1,2\n", MHA_ERR_FORMAT, "column 2 has no name"},
        {"a.csv", "a\n\"x\n\n", MHA_ERR_FORMAT, "line 2: a quoted field without an end"},
        {"a.csv", "a\nx\"y\"\n", MHA_ERR_FORMAT, "line 2: a quote in the middle"},
        {"a.csv", "a\n\"x\"y\n", MHA_ERR_FORMAT, "line 2: a quote in the middle"},
        {"a.csv", "a\nx\ry\n", MHA_ERR_FORMAT, "a lone carriage return"},
        {"a.csv", "a\n\xFF\n", MHA_ERR_FORMAT, "not UTF-8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = tempdir_path(state, cases[i].name);
        mha_table *t = NULL;
        mha_err err = {0};
        file_write(path, cases[i].text, strlen(cases[i].text));
        assert_int_equal(mha_table_open(&t, path, &err), cases[i].status);
        assert_null(t);
        assert_non_null(strstr(err.message, cases[i].name));
        if (!strstr(err.message, cases[i].message))
            fail_msg("case %zu: %s", i, err.message);
    }
    mha_table *t = NULL;
    const char *path = tempdir_path(state, "nul.csv");
    file_write(path, "a\nx\0y\n", 6);
    assert_int_equal(mha_table_open(&t, path, NULL), MHA_ERR_FORMAT);
}

static void test_sorting(void **state)
{
    static const double entropies[] = {1, 3, NAN, 3, 2};
    mha_table *t = NULL;
    int64_t order[5];
    assert_int_equal(mha_table_new(&t, "heads", columns, 4, NULL), MHA_OK);
    for (int64_t i = 0; i < 5; i++) {
        assert_int_equal(mha_table_add_row(t, NULL), MHA_OK);
        mha_table_set_int(t, LAYER, i);
        mha_table_set_real(t, ENTROPY, entropies[i]);
    }
    assert_int_equal(mha_table_sort(t, ENTROPY, true, NULL), MHA_OK);
    for (size_t i = 0; i < 5; i++)
        assert_true(mha_table_get_int(t, i, LAYER, &order[i]));
    assert_memory_equal(order, ((int64_t[]){1, 3, 4, 0, 2}), sizeof order);
    assert_int_equal(mha_table_sort(t, ENTROPY, false, NULL), MHA_OK);
    for (size_t i = 0; i < 5; i++)
        assert_true(mha_table_get_int(t, i, LAYER, &order[i]));
    assert_memory_equal(order, ((int64_t[]){0, 4, 1, 3, 2}), sizeof order);
    mha_table_cut(t, 2);
    assert_int_equal(mha_table_rows(t), 2);
    assert_int_equal(mha_table_add_row(t, NULL), MHA_OK);
    assert_true(isnan(mha_table_get_real(t, 2, ENTROPY)));
    mha_table_free(t);
}

static void test_text_for_pipes(void **state)
{
    mha_table *t = table_make();
    const char *path = tempdir_path(state, "t.txt");
    assert_int_equal(mha_table_write(t, path, MHA_FORMAT_AUTO, false, NULL, NULL), MHA_OK);
    assert_string_equal(file_text(path), "layer  entropy  piece        ids\n"
                                         "    0      0.1  say \"a,b\"\\n  7 -3\n"
                                         "    1        -  東\xEF\xBF\xBD          -\n");
    mha_table_free(t);
}

static mha_table *heads_make(void)
{
    static const mha_column heads[] = {
        {"head", "", "", MHA_COLUMN_INT},
        {"effective_keys", "", "", MHA_COLUMN_REAL},
        {"next_mass", "", "", MHA_COLUMN_REAL},
        {"first_mass", "", "", MHA_COLUMN_REAL},
    };
    static const double values[] = {2, 0.5, 1.0625};
    mha_table *t = NULL;
    assert_int_equal(mha_table_new(&t, "heads", heads, 4, NULL), MHA_OK);
    for (int64_t i = 0; i < 3; i++) {
        assert_int_equal(mha_table_add_row(t, NULL), MHA_OK);
        mha_table_set_int(t, 0, i);
        mha_table_set_real(t, 1, values[i]);
        mha_table_set_real(t, 3, 0.25e-4 * (double)i);
    }
    return t;
}

static void test_text_for_terminals(void **state)
{
    mha_table *t = heads_make();
    const char *path = tempdir_path(state, "t.txt");
    mha_text_style style = {.terminal = true, .width = 80, .bar = "effective_keys"};
    assert_int_equal(mha_table_write(t, path, MHA_FORMAT_TEXT, false, &style, NULL), MHA_OK);
    /* 24 columns for 2, so 6 for 0.5 and 12.75 for 1.0625. */
    assert_string_equal(file_text(path), "      effective_   first_\n"
                                         "head        keys     mass  effective_keys\n"
                                         "   0       2.000        0  ████████████████████████\n"
                                         "   1       0.500  2.5e-05  ██████\n"
                                         "   2       1.062    5e-05  ████████████▊\n");
    mha_table_free(t);
}

static void test_text_that_does_not_fit(void **state)
{
    mha_table *t = heads_make();
    const char *path = tempdir_path(state, "t.txt");
    mha_text_style style = {.terminal = true, .ascii = true, .width = 26, .bar = "effective_keys"};
    assert_int_equal(mha_table_write(t, path, MHA_FORMAT_TEXT, false, &style, NULL), MHA_OK);
    assert_string_equal(file_text(path), "      effective_\n"
                                         "head        keys  effective_keys\n"
                                         "   0       2.000  ########\n"
                                         "   1       0.500  ##\n"
                                         "   2       1.062  ####\n"
                                         "not shown: first_mass\n");
    mha_table_free(t);
}

/* Columns that say the same in every row are the first to go, and are said once. */
static void test_text_says_once_what_is_the_same(void **state)
{
    static const mha_column heads[] = {
        {"stack", "", "", MHA_COLUMN_TEXT},
        {"head", "", "", MHA_COLUMN_INT},
        {"rows", "", "", MHA_COLUMN_INT},
        {"entropy", "", "", MHA_COLUMN_REAL},
    };
    const char *path = tempdir_path(state, "t.txt");
    mha_table *t = NULL;
    assert_int_equal(mha_table_new(&t, "heads", heads, 4, NULL), MHA_OK);
    for (int64_t i = 0; i < 2; i++) {
        assert_int_equal(mha_table_add_row(t, NULL), MHA_OK);
        assert_int_equal(mha_table_set_text(t, 0, "enc", NULL), MHA_OK);
        mha_table_set_int(t, 1, i);
        mha_table_set_int(t, 2, 9);
        mha_table_set_real(t, 3, 0.5 + (double)i);
    }
    mha_text_style style = {.terminal = true, .width = 16};
    assert_int_equal(mha_table_write(t, path, MHA_FORMAT_TEXT, true, &style, NULL), MHA_OK);
    assert_string_equal(file_text(path), "head  entropy\n"
                                         "   0    0.500\n"
                                         "   1    1.500\n"
                                         "in every row: stack enc, rows 9\n");
    mha_table_free(t);
}

static void test_numbers_do_not_depend_on_the_locale(void **state)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fa_IR"};
    bool set = false;
    for (size_t i = 0; i < 4 && !set; i++)
        set = setlocale(LC_NUMERIC, names[i]) != NULL;
    mha_table *t = table_make(), *back = NULL;
    const char *json = tempdir_path(state, "t.json"), *csv = tempdir_path(state, "t.csv");
    mha_status status = mha_table_write(t, json, MHA_FORMAT_AUTO, false, NULL, NULL);
    if (status == MHA_OK)
        status = mha_table_write(t, csv, MHA_FORMAT_AUTO, false, NULL, NULL);
    if (status == MHA_OK)
        status = mha_table_open(&back, csv, NULL);
    setlocale(LC_NUMERIC, "C");
    assert_int_equal(status, MHA_OK);
    assert_string_equal(file_text(json), json_wanted);
    assert_string_equal(file_text(csv), csv_wanted);
    assert_true(mha_table_get_real(back, 0, ENTROPY) == 0.1);
    mha_table_free(back);
    mha_table_free(t);
}

static void test_formats(void **state)
{
    mha_table *t = table_make();
    mha_err err = {0};
    assert_int_equal(mha_format_of_path("a/b.JSON"), MHA_FORMAT_JSON);
    assert_int_equal(mha_format_of_path("a.png/b"), MHA_FORMAT_AUTO);
    assert_int_equal(mha_format_of_path(".png"), MHA_FORMAT_AUTO);
    assert_int_equal(mha_format_of_path("b.txt"), MHA_FORMAT_TEXT);
    assert_int_equal(mha_format_named("safetensors"), MHA_FORMAT_SAFETENSORS);
    assert_int_equal(mha_format_named("txt"), MHA_FORMAT_AUTO);
    assert_string_equal(mha_format_name(MHA_FORMAT_NPZ), "npz");
    const char *path = tempdir_path(state, "t.npz");
    assert_int_equal(mha_table_write(t, path, MHA_FORMAT_AUTO, false, NULL, &err), MHA_ERR_ARG);
    assert_non_null(strstr(err.message, "not as npz"));
    path = tempdir_path(state, "t");
    assert_int_equal(mha_table_write(t, path, MHA_FORMAT_AUTO, false, NULL, &err), MHA_ERR_ARG);
    assert_int_equal(directory_count(*state), 0);
    mha_table_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_json, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_json_round_trip, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_csv_and_back, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_csv_of_others, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_broken_files, tempdir_setup, tempdir_teardown),
        cmocka_unit_test(test_sorting),
        cmocka_unit_test_setup_teardown(test_text_for_pipes, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_text_for_terminals, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_text_that_does_not_fit, tempdir_setup,
                                        tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_text_says_once_what_is_the_same, tempdir_setup,
                                        tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_numbers_do_not_depend_on_the_locale, tempdir_setup,
                                        tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_formats, tempdir_setup, tempdir_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
