/* gguf_fuzz: the GGUF reader on any bytes, every getter on every key, every byte of every tensor.
 */
#include "base/mem.h"
#include "io/gguf.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Bytes that lie in the input are fewer than it and can be read. */
static void read_bytes(const void *bytes, uint64_t n, size_t size)
{
    const unsigned char *p = bytes;
    uint64_t sum = 0;
    if (n > size)
        abort();
    for (uint64_t i = 0; i < n; i++)
        sum += p[i];
    if (sum > 255 * n)
        abort();
}

static void read_array(const mha_gguf *g, const char *key, size_t size)
{
    bool found = false;
    mha_gguf_kind kind = MHA_GGUF_U8;
    size_t count = 0;
    if (mha_gguf_get_array(g, key, &found, &kind, &count, NULL) != MHA_OK)
        return;
    if (count > size)
        abort();
    void *out = NULL;
    if (mha_alloc(&out, count, sizeof(mha_gguf_string), NULL) != MHA_OK)
        abort();
    mha_gguf_string *strings = out;
    if (mha_gguf_array_strings(g, key, strings, count, NULL) == MHA_OK) {
        for (size_t i = 0; i < count; i++)
            read_bytes(strings[i].s, strings[i].n, size);
    }
    mha_gguf_array_ints(g, key, out, count, NULL);
    mha_gguf_array_reals(g, key, out, count, NULL);
    mha_free(out);
}

static void read_key(const mha_gguf *g, const char *key, size_t size)
{
    bool found = false, truth = false;
    int64_t i = 0;
    double real = 0;
    mha_gguf_string s;
    mha_gguf_get_int(g, key, &found, &i, NULL);
    if (!found)
        abort();
    mha_gguf_get_real(g, key, &found, &real, NULL);
    mha_gguf_get_bool(g, key, &found, &truth, NULL);
    if (mha_gguf_get_string(g, key, &found, &s, NULL) == MHA_OK)
        read_bytes(s.s, s.n, size);
    read_array(g, key, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mha_tensor_list list = {0};
    mha_gguf *g = NULL;
    mha_err err = {0};
    if (mha_gguf_parse(&g, &list, data, size, "fuzz", 0, 1000, &err) == MHA_OK) {
        for (size_t i = 0; i < mha_gguf_entry_count(g); i++) {
            mha_gguf_string key = mha_gguf_entry_at(g, i)->key;
            char *copy = NULL;
            if (mha_strndup(&copy, key.s, key.n, NULL) != MHA_OK)
                abort();
            read_key(g, copy, size);
            mha_free(copy);
        }
        for (size_t i = 0; i < list.count; i++)
            read_bytes(list.items[i].data, list.items[i].bytes, size);
        mha_gguf_free(g);
    }
    mha_tensor_list_release(&list);
    return 0;
}
