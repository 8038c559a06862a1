/* tokenizer_fuzz: a tokenizer.json and, behind the first zero byte, a text for it. What opens must
 * encode or refuse, with ids of the vocabulary and ranges of the text, and decode what it encoded.
 */
#include "base/mem.h"
#include "text/tokenizer.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const mha_tokenizer *t, const mha_tokens *k, size_t text_n, size_t pair_n)
{
    size_t longest = text_n > pair_n ? text_n : pair_n;
    for (size_t i = 0; i < k->n; i++) {
        char bytes[8];
        bool continues;
        if (k->id[i] < 0 || (size_t)k->id[i] >= mha_tokenizer_vocab(t))
            abort();
        if (k->start[i] > k->end[i] || k->end[i] > longest || k->word[i] < -1)
            abort();
        mha_tokenizer_bytes(t, k->id[i], bytes, sizeof bytes, &continues);
        mha_tokenizer_is_special(t, k->id[i]);
    }
}

static void run(const mha_tokenizer *t, const char *text, size_t n, bool with_special)
{
    mha_tokens k = {0};
    mha_err err;
    char *decoded = NULL;
    size_t pair_n = with_special ? n / 2 : 0;
    const char *pair = with_special ? text : NULL;
    if (mha_tokenizer_encode(t, text, n, pair, pair_n, with_special, &k, &err) == MHA_OK) {
        check(t, &k, n, pair_n);
        mha_tokenizer_decode(t, k.id, k.n, &decoded, &err);
        mha_free(decoded);
    }
    mha_tokens_release(&k);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *json = (const char *)data;
    const uint8_t *end = size > 0 ? memchr(data, 0, size) : NULL;
    size_t json_n = end ? (size_t)(end - data) : size;
    const char *text = end ? (const char *)end + 1 : "a  B\xc3\xa9 12, don't [X]";
    size_t n = end ? size - json_n - 1 : strlen(text);
    mha_tokenizer *t = NULL;
    mha_err err;
    if (mha_tokenizer_parse(&t, json, json_n, "fuzz", &err) == MHA_OK) {
        run(t, text, n, true);
        run(t, text, n, false);
        mha_tokenizer_free(t);
    }
    return 0;
}
