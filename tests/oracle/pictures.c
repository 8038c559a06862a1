/* pictures.c: decoding and preprocessing of pictures against Pillow and the image processors of the
 * reference (tools/make_picture_fixtures.py). Of PNG files every byte is the same; JPEG decoders
 * may differ by a rounding. Prints the largest difference in steps of 255. */
#include "base/filemap.h"
#include "base/mem.h"
#include "io/json.h"
#include "io/npy.h"
#include "io/picture.h"
#include "model/program.h"
#include "support/tempdir.h"
#include "support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *picture_path(const char *name, const char *suffix)
{
    static char path[2][1024];
    static int turn;
    const char *root = getenv("MHA_ROOT");
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/tests/data/pictures/%s%s",
             root != NULL ? root : ".", name, suffix);
    return path[turn];
}

static bool is_jpeg(const char *name)
{
    return strstr(name, ".jpg") != NULL;
}

/* Largest difference of the decoded pixels. */
static int check_pixels(const char *name, const mha_picture *p, mha_npz *z)
{
    size_t at;
    mha_npy rgb;
    int worst = 0;
    assert_true(mha_npz_find(z, "rgb", &at));
    assert_int_equal(mha_npz_get(z, at, &rgb, NULL), MHA_OK);
    assert_int_equal(rgb.shape[0], p->height);
    assert_int_equal(rgb.shape[1], p->width);
    for (uint64_t i = 0; i < rgb.count; i++) {
        int d = abs((int)p->rgb[i] - (int)rgb.data[i]);
        worst = d > worst ? d : worst;
    }
    if (worst > (is_jpeg(name) ? 2 : 0))
        fail_msg("%s: pixels differ by %d", name, worst);
    return worst;
}

/* One line of cases.jsonl as the model's preprocessor_config.json. The model is nothing but the
 * shape of what it reads. */
static double check_case(void **state, const char *name, const mha_picture *p, const char *line,
                         mha_npz *z)
{
    static mha_checkpoint checkpoint;
    struct mha_model m = {.checkpoint = &checkpoint};
    json_t *config;
    size_t at;
    mha_npy want;
    float *features;
    mha_picture seen;
    mha_err err = {0};
    assert_int_equal(mha_json_parse(&config, line, strlen(line), "cases", &err), MHA_OK);
    const char *title = json_string_value(json_object_get(config, "name"));
    file_write(tempdir_path(state, "preprocessor_config.json"), line, strlen(line));
    assert_true(mha_npz_find(z, title, &at));
    assert_int_equal(mha_npz_get(z, at, &want, NULL), MHA_OK);
    m.info.path = *state;
    m.info.signal = (mha_signal_info){.channels = (uint32_t)want.shape[0],
                                      .height = (uint32_t)want.shape[1],
                                      .width = (uint32_t)want.shape[2],
                                      .patch = 1};
    if (mha_picture_features(&features, &seen, p, &m, &err) != MHA_OK)
        fail_msg("%s, %s: %s", name, title, err.message);
    assert_int_equal(seen.height, want.shape[1]);
    assert_int_equal(seen.width, want.shape[2]);
    float *reference = malloc(want.count * sizeof *reference);
    mha_npy_f32(reference, &want);
    double worst = 0, largest = 0;
    for (uint64_t i = 0; i < want.count; i++) {
        worst = fmax(worst, fabs((double)features[i] - (double)reference[i]));
        largest = fmax(largest, fabs((double)reference[i]));
    }
    worst *= 255 / fmax(largest, 1); /* in steps of the pixels, whatever their range became */
    if (!(worst <= (is_jpeg(name) ? 1.5 : 1e-3)))
        fail_msg("%s, %s: differs by %g steps", name, title, worst);
    free(reference);
    mha_features_free(features);
    mha_picture_release(&seen);
    json_decref(config);
    return worst;
}

static double check_cases(void **state, const char *name, const mha_picture *p, mha_npz *z)
{
    char *text, *rest, *line;
    size_t size;
    double worst = 0;
    assert_int_equal(mha_file_read(&text, &size, picture_path("cases.jsonl", ""), 1 << 20, NULL),
                     MHA_OK);
    for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        worst = fmax(worst, check_case(state, name, p, line, z));
    mha_free(text);
    return worst;
}

static const char *const decoded[] = {"grey.png",  "grey.jpg", "bits.png",
                                      "alpha.png", "deep.png", "progressive.jpg"};
static const char *const processed[] = {"scene.png", "palette.png", "scene.jpg"};

static void check_picture(void **state, const char *name, bool cases)
{
    mha_picture p;
    mha_npz *z = NULL;
    mha_err err = {0};
    if (mha_picture_open(&p, picture_path(name, ""), 0, &err) != MHA_OK ||
        mha_npz_open(&z, picture_path(name, ".npz"), 0, &err) != MHA_OK)
        fail_msg("%s", err.message);
    int pixels = check_pixels(name, &p, z);
    double features = cases ? check_cases(state, name, &p, z) : 0;
    print_message("note: %-16s pixels differ by %d, features by %.1e of 255\n", name, pixels,
                  features);
    mha_npz_close(z);
    mha_picture_release(&p);
}

static void test_decoding(void **state)
{
    for (size_t i = 0; i < sizeof decoded / sizeof *decoded; i++)
        check_picture(state, decoded[i], false);
}

static void test_preprocessing(void **state)
{
    for (size_t i = 0; i < sizeof processed / sizeof *processed; i++)
        check_picture(state, processed[i], true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decoding),
        cmocka_unit_test_setup_teardown(test_preprocessing, tempdir_setup, tempdir_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
