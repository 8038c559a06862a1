/* font.h: text set in the bundled font, the same on every machine.
 *
 * The font has a fontconfig of its own that knows no other file; the machine's fonts are looked for
 * only when a text holds a character that the bundled font lacks, or when a family is asked for by
 * name. Sizes and widths are in points. */
#ifndef MHA_RENDER_FONT_H
#define MHA_RENDER_FONT_H

#include "mha/err.h"

#include <cairo.h>
#include <stdbool.h>

typedef struct mha_font mha_font;

/* family NULL: the bundled font. MHA_ERR_ARG when the machine has no family of that name. */
mha_status mha_font_open(mha_font **out, const char *family, mha_err *err);
void mha_font_close(mha_font *f);

const char *mha_font_family(const mha_font *f);
/* true when a text that was measured had a character that no font has: it is drawn as a box. */
bool mha_font_missing(const mha_font *f);
/* Width of one line of text. */
double mha_font_width(mha_font *f, const char *text, double size);
/* Draws a line of text with its baseline's start at (x, y), turned by `angle` degrees
 * counter-clockwise about that point. The colour is the context's source. */
void mha_font_show(mha_font *f, cairo_t *cr, const char *text, double size, double x, double y,
                   double angle);

/* Of the bundled font, in parts of the size: figures are laid out with these. */
#define MHA_FONT_ASCENT  0.73 /* capitals and ascenders */
#define MHA_FONT_DESCENT 0.21
#define MHA_FONT_MIDDLE  0.35 /* from the baseline to the optical middle of a line */
#define MHA_FONT_LINE    1.2

#endif
