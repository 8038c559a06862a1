/* figure.c: the page that every figure is on: options, theme, title, notes, files. It may not know
 * what is drawn between title and notes. */
#include "render/figure.h"

#include "base/fail.h"
#include "base/utf8.h"
#include "render/png.h"
#include "store/number.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#define MARGIN        2.0 /* around everything, points */
#define DEFAULT_WIDTH 85.0
#define DEFAULT_DPI   300.0
#define DEFAULT_SIZE  7.0
#define NOTE_SIZE_MIN 5.0
#define WIDTH_MIN     20.0
#define WIDTH_MAX     1000.0
#define HEIGHT_MAX    3000.0 /* millimetres */
#define TITLE_GAP     4.0
#define NOTE_GAP      4.0
#define SENTENCES_MAX ((size_t)64 << 10)

/* --- options -----------------------------------------------------------------------------------
 */

static double or_default(double value, double otherwise)
{
    return value == 0 ? otherwise : value;
}

static mha_status range_check(const char *what, double value, double lo, double hi, mha_err *err)
{
    if (value == 0 || (value >= lo && value <= hi))
        return MHA_OK;
    return mha_fail(err, MHA_ERR_ARG, "%s of %g: expected %g to %g", what, value, lo, hi);
}

static mha_format format_of(const mha_chart_options *o, const char *path)
{
    return o->format == MHA_FORMAT_AUTO ? mha_format_of_path(path) : o->format;
}

mha_status mha_chart_check(const mha_chart_options *o, const char *path, mha_err *err)
{
    mha_color palette[256];
    mha_format format = format_of(o, path);
    if (format == MHA_FORMAT_AUTO)
        return mha_fail(err, MHA_ERR_ARG,
                        "%s: the suffix names no format: expected .png, .pdf or .svg", path);
    if (format != MHA_FORMAT_PNG && format != MHA_FORMAT_PDF && format != MHA_FORMAT_SVG)
        return mha_fail(err, MHA_ERR_ARG, "%s: a figure is written as png, pdf or svg, not as %s",
                        path, mha_format_name(format));
    MHA_TRY(range_check("a width in millimetres", o->width_mm, WIDTH_MIN, WIDTH_MAX, err));
    MHA_TRY(range_check("a resolution in dpi", o->dpi, 30, 2400, err));
    MHA_TRY(range_check("a font size in points", o->font_pt, 3, 72, err));
    if (o->colormap && !mha_colormap_fill(o->colormap, palette))
        return mha_fail(err, MHA_ERR_ARG, "no colour map \"%s\"", o->colormap);
    return MHA_OK;
}

/* All greys lie between background and text, so that a figure has few colours. */
static void theme_set(mha_figure *f, bool dark)
{
    f->background = dark ? (mha_color){0x12, 0x14, 0x18} : (mha_color){0xff, 0xff, 0xff};
    f->text = dark ? (mha_color){0xec, 0xec, 0xec} : (mha_color){0x1c, 0x1c, 0x1c};
    f->muted = mha_color_mix(f->text, f->background, 0.35);
    f->line = mha_color_mix(f->text, f->background, 0.5);
    f->masked = mha_color_mix(f->background, f->text, dark ? 0.14 : 0.07);
}

mha_status mha_figure_set_up(mha_figure *f, const mha_chart_options *o, const char *path,
                             bool diverging, mha_err *err)
{
    *f = (mha_figure){.options = o, .path = path};
    mha_buf_init(&f->notes, SENTENCES_MAX);
    mha_buf_init(&f->caption, SENTENCES_MAX);
    MHA_TRY(mha_chart_check(o, path, err));
    f->format = format_of(o, path);
    f->width = or_default(o->width_mm, DEFAULT_WIDTH) * MHA_POINTS_PER_MM - 2 * MARGIN;
    f->dpi = or_default(o->dpi, DEFAULT_DPI);
    f->size = or_default(o->font_pt, DEFAULT_SIZE);
    f->pixel = 72 / f->dpi;
    theme_set(f, o->dark);
    mha_colormap_fill(o->colormap ? o->colormap
                      : diverging ? "balance"
                      : o->dark   ? "magma"
                                  : "blues",
                      f->palette);
    f->palette[MHA_LEVEL_MASKED] = f->masked;
    return o->about ? mha_figure_say(f, err, "%s", o->about) : MHA_OK;
}

/* So few colours that a PNG can be indexed: neighbours share one. */
static void palette_thin(mha_color palette[256])
{
    mha_color all[256];
    memcpy(all, palette, sizeof all);
    for (size_t i = 0; i <= MHA_LEVEL_TOP; i++) {
        double k = round((double)i * (MHA_PNG_MAP_COLORS - 1) / MHA_LEVEL_TOP);
        palette[i] = all[lround(k * MHA_LEVEL_TOP / (MHA_PNG_MAP_COLORS - 1))];
    }
}

mha_status mha_figure_open(mha_figure *f, const mha_chart_options *o, const char *path,
                           bool diverging, mha_err *err)
{
    MHA_TRY(mha_figure_set_up(f, o, path, diverging, err));
    palette_thin(f->palette);
    return mha_font_open(&f->font, o->font, err);
}

void mha_figure_close(mha_figure *f)
{
    mha_canvas_close(f->canvas);
    mha_font_close(f->font);
    mha_outfile_abort(&f->file);
    mha_buf_release(&f->notes);
    mha_buf_release(&f->caption);
    mha_arena_release(&f->arena);
    *f = (mha_figure){0};
}

/* --- sentences ---------------------------------------------------------------------------------
 */

static mha_status sentence_add(mha_buf *b, const char *sentence, mha_err *err)
{
    if (b->size > 0)
        MHA_TRY(mha_buf_adds(b, " ", err));
    return mha_buf_adds(b, sentence, err);
}

__attribute__((format(printf, 3, 0))) static mha_status sentence_format(mha_figure *f, bool note,
                                                                        const char *format,
                                                                        va_list args, mha_err *err)
{
    char *clean = NULL;
    void *text = NULL;
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (n < 0)
        return mha_fail(err, MHA_ERR_INTERNAL, "text cannot be formatted: \"%s\"", format);
    MHA_TRY(mha_arena_alloc(&text, &f->arena, (size_t)n + 1, 1, err));
    vsnprintf(text, (size_t)n + 1, format, args);
    MHA_TRY(mha_figure_text(&clean, f, text, err));
    if (note)
        MHA_TRY(sentence_add(&f->notes, clean, err));
    return sentence_add(&f->caption, clean, err);
}

mha_status mha_figure_note(mha_figure *f, mha_err *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mha_status status = sentence_format(f, true, format, args, err);
    va_end(args);
    return status;
}

mha_status mha_figure_say(mha_figure *f, mha_err *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    mha_status status = sentence_format(f, false, format, args, err);
    va_end(args);
    return status;
}

/* --- text --------------------------------------------------------------------------------------
 */

mha_status mha_figure_text(char **out, mha_figure *f, const char *s, mha_err *err)
{
    char *clean = NULL;
    void *p = NULL;
    size_t used = 0;
    MHA_TRY(mha_text_clean(&clean, &f->arena, s, err));
    size_t n = strlen(clean);
    MHA_TRY(mha_arena_alloc(&p, &f->arena, n + 1, MHA_ESCAPE_SIZE, err));
    *out = p;
    for (size_t i = 0, len; i < n; i += len) {
        uint32_t cp = 0;
        len = mha_utf8_decode(clean + i, n - i, &cp);
        size_t escaped = mha_text_escape(*out + used, cp);
        if (escaped == 0)
            memcpy(*out + used, clean + i, len);
        used += escaped ? escaped : len;
    }
    (*out)[used] = '\0';
    return MHA_OK;
}

double mha_figure_width(const mha_figure *f, const char *s, double size)
{
    return mha_font_width(f->font, s, size);
}

/* Byte offsets go back to the start of a character. */
static size_t char_start(const char *s, size_t i)
{
    while (i > 0 && ((unsigned char)s[i] & 0xC0) == 0x80)
        i--;
    return i;
}

mha_status mha_figure_fit(char **out, mha_figure *f, const char *s, double size, double width,
                          mha_err *err)
{
    static const char ellipsis[] = "…";
    void *p = NULL;
    size_t n = strlen(s), fits = 0, too_long = n;
    MHA_TRY(mha_arena_alloc(&p, &f->arena, n + sizeof ellipsis, 1, err));
    *out = p;
    memcpy(*out, s, n + 1);
    if (n == 0 || mha_figure_width(f, s, size) <= width)
        return MHA_OK;
    while (too_long - fits > 1) {
        size_t middle = char_start(s, fits + (too_long - fits) / 2);
        if (middle <= fits)
            break;
        memcpy(*out, s, middle);
        memcpy(*out + middle, ellipsis, sizeof ellipsis);
        if (mha_figure_width(f, *out, size) <= width)
            fits = middle;
        else
            too_long = middle;
    }
    memcpy(*out, s, fits);
    memcpy(*out + fits, ellipsis, sizeof ellipsis);
    return MHA_OK;
}

/* Breaks a text into lines, at spaces where there are any, and draws them when `draw` is set; the
 * lines' number is put into *lines. */
static mha_status paragraph(mha_figure *f, const char *s, double size, double x, double y,
                            double width, mha_color color, bool draw, size_t *lines, mha_err *err)
{
    *lines = 0;
    while (*s) {
        size_t n = strlen(s), end = 0;
        char *line = NULL;
        MHA_TRY(mha_arena_strdup(&line, &f->arena, s, err));
        for (size_t i = 1; i <= n; i++) {
            if (i < n && s[i] != ' ')
                continue;
            line[i] = '\0';
            bool fits = mha_figure_width(f, line, size) <= width;
            line[i] = s[i];
            if (!fits)
                break;
            end = i;
        }
        if (end == 0) /* one word that is too wide: it is cut */
            end = strcspn(s + 1, " ") + 1;
        line[end] = '\0';
        MHA_TRY(mha_figure_fit(&line, f, line, size, width, err));
        if (draw)
            mha_canvas_text(f->canvas, line, size, x,
                            y + (double)*lines * size * MHA_FONT_LINE + size * MHA_FONT_ASCENT,
                            MHA_ANCHOR_START, 0, color);
        (*lines)++;
        s += end + strspn(s + end, " ");
    }
    return MHA_OK;
}

/* --- the page ----------------------------------------------------------------------------------
 */

static double title_size(const mha_figure *f)
{
    return f->size + 1;
}

static double note_size(const mha_figure *f)
{
    return fmax(f->size - 1, fmin(NOTE_SIZE_MIN, f->size));
}

static double block_height(size_t lines, double size)
{
    return (double)lines * size * MHA_FONT_LINE;
}

static mha_status canvas_open(mha_figure *f, double height, mha_err *err)
{
    mha_canvas_setup setup = {.width = f->width + 2 * MARGIN,
                              .height = height,
                              .dpi = f->dpi,
                              .background = f->background,
                              .text = f->text,
                              .title = f->options->title,
                              .creator = f->options->creator,
                              .font = f->font};
    if (height > HEIGHT_MAX * MHA_POINTS_PER_MM)
        return mha_fail(err, MHA_ERR_LIMIT, "a figure %.0f mm high: at most %.0f",
                        height / MHA_POINTS_PER_MM, HEIGHT_MAX);
    MHA_TRY(mha_outfile_open(&f->file, f->path, f->options->force, err));
    setup.stream = f->file.stream;
    if (f->format == MHA_FORMAT_PNG)
        return mha_canvas_png_new(&f->canvas, &setup, err);
    if (f->format == MHA_FORMAT_PDF)
        return mha_canvas_pdf_new(&f->canvas, &setup, err);
    return mha_canvas_svg_new(&f->canvas, &setup, err);
}

mha_status mha_figure_begin(mha_figure *f, double height, double title_at, mha_err *err)
{
    char *title = NULL;
    size_t title_lines = 0, note_lines = 0;
    /* In SVG it is the viewer who looks for fonts. */
    if (f->format != MHA_FORMAT_SVG && mha_font_missing(f->font))
        MHA_TRY(mha_figure_note(f, err, "Boxes are characters without a font on this machine."));
    const char *notes = f->notes.size ? f->notes.data : "";
    MHA_TRY(mha_figure_text(&title, f, f->options->title ? f->options->title : "", err));
    /* A long title starts further to the left rather than break. */
    double title_width = mha_figure_width(f, title, title_size(f));
    title_at = fmax(0, fmin(title_at, f->width - title_width));
    MHA_TRY(paragraph(f, title, title_size(f), 0, 0, f->width, f->text, false, &title_lines, err));
    MHA_TRY(paragraph(f, notes, note_size(f), 0, 0, f->width, f->muted, false, &note_lines, err));
    double above = block_height(title_lines, title_size(f)) + (title_lines ? TITLE_GAP : 0);
    double below = block_height(note_lines, note_size(f)) + (note_lines ? NOTE_GAP : 0);
    double notes_at = MARGIN + above + height + NOTE_GAP;
    MHA_TRY(canvas_open(f, above + height + below + 2 * MARGIN, err));
    f->left = MARGIN;
    f->top = mha_canvas_snap(f->canvas, MARGIN + above);
    MHA_TRY(paragraph(f, title, title_size(f), MARGIN + title_at, MARGIN, f->width, f->text, true,
                      &title_lines, err));
    return paragraph(f, notes, note_size(f), MARGIN, notes_at, f->width, f->muted, true,
                     &note_lines, err);
}

mha_status mha_figure_write_caption(const mha_figure *f, mha_err *err)
{
    mha_outfile file;
    if (!f->options->caption)
        return MHA_OK;
    MHA_TRY(mha_outfile_open(&file, f->options->caption, f->options->force, err));
    mha_status status = mha_outfile_write(&file, f->caption.data, f->caption.size, err);
    if (status == MHA_OK)
        status = mha_outfile_write(&file, "\n", 1, err);
    if (status == MHA_OK)
        return mha_outfile_commit(&file, err);
    mha_outfile_abort(&file);
    return status;
}

mha_status mha_figure_end(mha_figure *f, mha_err *err)
{
    MHA_TRY(mha_canvas_finish(f->canvas, err));
    MHA_TRY(mha_figure_write_caption(f, err));
    return mha_outfile_commit(&f->file, err);
}

void mha_figure_put(mha_figure *f, const char *s, double size, double x, double y,
                    mha_anchor anchor, double angle, mha_color color)
{
    mha_canvas_text(f->canvas, s, size, f->left + x, f->top + y, anchor, angle, color);
}

void mha_figure_rect(mha_figure *f, double x, double y, double width, double height,
                     mha_color color)
{
    mha_canvas_rect(f->canvas, f->left + x, f->top + y, width, height, color);
}

void mha_figure_frame(mha_figure *f, double x, double y, double width, double height)
{
    mha_canvas_frame(f->canvas, f->left + x, f->top + y, width, height, MHA_FIGURE_LINE, f->line);
}
