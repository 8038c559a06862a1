/* color.c: the colour maps, as 33 colours between which the other levels are mixed (at most three
 * steps of 255 from the published tables). All of them are safe for colour-blind readers: their
 * lightness rises or falls steadily, or from both ends to the middle in the diverging one.
 *
 * viridis and magma are by S. van der Walt and N. Smith (CC0), cividis by J. R. Nuñez, C. R.
 * Anderton and R. S. Renslow (2018, doi:10.1371/journal.pone.0199239, CC0); blues, greys and
 * balance are drawn up in OKLCH for this program. */
#include "render/color.h"

#include "mha/chart.h"

#include <math.h>
#include <string.h>

#define ANCHORS 33

static const struct {
    const char *name;
    uint32_t colors[ANCHORS]; /* 0xRRGGBB */
} maps[] = {
    {"blues",
     {0xffffff, 0xeff9fe, 0xe1f2fd, 0xd2ecfc, 0xc4e5fb, 0xb6def9, 0xa9d7f7, 0x9cd0f5, 0x90c8f2,
      0x84c1ef, 0x79b9ec, 0x6fb1e8, 0x65aae3, 0x5ca2df, 0x549ad9, 0x4c92d4, 0x468acd, 0x4082c7,
      0x3b7bbf, 0x3673b7, 0x336baf, 0x3064a6, 0x2d5d9d, 0x2b5694, 0x294f8a, 0x274880, 0x254175,
      0x233b6a, 0x21355f, 0x1e2f54, 0x1c2949, 0x1a243e, 0x171e33}},
    {"greys",
     {0xffffff, 0xf6f6f6, 0xededed, 0xe4e4e4, 0xdbdbdb, 0xd2d2d2, 0xc9c9c9, 0xc1c1c1, 0xb8b8b8,
      0xafafaf, 0xa7a7a7, 0x9f9f9f, 0x969696, 0x8e8e8e, 0x868686, 0x7e7e7e, 0x767676, 0x6e6e6e,
      0x666666, 0x5e5e5e, 0x575757, 0x4f4f4f, 0x484848, 0x414141, 0x3a3a3a, 0x333333, 0x2c2c2c,
      0x252525, 0x1f1f1f, 0x191919, 0x121212, 0x0d0d0d, 0x070707}},
    {"viridis",
     {0x440154, 0x470d60, 0x48186a, 0x482374, 0x472d7b, 0x453781, 0x424086, 0x3e4989, 0x3b528b,
      0x375b8d, 0x33638d, 0x2f6b8e, 0x2c728e, 0x297a8e, 0x26828e, 0x23898e, 0x21918c, 0x1f988b,
      0x1fa088, 0x22a785, 0x28ae80, 0x32b67a, 0x3fbc73, 0x4ec36b, 0x5ec962, 0x70cf57, 0x84d44b,
      0x98d83e, 0xaddc30, 0xc2df23, 0xd8e219, 0xece51b, 0xfde725}},
    {"magma",
     {0x000004, 0x030312, 0x0a0822, 0x130d34, 0x1d1147, 0x29115a, 0x36106b, 0x440f76, 0x51127c,
      0x5d177f, 0x6a1c81, 0x762181, 0x832681, 0x902a81, 0x9c2e7f, 0xaa337d, 0xb73779, 0xc43c75,
      0xd0416f, 0xdc4869, 0xe75263, 0xef5d5e, 0xf56b5c, 0xf9795d, 0xfc8961, 0xfd9869, 0xfea772,
      0xfeb67c, 0xfec488, 0xfed395, 0xfde2a3, 0xfcf0b2, 0xfcfdbf}},
    {"cividis",
     {0x00224e, 0x00285b, 0x002e6a, 0x053371, 0x1a386f, 0x273e6e, 0x32436d, 0x3b496c, 0x434e6c,
      0x4b546c, 0x535a6d, 0x5a5f6e, 0x61656f, 0x686a71, 0x6f7073, 0x767676, 0x7d7c78, 0x848279,
      0x8c8878, 0x938e78, 0x9b9476, 0xa39a74, 0xaba072, 0xb4a76f, 0xbcae6c, 0xc4b468, 0xcdbb63,
      0xd5c25e, 0xdec958, 0xe7d150, 0xf0d846, 0xf9e03a, 0xfee838}},
    {"balance",
     {0x1c3b8f, 0x21479c, 0x2653a9, 0x2b5fb5, 0x326bc1, 0x3b77cb, 0x4584d5, 0x5191dd, 0x5e9de4,
      0x6eaaea, 0x7eb6ef, 0x90c2f2, 0xa3cef5, 0xb8daf7, 0xcde5f9, 0xe3f0fa, 0xfafafa, 0xfaebe2,
      0xfadccb, 0xf9cdb5, 0xf7bea1, 0xf4ae8d, 0xf09f7a, 0xec9069, 0xe6815a, 0xdf724b, 0xd7633e,
      0xce5532, 0xc44728, 0xb9391f, 0xad2b18, 0xa11d13, 0x950b0d}},
};

#define MAP_COUNT (sizeof maps / sizeof *maps)

const char *mha_colormap_name(size_t index)
{
    return index < MAP_COUNT ? maps[index].name : NULL;
}

size_t mha_colormap_count(void)
{
    return MAP_COUNT;
}

static uint8_t channel_mix(uint8_t a, uint8_t b, double t)
{
    return (uint8_t)lround(a + t * (b - a));
}

mha_color mha_color_mix(mha_color a, mha_color b, double t)
{
    return (mha_color){channel_mix(a.r, b.r, t), channel_mix(a.g, b.g, t),
                       channel_mix(a.b, b.b, t)};
}

/* sRGB to linear light. */
static double channel_linear(uint8_t c)
{
    double x = c / 255.0;
    return x <= 0.04045 ? x / 12.92 : pow((x + 0.055) / 1.055, 2.4);
}

/* Y = 0.2126 R + 0.7152 G + 0.0722 B (ITU-R BT.709). */
double mha_color_luminance(mha_color c)
{
    return 0.2126 * channel_linear(c.r) + 0.7152 * channel_linear(c.g) +
           0.0722 * channel_linear(c.b);
}

static mha_color color_unpack(uint32_t rgb)
{
    return (mha_color){(uint8_t)(rgb >> 16), (uint8_t)(rgb >> 8 & 255), (uint8_t)(rgb & 255)};
}

bool mha_colormap_fill(const char *name, mha_color palette[256])
{
    for (size_t m = 0; m < MAP_COUNT; m++) {
        if (strcmp(name, maps[m].name) != 0)
            continue;
        for (size_t i = 0; i <= MHA_LEVEL_TOP; i++) {
            double at = (double)i / MHA_LEVEL_TOP * (ANCHORS - 1);
            size_t k = i == MHA_LEVEL_TOP ? ANCHORS - 2 : (size_t)at;
            palette[i] = mha_color_mix(color_unpack(maps[m].colors[k]),
                                       color_unpack(maps[m].colors[k + 1]), at - (double)k);
        }
        return true;
    }
    return false;
}
