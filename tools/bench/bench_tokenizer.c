/* bench_tokenizer.c: how fast a tokenizer reads. Encodes a file as one text and then line by line,
 * each a few times, and prints the best rates in MB a second of processor time.
 * Usage: bench_tokenizer MODEL TEXT_FILE   (MODEL: a directory or a .gguf file) */
#include "base/filemap.h"
#include "base/mem.h"
#include "io/checkpoint.h"
#include "text/tokenizer.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define ROUNDS   5
#define TEXT_MAX ((size_t)256 << 20)

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static mha_status encode_lines(const mha_tokenizer *t, const char *text, size_t n,
                               mha_tokens *tokens, size_t *count, mha_err *err)
{
    *count = 0;
    for (size_t i = 0; i < n;) {
        const char *newline = memchr(text + i, '\n', n - i);
        size_t end = newline ? (size_t)(newline - text) : n;
        mha_status status = mha_tokenizer_encode(t, text + i, end - i, NULL, 0, true, tokens, err);

        if (status != MHA_OK)
            return status;
        *count += tokens->n;
        i = end + 1;
    }
    return MHA_OK;
}

static mha_status encode_whole(const mha_tokenizer *t, const char *text, size_t n,
                               mha_tokens *tokens, size_t *count, mha_err *err)
{
    mha_status status = mha_tokenizer_encode(t, text, n, NULL, 0, true, tokens, err);

    *count = tokens->n;
    return status;
}

static mha_status measure(const char *name, const mha_tokenizer *t, const char *text, size_t n,
                          mha_status (*encode)(const mha_tokenizer *, const char *, size_t,
                                               mha_tokens *, size_t *, mha_err *),
                          mha_err *err)
{
    mha_tokens tokens = {0};
    mha_status status = MHA_OK;
    size_t count = 0;
    double best = 1e30;

    for (int i = 0; i < ROUNDS && status == MHA_OK; i++) {
        double start = now(), took;

        status = encode(t, text, n, &tokens, &count, err);
        took = now() - start;
        best = took < best ? took : best;
    }
    if (status == MHA_OK)
        printf("%-12s %8.1f MB/s  %10zu tokens  %.2f bytes a token\n", name, (double)n / best / 1e6,
               count, (double)n / (double)(count ? count : 1));
    mha_tokens_release(&tokens);
    return status;
}

static mha_status open_model(mha_tokenizer **t, mha_checkpoint **file, const char *path,
                             mha_err *err)
{
    size_t n = strlen(path);

    *file = NULL;
    if (n < 5 || strcmp(path + n - 5, ".gguf") != 0)
        return mha_tokenizer_open(t, path, err);
    if (mha_checkpoint_open(file, path, NULL, err) != MHA_OK)
        return err->status;
    return mha_tokenizer_open_gguf(t, (*file)->gguf, err);
}

static mha_status run(const char *model, const char *path, mha_err *err)
{
    mha_tokenizer *t = NULL;
    mha_checkpoint *file = NULL;
    char *text = NULL;
    size_t n = 0;
    double start = now();
    mha_status status = open_model(&t, &file, model, err);

    if (status == MHA_OK && !t)
        snprintf(err->message, sizeof err->message, "%s: no tokenizer", model);
    if (t)
        printf("%s, %zu pieces, opened in %.0f ms\n", mha_tokenizer_kind(t), mha_tokenizer_vocab(t),
               (now() - start) * 1e3);
    if (t)
        status = mha_file_read(&text, &n, path, TEXT_MAX, err);
    if (t && status == MHA_OK)
        status = measure("one text", t, text, n, encode_whole, err);
    if (t && status == MHA_OK)
        status = measure("by line", t, text, n, encode_lines, err);
    mha_free(text);
    mha_tokenizer_free(t);
    mha_checkpoint_close(file);
    return t ? status : MHA_ERR_FORMAT;
}

int main(int argc, char **argv)
{
    mha_err err = {0};

    if (argc != 3) {
        fprintf(stderr, "usage: bench_tokenizer MODEL TEXT_FILE\n");
        return 2;
    }
    if (run(argv[1], argv[2], &err) != MHA_OK) {
        fprintf(stderr, "bench_tokenizer: %s\n", err.message);
        return 3;
    }
    return 0;
}
