/* preprocess.c: from a picture to what a model reads, by preprocessor_config.json beside it:
 *
 *   resize → crop of the middle → x·factor → (x − mean)/std, for each channel
 *
 * and from a file of features. Where the file is silent the defaults are those of the processor
 * that it names. */
#include "base/fail.h"
#include "base/filemap.h"
#include "base/mem.h"
#include "io/json.h"
#include "io/npy.h"
#include "io/picture.h"
#include "mha/input.h"
#include "model/program.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { CHANNELS_MAX = 3, SIDE_MAX = 1 << 14 };

typedef struct recipe {
    const char *file; /* for messages */
    bool resize, crop, rescale, normalise;
    uint32_t shortest; /* 0: height and width are the size itself */
    uint32_t height, width, crop_height, crop_width;
    mha_resample how;
    double factor, mean[CHANNELS_MAX], std[CHANNELS_MAX];
} recipe;

/* --- the recipe ------------------------------------------------------------------------------ */

static const double half[CHANNELS_MAX] = {0.5, 0.5, 0.5};
static const double openai_mean[CHANNELS_MAX] = {0.48145466, 0.4578275, 0.40821073};
static const double openai_std[CHANNELS_MAX] = {0.26862954, 0.26130258, 0.27577711};

/* The classes of processors, told by the beginning of their names. A single number as size is the
 * shortest edge for some and both edges for the others. */
static const struct processor {
    const char *name;
    bool crop, by_shortest;
    uint32_t size;
    mha_resample how;
    const double *mean, *std;
} processors[] = {
    {"ViT", false, false, 224, MHA_RESAMPLE_BILINEAR, half, half},
    {"DeiT", true, false, 256, MHA_RESAMPLE_BICUBIC, half, half},
    {"CLIP", true, true, 224, MHA_RESAMPLE_BICUBIC, openai_mean, openai_std},
    {"Bit", true, true, 224, MHA_RESAMPLE_BICUBIC, openai_mean, openai_std},
};

static mha_status refuse(const recipe *r, const char *key, const json_t *j, mha_err *err)
{
    char value[96] = {0};
    size_t n = json_dumpb(j, value, sizeof value - 1, JSON_ENCODE_ANY | JSON_COMPACT);
    value[n < sizeof value ? n : sizeof value - 1] = '\0';
    return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: %s = %s is not supported", r->file, key, value);
}

static mha_status choose_processor(const struct processor **out, const recipe *r,
                                   const json_t *config, mha_err *err)
{
    const json_t *j = json_object_get(config, "image_processor_type");
    if (j == NULL)
        j = json_object_get(config, "feature_extractor_type");
    const char *name = json_string_value(j);
    *out = &processors[0];
    if (name == NULL)
        return MHA_OK;
    for (size_t i = 0; i < sizeof processors / sizeof *processors; i++) {
        size_t n = strlen(processors[i].name);
        if (strncmp(name, processors[i].name, n) == 0 &&
            (strncmp(name + n, "Image", 5) == 0 || strncmp(name + n, "Feature", 7) == 0)) {
            *out = &processors[i];
            return MHA_OK;
        }
    }
    return refuse(r, "image_processor_type", j, err);
}

/* A switch; null and absent leave the default. */
static bool truth(const json_t *config, const char *key, bool absent)
{
    const json_t *j = json_object_get(config, key);
    return json_is_boolean(j) ? json_is_true(j) : absent;
}

static bool side(const json_t *j, uint32_t *out)
{
    json_int_t v = json_is_integer(j) ? json_integer_value(j) : 0;
    *out = (uint32_t)(v > 0 && v <= SIDE_MAX ? v : 0);
    return *out > 0;
}

/* A number, {"height", "width"} or {"shortest_edge"}; *shortest is 0 unless it is an edge. */
static mha_status read_size(const recipe *r, const json_t *config, const char *key, bool by_edge,
                            uint32_t *height, uint32_t *width, uint32_t *shortest, mha_err *err)
{
    const json_t *j = json_object_get(config, key);
    if (j == NULL || json_is_null(j))
        return MHA_OK;
    *shortest = 0;
    if (side(j, height)) {
        *width = *height;
        *shortest = by_edge ? *height : 0;
        return MHA_OK;
    }
    if (json_object_size(j) == 2 && side(json_object_get(j, "height"), height) &&
        side(json_object_get(j, "width"), width))
        return MHA_OK;
    if (json_object_size(j) == 1 && shortest != NULL &&
        side(json_object_get(j, "shortest_edge"), shortest))
        return MHA_OK;
    return refuse(r, key, j, err);
}

/* A number for all channels, or a list with one for each. */
static mha_status read_channels(const recipe *r, const json_t *config, const char *key,
                                uint32_t channels, bool divides, double *out, mha_err *err)
{
    const json_t *j = json_object_get(config, key);
    if (j == NULL || json_is_null(j))
        return MHA_OK;
    bool list = json_is_array(j) && json_array_size(j) == channels;
    for (uint32_t c = 0; c < channels; c++) {
        const json_t *v = list ? json_array_get(j, c) : j;
        if (!json_is_number(v) || (divides && json_number_value(v) == 0))
            return refuse(r, key, j, err);
        out[c] = json_number_value(v);
    }
    return MHA_OK;
}

static mha_status read_resample(recipe *r, const json_t *config, mha_err *err)
{
    const json_t *j = json_object_get(config, "resample");
    if (j == NULL || json_is_null(j))
        return MHA_OK;
    json_int_t v = json_is_integer(j) ? json_integer_value(j) : -1;
    if (v < MHA_RESAMPLE_NEAREST || v > MHA_RESAMPLE_BICUBIC)
        return refuse(r, "resample", j, err);
    r->how = (mha_resample)v;
    return MHA_OK;
}

/* Settings that change the pixels and are not followed. */
static mha_status refuse_others(const recipe *r, const json_t *config, mha_err *err)
{
    static const char *const keys[] = {
        "do_pad", "do_flip_channel_order", "crop_pct", "do_thumbnail", "do_align_long_axis",
        "offset", "do_image_splitting"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const json_t *j = json_object_get(config, keys[i]);
        if (j != NULL && !json_is_null(j) && !json_is_false(j))
            return refuse(r, keys[i], j, err);
    }
    return MHA_OK;
}

static mha_status recipe_read(recipe *r, const json_t *config, uint32_t channels, mha_err *err)
{
    const struct processor *p;
    uint32_t none = 0;
    MHA_TRY(choose_processor(&p, r, config, err));
    r->resize = truth(config, "do_resize", true);
    r->crop = truth(config, "do_center_crop", p->crop);
    r->rescale = truth(config, "do_rescale", true);
    r->normalise = truth(config, "do_normalize", true);
    r->height = r->width = p->size;
    r->crop_height = r->crop_width = 224;
    r->shortest = p->by_shortest ? p->size : 0;
    r->how = p->how;
    r->factor = 1.0 / 255;
    memcpy(r->mean, p->mean, sizeof r->mean);
    memcpy(r->std, p->std, sizeof r->std);
    MHA_TRY(read_size(r, config, "size", p->by_shortest, &r->height, &r->width, &r->shortest, err));
    MHA_TRY(read_size(r, config, "crop_size", false, &r->crop_height, &r->crop_width, &none, err));
    if (none != 0)
        return refuse(r, "crop_size", json_object_get(config, "crop_size"), err);
    MHA_TRY(read_resample(r, config, err));
    MHA_TRY(read_channels(r, config, "image_mean", channels, false, r->mean, err));
    MHA_TRY(read_channels(r, config, "image_std", channels, true, r->std, err));
    const json_t *factor = json_object_get(config, "rescale_factor");
    r->factor = json_is_number(factor) ? json_number_value(factor) : r->factor;
    return refuse_others(r, config, err);
}

/* preprocessor_config.json, or the part of processor_config.json that newer files have. */
static mha_status recipe_open(recipe *r, const struct mha_model *m, char path[PATH_MAX],
                              mha_err *err)
{
    static const char *const files[] = {"preprocessor_config.json", "processor_config.json"};
    json_t *root = NULL;
    for (size_t i = 0; i < 2 && root == NULL; i++) {
        int n = snprintf(path, PATH_MAX, "%s/%s", m->info.path, files[i]);
        if (n > 0 && n < PATH_MAX && m->checkpoint->gguf == NULL && access(path, F_OK) == 0)
            MHA_TRY(mha_json_open(&root, path, err));
    }
    if (root == NULL)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "%s: no preprocessor_config.json says how pictures are prepared; give "
                        "prepared ones with --features",
                        m->info.path);
    const json_t *config = json_object_get(root, "image_processor");
    r->file = path;
    mha_status status =
        recipe_read(r, json_is_object(config) ? config : root, m->info.signal.channels, err);
    json_decref(root);
    return status;
}

/* --- pictures ----------------------------------------------------------------------------------
 */

static mha_status resized(mha_picture *out, const recipe *r, const mha_picture *in, mha_err *err)
{
    uint32_t width = r->resize ? r->width : in->width, height = r->resize ? r->height : in->height;
    if (r->resize && r->shortest > 0) {
        bool tall = in->width <= in->height;
        uint64_t edge = r->shortest, small = tall ? in->width : in->height;
        uint64_t other = edge * (tall ? in->height : in->width) / small;
        if (other > UINT32_MAX)
            return mha_fail(err, MHA_ERR_LIMIT, "a picture of %u × %u pixels is too long a strip",
                            in->width, in->height);
        width = tall ? (uint32_t)edge : (uint32_t)other;
        height = tall ? (uint32_t)other : (uint32_t)edge;
    }
    return mha_picture_resize(out, in, width, height, r->how, err);
}

/* ⌊(have − want)/2⌋ */
static int64_t middle(int64_t have, int64_t want)
{
    int64_t d = have - want;
    return d >= 0 ? d / 2 : -((1 - d) / 2);
}

/* The middle of the picture; black where it is too small. */
static mha_status cropped(mha_picture *out, const recipe *r, const mha_picture *in, mha_err *err)
{
    MHA_TRY(mha_picture_make(out, r->crop_width, r->crop_height, r->file, UINT64_MAX, err));
    int64_t left = middle(in->width, out->width), top = middle(in->height, out->height);
    for (uint32_t y = 0; y < out->height; y++)
        for (uint32_t x = 0; x < out->width; x++) {
            int64_t u = x + left, v = y + top;
            if (u >= 0 && u < in->width && v >= 0 && v < in->height)
                memcpy(out->rgb + ((size_t)y * out->width + x) * 3,
                       in->rgb + ((size_t)v * in->width + (size_t)u) * 3, 3);
        }
    return MHA_OK;
}

/* One channel of a pixel: a colour, or the luminance of ITU-R 601 where the model sees grey. */
static double channel(const unsigned char *rgb, uint32_t c, uint32_t channels)
{
    if (channels > 1)
        return rgb[c];
    return (rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000) >> 16;
}

static mha_status numbers(float **out, const recipe *r, const mha_picture *p, uint32_t channels,
                          mha_err *err)
{
    size_t area = (size_t)p->width * p->height;
    MHA_TRY(mha_alloc((void **)out, area * channels, sizeof **out, err));
    for (uint32_t c = 0; c < channels; c++)
        for (size_t i = 0; i < area; i++) {
            double x = channel(p->rgb + i * 3, c, channels);
            x = r->rescale ? x * r->factor : x;
            (*out)[c * area + i] = (float)(r->normalise ? (x - r->mean[c]) / r->std[c] : x);
        }
    return MHA_OK;
}

static mha_status check_size(const recipe *r, const mha_picture *p, const mha_signal_info *want,
                             mha_err *err)
{
    if (p->height == want->height && p->width == want->width)
        return MHA_OK;
    return mha_fail(err, MHA_ERR_UNSUPPORTED,
                    "%s makes pictures of %u × %u pixels, the model reads %u × %u", r->file,
                    p->width, p->height, want->width, want->height);
}

mha_status mha_picture_features(float **features, mha_picture *seen, const mha_picture *picture,
                                const mha_model *m, mha_err *err)
{
    const mha_signal_info *want = &m->info.signal;
    char path[PATH_MAX];
    recipe r = {0};
    mha_picture whole = {0}, middle_part = {0};
    *features = NULL;
    if (seen != NULL)
        *seen = (mha_picture){0};
    if (want->patch == 0 || (want->channels != 1 && want->channels != CHANNELS_MAX))
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: the model reads no pictures", m->info.path);
    MHA_TRY(recipe_open(&r, m, path, err));
    mha_status status = resized(&whole, &r, picture, err);
    if (status == MHA_OK && r.crop)
        status = cropped(&middle_part, &r, &whole, err);
    mha_picture *last = r.crop ? &middle_part : &whole;
    if (status == MHA_OK)
        status = check_size(&r, last, want, err);
    if (status == MHA_OK)
        status = numbers(features, &r, last, want->channels, err);
    if (status == MHA_OK && seen != NULL) {
        *seen = *last;
        *last = (mha_picture){0};
    }
    mha_picture_release(&whole);
    mha_picture_release(&middle_part);
    return status;
}

/* --- features ----------------------------------------------------------------------------------
 */

static mha_status features_check(const mha_npy *a, const mha_signal_info *want, const char *path,
                                 mha_err *err)
{
    const uint64_t expected[3] = {want->channels, want->height, want->width};
    char shape[96] = "";
    uint32_t skip = a->rank > 0 && a->shape[0] == 1 ? 1 : 0;
    bool same = false;
    for (uint32_t lead = 0; lead <= skip && !same; lead++) {
        uint32_t rank = a->rank - lead;
        same = rank == 3 || (rank == 2 && want->patch == 0);
        for (uint32_t i = 0; same && i < rank; i++)
            same = a->shape[lead + i] == (rank == 2 && i == 1 ? expected[2] : expected[i]);
    }
    if (same)
        return MHA_OK;
    for (uint32_t i = 0; i < a->rank && strlen(shape) < 64; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%llu", i ? ", " : "",
                 (unsigned long long)a->shape[i]);
    char height[16] = "";
    if (want->patch != 0)
        snprintf(height, sizeof height, "%u, ", want->height);
    return mha_fail(err, MHA_ERR_FORMAT, "%s: expected an array [%u, %s%u], found [%s]", path,
                    want->channels, height, want->width, shape);
}

static mha_status features_read(float **out, const mha_npy *a, const char *path, mha_err *err)
{
    MHA_TRY(mha_alloc((void **)out, a->count, sizeof **out, err));
    mha_npy_f32(*out, a);
    for (uint64_t i = 0; i < a->count; i++)
        if (!isfinite((*out)[i])) {
            mha_features_free(*out);
            *out = NULL;
            return mha_fail(err, MHA_ERR_NUMERIC, "%s: element %llu is NaN or infinite", path,
                            (unsigned long long)i);
        }
    return MHA_OK;
}

mha_status mha_features_open(float **features, const char *path, const mha_model *m, mha_err *err)
{
    mha_filemap f;
    mha_npy a;
    *features = NULL;
    if (m->info.signal.channels == 0)
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "%s: the model reads token ids, not features",
                        m->info.path);
    MHA_TRY(mha_filemap_open(&f, path, err));
    mha_status status = mha_npy_parse(&a, f.data, f.size, path, err);
    if (status == MHA_OK)
        status = features_check(&a, &m->info.signal, path, err);
    if (status == MHA_OK)
        status = features_read(features, &a, path, err);
    if (status == MHA_OK)
        status = mha_filemap_check(&f, err);
    if (status != MHA_OK) {
        mha_features_free(*features);
        *features = NULL;
    }
    mha_filemap_close(&f);
    return status;
}

void mha_features_free(float *features)
{
    mha_free(features);
}
