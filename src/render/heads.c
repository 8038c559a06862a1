/* heads.c: a map of heads above bars of some of them, as one figure. */
#include "render/parts.h"

#include "base/fail.h"

#define BETWEEN 8.0 /* points */

mha_status mha_chart_heads(const mha_headmap *map, const mha_bars *bars, const mha_chart_options *o,
                           const char *path, mha_err *err)
{
    mha_figure f;
    mha_part above, below;
    mha_headmap_part *upper = NULL;
    mha_bars_part *lower = NULL;
    mha_status st = mha_figure_open(&f, o, path, mha_headmap_diverges(map), err);
    MHA_TRY_GOTO(st, st, out);
    MHA_TRY_GOTO(st, mha_headmap_part_make(&upper, &above, &f, map, err), out);
    MHA_TRY_GOTO(st, mha_bars_part_make(&lower, &below, &f, bars, err), out);
    MHA_TRY_GOTO(st, mha_figure_begin(&f, above.height + BETWEEN + below.height, above.left, err),
                 out);
    MHA_TRY_GOTO(st, mha_headmap_part_draw(upper, &f, 0, err), out);
    MHA_TRY_GOTO(st, mha_bars_part_draw(lower, &f, above.height + BETWEEN, err), out);
    st = mha_figure_end(&f, err);
out:
    mha_headmap_part_release(upper);
    mha_figure_close(&f);
    return st;
}
