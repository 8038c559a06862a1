/* terms.c: predictions for the fixtures' documents. */
#include "support/terms.h"
#include "support/test.h"
#include <string.h>

static void push(terms *t, size_t row, int32_t id)
{
    assert_in_range(t->count, 0, TERMS_MAX - 1);
    t->term[t->count++] = (mha_prediction){(uint32_t)row, id, -1};
}

static void push_next(terms *t, const int32_t *ids, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        push(t, i, ids[i + 1]);
}

terms terms_of(const mha_model *m, const mha_document *doc, bool difference)
{
    terms t;
    const mha_model_info *info = mha_model_info_get(m);
    memset(&t, 0, sizeof t);
    switch (info->head) {
    case MHA_HEAD_NEXT:
        push_next(&t, doc->ids, doc->n);
        break;
    case MHA_HEAD_TARGET:
        push_next(&t, doc->target_ids, doc->target_n);
        push(&t, doc->target_n - 1, 1);
        break;
    case MHA_HEAD_MASKED:
        for (size_t i = 0; i < doc->n; i += 3)
            push(&t, i, doc->ids[i]);
        break;
    case MHA_HEAD_CLASS:
        push(&t, 0, (int32_t)(doc->n % info->classes));
        break;
    case MHA_HEAD_TOKEN:
        for (size_t i = 0; i < doc->n; i += 2)
            push(&t, i, doc->ids[i] % (int32_t)info->classes);
        break;
    case MHA_HEAD_SPAN:
    case MHA_HEAD_EMBEDDING:
    case MHA_HEAD_NONE:
        break;
    }
    int32_t classes = (int32_t)(info->classes > 0 ? info->classes : info->vocab);
    for (size_t i = 0; difference && i < t.count; i++)
        t.term[i].against = (t.term[i].id + 1 + (int32_t)i) % classes;
    return t;
}
