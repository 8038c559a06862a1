/* picture_jpeg.c: decoding JPEG through libjpeg. Its errors come by longjmp: everything that has to
 * be freed lives in `job` or belongs to libjpeg. Warnings that mean missing data are errors here,
 * because libjpeg would fill in grey. */
#include "io/picture.h"

#include "base/fail.h"

#include <setjmp.h>
#include <stdio.h> /* jpeglib.h wants FILE */
#include <string.h>

#include <jerror.h>
#include <jpeglib.h>

/* A progressive file may ask for any number of passes over the whole picture. */
#define SCANS_MAX 200

typedef struct job {
    struct jpeg_error_mgr errors; /* first: libjpeg hands its address back */
    struct jpeg_progress_mgr progress;
    struct jpeg_decompress_struct jpeg;
    jmp_buf jump;
    const unsigned char *data;
    size_t size;
    const char *file;
    uint64_t max_pixels;
    mha_picture *out;
    mha_err *err;
    mha_status status; /* of an error of our own */
    char message[JMSG_LENGTH_MAX];
} job;

static void on_error(j_common_ptr jpeg)
{
    job *j = (job *)(void *)jpeg->err;
    jpeg->err->format_message(jpeg, j->message);
    longjmp(j->jump, 1);
}

static void on_message(j_common_ptr jpeg, int level)
{
    int code = jpeg->err->msg_code;
    bool missing = code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE;
    if (level < 0 && missing)
        on_error(jpeg);
}

static void on_progress(j_common_ptr jpeg)
{
    job *j = (job *)(void *)jpeg->err;
    if (j->jpeg.input_scan_number <= SCANS_MAX)
        return;
    snprintf(j->message, sizeof j->message, "more than %d scans", SCANS_MAX);
    longjmp(j->jump, 1);
}

static mha_status check_kind(const job *j)
{
    if (j->jpeg.num_components == 1 || j->jpeg.num_components == 3)
        return MHA_OK;
    return mha_fail(j->err, MHA_ERR_UNSUPPORTED, "%s: a JPEG file of %d components (CMYK?)",
                    j->file, j->jpeg.num_components);
}

static void decode(job *j)
{
    struct jpeg_decompress_struct *jpeg = &j->jpeg;
    jpeg_mem_src(jpeg, j->data, (unsigned long)j->size);
    jpeg_read_header(jpeg, TRUE);
    j->status = check_kind(j);
    if (j->status == MHA_OK)
        j->status = mha_picture_make(j->out, jpeg->image_width, jpeg->image_height, j->file,
                                     j->max_pixels, j->err);
    if (j->status != MHA_OK)
        return;
    jpeg->out_color_space = JCS_RGB;
    jpeg_start_decompress(jpeg);
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row = j->out->rgb + (size_t)jpeg->output_scanline * j->out->width * 3;
        jpeg_read_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_decompress(jpeg);
}

mha_status mha_picture_jpeg(mha_picture *out, const unsigned char *data, size_t size,
                            const char *file, uint64_t max_pixels, mha_err *err)
{
    job j = {
        .data = data, .size = size, .file = file, .max_pixels = max_pixels, .out = out, .err = err};
    j.jpeg.err = jpeg_std_error(&j.errors);
    j.errors.error_exit = on_error;
    j.errors.emit_message = on_message;
    j.progress.progress_monitor = on_progress;
    bool broken = setjmp(j.jump) != 0;
    if (!broken) {
        jpeg_create_decompress(&j.jpeg);
        j.jpeg.progress = &j.progress;
        decode(&j);
    }
    jpeg_destroy_decompress(&j.jpeg);
    return broken ? mha_fail(err, MHA_ERR_FORMAT, "%s: not a sound JPEG file: %s", file, j.message)
                  : j.status;
}
