/* color.h: colours and colour maps. */
#ifndef MHA_RENDER_COLOR_H
#define MHA_RENDER_COLOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mha_color {
    uint8_t r, g, b;
} mha_color;

/* A raster's pixels are levels of the colour map, or this one: masked. */
#define MHA_LEVEL_MASKED 255
#define MHA_LEVEL_TOP    254

mha_color mha_color_mix(mha_color a, mha_color b, double t); /* t = 0: a, t = 1: b */
double mha_color_luminance(mha_color c);                     /* 0 black to 1 white, relative */

/* Fills palette[0..254] from the colour map of that name; false when there is none. */
bool mha_colormap_fill(const char *name, mha_color palette[256]);

#endif
