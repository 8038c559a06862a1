/* model_bind: descriptions bound to small checkpoints: facts, shapes and pointers of the program,
 * the same model in other forms, and descriptions given at run time. */
#include "support/test.h"

#include "model/program.h"
#include "support/modeldir.h"
#include "support/tempdir.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void near(double got, double expected, double tolerance)
{
    if (!(fabs(got - expected) <= tolerance))
        fail_msg("%.9g, expected %.9g", got, expected);
}

static mha_model *open_fixture(const char *name)
{
    char path[256];
    mha_model *m = NULL;
    mha_err err = {0};
    snprintf(path, sizeof path, "tests/data/models/%s", name);
    if (mha_model_open(&m, path, NULL, &err) != MHA_OK)
        fail_msg("%s", err.message);
    return m;
}

static mha_model *open_changed(modeldir *d, void **state, const mha_model_options *options)
{
    mha_model *m = NULL;
    mha_err err = {0};
    if (modeldir_open(d, state, &m, options, &err) != MHA_OK)
        fail_msg("%s", err.message);
    return m;
}

static const mha_step *find_step(const mha_steps *steps, mha_op op, size_t skip)
{
    for (size_t i = 0; i < steps->count; i++)
        if (steps->step[i].op == op && skip-- == 0)
            return &steps->step[i];
    fail_msg("no such step");
    return NULL;
}

/* Element (r, c) of the logical matrix y = W·x of a plain float32 weight. */
static float element(const mha_weight *w, uint32_t r, uint32_t c)
{
    uint64_t row = r / w->group * w->group_stride + r % w->group;
    uint64_t at = w->in_out ? c * w->stride + row : row * w->stride + c;
    float v;
    assert_int_equal(w->type, MHA_F32);
    memcpy(&v, w->data + at * sizeof v, sizeof v);
    return v;
}

static float stored(const mha_model *m, const char *name, size_t i)
{
    const mha_tensor *t = mha_checkpoint_find(m->checkpoint, name);
    float v;
    assert_non_null(t);
    memcpy(&v, t->data + i * sizeof v, sizeof v);
    return v;
}

/* ---------------------------------------------------------------------------------- facts */

static void test_bert(void **state)
{
    mha_model *m = open_fixture("bert-class");
    const mha_model_info *info = mha_model_info_get(m);
    assert_string_equal(info->family, "bert");
    assert_string_equal(info->format, "safetensors");
    assert_string_equal(info->dtype, "F32");
    assert_string_equal(info->head_name, "sequence classifier");
    assert_int_equal(info->head, MHA_HEAD_CLASS);
    assert_int_equal(info->classes, 3);
    assert_string_equal(info->labels[2], "LABEL_2");
    assert_int_equal(info->layers[MHA_ENC], 2);
    assert_int_equal(info->layers[MHA_DEC], 0);
    assert_int_equal(info->width, 21);
    assert_int_equal(info->mlp_width, 31);
    assert_int_equal(info->vocab, 61);
    assert_int_equal(info->max_positions, 37);
    assert_int_equal(info->kv_cache_bytes, 0);
    assert_int_equal(info->pad, 0);
    assert_int_equal(info->eos, -1);
    assert_int_equal(info->attn_count, 2);
    assert_int_equal(info->attn[1].layer, 1);
    assert_int_equal(info->attn[1].heads, 3);
    assert_int_equal(info->attn[1].width, 7);
    assert_int_equal(info->attn[1].head_ids[2], 2);
    assert_false(info->attn[1].causal);
    /* embeddings, two layers of 4·(21·21 + 21) + 2·31·21 + 31 + 21 + 4·21, pooler, classifier */
    assert_int_equal(info->parameters,
                     (61 + 37 + 2 + 2) * 21 + 2 * (4 * 462 + 2 * 651 + 31 + 21 + 84) + 462 + 66);
    assert_int_equal(strlen(info->fingerprint), 64);
    assert_int_equal(m->types, 2);
    assert_int_equal(m->head.count, 4);
    const mha_attn_args *a = &find_step(&m->stack[0].block[0], MHA_OP_ATTN, 0)->attn;
    assert_int_equal(a->mask, MHA_MASK_FULL);
    near(a->scale, 1 / sqrt(7), 1e-7);
    assert_string_equal(a->v.name, "bert.encoder.layer.0.attention.self.value.weight");
    near(a->vb[3], stored(m, "bert.encoder.layer.0.attention.self.value.bias", 3), 0);
    mha_model_close(m);
}

/* A pooler without a classifier is known and read by nothing. */
static void test_unread_pooler(void **state)
{
    mha_model *m = open_fixture("bert-base");
    size_t unused = 0;
    const char *last = "";
    assert_int_equal(mha_model_info_get(m)->head, MHA_HEAD_NONE);
    assert_int_equal(m->head.count, 0);
    for (size_t i = 0; i < mha_model_tensor_count(m); i++) {
        mha_tensor_info t = mha_model_tensor(m, i);
        assert_true(strcmp(last, t.name) < 0);
        last = t.name;
        unused += !t.used;
        assert_int_equal(t.used, strncmp(t.name, "pooler", 6) != 0);
    }
    assert_int_equal(unused, 2);
    mha_model_close(m);
}

static void test_roberta(void **state)
{
    mha_model *m = open_fixture("roberta-mlm");
    assert_int_equal(m->max_positions, 27); /* 29 rows from row pad + 1 = 2 */
    assert_int_equal(find_step(&m->stack[0].prologue, MHA_OP_EMBED, 1)->embed.offset, 2);
    assert_int_equal(find_step(&m->head, MHA_OP_ACT, 0)->act, MHA_ACT_GELU);
    assert_ptr_equal(find_step(&m->head, MHA_OP_LOGITS, 0)->logits.w.data,
                     find_step(&m->stack[0].prologue, MHA_OP_EMBED, 0)->embed.table.data);
    mha_model_close(m);
}

static void test_t5(void **state)
{
    mha_model *m = open_fixture("t5");
    const mha_model_info *info = mha_model_info_get(m);
    assert_int_equal(info->head, MHA_HEAD_TARGET);
    assert_int_equal(m->stack_count, 2);
    assert_int_equal(info->layers[MHA_ENC], 2);
    assert_int_equal(info->layers[MHA_DEC], 3);
    assert_int_equal(info->attn_count, 8);
    assert_int_equal(info->attn[3].kind, MHA_CROSS);
    assert_int_equal(info->kv_cache_bytes, 3 * 2 * 4 * 6 * 4);
    assert_int_equal(info->decoder_start, 0);
    assert_int_equal(info->eos, 1);
    const mha_attn_args *enc = &find_step(&m->stack[0].block[1], MHA_OP_ATTN, 0)->attn;
    const mha_attn_args *dec = &find_step(&m->stack[1].block[2], MHA_OP_ATTN, 0)->attn;
    const mha_attn_args *cross = &find_step(&m->stack[1].block[2], MHA_OP_ATTN, 1)->attn;
    assert_int_equal(enc->bias, MHA_BIAS_BUCKETS);
    assert_int_equal(enc->bias_buckets, 8);
    assert_int_equal(enc->bias_max_distance, 12);
    assert_true(enc->bias_bidirectional && !dec->bias_bidirectional);
    near(enc->bias_table[9],
         stored(m, "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", 9), 0);
    assert_int_equal(dec->mask, MHA_MASK_CAUSAL);
    assert_int_equal(cross->keys, MHA_KEYS_MEMORY);
    assert_int_equal(cross->mask, MHA_MASK_FULL);
    assert_null(cross->bias_table);
    near(cross->scale, 1, 0);
    near(find_step(&m->head, MHA_OP_SCALE, 0)->scale.by, 1 / sqrt(21), 1e-7);
    mha_model_close(m);

    m = open_fixture("t5-gated"); /* its own read-out and no factor */
    assert_int_equal(m->head.count, 1);
    assert_string_equal(m->head.step[0].logits.w.name, "lm_head.weight");
    const mha_mlp_args *mlp = &find_step(&m->stack[0].block[0], MHA_OP_MLP, 0)->mlp;
    assert_string_equal(mlp->gate.name, "encoder.block.0.layer.1.DenseReluDense.wi_0.weight");
    assert_int_equal(mlp->act, MHA_ACT_GELU_TANH);
    mha_model_close(m);
}

static void test_llama(void **state)
{
    mha_model *m = open_fixture("llama-gqa");
    const mha_model_info *info = mha_model_info_get(m);
    const mha_attn_args *a = &find_step(&m->stack[0].block[1], MHA_OP_ATTN, 0)->attn;
    assert_int_equal(info->head, MHA_HEAD_NEXT);
    assert_int_equal(info->attn[0].kv_heads, 2);
    assert_int_equal(info->kv_cache_bytes, 2 * 2 * 2 * 10 * 4);
    assert_int_equal(info->max_positions, 0);
    assert_int_equal(info->trained_positions, 64);
    assert_int_equal(a->mask, MHA_MASK_CAUSAL);
    assert_int_equal(a->rope, MHA_ROPE_HALF);
    assert_int_equal(a->rope_width, 10);
    near(a->rope_freq[1], pow(1000, -0.2), 1e-7);
    assert_null(a->qb);
    /* one table serves all layers */
    assert_ptr_equal(a->rope_freq,
                     find_step(&m->stack[0].block[0], MHA_OP_ATTN, 0)->attn.rope_freq);
    mha_model_close(m);

    m = open_fixture("llama-gqa.gguf");
    assert_int_equal(find_step(&m->stack[0].block[1], MHA_OP_ATTN, 0)->attn.rope, MHA_ROPE_PAIR);
    mha_model_close(m);

    m = open_fixture("mistral");
    a = &find_step(&m->stack[0].block[0], MHA_OP_ATTN, 0)->attn;
    assert_int_equal(a->mask, MHA_MASK_CAUSAL_WINDOW);
    assert_int_equal(a->window, 5);
    mha_model_close(m);

    m = open_fixture("qwen2");
    a = &find_step(&m->stack[0].block[0], MHA_OP_ATTN, 0)->attn;
    assert_true(a->qb != NULL && a->kb != NULL && a->vb != NULL && a->ob == NULL);
    mha_model_close(m);

    m = open_fixture("qwen3");
    a = &find_step(&m->stack[0].block[0], MHA_OP_ATTN, 0)->attn;
    assert_int_equal(a->k_norm.n, 10);
    assert_int_equal(a->k_norm.kind, MHA_NORM_RMS);
    near(a->k_norm.eps, 1e-5, 1e-11);
    mha_model_close(m);
}

/* Windowed and full layers have their own windows, bases and scalings; gains are 1 + w. */
static void test_gemma(void **state)
{
    mha_model *m = open_fixture("gemma3");
    const mha_attn_args *windowed = &find_step(&m->stack[0].block[0], MHA_OP_ATTN, 0)->attn;
    const mha_attn_args *full = &find_step(&m->stack[0].block[1], MHA_OP_ATTN, 0)->attn;
    assert_int_equal(windowed->mask, MHA_MASK_CAUSAL_WINDOW);
    assert_int_equal(windowed->window, 4);
    near(windowed->rope_freq[1], pow(100, -0.2), 1e-7);
    assert_int_equal(full->mask, MHA_MASK_CAUSAL);
    near(full->rope_freq[1], pow(10000, -0.2) / 8, 1e-8);
    near(full->scale, 1 / sqrt(7), 1e-7);
    near(m->stack[0].prologue.step[0].embed.scale, sqrt(28), 1e-6);
    const char *norm = "model.layers.0.self_attn.q_norm.weight";
    near(windowed->q_norm.w[2], 1 + stored(m, norm, 2), 0);
    mha_model_close(m);
}

/* ---------------------------------------------------------------------------------- views */

/* GPT-2's c_attn is [D, 3·D], stored input first, with q, k, v side by side in its columns. */
static void test_fused(void **state)
{
    mha_model *m = open_fixture("gpt2-lm");
    const mha_attn_args *a = &find_step(&m->stack[0].block[2], MHA_OP_ATTN, 0)->attn;
    const mha_weight *parts[3] = {&a->q, &a->k, &a->v};
    const float *biases[3] = {a->qb, a->kb, a->vb};
    for (uint32_t p = 0; p < 3; p++) {
        assert_true(parts[p]->in_out);
        assert_int_equal(parts[p]->out, 20);
        assert_int_equal(parts[p]->in, 20);
        for (uint32_t r = 0; r < 20; r++) {
            near(biases[p][r], stored(m, "transformer.h.2.attn.c_attn.bias", 20 * p + r), 0);
            for (uint32_t c = 0; c < 20; c++)
                near(element(parts[p], r, c),
                     stored(m, "transformer.h.2.attn.c_attn.weight", 60 * c + 20 * p + r), 0);
        }
    }
    mha_model *g = open_fixture("gpt2-lm.gguf"); /* the same numbers, stored output first */
    const mha_attn_args *b = &find_step(&g->stack[0].block[2], MHA_OP_ATTN, 0)->attn;
    assert_false(b->v.in_out);
    for (uint32_t r = 0; r < 20; r++)
        for (uint32_t c = 0; c < 20; c++)
            near(element(&a->v, r, c), element(&b->v, r, c), 0);
    mha_model_close(m);
    mha_model_close(g);

    m = open_fixture("gpt2-inverse");
    const mha_attn_args *i = &find_step(&m->stack[0].block[2], MHA_OP_ATTN, 0)->attn;
    near(i->scale, 1 / sqrt(5) / 3, 1e-7);
    mha_model_close(m);
}

static const char *other_forms[][2] = {
    {"bert-base-prefixed", "bert-base"},
    {"bert-base.gguf", "bert-base"},
    {"bert-tf", "bert-mlm"},
    {"gemma3-old", "gemma3"},
    {"gemma3.gguf", "gemma3"},
    {"gpt2-lm.gguf", "gpt2-lm"},
    {"gpt2-old", "gpt2-lm"},
    {"llama-gqa-sharded", "llama-gqa"},
    {"llama-gqa.gguf", "llama-gqa"},
    {"llama-rope3-old", "llama-rope3"},
    {"llama-rope3.gguf", "llama-rope3"},
    {"qwen2.gguf", "qwen2"},
    {"qwen3.gguf", "qwen3"},
    {"roberta-old", "roberta-mlm"},
};

/* What one model's steps hold beside their matrices is the same in all its forms. */
static void same_attention(const mha_attn_args *a, const mha_attn_args *b, const char *name)
{
    assert_int_equal(a->heads, b->heads);
    assert_int_equal(a->kv_heads, b->kv_heads);
    assert_int_equal(a->width, b->width);
    assert_int_equal(a->mask, b->mask);
    assert_int_equal(a->window, b->window);
    assert_int_equal(a->rope_width, b->rope_width);
    near(a->scale, b->scale, 1e-7);
    for (uint32_t i = 0; i < a->rope_width / 2; i++)
        if (fabsf(a->rope_freq[i] - b->rope_freq[i]) > 2e-7F * b->rope_freq[i])
            fail_msg("%s: frequency %u", name, i);
    assert_int_equal(a->q_norm.n, b->q_norm.n);
    for (uint32_t i = 0; i < a->q_norm.n; i++)
        near(a->q_norm.w[i], b->q_norm.w[i], 0);
}

static void test_other_forms(void **state)
{
    for (size_t i = 0; i < sizeof other_forms / sizeof *other_forms; i++) {
        const char *name = other_forms[i][0];
        mha_model *a = open_fixture(name), *b = open_fixture(other_forms[i][1]);
        const mha_model_info *x = mha_model_info_get(a), *y = mha_model_info_get(b);
        assert_string_equal(x->family, y->family);
        assert_int_equal(x->head, y->head);
        uint32_t freqs = strcmp(name, "llama-rope3.gguf") == 0 ? 5 : 0; /* rope_freqs.weight */
        assert_int_equal(x->parameters, y->parameters + freqs);
        assert_int_equal(a->stack[0].layers, b->stack[0].layers);
        for (uint32_t l = 0; l < a->stack[0].layers; l++) {
            const mha_steps *p = &a->stack[0].block[l], *q = &b->stack[0].block[l];
            assert_int_equal(p->count, q->count);
            same_attention(&find_step(p, MHA_OP_ATTN, 0)->attn, &find_step(q, MHA_OP_ATTN, 0)->attn,
                           name);
            const mha_norm_args *n = &find_step(p, MHA_OP_NORM, 0)->norm;
            const mha_norm_args *o = &find_step(q, MHA_OP_NORM, 0)->norm;
            near(n->eps, o->eps, 1e-3 * (double)o->eps);
            for (uint32_t k = 0; k < n->n; k++)
                near(n->w[k], o->w[k], 0);
        }
        mha_model_close(a);
        mha_model_close(b);
    }
}

/* ------------------------------------------------------------------------------- wrappers */

static void test_wrapper(void **state)
{
    modeldir d;
    modeldir_load(&d, "bert-mlm");
    const char *name;
    json_t *tensor, *wrapped = json_object();
    json_object_foreach(d.header, name, tensor)
    {
        char full[200];
        snprintf(full, sizeof full, "_orig_mod.module.%s", name);
        if (strcmp(name, "__metadata__") != 0)
            json_object_set(wrapped, full, tensor);
    }
    json_decref(d.header);
    d.header = wrapped;
    modeldir_add(&d, "_orig_mod.module.cls.seq_relationship.bias");
    mha_model *m = open_changed(&d, state, NULL);
    assert_int_equal(mha_model_info_get(m)->head, MHA_HEAD_MASKED);
    mha_model_close(m);
    modeldir_release(&d);
}

static void test_allow_unused(void **state)
{
    const mha_model_options options = {.allow_unused = true};
    modeldir d;
    modeldir_load(&d, "bert-mlm");
    modeldir_add(&d, "extra.a");
    modeldir_add(&d, "extra.b");
    mha_model *m = open_changed(&d, state, &options);
    assert_non_null(strstr(mha_model_program(m), "unused: 2 tensors, the first is extra.a\n"));
    mha_model_close(m);
    modeldir_release(&d);
}

/* Labels that do not name each class are left out. */
static void test_labels(void **state)
{
    modeldir d;
    modeldir_load(&d, "bert-class");
    modeldir_set(&d, "id2label", "{\"0\": \"bad\", \"2\": \"good\", \"7\": \"odd\"}");
    mha_model *m = open_changed(&d, state, NULL);
    assert_int_equal(mha_model_info_get(m)->classes, 3);
    assert_null(mha_model_info_get(m)->labels);
    mha_model_close(m);
    modeldir_set(&d, "id2label", "{\"1\": \"neutral\", \"2\": \"good\", \"0\": \"bad\"}");
    m = open_changed(&d, state, NULL);
    assert_string_equal(mha_model_info_get(m)->labels[0], "bad");
    mha_model_close(m);
    modeldir_release(&d);
}

/* ------------------------------------------------------------------------------ own family */

/* Heads interleaved in one matrix, [H, 3, K, D], as some decoders store them; here GPT-2's numbers
 * are only bytes to point into: 60 rows are 4 heads of 3·5. */
static const char interleaved[] =
    "family mine\n"
    "types  gpt2\n"
    "ignore *\n"
    "config\n"
    "  D n_embd\n"
    "  H n_head\n"
    "  K = D / H\n"
    "tensors\n"
    "  matrix tok [71, D] transformer.wte.weight\n"
    "stack dec layers=1\n"
    "  tensors\n"
    "    linear q [D, D] transformer.h.{l}.attn.c_attn in-out from=3*D at=0   group=K step=3*K\n"
    "    linear k [D, D] transformer.h.{l}.attn.c_attn in-out from=3*D at=K   group=K step=3*K\n"
    "    linear v [D, D] transformer.h.{l}.attn.c_attn in-out from=3*D at=2*K group=K step=3*K\n"
    "    linear o [D, D] transformer.h.{l}.attn.c_proj in-out\n"
    "  prologue\n"
    "    X <- embed token table=tok\n"
    "  block\n"
    "    B <- attn X q=q k=k v=v o=o heads=H width=K scale=1 causal\n"
    "    X <- add B\n";

static mha_status open_with(const char *family, const char *model, mha_model **m, mha_err *err)
{
    char path[256];
    const mha_model_options options = {.family = family, .family_name = "mine.family"};
    snprintf(path, sizeof path, "tests/data/models/%s", model);
    return mha_model_open(m, path, &options, err);
}

static void test_own_family(void **state)
{
    mha_model *m = NULL;
    mha_err err = {0};
    if (open_with(interleaved, "gpt2-lm", &m, &err) != MHA_OK)
        fail_msg("%s", err.message);
    const mha_attn_args *a = &find_step(&m->stack[0].block[0], MHA_OP_ATTN, 0)->attn;
    const char *w = "transformer.h.0.attn.c_attn.weight", *b = "transformer.h.0.attn.c_attn.bias";
    for (uint32_t h = 0; h < 4; h++)
        for (uint32_t i = 0; i < 5; i++) {
            near(element(&a->v, 5 * h + i, 7), stored(m, w, 60 * 7 + 15 * h + 10 + i), 0);
            near(a->kb[5 * h + i], stored(m, b, 15 * h + 5 + i), 0);
        }
    mha_model_close(m);
}

/* Mistakes that only show with a checkpoint name the description's line. */
static void test_own_mistakes(void **state)
{
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"at=2*K group", "at=3*K group", "mine.family:14: v: 20 rows in groups of 5 every 15"},
        {"heads=H", "heads=H+1", "mine.family:19: attn: q is [20, 20], needed is [25, 20]"},
        {"heads=H", "heads=0", "mine.family:19: attn: 0 heads"},
        {"heads=H", "heads=H/0", "heads = H/0"},
        {"scale=1", "scale=l-'a'", "mine.family:19: l-'a': a string where a number is needed"},
        {"scale=1", "scale=1 kv=3", "4 heads cannot share 3"},
        {"scale=1", "scale=1 keys=memory", "no encoder ran before"},
        {"causal", "rope=half", "rope needs theta=NUMBER"},
        {"causal", "softcap=-1", "softcap = -1 is negative"},
        {"layers=1", "layers=l", "l is only known inside a block"},
        {"X <- add B", "X <- add C",
         "mine.family:20: add: register C is read before it is written"},
        {"[71, D]", "[71, 2*D]", "expected [71, 2*D=40], found [71, 20]"},
        {"X <- add B", "X <- attn B q=q k=k v=v o=o heads=H width=K scale=1", "one step of self-"},
        {"    X <- embed token table=tok", "    B <- embed token table=tok", "does not write X"},
        {"embed token table=tok", "embed token table=tok separator=3", "separator stands between"},
        {"embed token table=tok", "embed type table=tok separator=3", "separator stands between"},
        {"X <- add B\n", "X <- add B\nhead next\n  steps\n    logits X w=tok separator=3\n",
         "mine.family:23: logits: a separator is for spans"},
        {"stack dec", "contacts other bias 0\nstack dec", "contacts: \"other\" is no table"},
        {"stack dec", "contacts\nstack dec", "mine.family:10: "},
        {"stack dec",
         "  table weights [1, 1] a.weight\n  vector bias [1] a.bias\n"
         "contacts weights tok 0\nstack dec",
         "contacts: \"tok\" is no vector"},
        {"stack dec",
         "  table weights [1, 1] a.weight\n  vector bias [1] a.bias\n"
         "contacts weights bias 0\ncontacts weights bias 0\nstack dec",
         "mine.family:13: contacts a second time"},
        {"stack dec",
         "  table weights [71, D] transformer.wte.weight\n  vector bias [D] transformer.ln_f.bias\n"
         "contacts weights bias 0\nstack dec",
         "mine.family:12: contacts of 4 heads need a table [1, 4]"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[sizeof interleaved + 200];
        const char *at = strstr(interleaved, cases[i].from);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - interleaved), interleaved, cases[i].to,
                 at + strlen(cases[i].from));
        mha_model *m = NULL;
        mha_err err = {0};
        mha_status status = open_with(text, "gpt2-lm", &m, &err);
        if (status != MHA_ERR_FORMAT || strstr(err.message, cases[i].says) == NULL)
            fail_msg("%s: %s \"%s\"", cases[i].to, mha_status_name(status), err.message);
    }
}

static void test_program(void **state)
{
    mha_model *m = open_fixture("gpt2-lm");
    const char *text = mha_model_program(m);
    const char *const lines[] = {
        "family gpt2\nstack dec, 3 layers\n  prologue\n"
        "    X <- embed token  table=F32 [71, 20] transformer.wte.weight\n",
        "  block ×3, l = 0…2\n"
        "    B <- norm X eps=1e-05  w=F32 [20] transformer.h.{l}.ln_1.weight + bias\n"
        "    B <- attn B heads=4 width=5 causal scale=0.447214  q=F32 [20, 20] "
        "transformer.h.{l}.attn.c_attn.weight from row 0 of 60 + bias  k=",
        "    X <- add B\n",
        "head, language model\n    logits X  w=F32 [71, 20] transformer.wte.weight\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (strstr(text, lines[i]) == NULL)
            fail_msg("\"%s\" is not in\n%s", lines[i], text);
    mha_model_close(m);
    m = open_fixture("gemma3"); /* sliding, full, sliding */
    assert_non_null(strstr(mha_model_program(m), "  block, l = 1\n"));
    mha_model_close(m);
}

static void test_files(void **state)
{
    mha_model *m = open_fixture("llama-gqa-sharded");
    char hex[65];
    mha_err err = {0};
    assert_true(mha_model_file_count(m) >= 2);
    assert_non_null(strstr(mha_model_file_name(m, 0), ".safetensors"));
    assert_int_equal(mha_model_file_hash(m, 0, hex, &err), MHA_OK);
    assert_int_equal(strlen(hex), 64);
    assert_int_equal(mha_model_file_hash(m, 99, hex, &err), MHA_ERR_ARG);
    mha_model_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bert),
        cmocka_unit_test(test_unread_pooler),
        cmocka_unit_test(test_roberta),
        cmocka_unit_test(test_t5),
        cmocka_unit_test(test_llama),
        cmocka_unit_test(test_gemma),
        cmocka_unit_test(test_fused),
        cmocka_unit_test(test_other_forms),
        cmocka_unit_test_setup_teardown(test_wrapper, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_allow_unused, tempdir_setup, tempdir_teardown),
        cmocka_unit_test_setup_teardown(test_labels, tempdir_setup, tempdir_teardown),
        cmocka_unit_test(test_own_family),
        cmocka_unit_test(test_own_mistakes),
        cmocka_unit_test(test_program),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
