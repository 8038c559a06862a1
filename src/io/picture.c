/* picture.c: opens pictures; the decoders are in files of their own, one for each library. */
#include "io/picture.h"
#include "base/fail.h"
#include "base/filemap.h"
#include "base/mem.h"
#include <string.h>

mha_status mha_picture_make(mha_picture *out, uint64_t width, uint64_t height, const char *file,
                            uint64_t max_pixels, mha_err *err)
{
    if (width == 0 || height == 0)
        return mha_fail(err, MHA_ERR_FORMAT, "%s: a picture of %llu × %llu pixels", file,
                        (unsigned long long)width, (unsigned long long)height);
    if (width > UINT32_MAX || height > UINT32_MAX || width > max_pixels / height)
        return mha_fail(err, MHA_ERR_LIMIT, "%s: a picture of %llu × %llu pixels, at most %llu",
                        file, (unsigned long long)width, (unsigned long long)height,
                        (unsigned long long)max_pixels);
    out->width = (uint32_t)width;
    out->height = (uint32_t)height;
    return mha_alloc((void **)&out->rgb, (size_t)width * (size_t)height, 3, err);
}

mha_status mha_picture_parse(mha_picture *out, const unsigned char *data, size_t size,
                             const char *file, uint64_t max_pixels, mha_err *err)
{
    static const unsigned char png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    static const unsigned char jpeg[] = {0xff, 0xd8, 0xff};
    mha_status status;
    *out = (mha_picture){0};
    if (max_pixels == 0)
        max_pixels = MHA_PICTURE_PIXELS_MAX;
    if (size >= sizeof png && memcmp(data, png, sizeof png) == 0)
        status = mha_picture_png(out, data, size, file, max_pixels, err);
    else if (size >= sizeof jpeg && memcmp(data, jpeg, sizeof jpeg) == 0)
        status = mha_picture_jpeg(out, data, size, file, max_pixels, err);
    else
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: neither a PNG nor a JPEG file", file);
    if (status != MHA_OK)
        mha_picture_release(out);
    return status;
}

mha_status mha_picture_open(mha_picture *out, const char *path, uint64_t max_pixels, mha_err *err)
{
    mha_filemap f;
    MHA_TRY(mha_filemap_open(&f, path, err));
    mha_status status = mha_picture_parse(out, f.data, f.size, path, max_pixels, err);
    if (status == MHA_OK) {
        status = mha_filemap_check(&f, err);
        if (status != MHA_OK)
            mha_picture_release(out);
    }
    mha_filemap_close(&f);
    return status;
}

void mha_picture_release(mha_picture *p)
{
    mha_free(p->rgb);
    *p = (mha_picture){0};
}
