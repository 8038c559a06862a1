/* exact.c: one tile, one pixel. No text, so no font; no cairo, so no limit but that of PNG. */
#include "render/figure.h"
#include "render/png.h"

#include "base/fail.h"

static mha_status exact_write(mha_figure *f, const mha_heat *map, const uint8_t *pixels,
                              mha_err *err)
{
    mha_raster raster = {pixels, map->tile_cols, map->tile_rows, f->palette, NULL};
    mha_png_info info = {f->dpi, f->options->title, f->options->creator};
    MHA_TRY(mha_outfile_open(&f->file, f->path, f->options->force, err));
    MHA_TRY(mha_png_write_indexed(mha_png_to_stream(f->file.stream), &raster, 256, &info, err));
    MHA_TRY(mha_figure_write_caption(f, err));
    return mha_outfile_commit(&f->file, err);
}

static mha_status exact_make(mha_figure *f, const mha_heat *map, mha_err *err)
{
    mha_color_scale scale;
    void *p = NULL;
    if (f->format != MHA_FORMAT_PNG)
        return mha_fail(err, MHA_ERR_ARG, "%s: one weight, one pixel is written as png only",
                        f->path);
    MHA_TRY(mha_color_scale_of(&scale, &map, 1, f->options->scale, err));
    MHA_TRY(mha_figure_say_scale(f, &scale, "attention weight", err));
    MHA_TRY(mha_figure_note_tiles(f, map, err));
    MHA_TRY(mha_alloc_raw(&p, map->tile_rows, map->tile_cols, err));
    uint8_t *pixels = p;
    mha_figure_levels(pixels, map, &scale);
    mha_status status = exact_write(f, map, pixels, err);
    mha_free(pixels);
    return status;
}

mha_status mha_chart_exact(const mha_heat *map, const mha_chart_options *o, const char *path,
                           mha_err *err)
{
    mha_figure f;
    mha_status status = mha_figure_set_up(&f, o, path, mha_heat_negative(map), err);
    if (status == MHA_OK)
        status = exact_make(&f, map, err);
    mha_figure_close(&f);
    return status;
}
