/* figure.c: from options of the command line to options of a chart. */
#include "cli/figure.h"

#include "base/fail.h"
#include "mha/mha.h"

#include <stdio.h>
#include <string.h>

static mha_status colormap_check(const char *name, mha_err *err)
{
    char names[256] = "";
    size_t used = 0;
    for (size_t i = 0; name && i < mha_colormap_count(); i++) {
        const char *known = mha_colormap_name(i);
        if (strcmp(known, name) == 0)
            return MHA_OK;
        int n = snprintf(names + used, sizeof names - used, " %s", known);
        used += n > 0 && (size_t)n < sizeof names - used ? (size_t)n : 0;
    }
    return name ? mha_fail(err, MHA_ERR_ARG, "--colormap: no colour map '%s'; there are%s", name,
                           names)
                : MHA_OK;
}

mha_status mha_figure_options(mha_chart_options *o, const mha_cli *cli, const mha_output *out,
                              mha_err *err)
{
    const mha_args *args = &cli->args;
    int scale = mha_args_choice(args, MHA_OPT_SCALE);
    *o = (mha_chart_options){
        .font = mha_args_get(args, MHA_OPT_FONT),
        .colormap = mha_args_get(args, MHA_OPT_COLORMAP),
        .scale = scale < 0 ? MHA_SCALE_LINEAR : (mha_scale)scale,
        .dark = mha_args_has(args, MHA_OPT_DARK),
        .title = mha_args_get(args, MHA_OPT_TITLE),
        .caption = mha_args_get(args, MHA_OPT_CAPTION),
        .format = out->format,
        .force = out->force,
        .creator = "mha-inspect " MHA_VERSION,
    };
    MHA_TRY(mha_args_real(args, MHA_OPT_WIDTH, 10, 2000, &o->width_mm, err));
    MHA_TRY(mha_args_real(args, MHA_OPT_DPI, 20, 2400, &o->dpi, err));
    MHA_TRY(mha_args_real(args, MHA_OPT_FONT_SIZE, 1, 100, &o->font_pt, err));
    MHA_TRY(colormap_check(o->colormap, err));
    return mha_chart_check(o, out->path, err);
}
