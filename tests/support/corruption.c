/* corruption.c: runs tables of broken files. */
#include "support/corruption.h"

#include "base/mem.h"
#include "support/bytes.h"
#include "support/test.h"

#include <string.h>

static void run_row(const corruption *row, corruption_reader read, const char *file)
{
    mha_err err = {0};
    size_t n = 0;
    unsigned char *data = bytes_make(row->recipe, &n);
    mha_status status = read(data, n, &err);
    mha_free(data);
    if (status != row->status)
        fail_msg("%s: expected %s, got %s: %s", row->name, mha_status_name(row->status),
                 mha_status_name(status), err.message);
    if (status == MHA_OK)
        return;
    if (!strstr(err.message, row->says))
        fail_msg("%s: the message lacks \"%s\": %s", row->name, row->says, err.message);
    if (!strstr(err.message, file) || strchr(err.message, '\n') || err.status != status)
        fail_msg("%s: not one line that names the file: %s", row->name, err.message);
}

void corruption_run(const corruption *rows, size_t n, corruption_reader read, const char *file)
{
    for (size_t i = 0; i < n; i++)
        run_row(&rows[i], read, file);
}

void corruption_sweep(const char *recipe, corruption_reader read)
{
    static const unsigned char values[] = {0x00, 0x7f, 0x80, 0xff};
    size_t n = 0;
    mha_err err = {0};
    unsigned char *data = bytes_make(recipe, &n), *copy = NULL;
    assert_int_equal(read(data, n, &err), MHA_OK);
    for (size_t cut = 0; cut < n; cut++) {
        assert_int_equal(mha_alloc_raw((void **)&copy, cut, 1, NULL), MHA_OK);
        if (cut > 0)
            memcpy(copy, data, cut);
        if (read(copy, cut, &err) == MHA_OK)
            fail_msg("the first %zu of %zu bytes are accepted", cut, n);
        mha_free(copy);
    }
    for (size_t i = 0; i < n; i++) {
        unsigned char kept = data[i];
        for (size_t v = 0; v < sizeof values; v++) {
            data[i] = values[v];
            read(data, n, &err);
        }
        data[i] = kept;
    }
    mha_free(data);
}
