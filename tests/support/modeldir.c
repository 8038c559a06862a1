/* modeldir.c: reading, changing and writing small models. */
#include "support/modeldir.h"
#include "base/filemap.h"
#include "base/mem.h"
#include "support/tempdir.h"
#include "support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *read_file(const char *name, const char *file, size_t *size)
{
    char path[256], *text = NULL;
    mha_err err = {0};
    snprintf(path, sizeof path, "tests/data/models/%s/%s", name, file);
    if (mha_file_read(&text, size, path, 1 << 24, &err) != MHA_OK)
        fail_msg("%s", err.message);
    return text;
}

static json_t *parse(const char *text, size_t n)
{
    json_error_t error;
    json_t *j = json_loadb(text, n, JSON_DECODE_ANY, &error);
    if (j == NULL)
        fail_msg("%.*s: %s", (int)(n < 60 ? n : 60), text, error.text);
    return j;
}

void modeldir_load(modeldir *m, const char *name)
{
    size_t n = 0;
    uint64_t header = 0;
    char *config = read_file(name, "config.json", &n);
    m->config = parse(config, n);
    mha_free(config);
    m->file = (unsigned char *)read_file(name, "model.safetensors", &m->size);
    memcpy(&header, m->file, sizeof header);
    m->header = parse((const char *)m->file + 8, (size_t)header);
    m->data = (size_t)header + 8;
}

void modeldir_release(modeldir *m)
{
    json_decref(m->config);
    json_decref(m->header);
    mha_free(m->file);
}

void modeldir_set(modeldir *m, const char *key, const char *value)
{
    if (value == NULL)
        json_object_del(m->config, key);
    else
        assert_int_equal(json_object_set_new(m->config, key, parse(value, strlen(value))), 0);
}

static json_t *tensor_of(const modeldir *m, const char *tensor)
{
    json_t *t = json_object_get(m->header, tensor);
    if (t == NULL)
        fail_msg("the model has no tensor %s", tensor);
    return t;
}

void modeldir_rename(modeldir *m, const char *tensor, const char *name)
{
    assert_int_equal(json_object_set(m->header, name, tensor_of(m, tensor)), 0);
    assert_int_equal(json_object_del(m->header, tensor), 0);
}

void modeldir_describe(modeldir *m, const char *tensor, const char *field, const char *value)
{
    json_t *j = parse(value, strlen(value));
    assert_int_equal(json_object_set_new(tensor_of(m, tensor), field, j), 0);
}

void modeldir_add(modeldir *m, const char *tensor)
{
    json_int_t end = (json_int_t)(m->size - m->data);
    json_t *t =
        json_pack("{s:s, s:[i], s:[I, I]}", "dtype", "F32", "shape", 0, "data_offsets", end, end);
    assert_int_equal(json_object_set_new(m->header, tensor, t), 0);
}

unsigned char *modeldir_bytes(modeldir *m, const char *tensor, size_t *n)
{
    const json_t *range = json_object_get(tensor_of(m, tensor), "data_offsets");
    size_t from = (size_t)json_integer_value(json_array_get(range, 0));
    size_t to = (size_t)json_integer_value(json_array_get(range, 1));
    assert_true(from <= to && to <= m->size - m->data);
    *n = (to - from) / 4;
    return m->file + m->data + from;
}

static void write_weights(const modeldir *m, const char *path)
{
    char *header = json_dumps(m->header, JSON_COMPACT);
    uint64_t n = strlen(header);
    size_t size = 8 + (size_t)n + m->size - m->data;
    unsigned char *file = NULL;
    assert_int_equal(mha_alloc((void **)&file, size, 1, NULL), MHA_OK);
    memcpy(file, &n, sizeof n);
    memcpy(file + 8, header, n);
    memcpy(file + 8 + n, m->file + m->data, m->size - m->data);
    file_write(path, file, size);
    free(header);
    mha_free(file);
}

mha_status modeldir_open(modeldir *m, void **state, mha_model **out,
                         const mha_model_options *options, mha_err *err)
{
    char *config = json_dumps(m->config, 0);
    file_write(tempdir_path(state, "config.json"), config, strlen(config));
    free(config);
    write_weights(m, tempdir_path(state, "model.safetensors"));
    return mha_model_open(out, *state, options, err);
}
