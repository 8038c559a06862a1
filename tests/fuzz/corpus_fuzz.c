/* corpus_fuzz: the first byte picks the format, the rest is the file. Every text ends with a NUL
 * and every word lies in its text. */
#include "base/mem.h"
#include "io/corpus.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define KINDS 8 /* those of mha_corpus_kind, then .npy and .npz */

static void check_text(const char *s, size_t n)
{
    if (s ? s[n] != '\0' : n != 0)
        abort();
}

static void check_document(const mha_corpus_document *d)
{
    int64_t sum = 0;
    check_text(d->text, d->text_n);
    check_text(d->pair, d->pair_n);
    check_text(d->target, d->target_n);
    check_text(d->label, d->label_n);
    for (size_t i = 0; i < d->ids_n; i++)
        sum ^= d->ids[i];
    for (size_t i = 0; i < d->words_n; i++) {
        const mha_corpus_word *w = &d->words[i];
        if (w->start >= w->end || w->end > d->text_n || w->head < -1 ||
            w->head >= (int32_t)d->words_n)
            abort();
        sum ^= (int64_t)strlen(w->deprel);
    }
    if (d->ids_n == 0 && d->words_n == 0 && sum != 0)
        abort();
}

static mha_status parse(mha_corpus **c, const uint8_t *data, size_t size, unsigned kind)
{
    mha_err err = {0};
    char *text = NULL;
    if (kind > MHA_CORPUS_IDS_JSON)
        return mha_corpus_parse_numpy(c, kind == KINDS - 1, data, size, "fuzz", 1 << 20, &err);
    if (mha_alloc((void **)&text, size + 1, 1, NULL) != MHA_OK)
        abort();
    if (size > 0)
        memcpy(text, data, size);
    return mha_corpus_parse(c, (mha_corpus_kind)kind, text, size, "fuzz", &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    mha_corpus *c = NULL;
    if (size == 0 || parse(&c, data + 1, size - 1, data[0] % KINDS) != MHA_OK)
        return 0;
    for (size_t i = 0; i < mha_corpus_count(c); i++) {
        mha_corpus_document d = mha_corpus_get(c, i);
        check_document(&d);
    }
    mha_corpus_close(c);
    return 0;
}
