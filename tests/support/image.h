/* image.h: PNG files as pixels, and comparison with reference images. */
#ifndef MHA_TESTS_SUPPORT_IMAGE_H
#define MHA_TESTS_SUPPORT_IMAGE_H

#include <stdint.h>

typedef struct image {
    unsigned width, height;
    unsigned char *pixels; /* [height, width, 3] */
} image;

/* Fails the test on any error. */
image image_open(const char *path);
void image_close(image *i);
/* 0xRRGGBB */
uint32_t image_at(const image *i, unsigned x, unsigned y);

/* Fails the test when the picture is not the one of tests/data/render/NAME.png: another size, a
 * mean difference above 1 of 255, or more than 5 pixels in 1,000 that differ by more than 48.
 * Renderings of text differ that much between versions of FreeType, and no more. With
 * RENDER_REWRITE set in the environment the picture becomes the reference instead. */
void image_expect(const char *path, const char *name);

#endif
