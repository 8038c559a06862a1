/* table_fuzz: the table readers on any bytes: the first byte chooses JSON or CSV. What was read can
 * be sorted by every column, and written. */
#include "store/table.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const mha_text_style style = {.terminal = true, .width = 60};
    mha_table *t = NULL;
    mha_err err = {0};
    if (size == 0)
        return 0;
    bool json = data[0] == 'j';
    const char *text = (const char *)data + 1;
    mha_status status = json ? mha_table_read_json(&t, text, size - 1, "fuzz", &err)
                             : mha_table_read_csv(&t, text, size - 1, "fuzz", &err);
    if (status != MHA_OK)
        return 0;
    FILE *f = fopen("/dev/null", "w");
    if (!f)
        abort();
    for (size_t i = 0; i < mha_table_columns(t); i++)
        if (mha_table_sort(t, i, i % 2, NULL) != MHA_OK)
            abort();
    mha_table_write_json(t, f);
    mha_table_write_csv(t, f);
    if (mha_table_write_text(t, &style, f, &err) != MHA_OK && err.status != MHA_ERR_LIMIT)
        abort();
    fclose(f);
    mha_table_free(t);
    return 0;
}
