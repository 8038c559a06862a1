/* parts.h: figures that stand alone, or one above the other in a larger one. A part is laid out
 * over the figure's width before the page begins, and drawn at some height of it then. Parts live
 * in the figure's arena. */
#ifndef MHA_RENDER_PARTS_H
#define MHA_RENDER_PARTS_H

#include "render/figure.h"

/* What every part says of itself once it is laid out. */
typedef struct mha_part {
    double height;
    double left; /* where its map or bars start: titles do too */
} mha_part;

typedef struct mha_headmap_part mha_headmap_part;
/* true when colours have to tell signs apart. */
bool mha_headmap_diverges(const mha_headmap *figure);
/* Release *out in any case. */
mha_status mha_headmap_part_make(mha_headmap_part **out, mha_part *part, mha_figure *f,
                                 const mha_headmap *figure, mha_err *err);
mha_status mha_headmap_part_draw(const mha_headmap_part *p, mha_figure *f, double y, mha_err *err);
void mha_headmap_part_release(mha_headmap_part *p);

typedef struct mha_bars_part mha_bars_part;
mha_status mha_bars_part_make(mha_bars_part **out, mha_part *part, mha_figure *f,
                              const mha_bars *figure, mha_err *err);
mha_status mha_bars_part_draw(const mha_bars_part *p, mha_figure *f, double y, mha_err *err);

#endif
