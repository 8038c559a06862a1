/* sample.c: finds the directory of bundled models at run time. It only looks at names; opening the
 * model, and every check of its files, is the library's business. */
#include "cli/sample.h"

#include "base/fail.h"
#include "base/mem.h"
#include "cli/nearest.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef MHA_SHARE_DIR
#error "the build says where samples are installed"
#endif

static bool directory_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The directory of the running program, without a slash at the end. */
static bool program_directory(char *out, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", out, size - 1);
    if (n <= 0)
        return false;
    out[n] = '\0';
    char *slash = strrchr(out, '/');
    if (!slash)
        return false;
    *slash = '\0';
    return true;
}

static bool samples_directory(char *out, size_t size)
{
    static const char *const beside[] = {"../../samples/models", "../share/mha-inspect/models"};
    const char *variable = getenv("MHA_SAMPLES");
    if (variable && *variable)
        return (size_t)snprintf(out, size, "%s", variable) < size;
    char here[PATH_MAX];
    if (program_directory(here, sizeof here))
        for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
            if ((size_t)snprintf(out, size, "%s/%s", here, beside[i]) < size &&
                directory_exists(out))
                return true;
    return (size_t)snprintf(out, size, "%s/models", MHA_SHARE_DIR) < size;
}

static mha_status sample_unknown(const char *directory, const char *name, mha_err *err)
{
    DIR *d = opendir(directory);
    if (!d)
        return mha_fail(err, MHA_ERR_IO,
                        "sample:%s: no samples in %s; set MHA_SAMPLES to their directory", name,
                        directory);
    char best[NAME_MAX + 1] = "";
    size_t distance = SIZE_MAX;
    for (const struct dirent *entry = readdir(d); entry; entry = readdir(d)) {
        if (entry->d_name[0] == '.')
            continue;
        size_t candidate = mha_edit_distance(name, entry->d_name);
        if (candidate < distance || (candidate == distance && strcmp(entry->d_name, best) < 0)) {
            distance = candidate;
            snprintf(best, sizeof best, "%s", entry->d_name);
        }
    }
    closedir(d);
    if (!*best)
        return mha_fail(err, MHA_ERR_IO, "sample:%s: no samples in %s", name, directory);
    return mha_fail(err, MHA_ERR_IO, "no sample '%s'; the nearest is 'sample:%s'", name, best);
}

mha_status mha_sample_resolve(char **out, const char *model, mha_err *err)
{
    static const char prefix[] = "sample:";
    if (strncmp(model, prefix, sizeof prefix - 1) != 0)
        return mha_strdup(out, model, err);
    const char *name = model + sizeof prefix - 1;
    char directory[PATH_MAX], path[PATH_MAX];
    if (!samples_directory(directory, sizeof directory))
        return mha_fail(err, MHA_ERR_IO, "the directory of the samples has too long a name");
    bool plain = *name && *name != '.' && !strchr(name, '/');
    if (!plain || (size_t)snprintf(path, sizeof path, "%s/%s", directory, name) >= sizeof path ||
        !directory_exists(path))
        return sample_unknown(directory, name, err);
    return mha_strdup(out, path, err);
}
