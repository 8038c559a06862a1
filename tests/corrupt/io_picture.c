/* io_picture: broken PNG and JPEG files, each with the answer of the reader; every prefix, and
 * every byte changed. */
#include "support/test.h"

#include "base/filemap.h"
#include "base/mem.h"
#include "io/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define FILE_NAME "a picture"
#define PIXELS    10000

static unsigned char *load(const char *name, size_t *size)
{
    char path[1024], *data;
    const char *root = getenv("MHA_ROOT");
    snprintf(path, sizeof path, "%s/tests/data/pictures/%s", root != NULL ? root : ".", name);
    assert_int_equal(mha_file_read(&data, size, path, 1 << 20, NULL), MHA_OK);
    return (unsigned char *)data;
}

static mha_status parse(const unsigned char *data, size_t n, mha_err *err)
{
    mha_picture p;
    mha_status status = mha_picture_parse(&p, data, n, FILE_NAME, PIXELS, err);
    if (status == MHA_OK)
        mha_picture_release(&p);
    else
        assert_null(p.rgb);
    return status;
}

static void expect(const char *what, const unsigned char *data, size_t n, mha_status status,
                   const char *says)
{
    mha_err err = {0};
    mha_status got = parse(data, n, &err);
    if (got != status || (says != NULL && strstr(err.message, says) == NULL))
        fail_msg("%s: expected %s \"%s\", got %s: %s", what, mha_status_name(status),
                 says ? says : "", mha_status_name(got), err.message);
    if (got != MHA_OK && (strstr(err.message, FILE_NAME) == NULL || strchr(err.message, '\n')))
        fail_msg("%s: \"%s\" is not one line that names the file", what, err.message);
}

static void put32(unsigned char *p, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        p[i] = (unsigned char)(v >> (24 - 8 * i));
}

/* The header chunk: 8 bytes of signature, length and "IHDR", 13 bytes, checksum. */
static void set_header(unsigned char *png, size_t at, uint32_t value, size_t bytes)
{
    if (bytes == 4)
        put32(png + 16 + at, value);
    else
        png[16 + at] = (unsigned char)value;
    put32(png + 29, (uint32_t)crc32(0, png + 12, 17));
}

static void test_png(void **state)
{
    static const struct {
        const char *what;
        size_t at, bytes;
        uint32_t value;
        mha_status status;
        const char *says;
    } headers[] = {
        {"no width", 0, 4, 0, MHA_ERR_FORMAT, "sound PNG"},
        {"no height", 4, 4, 0, MHA_ERR_FORMAT, "sound PNG"},
        {"2^31 pixels wide", 0, 4, 0x80000000u, MHA_ERR_FORMAT, "sound PNG"},
        {"2^31 − 1 pixels wide", 0, 4, 0x7fffffff, MHA_ERR_LIMIT, "2147483647 × 47 pixels"},
        {"more lines than allowed", 4, 4, 200, MHA_ERR_LIMIT, "61 × 200 pixels, at most 10000"},
        {"more lines than there are", 4, 4, 100, MHA_ERR_FORMAT, "sound PNG"},
        {"depth 3", 8, 1, 3, MHA_ERR_FORMAT, "sound PNG"},
        {"depth 16 of 8", 8, 1, 16, MHA_ERR_FORMAT, "sound PNG"},
        {"colour type 5", 9, 1, 5, MHA_ERR_FORMAT, "sound PNG"},
        {"a palette that is missing", 9, 1, 3, MHA_ERR_FORMAT, "sound PNG"},
        {"compression 1", 10, 1, 1, MHA_ERR_FORMAT, "sound PNG"},
        {"interlacing 2", 12, 1, 2, MHA_ERR_FORMAT, "sound PNG"},
    };
    size_t n;
    unsigned char *good = load("grey.png", &n);
    unsigned char *bad = malloc(n);
    expect("as it is", good, n, MHA_OK, NULL);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        memcpy(bad, good, n);
        set_header(bad, headers[i].at, headers[i].value, headers[i].bytes);
        expect(headers[i].what, bad, n, headers[i].status, headers[i].says);
    }
    memcpy(bad, good, n);
    bad[30] ^= 1;
    expect("wrong checksum of the header", bad, n, MHA_ERR_FORMAT, "CRC");
    memcpy(bad, good, n);
    bad[n / 2] ^= 0x10;
    expect("a bit of the pixels", bad, n, MHA_ERR_FORMAT, "sound PNG");
    expect("half of it", good, n / 2, MHA_ERR_FORMAT, "ends too early");
    expect("without its end", good, n - 12, MHA_ERR_FORMAT, "ends too early");
    expect("the signature alone", good, 8, MHA_ERR_FORMAT, "ends too early");
    free(bad);
    mha_free(good);
}

/* Where the marker 0xFF `code` begins. */
static size_t marker(const unsigned char *jpeg, size_t n, unsigned char code)
{
    for (size_t i = 0; i + 1 < n; i++)
        if (jpeg[i] == 0xff && jpeg[i + 1] == code)
            return i;
    fail_msg("no marker %02x", code);
    return 0;
}

static void test_jpeg(void **state)
{
    size_t n;
    unsigned char *good = load("grey.jpg", &n), *bad = malloc(n);
    size_t frame = marker(good, n, 0xc0), scan = marker(good, n, 0xda);
    expect("as it is", good, n, MHA_OK, NULL);
    expect("half of it", good, n / 2, MHA_ERR_FORMAT, "sound JPEG");
    expect("without its end", good, n - 2, MHA_ERR_FORMAT, "sound JPEG");
    expect("the first bytes alone", good, 3, MHA_ERR_FORMAT, "sound JPEG");
    expect("no pixels", good, scan, MHA_ERR_FORMAT, "sound JPEG");
    memcpy(bad, good, n);
    bad[frame + 5] = bad[frame + 7] = 0xff; /* height and width */
    expect("65 thousand pixels each way", bad, n, MHA_ERR_LIMIT, "at most 10000");
    memcpy(bad, good, n);
    bad[frame + 7] = bad[frame + 8] = 0;
    expect("no width", bad, n, MHA_ERR_FORMAT, "sound JPEG");
    memcpy(bad, good, n);
    bad[frame + 9] = 4;
    expect("four components of one", bad, n, MHA_ERR_FORMAT, "sound JPEG");
    memcpy(bad, good, n);
    bad[frame + 4] = 12;
    expect("12 bits", bad, n, MHA_ERR_FORMAT, "sound JPEG");
    memcpy(bad, good, n);
    memset(bad + scan + 12, 0xff, 40);
    expect("markers among the pixels", bad, n, MHA_ERR_FORMAT, "sound JPEG");
    free(bad);
    mha_free(good);
}

static void test_others(void **state)
{
    expect("nothing", (const unsigned char *)"", 0, MHA_ERR_UNSUPPORTED, "neither a PNG");
    expect("text", (const unsigned char *)"P6 1 1 255", 10, MHA_ERR_UNSUPPORTED, "neither a PNG");
    expect("GIF", (const unsigned char *)"GIF89a", 6, MHA_ERR_UNSUPPORTED, "neither a PNG");
}

/* No prefix is a picture, and no change of a byte does harm. */
static void sweep(const char *name, size_t step)
{
    size_t n;
    unsigned char *data = load(name, &n);
    for (size_t cut = 0; cut < n; cut += step)
        assert_int_not_equal(parse(data, cut, NULL), MHA_OK);
    for (size_t at = 0; at < n; at += step) {
        unsigned char kept = data[at];
        for (int value = 0; value < 256; value += 85) {
            data[at] = (unsigned char)value;
            parse(data, n, NULL);
        }
        data[at] = kept;
    }
    mha_free(data);
}

static void test_sweep(void **state)
{
    sweep("bits.png", 1);
    sweep("palette.png", 3);
    sweep("grey.jpg", 1);
    sweep("progressive.jpg", 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_png),
        cmocka_unit_test(test_jpeg),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
