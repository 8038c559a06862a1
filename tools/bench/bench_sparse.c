/* bench_sparse: time and memory of sparse attention at 4k, 16k and 64k tokens, with row statistics
 * of every head, on small models with random weights that are made here. Both have to grow like the
 * text: fourfold from line to line.
 *
 *   bench_sparse [TOKENS…]     prints, for windows with a global token and for blocks, seconds,
 *                              microseconds a token, and megabytes beyond the opened model */
#include "base/rng.h"
#include "mha/run.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH = 256, HEADS = 4, LAYERS = 2, MLP = 512, VOCAB = 500, POSITIONS = 131074, NAME = 96 };

typedef struct tensor {
    char name[NAME + 8];
    size_t rows, cols; /* cols 0: a vector */
} tensor;

typedef struct model {
    tensor tensor[96];
    size_t count;
} model;

static void add(model *m, size_t rows, size_t cols, const char *stem, const char *end)
{
    tensor *t = &m->tensor[m->count++];
    snprintf(t->name, sizeof t->name, "%s%s", stem, end);
    t->rows = rows;
    t->cols = cols;
}

static void add_linear(model *m, size_t out, size_t in, const char *stem)
{
    add(m, out, in, stem, ".weight");
    add(m, out, 0, stem, ".bias");
}

static void add_norm(model *m, const char *stem)
{
    add(m, WIDTH, 0, stem, ".weight");
    add(m, WIDTH, 0, stem, ".bias");
}

static void add_layer(model *m, int layer, bool window)
{
    static const char *const self[] = {"query",        "key",        "value",
                                       "query_global", "key_global", "value_global"};
    char stem[NAME];
    for (int i = 0; i < (window ? 6 : 3); i++) {
        snprintf(stem, sizeof stem, "encoder.layer.%d.attention.self.%s", layer, self[i]);
        add_linear(m, WIDTH, WIDTH, stem);
    }
    snprintf(stem, sizeof stem, "encoder.layer.%d.attention.output.dense", layer);
    add_linear(m, WIDTH, WIDTH, stem);
    snprintf(stem, sizeof stem, "encoder.layer.%d.attention.output.LayerNorm", layer);
    add_norm(m, stem);
    snprintf(stem, sizeof stem, "encoder.layer.%d.intermediate.dense", layer);
    add_linear(m, MLP, WIDTH, stem);
    snprintf(stem, sizeof stem, "encoder.layer.%d.output.dense", layer);
    add_linear(m, WIDTH, MLP, stem);
    snprintf(stem, sizeof stem, "encoder.layer.%d.output.LayerNorm", layer);
    add_norm(m, stem);
}

static size_t elements(const tensor *t)
{
    return t->rows * (t->cols > 0 ? t->cols : 1);
}

/* The header's length is written last, when it is known. */
static void write_tensors(const model *m, FILE *f)
{
    size_t at = 0;
    uint64_t length = 0;
    mha_rng rng;
    mha_rng_seed(&rng, 1, 1);
    fwrite(&length, sizeof length, 1, f);
    for (size_t i = 0; i < m->count; i++) {
        const tensor *t = &m->tensor[i];
        size_t bytes = elements(t) * sizeof(float);
        fprintf(f, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%zu", i == 0 ? "{" : ",", t->name,
                t->rows);
        if (t->cols > 0)
            fprintf(f, ",%zu", t->cols);
        fprintf(f, "],\"data_offsets\":[%zu,%zu]}", at, at + bytes);
        at += bytes;
    }
    fputc('}', f);
    length = (uint64_t)ftell(f) - sizeof length;
    for (size_t i = 0; i < m->count; i++)
        for (size_t k = elements(&m->tensor[i]); k > 0; k--) {
            float x = ((float)mha_rng_uniform(&rng) - 0.5f) * 0.1f;
            fwrite(&x, sizeof x, 1, f);
        }
    rewind(f);
    fwrite(&length, sizeof length, 1, f);
}

static FILE *create(const char *dir, const char *name)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "wb");
    if (f == NULL) {
        perror(path);
        exit(1);
    }
    return f;
}

static void make_model(const char *dir, bool window)
{
    static model m;
    m.count = 0;
    add(&m, VOCAB, WIDTH, "embeddings.word_embeddings", ".weight");
    add(&m, POSITIONS, WIDTH, "embeddings.position_embeddings", ".weight");
    add(&m, 1, WIDTH, "embeddings.token_type_embeddings", ".weight");
    add_norm(&m, "embeddings.LayerNorm");
    for (int l = 0; l < LAYERS; l++)
        add_layer(&m, l, window);
    FILE *f = create(dir, "config.json");
    fprintf(f,
            "{\"model_type\": \"%s\", \"hidden_size\": %d, \"num_hidden_layers\": %d, "
            "\"num_attention_heads\": %d, \"intermediate_size\": %d, \"vocab_size\": %d, "
            "\"max_position_embeddings\": %d, \"type_vocab_size\": 1, %s}\n",
            window ? "longformer" : "big_bird", WIDTH, LAYERS, HEADS, MLP, VOCAB, POSITIONS,
            window ? "\"attention_window\": 512" : "\"block_size\": 64, \"num_random_blocks\": 3");
    fclose(f);
    f = create(dir, "model.safetensors");
    write_tensors(&m, f);
    fclose(f);
}

static void remove_model(const char *dir)
{
    static const char *const names[] = {"config.json", "model.safetensors"};
    char path[512];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, names[i]);
        unlink(path);
    }
    rmdir(dir);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double megabytes(void)
{
    struct rusage r;
    getrusage(RUSAGE_SELF, &r);
    return (double)r.ru_maxrss / 1024;
}

static int ignore(void *context, const mha_block *b, size_t worker)
{
    (void)context;
    (void)b;
    (void)worker;
    return 0;
}

static int measure(const char *dir, bool window, size_t n)
{
    mha_model *m;
    mha_engine *e;
    mha_err err = {0};
    int32_t *ids = malloc(n * sizeof *ids);
    uint8_t *global = calloc(n, 1);
    if (ids == NULL || global == NULL)
        return 1;
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)((i * 7919) % (VOCAB - 3)) + 3;
    global[0] = 1;
    if (mha_model_open(&m, dir, NULL, &err) != MHA_OK ||
        mha_engine_new(&e, m, NULL, &err) != MHA_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    mha_document doc = {.ids = ids, .n = n, .global = window ? global : NULL};
    mha_probe p = {.sites = 1u << MHA_SITE_STATS | 1u << MHA_SITE_HIDDEN, .deliver = ignore};
    const mha_probe *probes[] = {&p};
    double before = megabytes(), t = now();
    if (mha_engine_run(e, &doc, 1, probes, 1, NULL, NULL, &err) != MHA_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    t = now() - t;
    printf("%-24s %7zu tokens  %7.2f s  %6.1f us a token  %7.1f MB\n",
           window ? "window 512, 1 global" : "blocks of 64, 3 random", n, t, 1e6 * t / (double)n,
           megabytes() - before);
    fflush(stdout);
    mha_engine_free(e);
    mha_model_close(m);
    free(ids);
    free(global);
    return 0;
}

/* Every measurement in a process of its own, so that memory is its own. */
static int run(const char *dir, bool window, size_t n)
{
    int status = 1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(measure(dir, window, n));
    return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}

int main(int argc, char **argv)
{
    static const size_t lengths[] = {4096, 16384, 65536};
    int failed = 0;
    for (int kind = 0; kind < 2; kind++) {
        char dir[] = P_tmpdir "/bench-sparse-XXXXXX";
        if (mkdtemp(dir) == NULL) {
            perror(dir);
            return 1;
        }
        make_model(dir, kind == 0);
        for (int i = 1; i < argc; i++)
            failed |= run(dir, kind == 0, (size_t)strtoul(argv[i], NULL, 10));
        for (size_t i = 0; argc == 1 && i < sizeof lengths / sizeof *lengths; i++)
            failed |= run(dir, kind == 0, lengths[i]);
        remove_model(dir);
    }
    return failed;
}
