/* aligned.c: growth and copying of aligned text. It may not change what it copies; rewriting is the
 * business of the normalizers. */
#include "text/aligned.h"

#include "base/fail.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "text/unicode.h"

#include <assert.h>
#include <string.h>

void mha_aligned_release(mha_aligned *a)
{
    mha_free(a->data);
    mha_free(a->from);
    *a = (mha_aligned){0};
}

mha_status mha_aligned_reserve(mha_aligned *a, size_t more, mha_err *err)
{
    if (more <= a->capacity - a->n)
        return MHA_OK;
    if (a->n > a->ceiling || more > a->ceiling - a->n)
        return mha_fail(err, MHA_ERR_LIMIT,
                        "the tokenizer's normalizer makes more than %zu bytes of the text",
                        a->ceiling);
    size_t capacity = a->capacity + a->capacity / 2;
    if (capacity < a->n + more)
        capacity = a->n + more;
    if (capacity < 256)
        capacity = 256;
    /* data and from grow in two steps: capacity is the smaller until both are there. */
    void *data = a->data, *from = a->from;
    MHA_TRY(mha_grow(&data, a->n, capacity, 1, err));
    a->data = data;
    MHA_TRY(mha_grow(&from, a->n, capacity, sizeof *a->from, err));
    a->from = from;
    a->capacity = capacity;
    return MHA_OK;
}

mha_status mha_aligned_put(mha_aligned *a, const char *bytes, size_t n, mha_span from, mha_err *err)
{
    MHA_TRY(mha_aligned_reserve(a, n, err));
    for (size_t i = 0; i < n; i++) {
        a->data[a->n] = bytes[i];
        a->from[a->n++] = from;
    }
    return MHA_OK;
}

mha_status mha_aligned_put_char(mha_aligned *a, uint32_t c, mha_span from, mha_err *err)
{
    char bytes[4];
    return mha_aligned_put(a, bytes, mha_utf8_encode(c, bytes), from, err);
}

mha_status mha_aligned_put_original(mha_aligned *a, const char *text, size_t n, uint32_t base,
                                    mha_err *err)
{
    MHA_TRY(mha_aligned_reserve(a, n, err));
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = mha_char_next(text + i, &c);
        mha_span from = {base + (uint32_t)i, base + (uint32_t)(i + len)};
        for (size_t k = 0; k < len; k++) {
            a->data[a->n] = text[i + k];
            a->from[a->n++] = from;
        }
        i += len;
    }
    return MHA_OK;
}

mha_status mha_aligned_put_slice(mha_aligned *a, const mha_aligned *src, size_t start, size_t end,
                                 mha_err *err)
{
    size_t n = end - start;
    if (n == 0)
        return MHA_OK;
    MHA_TRY(mha_aligned_reserve(a, n, err));
    memcpy(a->data + a->n, src->data + start, n);
    memcpy(a->from + a->n, src->from + start, n * sizeof *a->from);
    a->n += n;
    return MHA_OK;
}

mha_status mha_aligned_put_edit(mha_aligned *a, const mha_aligned *src, size_t *at, uint32_t c,
                                int32_t change, mha_err *err)
{
    mha_span from;
    if (change > 0) {
        assert(*at > 0);
        from = src->from[*at - 1];
    } else {
        from = src->from[*at];
        for (int32_t i = 0; i <= -change; i++) {
            uint32_t skipped;
            assert(*at < src->n);
            *at += mha_char_next(src->data + *at, &skipped);
        }
    }
    return mha_aligned_put_char(a, c, from, err);
}
