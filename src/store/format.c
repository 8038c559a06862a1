/* format.c: names and suffixes of the file formats. */
#include "mha/table.h"

#include <string.h>
#include <strings.h>

static const struct {
    const char *name, *suffix;
} formats[MHA_FORMAT_COUNT] = {
    [MHA_FORMAT_AUTO] = {"auto", NULL},
    [MHA_FORMAT_JSON] = {"json", "json"},
    [MHA_FORMAT_CSV] = {"csv", "csv"},
    [MHA_FORMAT_TEXT] = {"text", "txt"},
    [MHA_FORMAT_NPZ] = {"npz", "npz"},
    [MHA_FORMAT_NPY] = {"npy", "npy"},
    [MHA_FORMAT_SAFETENSORS] = {"safetensors", "safetensors"},
    [MHA_FORMAT_PNG] = {"png", "png"},
    [MHA_FORMAT_PDF] = {"pdf", "pdf"},
    [MHA_FORMAT_SVG] = {"svg", "svg"},
    [MHA_FORMAT_HTML] = {"html", "html"},
};

const char *mha_format_name(mha_format f)
{
    return formats[f].name;
}

mha_format mha_format_named(const char *name)
{
    for (size_t i = MHA_FORMAT_AUTO + 1; i < MHA_FORMAT_COUNT; i++)
        if (strcmp(name, formats[i].name) == 0)
            return (mha_format)i;
    return MHA_FORMAT_AUTO;
}

mha_format mha_format_of_path(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    if (!dot || dot == name)
        return MHA_FORMAT_AUTO;
    for (size_t i = MHA_FORMAT_AUTO + 1; i < MHA_FORMAT_COUNT; i++)
        if (strcasecmp(dot + 1, formats[i].suffix) == 0)
            return (mha_format)i;
    return MHA_FORMAT_AUTO;
}
