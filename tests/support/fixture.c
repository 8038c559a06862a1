/* fixture.c: reading reference runs and comparing blocks with them. */
#include "support/fixture.h"
#include "support/test.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void fixture_path(char *out, size_t cap, const char *model, const char *file)
{
    const char *root = getenv("MHA_ROOT");
    snprintf(out, cap, "%s/tests/data/models/%s%s%s", root != NULL ? root : ".", model,
             file != NULL ? "/" : "", file != NULL ? file : "");
}

/* The next line of same.tsv as two words; false at the end. */
static bool next_form(FILE *f, char line[256], char **base)
{
    if (fgets(line, 256, f) == NULL)
        return false;
    *base = strchr(line, '\t');
    assert_non_null(*base);
    *(*base)++ = 0;
    (*base)[strcspn(*base, "\r\n")] = 0;
    return true;
}

static FILE *open_forms(void)
{
    char path[1024];
    fixture_path(path, sizeof path, "same.tsv", NULL);
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    return f;
}

void fixture_expected_of(const char *model, char *out, size_t cap)
{
    char line[256], *base;
    snprintf(out, cap, "%s", model);
    FILE *f = open_forms();
    while (next_form(f, line, &base))
        if (strcmp(line, model) == 0)
            snprintf(out, cap, "%s", base);
    fclose(f);
}

static void models_add(fixture_models *list, const char *name)
{
    assert_true(list->count < FIXTURE_MODELS_MAX && strlen(name) < FIXTURE_NAME_MAX);
    snprintf(list->name[list->count++], FIXTURE_NAME_MAX, "%s", name);
}

static bool is_there(const char *model, const char *file)
{
    char path[1024];
    fixture_path(path, sizeof path, model, file);
    return access(path, F_OK) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

void fixture_models_find(fixture_models *out)
{
    char path[1024], line[256], *base;
    out->count = 0;
    fixture_path(path, sizeof path, "", NULL);
    DIR *d = opendir(path);
    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        if (is_there(e->d_name, "config.json") && is_there(e->d_name, "expected.0.npz"))
            models_add(out, e->d_name);
    closedir(d);
    FILE *f = open_forms();
    while (next_form(f, line, &base))
        models_add(out, line);
    fclose(f);
    qsort(out->name, out->count, sizeof out->name[0], by_name);
}

static void read_array(fixture_array *a, mha_npz *z, size_t i)
{
    mha_npy npy;
    mha_err err = {0};
    if (mha_npz_get(z, i, &npy, &err) != MHA_OK)
        fail_msg("%s", err.message);
    const char *name = mha_npz_name(z, i);
    a->name = malloc(strlen(name) + 1);
    memcpy(a->name, name, strlen(name) + 1);
    a->rank = npy.rank;
    assert_in_range(npy.rank, 0, 4);
    for (uint32_t d = 0; d < npy.rank; d++)
        a->shape[d] = npy.shape[d];
    a->value = malloc((npy.count + 1) * sizeof(double));
    assert_non_null(a->value);
    mha_npy_f64(a->value, &npy);
}

static int32_t *ids_of(const fixture *f, const char *name, size_t *n)
{
    const fixture_array *a = fixture_find(f, name);
    *n = 0;
    if (a == NULL)
        return NULL;
    *n = (size_t)a->shape[0];
    int32_t *ids = malloc(*n * sizeof *ids);
    for (size_t i = 0; i < *n; i++)
        ids[i] = (int32_t)a->value[i];
    return ids;
}

static bool read_file(fixture *f, const char *model, const char *what, int n)
{
    char path[1024], file[64];
    snprintf(file, sizeof file, "%s.%d.npz", what, n);
    fixture_path(path, sizeof path, model, file);
    memset(f, 0, sizeof *f);
    if (access(path, F_OK) != 0)
        return false;
    mha_npz *z;
    mha_err err = {0};
    if (mha_npz_open(&z, path, 0, &err) != MHA_OK)
        fail_msg("%s", err.message);
    f->count = mha_npz_count(z);
    f->array = calloc(f->count, sizeof *f->array);
    for (size_t i = 0; i < f->count; i++)
        read_array(&f->array[i], z, i);
    mha_npz_close(z);
    return true;
}

/* The graph that the arrays graph.x [N, F] and graph.edges [2, E] hold. */
static void read_graph(fixture *f)
{
    const fixture_array *x = fixture_find(f, "graph.x"), *e = fixture_find(f, "graph.edges");
    if (x == NULL)
        return;
    assert_non_null(e);
    size_t values = (size_t)(x->shape[0] * x->shape[1]), ends = (size_t)(2 * e->shape[1]);
    f->features = malloc(values * sizeof *f->features);
    f->ends = malloc((ends + 1) * sizeof *f->ends);
    for (size_t i = 0; i < values; i++)
        f->features[i] = (float)x->value[i];
    for (size_t i = 0; i < ends; i++)
        f->ends[i] = (uint32_t)e->value[i];
    f->graph = (mha_graph){.nodes = (uint32_t)x->shape[0],
                           .features = (uint32_t)x->shape[1],
                           .edges = ends / 2,
                           .source = f->ends,
                           .target = f->ends + ends / 2,
                           .x = f->features};
    f->doc.graph = &f->graph;
}

bool fixture_gradient_open(fixture *f, const char *model, int n)
{
    return read_file(f, model, "gradient", n);
}

bool fixture_generate_open(fixture *f, const char *model, int n)
{
    return read_file(f, model, "generate", n);
}

bool fixture_contacts_open(fixture *f, const char *model, int n)
{
    return read_file(f, model, "contacts", n);
}

static uint8_t *bytes_of(const fixture *f, const char *name)
{
    size_t n;
    int32_t *wide = ids_of(f, name, &n);
    if (wide == NULL)
        return NULL;
    uint8_t *bytes = malloc(n);
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)wide[i];
    free(wide);
    return bytes;
}

/* A picture or a spectrum in the place of ids; its rows are those of the first block's input. */
static void read_signal(fixture *f)
{
    const fixture_array *a = fixture_find(f, "features"), *rows = fixture_find(f, "enc.embed");
    if (a == NULL)
        return;
    size_t count = 1;
    for (uint32_t d = 0; d < a->rank; d++)
        count *= (size_t)a->shape[d];
    f->signal = malloc(count * sizeof *f->signal);
    for (size_t i = 0; i < count; i++)
        f->signal[i] = (float)a->value[i];
    f->doc.features = f->signal;
    f->doc.n = (size_t)rows->shape[0];
}

bool fixture_open(fixture *f, const char *model, int n)
{
    if (!read_file(f, model, "expected", n))
        return false;
    f->doc.ids = f->ids = ids_of(f, "ids", &f->doc.n);
    f->doc.target_ids = f->target_ids = ids_of(f, "target_ids", &f->doc.target_n);
    f->doc.types = f->types = bytes_of(f, "types");
    f->doc.global = f->global = bytes_of(f, "global");
    read_graph(f);
    read_signal(f);
    return true;
}

void fixture_detailed_find(fixture_models *out)
{
    fixture_models all;
    fixture_models_find(&all);
    out->count = 0;
    for (size_t i = 0; i < all.count; i++) {
        fixture g;
        bool detailed = false;
        if (!fixture_gradient_open(&g, all.name[i], 1))
            continue;
        for (size_t k = 0; k < g.count; k++)
            detailed |= strncmp(g.array[k].name, "weights/", 8) == 0;
        fixture_close(&g);
        if (detailed)
            models_add(out, all.name[i]);
    }
}

void fixture_close(fixture *f)
{
    for (size_t i = 0; i < f->count; i++) {
        free(f->array[i].name);
        free(f->array[i].value);
    }
    free(f->array);
    free(f->ids);
    free(f->target_ids);
    free(f->signal);
    free(f->types);
    free(f->global);
    free(f->ends);
    free(f->features);
}

const fixture_array *fixture_find(const fixture *f, const char *name)
{
    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->array[i].name, name) == 0)
            return &f->array[i];
    return NULL;
}

void fixture_array_name(const mha_block *b, char *out, size_t cap)
{
    const char *stack = mha_stack_name(b->stack), *site = mha_site_name(b->site);
    if (b->site == MHA_SITE_LOGITS)
        snprintf(out, cap, "logits");
    else if (b->site == MHA_SITE_EMBED || b->site == MHA_SITE_HIDDEN)
        snprintf(out, cap, "%s.%s", stack, site);
    else if (b->site == MHA_SITE_RESID)
        snprintf(out, cap, "%s.%u.%s", stack, b->layer, site);
    else
        snprintf(out, cap, "%s.%s.%u.%s", stack, mha_kind_name(b->kind), b->layer, site);
}

void fixture_set_terms(mha_document *doc, const fixture *g, mha_prediction *term, size_t cap,
                       float *gates)
{
    const fixture_array *rows = fixture_find(g, "rows"), *targets = fixture_find(g, "targets");
    const fixture_array *gate = fixture_find(g, "gate");
    assert_true(rows != NULL && targets != NULL && gate != NULL && rows->shape[0] <= cap);
    for (size_t i = 0; i < rows->shape[0]; i++)
        term[i] = (mha_prediction){(uint32_t)rows->value[i], (int32_t)targets->value[i], -1};
    for (size_t i = 0; i < gate->shape[0] * gate->shape[1]; i++)
        gates[i] = (float)gate->value[i];
    doc->predict = term;
    doc->predict_n = (size_t)rows->shape[0];
    doc->gates = gates;
}

/* Probabilities are compared as they are, everything else relative to 1 + |reference|. */
static double difference(mha_site site, double ours, double reference)
{
    if (isinf(reference) || isinf(ours))
        return ours == reference ? 0 : HUGE_VAL;
    double e = fabs(ours - reference);
    return site == MHA_SITE_PATTERN ? e : e / (1 + fabs(reference));
}

static int deliver(void *context, const mha_block *b, size_t worker)
{
    (void)worker;
    fixture_check *c = context;
    char name[64];
    fixture_array_name(b, name, sizeof name);
    const fixture_array *a = fixture_find(c->f, name);
    c->blocks++;
    if (a == NULL) {
        if (c->missing++ == 0)
            memcpy(c->first_missing, name, sizeof name);
        return 0;
    }
    uint64_t rows = a->rank == 1 ? 1 : a->shape[a->rank - 2], cols = a->shape[a->rank - 1];
    if (b->target != NULL) /* [H, E] */
        rows = 1;
    if (b->cols != cols || b->total_rows != rows || b->first + b->rows > rows)
        return 1;
    const double *want = a->value + (b->head * rows + b->first) * cols;
    for (size_t r = 0; r < b->rows; r++)
        for (size_t j = 0; j < cols; j++) {
            double e = difference(b->site, (double)b->data[r * b->stride + j], want[r * cols + j]);
            if (!(e <= c->error[b->site]) && !isnan(c->error[b->site])) /* keeps NaN */
                c->error[b->site] = e;
        }
    return 0;
}

mha_probe fixture_probe(fixture_check *c)
{
    mha_probe p = {.sites = 0, .wants = NULL, .deliver = deliver, .context = c};
    for (mha_site s = MHA_SITE_PATTERN; s < MHA_SITE_COUNT; s++)
        if (s != MHA_SITE_ATTN_OUT &&
            (s != MHA_SITE_LOGITS || mha_model_info_get(c->model)->head != MHA_HEAD_NONE))
            p.sites |= 1u << s;
    return p;
}
