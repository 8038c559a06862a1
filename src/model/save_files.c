/* save_files.c: the files beside the weights: tokenizer, generation settings, pooling modules. They
 * are copied byte by byte from a directory. */
#include "base/buf.h"
#include "base/fail.h"
#include "base/filemap.h"
#include "base/mem.h"
#include "model/save.h"
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAMES_MAX = 256, FILE_CEILING = 256 << 20 };

mha_status mha_save_text(mha_save *s, const char *name, const void *text, size_t n, mha_err *err)
{
    mha_outfile f;
    MHA_TRY(mha_outdir_file(&s->directory, &f, name, err));
    mha_status status = mha_outfile_write(&f, text, n, err);
    if (status == MHA_OK)
        return mha_outfile_commit(&f, err);
    mha_outfile_abort(&f);
    return status;
}

static int add_text(const char *text, size_t n, void *buf)
{
    return mha_buf_add(buf, text, n, NULL) == MHA_OK ? 0 : -1;
}

mha_status mha_save_json(mha_save *s, const char *name, const json_t *value, mha_err *err)
{
    mha_buf text;
    mha_buf_init(&text, FILE_CEILING);
    /* 16 digits: 1e-05 stays 1e-05 */
    int failed =
        json_dump_callback(value, add_text, &text, JSON_INDENT(2) | JSON_REAL_PRECISION(16));
    mha_status status = failed ? mha_fail(err, MHA_ERR_NOMEM, "%s: out of memory", name)
                               : mha_buf_adds(&text, "\n", err);
    if (status == MHA_OK)
        status = mha_save_text(s, name, text.data, text.size, err);
    mha_buf_release(&text);
    return status;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* Small files that belong to a model, not to its weights or their story. */
static bool is_wanted(const char *name)
{
    static const char *const ends[] = {".json", ".txt", ".model", ".jinja"};
    static const char *const begins[] = {"LICENSE", "NOTICE"};
    if (name[0] == '.' || strcmp(name, "config.json") == 0 || ends_with(name, ".index.json"))
        return false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (ends_with(name, ends[i]))
            return true;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return true;
    return false;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

typedef struct names {
    char *name[NAMES_MAX];
    size_t count;
} names;

static void names_release(names *n)
{
    for (size_t i = 0; i < n->count; i++)
        mha_free(n->name[i]);
}

static mha_status names_add(names *n, const char *name, mha_err *err)
{
    if (n->count == NAMES_MAX)
        return mha_fail(err, MHA_ERR_LIMIT, "more than %d files beside the weights", NAMES_MAX);
    MHA_TRY(mha_strdup(&n->name[n->count], name, err));
    n->count++;
    return MHA_OK;
}

/* NAME when that is a wanted file, NAME/config.json when it is a directory that has one. */
static mha_status names_consider(names *n, const char *directory, const char *name, mha_err *err)
{
    char path[PATH_MAX];
    struct stat st;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, name) >= sizeof path ||
        name[0] == '.' || stat(path, &st) != 0)
        return MHA_OK;
    if (S_ISREG(st.st_mode))
        return is_wanted(name) ? names_add(n, name, err) : MHA_OK;
    if (!S_ISDIR(st.st_mode) ||
        (size_t)snprintf(path, sizeof path, "%s/%s/config.json", directory, name) >= sizeof path ||
        stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return MHA_OK;
    return names_add(n, path + strlen(directory) + 1, err);
}

static mha_status names_read(names *n, const char *directory, mha_err *err)
{
    DIR *dir = opendir(directory);
    mha_status status = MHA_OK;
    if (dir == NULL)
        return mha_fail(err, MHA_ERR_IO, "%s: cannot be listed", directory);
    for (const struct dirent *e = readdir(dir); e != NULL && status == MHA_OK; e = readdir(dir))
        status = names_consider(n, directory, e->d_name, err);
    closedir(dir);
    if (n->count > 0)
        qsort(n->name, n->count, sizeof *n->name, by_text);
    return status;
}

static mha_status copy_file(mha_save *s, const char *name, mha_err *err)
{
    char path[PATH_MAX], *text = NULL;
    size_t n = 0;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", s->m->info.path, name) >= sizeof path)
        return mha_fail(err, MHA_ERR_IO, "%s: too long a path", s->m->info.path);
    MHA_TRY(mha_file_read(&text, &n, path, FILE_CEILING, err));
    mha_status status = mha_save_text(s, name, text, n, err);
    mha_free(text);
    return status;
}

/* The second file keeps Transformers 4 from choosing a class by the model's type, which would add
 * tokens of its own to the vocabulary. */
static mha_status save_tokenizer(mha_save *s, mha_err *err)
{
    static const char class[] = "{\n  \"tokenizer_class\": \"PreTrainedTokenizerFast\"\n}\n";
    MHA_TRY(mha_save_text(s, "tokenizer.json", s->p->tokenizer, strlen(s->p->tokenizer), err));
    return mha_save_text(s, "tokenizer_config.json", class, sizeof class - 1, err);
}

mha_status mha_save_files(mha_save *s, mha_err *err)
{
    names n = {.count = 0};
    if (s->p->tokenizer != NULL)
        MHA_TRY(save_tokenizer(s, err));
    if (s->m->checkpoint->gguf != NULL)
        return MHA_OK;
    mha_status status = names_read(&n, s->m->info.path, err);
    for (size_t i = 0; i < n.count && status == MHA_OK; i++)
        status = copy_file(s, n.name[i], err);
    names_release(&n);
    return status;
}
