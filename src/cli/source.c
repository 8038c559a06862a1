/* source.c: collects the documents of the command line and of the files it names. It knows nothing
 * of tokenizers and models. */
#include "cli/source.h"

#include "base/fail.h"
#include "base/mem.h"

#include <stdio.h>
#include <string.h>

static mha_status source_add(mha_source **out, mha_sources *s, mha_err *err)
{
    if (s->count == s->capacity) {
        size_t capacity = s->capacity ? 2 * s->capacity : 16;
        MHA_TRY(mha_grow((void **)&s->items, s->capacity, capacity, sizeof *s->items, err));
        s->capacity = capacity;
    }
    *out = &s->items[s->count];
    (*out)->place = s->count++;
    return MHA_OK;
}

/* One number of a list; *at moves behind it and the separator, which becomes *separator. */
static mha_status id_parse(const mha_option *o, const char **at, int32_t *id, char *separator,
                           mha_err *err)
{
    const char *s = *at + strspn(*at, " "), *end;
    uint64_t value;
    if (!mha_parse_uint(s, &value, &end) || value > INT32_MAX) {
        size_t n = strcspn(s, ",;");
        return mha_fail(err, MHA_ERR_ARG, "%s: '%.*s' is not a token id", o->name, (int)n, s);
    }
    end += strspn(end, " ");
    if (*end && *end != ',' && *end != ';')
        return mha_fail(err, MHA_ERR_ARG, "%s: '%c' stands in a list of ids", o->name, *end);
    *id = (int32_t)value;
    *separator = *end;
    *at = *end ? end + 1 : end;
    return MHA_OK;
}

/* The ids up to the next ';' or the end; *at moves behind it. An empty list is an empty document.
 */
static mha_status ids_parse(const mha_option *o, const char **at, int32_t **ids, size_t *n,
                            bool *more, mha_err *err)
{
    size_t length = strcspn(*at, ";"), count = 0;
    char separator = ',';
    *more = (*at)[length] == ';';
    MHA_TRY(mha_alloc((void **)ids, length / 2 + 1, sizeof **ids, err));
    if (strspn(*at, " ") >= length) {
        *at += length + *more;
        *n = 0;
        return MHA_OK;
    }
    while (separator == ',')
        MHA_TRY(id_parse(o, at, &(*ids)[count++], &separator, err));
    *n = count;
    return MHA_OK;
}

static mha_status add_ids(mha_sources *s, const char *list, mha_err *err)
{
    bool more = true;
    while (more) {
        mha_source *d;
        MHA_TRY(source_add(&d, s, err));
        MHA_TRY(ids_parse(&mha_options[MHA_OPT_IDS], &list, &d->ids, &d->ids_n, &more, err));
    }
    return MHA_OK;
}

/* Lists of --target-ids belong to the documents of the option before, from `first` on. */
static mha_status add_target_ids(mha_sources *s, size_t first, const char *list, mha_err *err)
{
    bool more = true;
    size_t at = first;
    for (; more; at++) {
        if (at >= s->count)
            return mha_fail(err, MHA_ERR_ARG,
                            "--target-ids: more lists than the option before it "
                            "has documents (%zu)",
                            s->count - first);
        mha_source *d = &s->items[at];
        if (d->target_ids || d->target)
            return mha_fail(err, MHA_ERR_ARG, "--target-ids: the document has a target already");
        MHA_TRY(ids_parse(&mha_options[MHA_OPT_TARGET_IDS], &list, &d->target_ids, &d->target_ids_n,
                          &more, err));
    }
    if (at != s->count)
        return mha_fail(err, MHA_ERR_ARG, "--target-ids: %zu lists for %zu documents", at - first,
                        s->count - first);
    return MHA_OK;
}

static mha_status add_corpus_ids(mha_source *d, const mha_corpus_document *c, mha_err *err)
{
    MHA_TRY(mha_alloc((void **)&d->ids, c->ids_n + 1, sizeof *d->ids, err));
    d->ids_n = c->ids_n;
    for (size_t i = 0; i < c->ids_n; i++) {
        if (c->ids[i] < 0 || c->ids[i] > INT32_MAX)
            return mha_fail(err, MHA_ERR_LIMIT, "%s: document %zu: id %lld is not a token id",
                            d->file, d->place, (long long)c->ids[i]);
        d->ids[i] = (int32_t)c->ids[i];
    }
    return MHA_OK;
}

static mha_status add_file(mha_sources *s, const char *path, bool ids, uint64_t max_bytes,
                           mha_err *err)
{
    mha_corpus *corpus;
    MHA_TRY(mha_grow((void **)&s->corpora, s->corpus_count, s->corpus_count + 1, sizeof *s->corpora,
                     err));
    MHA_TRY(ids ? mha_corpus_open_ids(&corpus, path, max_bytes, err)
                : mha_corpus_open(&corpus, path, max_bytes, err));
    s->corpora[s->corpus_count++] = corpus;
    s->empty_lines += mha_corpus_empty_lines(corpus);
    if (!mha_corpus_count(corpus))
        return mha_fail(err, MHA_ERR_LIMIT, "%s: no documents in it", path);
    for (size_t i = 0; i < mha_corpus_count(corpus); i++) {
        mha_corpus_document c = mha_corpus_get(corpus, i);
        mha_source *d;
        MHA_TRY(source_add(&d, s, err));
        d->file = path;
        d->place = c.line;
        if (ids) {
            MHA_TRY(add_corpus_ids(d, &c, err));
            continue;
        }
        d->text = c.text ? c.text : "";
        d->text_n = c.text_n;
        d->pair = c.pair;
        d->pair_n = c.pair_n;
        d->target = c.target;
        d->target_n = c.target_n;
        d->label = c.label;
    }
    return MHA_OK;
}

static mha_status attach_text(mha_sources *s, bool after_text, const mha_given *g, mha_err *err)
{
    mha_source *d = after_text ? &s->items[s->count - 1] : NULL;
    const char *name = mha_options[g->id].name;
    if (!d)
        return mha_fail(err, MHA_ERR_ARG, "%s belongs behind a --text", name);
    if (g->id == MHA_OPT_PAIR ? d->pair != NULL : d->target != NULL || d->target_ids)
        return mha_fail(err, MHA_ERR_ARG, "%s stands twice behind one --text", name);
    if (g->id == MHA_OPT_PAIR) {
        d->pair = g->value;
        d->pair_n = strlen(g->value);
    } else {
        d->target = g->value;
        d->target_n = strlen(g->value);
    }
    return MHA_OK;
}

mha_status mha_sources_read(mha_sources *s, const mha_args *args, uint64_t max_bytes, mha_err *err)
{
    *s = (mha_sources){0};
    size_t first = 0; /* documents of the last option that brought any */
    bool text = false, signal = false;
    for (size_t i = 0; i < args->count; i++) {
        const mha_given *g = &args->given[i];
        size_t before = s->count;
        mha_source *d;
        switch (g->id) {
        case MHA_OPT_TEXT:
            MHA_TRY(source_add(&d, s, err));
            d->text = g->value;
            d->text_n = strlen(g->value);
            break;
        case MHA_OPT_PAIR:
        case MHA_OPT_TARGET:
            MHA_TRY(attach_text(s, text || (signal && g->id == MHA_OPT_TARGET), g, err));
            continue;
        case MHA_OPT_IDS:
            MHA_TRY(add_ids(s, g->value, err));
            break;
        case MHA_OPT_TARGET_IDS:
            MHA_TRY(add_target_ids(s, first, g->value, err));
            continue;
        case MHA_OPT_FILE:
        case MHA_OPT_IDS_FILE:
            MHA_TRY(add_file(s, g->value, g->id == MHA_OPT_IDS_FILE, max_bytes, err));
            break;
        case MHA_OPT_IMAGE:
            MHA_TRY(source_add(&d, s, err));
            d->image = g->value;
            break;
        case MHA_OPT_FEATURES:
            MHA_TRY(source_add(&d, s, err));
            d->features = g->value;
            break;
        case MHA_OPT_GRAPH:
            MHA_TRY(source_add(&d, s, err));
            MHA_TRY(mha_graph_open(&d->graph, g->value, max_bytes, err));
            break;
        default:
            continue;
        }
        first = before;
        text = g->id == MHA_OPT_TEXT;
        signal = g->id == MHA_OPT_IMAGE || g->id == MHA_OPT_FEATURES;
    }
    return MHA_OK;
}

mha_status mha_sources_read_file(mha_sources *s, const char *path, uint64_t max_bytes, mha_err *err)
{
    *s = (mha_sources){0};
    return add_file(s, path, false, max_bytes, err);
}

void mha_sources_release(mha_sources *s)
{
    for (size_t i = 0; i < s->count; i++) {
        mha_free(s->items[i].ids);
        mha_free(s->items[i].target_ids);
        mha_graph_close(s->items[i].graph);
    }
    mha_free(s->items);
    for (size_t i = 0; i < s->corpus_count; i++)
        mha_corpus_close(s->corpora[i]);
    mha_free(s->corpora);
    *s = (mha_sources){0};
}

void mha_source_name(const mha_source *s, char *out, size_t size)
{
    if (s->file && s->ids)
        snprintf(out, size, "%s: document %zu", s->file, s->place);
    else if (s->file)
        snprintf(out, size, "%s:%zu", s->file, s->place);
    else
        snprintf(out, size, "document %zu", s->place);
}
