/* sentence.c: how a checkpoint pools hidden states into the embedding of a text, as the files of
 * sentence-transformers beside a model say it. It reads small JSON files and no tensors. */
#include "base/fail.h"
#include "io/json.h"
#include "model/program.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* *out = NULL when the file is not there; owned otherwise. */
static mha_status json_beside(json_t **out, const struct mha_model *m, const char *folder,
                              const char *file, mha_err *err)
{
    char path[PATH_MAX];
    *out = NULL;
    if ((size_t)snprintf(path, sizeof path, "%s/%s%s%s", m->info.path, folder, *folder ? "/" : "",
                         file) >= sizeof path)
        return mha_fail(err, MHA_ERR_IO, "%s: too long a path", m->info.path);
    if (access(path, F_OK) != 0)
        return MHA_OK;
    return mha_json_open(out, path, err);
}

static mha_status pooling_unsupported(const struct mha_model *m, const char *what, mha_err *err)
{
    return mha_fail(err, MHA_ERR_UNSUPPORTED,
                    "%s: pooling \"%.60s\" is not supported: only mean, "
                    "first token, last token and max",
                    m->info.path, what);
}

/* The one mode that is on. Files have either "pooling_mode": "mean" or a switch for each mode. */
static mha_status pooling_read(json_t *config, const struct mha_model *m, mha_sentence_pooling *out,
                               mha_err *err)
{
    static const struct {
        const char *name, *key;
        mha_sentence_pooling pooling;
    } modes[] = {
        {"mean", "pooling_mode_mean_tokens", MHA_SENTENCE_MEAN},
        {"cls", "pooling_mode_cls_token", MHA_SENTENCE_FIRST},
        {"lasttoken", "pooling_mode_lasttoken", MHA_SENTENCE_LAST},
        {"max", "pooling_mode_max_tokens", MHA_SENTENCE_MAX},
    };
    const char *name = json_string_value(json_object_get(config, "pooling_mode"));
    size_t found = 0;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        bool on = name ? strcmp(name, modes[i].name) == 0
                       : json_is_true(json_object_get(config, modes[i].key));
        found += on;
        *out = on ? modes[i].pooling : *out;
    }
    if (found == 1 && name)
        return MHA_OK;
    if (name)
        return pooling_unsupported(m, name, err);
    if (found > 1)
        return pooling_unsupported(m, "of several modes at once", err);
    /* The mode that is on is one that is not in the table. */
    for (void *i = json_object_iter(config); !found && i; i = json_object_iter_next(config, i))
        if (json_is_true(json_object_iter_value(i)) &&
            strncmp(json_object_iter_key(i), "pooling_mode_", 13) == 0)
            return pooling_unsupported(m, json_object_iter_key(i), err);
    return found == 1 ? MHA_OK : pooling_unsupported(m, "none", err);
}

static mha_status module_read(const json_t *module, const struct mha_model *m, mha_sentence *out,
                              mha_err *err)
{
    const char *type = json_string_value(json_object_get(module, "type"));
    const char *path = json_string_value(json_object_get(module, "path"));
    const char *dot = type ? strrchr(type, '.') : NULL;
    const char *name = dot ? dot + 1 : type;
    if (!name || !path)
        return mha_fail(err, MHA_ERR_FORMAT, "%s/modules.json: a module without type or path",
                        m->info.path);
    if (strcmp(name, "Transformer") == 0)
        return MHA_OK;
    if (strcmp(name, "Normalize") == 0) {
        out->normalise = true;
        return MHA_OK;
    }
    if (strcmp(name, "Pooling") != 0)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "%s/modules.json: module \"%.60s\" is not supported", m->info.path, name);
    if (strchr(path, '/') || path[0] == '.')
        return mha_fail(err, MHA_ERR_FORMAT, "%s/modules.json: \"%.60s\" is not a folder name",
                        m->info.path, path);
    json_t *config;
    MHA_TRY(json_beside(&config, m, path, "config.json", err));
    if (!config)
        return mha_fail(err, MHA_ERR_FORMAT, "%s/%.60s/config.json is missing", m->info.path, path);
    mha_status status = pooling_read(config, m, &out->pooling, err);
    json_decref(config);
    return status;
}

/* GGUF: 0 none (the mean is ours then), 1 mean, 2 first, 3 last. */
static mha_status gguf_read(const struct mha_model *m, mha_sentence *out, mha_err *err)
{
    const json_t *type = json_object_get(m->checkpoint->config, "pooling_type");
    json_int_t value = json_integer_value(type);
    if (value < 0 || value > 3)
        return pooling_unsupported(m, "of that number", err);
    out->pooling = value == 2   ? MHA_SENTENCE_FIRST
                   : value == 3 ? MHA_SENTENCE_LAST
                                : MHA_SENTENCE_MEAN;
    return MHA_OK;
}

mha_status mha_model_sentence(const mha_model *m, mha_sentence *out, mha_err *err)
{
    *out = (mha_sentence){MHA_SENTENCE_MEAN, false};
    if (m->checkpoint->gguf)
        return gguf_read(m, out, err);
    json_t *modules;
    MHA_TRY(json_beside(&modules, m, "", "modules.json", err));
    mha_status status = MHA_OK;
    for (size_t i = 0; status == MHA_OK && i < json_array_size(modules); i++)
        status = module_read(json_array_get(modules, i), m, out, err);
    json_decref(modules);
    return status;
}
