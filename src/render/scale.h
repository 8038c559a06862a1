/* scale.h: from values to colours, and where an axis of numbers has its ticks. */
#ifndef MHA_RENDER_SCALE_H
#define MHA_RENDER_SCALE_H

#include "mha/chart.h"
#include "render/heat.h"

#define MHA_LOG_DECADES                                                                            \
    4 /* to the power of ten that is so many below the one above the largest                       \
       */
#define MHA_CLIP_RANK 0.99

/* Values from lo to hi are levels 0 to MHA_LEVEL_TOP. */
typedef struct mha_color_scale {
    mha_scale kind;
    double lo, hi;
    bool clipped; /* there are values above hi */
} mha_color_scale;

/* The scale of all tiles of `count` maps; NULL maps are passed over. With `kind` CLIP the tiles are
 * sorted in scratch memory, hence the error. A scale with negative values is linear and symmetric
 * about 0. Never empty: hi > lo. */
mha_status mha_color_scale_of(mha_color_scale *out, const mha_heat *const *maps, size_t count,
                              mha_scale kind, mha_err *err);

/* true when a map holds a value below 0: its colours should diverge. */
bool mha_heat_negative(const mha_heat *h);

/* Where a value lies between lo (0) and hi (1), both ends included. */
double mha_color_scale_at(const mha_color_scale *s, double value);
uint8_t mha_color_scale_level(const mha_color_scale *s, double value); /* NaN: masked */

/* Ticks at round numbers from lo to hi: first, first + step, ..., with the decimals they need.
 * At most `most` + 1 of them. */
typedef struct mha_ticks {
    double first, step;
    size_t count;
    int decimals;
} mha_ticks;
mha_ticks mha_ticks_of(double lo, double hi, size_t most);

/* A number for a label: short, at most three significant digits. */
#define MHA_LABEL_SIZE 32
void mha_label_minus(char text[MHA_LABEL_SIZE]); /* the minus sign proper, as wide as a plus */
void mha_label_number(char out[MHA_LABEL_SIZE], double value);

#endif
