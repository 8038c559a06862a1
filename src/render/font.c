/* font.c: pango on a fontconfig of our own. The bundled font reaches fontconfig and FreeType as a
 * file in memory (memfd), since both take files only; nothing is written to disk. It may not touch
 * fontconfig's global configuration: the calling program may have its own. */
#include "render/font.h"

#include "render/font_data.h"

#include "base/fail.h"
#include "base/mem.h"
#include "base/utf8.h"

#include <errno.h>
#include <fontconfig/fontconfig.h>
#include <math.h>
#include <pango/pangocairo.h>
#include <pango/pangofc-fontmap.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BUNDLED_FAMILY "Liberation Sans"

/* One fontconfig and what pango needs to set text with it. */
typedef struct font_set {
    FcConfig *config;
    PangoFontMap *map;
    PangoLayout *layout;
} font_set;

struct mha_font {
    char *family;
    int file; /* the memfd of the bundled font */
    char path[64];
    font_set own;  /* the bundled font only; unused when a family was asked for */
    font_set wide; /* with the machine's fonts; made when it is needed */
    const FcCharSet *covered;
    bool missing; /* a character that no font has was met */
};

static mha_status memory_file_open(mha_font *f, mha_err *err)
{
    const struct mha_embedded *data = &mha_fonts[0];
    f->file = memfd_create("mha-font", MFD_CLOEXEC);
    if (f->file < 0)
        return mha_fail(err, MHA_ERR_IO, "the bundled font: memfd_create: %s", strerror(errno));
    for (size_t done = 0; done < data->size;) {
        ssize_t n = write(f->file, data->text + done, data->size - done);
        if (n < 0 && errno != EINTR)
            return mha_fail(err, MHA_ERR_IO, "the bundled font: %s", strerror(errno));
        done += n > 0 ? (size_t)n : 0;
    }
    snprintf(f->path, sizeof f->path, "/proc/self/fd/%d", f->file);
    return MHA_OK;
}

static void set_release(font_set *s)
{
    if (s->layout)
        g_object_unref(s->layout);
    /* pango holds a reference on the configuration and never lets it go by itself. */
    if (s->map)
        pango_fc_font_map_set_config(PANGO_FC_FONT_MAP(s->map), NULL);
    if (s->map)
        g_object_unref(s->map);
    if (s->config)
        FcConfigDestroy(s->config);
    *s = (font_set){0};
}

/* No hinting: what is measured must not depend on the size in pixels. */
static PangoContext *context_make(PangoFontMap *map)
{
    PangoContext *context = pango_font_map_create_context(map);
    cairo_font_options_t *options = cairo_font_options_create();
    cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    pango_cairo_context_set_font_options(context, options);
    pango_context_set_round_glyph_positions(context, FALSE);
    cairo_font_options_destroy(options);
    return context;
}

/* config is taken over. */
static mha_status set_make(font_set *s, FcConfig *config, mha_font *f, mha_err *err)
{
    s->config = config;
    if (!config || !FcConfigAppFontAddFile(config, (const FcChar8 *)f->path))
        return mha_fail(err, MHA_ERR_INTERNAL, "fontconfig does not take the bundled font");
    s->map = pango_cairo_font_map_new_for_font_type(CAIRO_FONT_TYPE_FT);
    if (!s->map)
        return mha_fail(err, MHA_ERR_UNSUPPORTED, "cairo was built without FreeType");
    pango_fc_font_map_set_config(PANGO_FC_FONT_MAP(s->map), config);
    PangoContext *context = context_make(s->map);
    s->layout = pango_layout_new(context);
    g_object_unref(context);
    pango_layout_set_single_paragraph_mode(s->layout, TRUE);
    PangoFontDescription *description = pango_font_description_new();
    pango_font_description_set_family(description, f->family);
    pango_layout_set_font_description(s->layout, description);
    pango_font_description_free(description);
    return MHA_OK;
}

static mha_status own_make(mha_font *f, mha_err *err)
{
    FcPattern *pattern = NULL;
    FcCharSet *covered = NULL;
    MHA_TRY(set_make(&f->own, FcConfigCreate(), f, err));
    const FcFontSet *fonts = FcConfigGetFonts(f->own.config, FcSetApplication);
    if (fonts && fonts->nfont > 0)
        pattern = fonts->fonts[0];
    if (!pattern || FcPatternGetCharSet(pattern, FC_CHARSET, 0, &covered) != FcResultMatch)
        return mha_fail(err, MHA_ERR_INTERNAL, "fontconfig finds nothing in the bundled font");
    f->covered = covered;
    return MHA_OK;
}

/* Whether the machine has a family of that name: fontconfig itself would answer with another. */
static mha_status family_check(const mha_font *f, mha_err *err)
{
    FcPattern *pattern = FcPatternCreate();
    FcPatternAddString(pattern, FC_FAMILY, (const FcChar8 *)f->family);
    FcObjectSet *objects = FcObjectSetBuild(FC_FAMILY, (char *)NULL);
    FcFontSet *found = FcFontList(f->wide.config, pattern, objects);
    bool there = found && found->nfont > 0;
    if (found)
        FcFontSetDestroy(found);
    FcObjectSetDestroy(objects);
    FcPatternDestroy(pattern);
    if (!there)
        return mha_fail(err, MHA_ERR_ARG, "no font of the name \"%s\" on this machine", f->family);
    return MHA_OK;
}

mha_status mha_font_open(mha_font **out, const char *family, mha_err *err)
{
    void *p = NULL;
    MHA_TRY(mha_alloc(&p, 1, sizeof **out, err));
    mha_font *f = p;
    f->file = -1;
    mha_status status = mha_strdup(&f->family, family ? family : BUNDLED_FAMILY, err);
    if (status == MHA_OK)
        status = memory_file_open(f, err);
    if (status == MHA_OK && !family)
        status = own_make(f, err);
    if (status == MHA_OK && family)
        status = set_make(&f->wide, FcInitLoadConfigAndFonts(), f, err);
    if (status == MHA_OK && family)
        status = family_check(f, err);
    if (status != MHA_OK) {
        mha_font_close(f);
        return status;
    }
    *out = f;
    return MHA_OK;
}

void mha_font_close(mha_font *f)
{
    if (!f)
        return;
    set_release(&f->own);
    set_release(&f->wide);
    if (f->file >= 0)
        close(f->file);
    mha_free(f->family);
    mha_free(f);
}

const char *mha_font_family(const mha_font *f)
{
    return f->family;
}

bool mha_font_missing(const mha_font *f)
{
    return f->missing;
}

static bool is_covered(const mha_font *f, const char *text)
{
    size_t n = strlen(text);
    uint32_t cp = 0;
    for (size_t i = 0, len; i < n; i += len) {
        len = mha_utf8_decode(text + i, n - i, &cp);
        if (len == 0)
            return true; /* pango shows what is not UTF-8 as such, with any font */
        if (cp >= 0x80 && !FcCharSetHasChar(f->covered, cp))
            return false;
    }
    return true;
}

/* The layout that sets this text. The machine's fonts are a help, not a need: without them the
 * characters that are missing stay boxes. */
static PangoLayout *layout_for(mha_font *f, const char *text, double size)
{
    PangoLayout *layout = f->own.layout;
    if (!layout || !is_covered(f, text)) {
        if (!f->wide.layout && set_make(&f->wide, FcInitLoadConfigAndFonts(), f, NULL) != MHA_OK)
            set_release(&f->wide);
        if (f->wide.layout)
            layout = f->wide.layout;
    }
    PangoFontDescription *description =
        pango_font_description_copy(pango_layout_get_font_description(layout));
    pango_font_description_set_absolute_size(description, size * PANGO_SCALE);
    pango_layout_set_font_description(layout, description);
    pango_font_description_free(description);
    pango_layout_set_text(layout, text, -1);
    return layout;
}

double mha_font_width(mha_font *f, const char *text, double size)
{
    int width = 0;
    PangoLayout *layout = layout_for(f, text, size);
    pango_layout_get_size(layout, &width, NULL);
    f->missing = f->missing || pango_layout_get_unknown_glyphs_count(layout) > 0;
    return (double)width / PANGO_SCALE;
}

void mha_font_show(mha_font *f, cairo_t *cr, const char *text, double size, double x, double y,
                   double angle)
{
    PangoLayout *layout = layout_for(f, text, size);
    cairo_save(cr);
    cairo_translate(cr, x, y);
    cairo_rotate(cr, -angle * M_PI / 180);
    pango_cairo_update_layout(cr, layout);
    cairo_move_to(cr, 0, 0);
    pango_cairo_show_layout_line(cr, pango_layout_get_line_readonly(layout, 0));
    cairo_restore(cr);
}
