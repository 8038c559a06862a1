/* font_data.h: the bundled font's bytes (src/render/font/), embedded by the build. */
#ifndef MHA_RENDER_FONT_DATA_H
#define MHA_RENDER_FONT_DATA_H

#include "base/embedded.h"

extern const struct mha_embedded mha_fonts[];
extern const size_t mha_font_count;

#endif
