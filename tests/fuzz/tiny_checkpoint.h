/* tiny_checkpoint.h: a checkpoint in memory that the model fuzzers bind to: the tensors of a small
 * BERT and a small Llama side by side, all zero. */
#ifndef MHA_TESTS_FUZZ_TINY_CHECKPOINT_H
#define MHA_TESTS_FUZZ_TINY_CHECKPOINT_H

#include "base/mem.h"
#include "model/binder.h"

#include <stdlib.h>
#include <string.h>

enum { TINY_D = 4, TINY_F = 6, TINY_V = 8 };

static const struct tiny_tensor {
    const char *name;
    uint32_t rows, columns; /* columns 0: rank 1 */
} tiny_tensors[] = {
    {"bert.embeddings.word_embeddings.weight", TINY_V, TINY_D},
    {"bert.embeddings.position_embeddings.weight", TINY_V, TINY_D},
    {"bert.embeddings.token_type_embeddings.weight", 2, TINY_D},
    {"bert.embeddings.LayerNorm.weight", TINY_D, 0},
    {"bert.embeddings.LayerNorm.bias", TINY_D, 0},
    {"bert.encoder.layer.0.attention.self.query.weight", TINY_D, TINY_D},
    {"bert.encoder.layer.0.attention.self.query.bias", TINY_D, 0},
    {"bert.encoder.layer.0.attention.self.key.weight", TINY_D, TINY_D},
    {"bert.encoder.layer.0.attention.self.key.bias", TINY_D, 0},
    {"bert.encoder.layer.0.attention.self.value.weight", TINY_D, TINY_D},
    {"bert.encoder.layer.0.attention.self.value.bias", TINY_D, 0},
    {"bert.encoder.layer.0.attention.output.dense.weight", TINY_D, TINY_D},
    {"bert.encoder.layer.0.attention.output.dense.bias", TINY_D, 0},
    {"bert.encoder.layer.0.attention.output.LayerNorm.weight", TINY_D, 0},
    {"bert.encoder.layer.0.attention.output.LayerNorm.bias", TINY_D, 0},
    {"bert.encoder.layer.0.intermediate.dense.weight", TINY_F, TINY_D},
    {"bert.encoder.layer.0.intermediate.dense.bias", TINY_F, 0},
    {"bert.encoder.layer.0.output.dense.weight", TINY_D, TINY_F},
    {"bert.encoder.layer.0.output.dense.bias", TINY_D, 0},
    {"bert.encoder.layer.0.output.LayerNorm.weight", TINY_D, 0},
    {"bert.encoder.layer.0.output.LayerNorm.bias", TINY_D, 0},
    {"bert.pooler.dense.weight", TINY_D, TINY_D},
    {"bert.pooler.dense.bias", TINY_D, 0},
    {"classifier.weight", 2, TINY_D},
    {"classifier.bias", 2, 0},
    {"model.embed_tokens.weight", TINY_V, TINY_D},
    {"model.layers.0.input_layernorm.weight", TINY_D, 0},
    {"model.layers.0.self_attn.q_proj.weight", TINY_D, TINY_D},
    {"model.layers.0.self_attn.k_proj.weight", TINY_D, TINY_D},
    {"model.layers.0.self_attn.v_proj.weight", TINY_D, TINY_D},
    {"model.layers.0.self_attn.o_proj.weight", TINY_D, TINY_D},
    {"model.layers.0.post_attention_layernorm.weight", TINY_D, 0},
    {"model.layers.0.mlp.gate_proj.weight", TINY_F, TINY_D},
    {"model.layers.0.mlp.up_proj.weight", TINY_F, TINY_D},
    {"model.layers.0.mlp.down_proj.weight", TINY_D, TINY_F},
    {"model.norm.weight", TINY_D, 0},
};
enum { TINY_TENSORS = sizeof tiny_tensors / sizeof *tiny_tensors };

/* Takes the config over. Each tensor has its own block of memory, so that a sanitizer sees a read
 * beyond it. Aborts when memory is out. */
static mha_checkpoint *tiny_checkpoint(json_t *config)
{
    mha_checkpoint *c = NULL;
    if (mha_alloc((void **)&c, 1, sizeof *c, NULL) != MHA_OK ||
        mha_alloc((void **)&c->tensors, TINY_TENSORS, sizeof *c->tensors, NULL) != MHA_OK ||
        mha_strdup(&c->path, "tiny", NULL) != MHA_OK)
        abort();
    mha_map_init(&c->by_name);
    c->config = config;
    c->format = "safetensors";
    c->tensor_count = TINY_TENSORS;
    for (size_t i = 0; i < TINY_TENSORS; i++) {
        const struct tiny_tensor *from = &tiny_tensors[i];
        mha_tensor *t = &c->tensors[i];
        *t = (mha_tensor){.name = from->name,
                          .type = MHA_F32,
                          .rank = from->columns == 0 ? 1 : 2,
                          .shape = {from->rows, from->columns}};
        t->bytes = 4 * (uint64_t)from->rows * (from->columns == 0 ? 1 : from->columns);
        void *data = NULL;
        if (mha_alloc(&data, t->bytes, 1, NULL) != MHA_OK ||
            mha_map_set(&c->by_name, t->name, strlen(t->name), i, NULL, NULL) != MHA_OK)
            abort();
        t->data = data;
    }
    return c;
}

/* Reads the first and the last element of a weight, as the engine might. */
static void tiny_touch(const mha_weight *w)
{
    volatile float sum = 0;
    if (w->data == NULL)
        return;
    for (uint32_t r = 0; r < w->out; r++) {
        uint64_t row = r / w->group * w->group_stride + r % w->group;
        for (uint32_t c = 0; c < w->in; c++) {
            float v;
            memcpy(&v, w->data + 4 * (w->in_out ? c * w->stride + row : row * w->stride + c), 4);
            sum = sum + v;
        }
    }
}

static void tiny_touch_steps(const mha_steps *steps)
{
    for (size_t i = 0; i < steps->count; i++) {
        const mha_step *s = &steps->step[i];
        const mha_weight *attn[] = {&s->attn.q, &s->attn.k, &s->attn.v, &s->attn.o};
        const mha_weight *mlp[] = {&s->mlp.up, &s->mlp.gate, &s->mlp.down};
        for (size_t k = 0; s->op == MHA_OP_ATTN && k < 4; k++)
            tiny_touch(attn[k]);
        for (size_t k = 0; s->op == MHA_OP_MLP && k < 3; k++)
            tiny_touch(mlp[k]);
        if (s->op == MHA_OP_EMBED)
            tiny_touch(&s->embed.table);
        if (s->op == MHA_OP_LINEAR)
            tiny_touch(&s->linear.w);
        if (s->op == MHA_OP_LOGITS)
            tiny_touch(&s->logits.w);
    }
}

/* Binds, reads all that the program points to, and frees everything. */
static void tiny_bind(json_t *config, const mha_model_options *options)
{
    struct mha_model *m = NULL;
    if (mha_alloc((void **)&m, 1, sizeof *m, NULL) != MHA_OK)
        abort();
    m->checkpoint = tiny_checkpoint(config);
    mha_err err = {0};
    if (mha_model_bind(m, options, &err) == MHA_OK) {
        for (size_t s = 0; s < m->stack_count; s++) {
            tiny_touch_steps(&m->stack[s].prologue);
            for (uint32_t l = 0; l < m->stack[s].layers; l++)
                tiny_touch_steps(&m->stack[s].block[l]);
            tiny_touch_steps(&m->stack[s].epilogue);
        }
        tiny_touch_steps(&m->head);
        if (mha_model_program(m) == NULL)
            abort();
    } else if (err.status == MHA_OK || err.status == MHA_ERR_INTERNAL || err.message[0] == '\0') {
        abort();
    }
    for (size_t i = 0; i < TINY_TENSORS; i++)
        mha_free((void *)(uintptr_t)m->checkpoint->tensors[i].data);
    mha_free(m->checkpoint->tensors);
    m->checkpoint->tensors = NULL;
    m->checkpoint->tensor_count = 0;
    mha_model_close(m);
}

#endif
