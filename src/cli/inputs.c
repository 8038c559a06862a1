/* inputs.c: turns documents into tokens, cuts what --max-tokens cuts, and asks the engine whether
 * the model can take them. What is fed is decided here and nowhere else. */
#include "cli/inputs.h"

#include "base/fail.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/source.h"

#include <inttypes.h>
#include <string.h>

#define NAMED_SKIPS 5 /* notes about skipped documents without -v */

static mha_status tokens_reserve(mha_tokens *t, size_t n, mha_err *err)
{
    size_t old = t->capacity;
    if (n <= old)
        return MHA_OK;
    MHA_TRY(mha_grow((void **)&t->id, old, n, sizeof *t->id, err));
    MHA_TRY(mha_grow((void **)&t->start, old, n, sizeof *t->start, err));
    MHA_TRY(mha_grow((void **)&t->end, old, n, sizeof *t->end, err));
    MHA_TRY(mha_grow((void **)&t->word, old, n, sizeof *t->word, err));
    MHA_TRY(mha_grow((void **)&t->special, old, n, sizeof *t->special, err));
    MHA_TRY(mha_grow((void **)&t->type, old, n, sizeof *t->type, err));
    t->capacity = n;
    return MHA_OK;
}

/* Whether the token goes on with the word of the token before it. */
static bool continues_word(const mha_tokenizer *tokenizer, int32_t id)
{
    char first = ' ';
    bool continues = false;
    size_t n = mha_tokenizer_bytes(tokenizer, id, &first, 1, &continues);
    return n > 0 && continues && first != ' ' && first != '\n' && first != '\t';
}

/* Ids as they are. The words that a tokenizer would have found are guessed from the pieces. */
static mha_status tokens_from_ids(mha_tokens *t, const mha_tokenizer *tokenizer, const int32_t *ids,
                                  size_t n, mha_err *err)
{
    int32_t word = -1;
    MHA_TRY(tokens_reserve(t, n ? n : 1, err));
    for (size_t i = 0; i < n; i++) {
        t->id[i] = ids[i];
        t->word[i] = -1;
        if (!tokenizer)
            continue;
        t->special[i] = mha_tokenizer_is_special(tokenizer, ids[i]);
        if (t->special[i])
            continue;
        if (i == 0 || t->word[i - 1] < 0 || !continues_word(tokenizer, ids[i]))
            word++;
        t->word[i] = word;
    }
    t->n = n;
    return MHA_OK;
}

static void tokens_move(mha_tokens *t, size_t to, size_t from, size_t n)
{
    memmove(t->id + to, t->id + from, n * sizeof *t->id);
    memmove(t->start + to, t->start + from, n * sizeof *t->start);
    memmove(t->end + to, t->end + from, n * sizeof *t->end);
    memmove(t->word + to, t->word + from, n * sizeof *t->word);
    memmove(t->special + to, t->special + from, n * sizeof *t->special);
    memmove(t->type + to, t->type + from, n * sizeof *t->type);
}

bool mha_token_added(const mha_tokens *t, size_t i)
{
    return t->special[i] && t->end[i] == 0;
}

/* Cuts to `limit` tokens. Of a text the special tokens at the end stay: a model that was trained
 * with [SEP] gets it. false: it was short enough. */
static bool tokens_cut(mha_tokens *t, bool text, size_t limit)
{
    if (t->n <= limit)
        return false;
    size_t tail = 0;
    while (text && tail < limit && mha_token_added(t, t->n - 1 - tail))
        tail++;
    tokens_move(t, limit - tail, t->n - tail, tail);
    t->n = limit;
    t->pair_first = t->pair_first < limit - tail ? t->pair_first : limit - tail;
    if (t->pair_n > limit - tail - t->pair_first)
        t->pair_n = limit - tail - t->pair_first;
    return true;
}

/* The decoder reads its start token and then the target without the end token, so that each of its
 * rows predicts the next token of the target. */
static mha_status target_from_text(mha_cli *cli, mha_tokens *t, const mha_source *s, mha_err *err)
{
    int32_t start = cli->info->decoder_start;
    mha_tokens plain = {0};
    mha_status status;
    if (start < 0)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "the model names no start token for its decoder; use --target-ids");
    MHA_TRY_GOTO(status,
                 mha_tokenizer_encode(mha_tokenizer_target(cli->tokenizer), s->target, s->target_n,
                                      NULL, 0, true, &plain, err),
                 out);
    size_t n = plain.n;
    while (n > 0 && mha_token_added(&plain, n - 1))
        n--;
    MHA_TRY_GOTO(status, tokens_reserve(t, n + 1, err), out);
    t->id[0] = start;
    t->word[0] = -1;
    t->special[0] = 1;
    for (size_t i = 0; i < n; i++) {
        t->id[i + 1] = plain.id[i];
        t->start[i + 1] = plain.start[i];
        t->end[i + 1] = plain.end[i];
        t->word[i + 1] = plain.word[i];
        t->special[i + 1] = plain.special[i];
    }
    t->n = n + 1;
out:
    mha_tokens_release(&plain);
    return status;
}

static mha_status text_encode(mha_cli *cli, mha_input *in, const mha_source *s, mha_err *err)
{
    MHA_TRY(mha_need_tokenizer(cli, err));
    MHA_TRY(mha_tokenizer_encode(cli->tokenizer, s->text, s->text_n, s->pair, s->pair_n,
                                 !mha_args_has(&cli->args, MHA_OPT_NO_SPECIAL), &in->source, err));
    in->from_text = true;
    in->has_pair = s->pair != NULL;
    for (size_t i = 0; i < in->source.n; i++)
        if (in->source.end[i] > 0)
            return MHA_OK;
    return mha_fail(err, MHA_ERR_LIMIT, "an empty document");
}

/* The class that a label names, by its name or its number. */
static mha_status label_find(int32_t *out, const mha_model_info *info, const char *label,
                             mha_err *err)
{
    const char *end;
    uint64_t number;
    for (uint32_t i = 0; info->labels && i < info->classes; i++)
        if (strcmp(info->labels[i], label) == 0) {
            *out = (int32_t)i;
            return MHA_OK;
        }
    if (!mha_parse_uint(label, &number, &end) || *end || number >= info->classes)
        return mha_fail(err, MHA_ERR_FORMAT,
                        "label '%s' is none of the model's %" PRIu32 " classes", label,
                        info->classes);
    *out = (int32_t)number;
    return MHA_OK;
}

/* What is to be predicted, where a loss asks for it. */
static mha_status truth_encode(mha_cli *cli, mha_input *in, const mha_source *s, mha_err *err)
{
    if (cli->info->head == MHA_HEAD_CLASS && s->label)
        return label_find(&in->label, cli->info, s->label, err);
    if (cli->info->head != MHA_HEAD_MASKED || !s->target)
        return MHA_OK;
    MHA_TRY(mha_need_tokenizer(cli, err));
    return mha_tokenizer_encode(cli->tokenizer, s->target, s->target_n, s->pair, s->pair_n,
                                !mha_args_has(&cli->args, MHA_OPT_NO_SPECIAL), &in->unmasked, err);
}

/* A graph is taken over from the source; its nodes stand where tokens would. */
static mha_status graph_take(mha_input *in, mha_source *s, uint64_t limit, mha_err *err)
{
    mha_tokens *t = &in->source;
    in->graph = s->graph;
    s->graph = NULL;
    if (in->graph->nodes > limit)
        return mha_fail(err, MHA_ERR_LIMIT, "a graph of %" PRIu32 " nodes is not cut",
                        in->graph->nodes);
    MHA_TRY(tokens_reserve(t, in->graph->nodes, err));
    for (uint32_t i = 0; i < in->graph->nodes; i++) {
        t->id[i] = (int32_t)i;
        t->word[i] = -1;
    }
    t->n = in->graph->nodes;
    return MHA_OK;
}

/* A picture or a spectrum: its rows stand where tokens would. */
static mha_status signal_take(const mha_cli *cli, mha_input *in, const mha_source *s,
                              uint64_t limit, mha_err *err)
{
    const mha_signal_info *signal = &cli->info->signal;
    mha_tokens *t = &in->source;
    if (!signal->channels)
        return mha_fail(err, MHA_ERR_ARG, "the model reads text, not %s",
                        s->image ? "pictures" : "features");
    if (signal->rows > limit)
        return mha_fail(err, MHA_ERR_LIMIT, "%" PRIu32 " rows of features are not cut",
                        signal->rows);
    if (s->image) {
        mha_picture picture;
        MHA_TRY(mha_picture_open(&picture, s->image, 0, err));
        mha_status status =
            mha_picture_features(&in->features, &in->seen, &picture, cli->model, err);
        mha_picture_release(&picture);
        MHA_TRY(status);
    } else {
        MHA_TRY(mha_features_open(&in->features, s->features, cli->model, err));
    }
    MHA_TRY(tokens_reserve(t, signal->rows, err));
    for (uint32_t i = 0; i < signal->rows; i++) {
        t->id[i] = (int32_t)i;
        t->word[i] = -1;
        t->special[i] = i < signal->extra;
    }
    t->n = signal->rows;
    return MHA_OK;
}

/* The document's own side: tokens, nodes of a graph, or rows of a picture or spectrum. */
static mha_status source_take(mha_cli *cli, mha_input *in, mha_source *s, uint64_t limit,
                              mha_err *err)
{
    bool signal = s->image || s->features;
    in->has_special = signal || cli->tokenizer != NULL;
    if (signal)
        return signal_take(cli, in, s, limit, err);
    if (cli->info->signal.channels)
        return mha_fail(err, MHA_ERR_ARG, "the model reads %s",
                        cli->info->signal.patch ? "pictures: --image F or --features F.npy"
                                                : "spectra: --features F.npy");
    if (s->text)
        return text_encode(cli, in, s, err);
    return tokens_from_ids(&in->source, cli->tokenizer, s->ids, s->ids_n, err);
}

static mha_status input_encode(mha_cli *cli, mha_input *in, mha_source *s, bool truths,
                               uint64_t limit, mha_err *err)
{
    if (s->graph)
        return graph_take(in, s, limit, err);
    if (cli->info->features)
        return mha_fail(err, MHA_ERR_ARG, "the model reads graphs: --graph F.json");
    bool reads_target = cli->info->layers[MHA_ENC] && cli->info->layers[MHA_DEC];
    MHA_TRY(source_take(cli, in, s, limit, err));
    if (truths)
        MHA_TRY(truth_encode(cli, in, s, err));
    if (!s->target && !s->target_ids)
        return MHA_OK;
    in->has_target = reads_target;
    if (!reads_target) {
        if (s->file || in->unmasked.n) /* a field of a file that other models read, or used */
            return MHA_OK;
        return mha_fail(err, MHA_ERR_ARG, "a target needs a decoder that reads an encoder");
    }
    if (s->target_ids)
        return tokens_from_ids(&in->target, cli->tokenizer, s->target_ids, s->target_ids_n, err);
    MHA_TRY(mha_need_tokenizer(cli, err));
    in->target_text = true;
    return target_from_text(cli, &in->target, s, err);
}

/* A classifier with a decoder feeds it the text itself, shifted right behind the start token. */
static mha_status target_shifted(const mha_cli *cli, mha_input *in, mha_err *err)
{
    const mha_tokens *s = &in->source;
    mha_tokens *t = &in->target;
    if (in->has_target || cli->info->head != MHA_HEAD_CLASS || !cli->info->layers[MHA_ENC] ||
        !cli->info->layers[MHA_DEC])
        return MHA_OK;
    if (cli->info->decoder_start < 0)
        return mha_fail(err, MHA_ERR_UNSUPPORTED,
                        "the model names no start token for its decoder; use --target-ids");
    MHA_TRY(tokens_reserve(t, s->n, err));
    for (size_t i = 0; i < s->n; i++) {
        t->id[i] = i > 0 ? s->id[i - 1] : cli->info->decoder_start;
        t->start[i] = i > 0 ? s->start[i - 1] : 0;
        t->end[i] = i > 0 ? s->end[i - 1] : 0;
        t->word[i] = i > 0 ? s->word[i - 1] : -1;
        t->special[i] = i > 0 ? s->special[i - 1] : 1;
    }
    t->n = s->n;
    in->has_target = true;
    return MHA_OK;
}

/* Marks the positions that --global lists. */
static mha_status global_mark(const mha_cli *cli, mha_input *in, mha_err *err)
{
    const char *at = mha_args_get(&cli->args, MHA_OPT_GLOBAL);
    if (at == NULL)
        return MHA_OK;
    MHA_TRY(mha_alloc((void **)&in->global, in->source.n, sizeof *in->global, err));
    for (at += strspn(at, " "); *at != '\0'; at += strspn(at, ", ")) {
        const char *end;
        uint64_t position;
        if (!mha_parse_uint(at, &position, &end) || strchr(", ", *end) == NULL)
            return mha_fail(err, MHA_ERR_ARG, "--global: '%.20s' is no list of positions", at);
        if (position >= in->source.n)
            return mha_fail(err, MHA_ERR_LIMIT, "--global: position %" PRIu64 " of %zu tokens",
                            position, in->source.n);
        in->global[position] = 1;
        at = end;
    }
    return MHA_OK;
}

mha_document mha_input_document(const mha_input *in)
{
    mha_document d = {.ids = in->source.id,
                      .n = in->source.n,
                      .types = in->from_text ? in->source.type : NULL,
                      .features = in->features,
                      .global = in->global,
                      .graph = in->graph};
    if (in->has_special)
        d.special = in->source.special;
    if (in->has_target) {
        d.target_ids = in->target.id;
        d.target_n = in->target.n;
        d.target_special = in->has_special ? in->target.special : NULL;
    }
    return d;
}

static void input_release(mha_input *in)
{
    mha_tokens_release(&in->source);
    mha_tokens_release(&in->target);
    mha_tokens_release(&in->unmasked);
    mha_features_free(in->features);
    mha_picture_release(&in->seen);
    mha_free(in->global);
    mha_graph_close(in->graph);
}

/* One document: appended, or skipped with a note when it is one of several. */
static mha_status input_add(mha_inputs *all, mha_cli *cli, mha_source *s, size_t index,
                            uint64_t limit, mha_err *err)
{
    mha_input in = {.index = index, .label = -1};
    mha_err own = {0};
    char name[128];
    mha_status status = input_encode(cli, &in, s, all->truths, limit, &own);
    bool cut = status == MHA_OK && tokens_cut(&in.source, in.from_text, limit);
    if (cut)
        tokens_cut(&in.unmasked, true, limit);
    if (status == MHA_OK)
        status = target_shifted(cli, &in, &own);
    if (status == MHA_OK)
        status = global_mark(cli, &in, &own);
    mha_document d = mha_input_document(&in);
    if (status == MHA_OK)
        status = mha_engine_check(cli->engine, &d, &own);
    if (status == MHA_OK) {
        all->truncated += cut;
        all->tokens += d.n + d.target_n;
        all->targets = all->targets && in.has_target;
        all->documents[all->count] = d;
        all->items[all->count++] = in;
        return MHA_OK;
    }
    input_release(&in);
    mha_source_name(s, name, sizeof name);
    if (status != MHA_ERR_LIMIT || all->given == 1) {
        if (all->given == 1 && !s->file)
            return mha_fail(err, status, "%s", own.message);
        return mha_fail(err, status, "%s: %s", name, own.message);
    }
    if (all->skipped++ < NAMED_SKIPS || cli->verbose)
        mha_note(cli, "skipped %s: %s", name, own.message);
    return MHA_OK;
}

static mha_status inputs_fill(mha_inputs *all, mha_cli *cli, mha_sources *sources, mha_err *err)
{
    uint64_t docs = UINT64_MAX, limit = SIZE_MAX;
    MHA_TRY(mha_args_uint(&cli->args, MHA_OPT_MAX_DOCS, 1, UINT64_MAX, &docs, err));
    MHA_TRY(mha_args_uint(&cli->args, MHA_OPT_MAX_TOKENS, 1, SIZE_MAX, &limit, err));
    all->given = sources->count < docs ? sources->count : docs;
    all->targets = true;
    if (!all->given)
        return mha_fail(
            err, MHA_ERR_ARG,
            "no input: give --text, --file, --ids, --ids-file, --image, --features or --graph");
    MHA_TRY(mha_alloc((void **)&all->items, all->given, sizeof *all->items, err));
    MHA_TRY(mha_alloc((void **)&all->documents, all->given, sizeof *all->documents, err));
    for (size_t i = 0; i < all->given; i++)
        MHA_TRY(input_add(all, cli, &sources->items[i], i, limit, err));
    all->skipped += sources->empty_lines;
    if (sources->empty_lines)
        mha_note(cli, "skipped %zu empty line%s", sources->empty_lines,
                 sources->empty_lines == 1 ? "" : "s");
    if (all->truncated)
        mha_note(cli, "--max-tokens cut %zu of %zu documents to %" PRIu64 " tokens", all->truncated,
                 all->given, limit);
    size_t refused = all->given - all->count;
    if (refused > NAMED_SKIPS && !cli->verbose)
        mha_note(cli, "skipped %zu documents in all; -v names each", refused);
    if (!all->count)
        return mha_cannot(cli, err, "nothing to measure: all %zu documents were skipped",
                          all->given);
    return MHA_OK;
}

mha_status mha_inputs_load(mha_cli *cli, mha_err *err)
{
    mha_sources sources;
    uint64_t max_bytes = 0;
    mha_status status = mha_limit_get(cli, "file", &max_bytes, err);
    if (status == MHA_OK) {
        status = mha_sources_read(&sources, &cli->args, max_bytes, err);
        if (status == MHA_OK)
            status = inputs_fill(&cli->inputs, cli, &sources, err);
        mha_sources_release(&sources);
    }
    return status;
}

mha_status mha_inputs_load_file(mha_inputs *all, mha_cli *cli, const char *path, mha_err *err)
{
    mha_sources sources;
    uint64_t max_bytes = 0;
    MHA_TRY(mha_limit_get(cli, "file", &max_bytes, err));
    mha_status status = mha_sources_read_file(&sources, path, max_bytes, err);
    if (status == MHA_OK)
        status = inputs_fill(all, cli, &sources, err);
    mha_sources_release(&sources);
    return status;
}

mha_document mha_inputs_complete(const mha_cli *cli, size_t i, int32_t *start)
{
    mha_document d = cli->inputs.documents[i];
    bool reads_encoder = cli->info->layers[MHA_ENC] && cli->info->layers[MHA_DEC];
    *start = cli->info->decoder_start;
    if (reads_encoder && !d.target_n && *start >= 0) {
        d.target_ids = start;
        d.target_n = 1;
    }
    return d;
}

mha_status mha_inputs_words(mha_words **out, const mha_cli *cli, mha_err *err)
{
    const mha_inputs *in = &cli->inputs;
    if (!cli->tokenizer)
        return mha_fail(err, MHA_ERR_ARG, "--words needs a tokenizer, and %s has none",
                        cli->args.operand);
    MHA_TRY(mha_alloc((void **)out, in->count, sizeof **out, err));
    for (size_t i = 0; i < in->count; i++)
        (*out)[i] = (mha_words){in->items[i].source.word, in->items[i].target.word};
    return MHA_OK;
}

mha_status mha_inputs_take(mha_inputs *in, const mha_document *d, mha_err *err)
{
    MHA_TRY(mha_alloc((void **)&in->items, 1, sizeof *in->items, err));
    MHA_TRY(mha_alloc((void **)&in->documents, 1, sizeof *in->documents, err));
    in->documents[0] = *d;
    in->given = in->count = 1;
    in->tokens = d->n + d->target_n;
    in->targets = in->items[0].has_target = d->target_n > 0;
    MHA_TRY(tokens_from_ids(&in->items[0].source, NULL, d->ids, d->n, err));
    return tokens_from_ids(&in->items[0].target, NULL, d->target_ids, d->target_n, err);
}

void mha_inputs_release(mha_inputs *in)
{
    for (size_t i = 0; i < in->count; i++)
        input_release(&in->items[i]);
    mha_free(in->items);
    mha_free(in->documents);
    *in = (mha_inputs){0};
}
