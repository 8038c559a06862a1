"""Decoder-only models among the tiny models of make_fixtures.py, and what they write.

There is a model for every axis on which they differ. Dims divide by nothing; lengths go beyond
windows and beyond the original length of scaled rotary positions. `generate.0.npz` holds the
`greedy` continuation of document 0, with the library's own cache, in float64.
"""

import numpy as np
import torch
import transformers as tf

PLAIN = dict(vocab_size=71, bos_token_id=0, eos_token_id=0)


def rope(theta=200.0, **more):
    return {"rope_parameters": {"rope_type": "default", "rope_theta": theta, **more}}


NEO = dict(
    **PLAIN,
    hidden_size=20,
    num_layers=3,
    num_heads=4,
    intermediate_size=33,
    max_position_embeddings=40,
    attention_types=[[["global", "local", "local"], 1]],
    window_size=5,
)
GPTJ = dict(
    **PLAIN, n_embd=30, n_layer=2, n_head=3, n_inner=41, n_positions=40, rotary_dim=6
)
NEOX = dict(
    **PLAIN,
    hidden_size=36,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=43,
    max_position_embeddings=40,
)
NEOX_ROPE = rope(300.0, partial_rotary_factor=0.34)
OPT = dict(
    vocab_size=67,
    hidden_size=20,
    num_hidden_layers=2,
    num_attention_heads=4,
    ffn_dim=33,
    max_position_embeddings=37,
    pad_token_id=1,
    bos_token_id=2,
    eos_token_id=2,
)
BLOOM = dict(vocab_size=71, hidden_size=30, n_layer=2, n_head=6, bos_token_id=1, eos_token_id=2)
FALCON = dict(
    **PLAIN,
    hidden_size=40,
    num_hidden_layers=2,
    num_attention_heads=5,
    ffn_hidden_size=37,
    max_position_embeddings=40,
)
BIGCODE = dict(**PLAIN, n_embd=30, n_layer=2, n_head=5, n_inner=41, n_positions=40)
LLAMA = dict(
    vocab_size=73,
    hidden_size=24,
    num_hidden_layers=2,
    num_attention_heads=6,
    num_key_value_heads=2,
    head_dim=10,
    intermediate_size=37,
    max_position_embeddings=64,
    rms_norm_eps=1e-5,
    bos_token_id=1,
    eos_token_id=2,
)
GEMMA = dict(
    vocab_size=79,
    hidden_size=28,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=10,
    intermediate_size=33,
    max_position_embeddings=64,
    bos_token_id=2,
    eos_token_id=1,
    **rope(),
)
PHI = dict(
    **PLAIN,
    hidden_size=30,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=41,
    max_position_embeddings=40,
    **rope(partial_rotary_factor=0.4),
)
PHI3 = dict(
    vocab_size=71,
    hidden_size=40,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    intermediate_size=37,
    max_position_embeddings=48,
    bos_token_id=1,
    eos_token_id=2,
    pad_token_id=0,
)
LONGROPE = rope(
    300.0,
    rope_type="longrope",
    partial_rotary_factor=0.8,
    short_factor=[1.0, 1.1, 1.6, 2.0],
    long_factor=[1.3, 2.0, 4.0, 6.5],
)
OLMO2 = dict(
    **PLAIN,
    hidden_size=30,
    num_hidden_layers=2,
    num_attention_heads=5,
    num_key_value_heads=1,
    intermediate_size=41,
    max_position_embeddings=64,
    **rope(),
)
SMOLLM3 = dict(
    **PLAIN,
    hidden_size=30,
    num_hidden_layers=3,
    num_attention_heads=3,
    num_key_value_heads=1,
    intermediate_size=41,
    max_position_embeddings=64,
    pad_token_id=0,
    **rope(),
)
THREE = {"num_labels": 3, "pad_token_id": 0}

MODELS = {
    "gpt-neo": ("GPTNeoForCausalLM", tf.GPTNeoConfig(**NEO), (4, 13)),
    "gpt-neo-class": (
        "GPTNeoForSequenceClassification",
        tf.GPTNeoConfig(**NEO, **THREE),
        (9,),
    ),
    "gptj": ("GPTJForCausalLM", tf.GPTJConfig(**GPTJ), (7, 13)),
    "gptj-class": (
        "GPTJForSequenceClassification",
        tf.GPTJConfig(**GPTJ, **THREE),
        (9,),
    ),
    "neox": ("GPTNeoXForCausalLM", tf.GPTNeoXConfig(**NEOX, **NEOX_ROPE), (7, 13)),
    "neox-serial": (
        "GPTNeoXForCausalLM",
        tf.GPTNeoXConfig(
            **NEOX, **NEOX_ROPE, use_parallel_residual=False, attention_bias=False
        ),
        (7, 13),
    ),
    "neox-class": (
        "GPTNeoXForSequenceClassification",
        tf.GPTNeoXConfig(**NEOX, **NEOX_ROPE, **THREE),
        (9,),
    ),
    "opt": ("OPTForCausalLM", tf.OPTConfig(**OPT), (7, 13)),
    "opt-post": (
        "OPTForCausalLM",
        tf.OPTConfig(**OPT, word_embed_proj_dim=14, do_layer_norm_before=False),
        (7, 13),
    ),
    "opt-class": (
        "OPTForSequenceClassification",
        tf.OPTConfig(**OPT, word_embed_proj_dim=14, enable_bias=False, num_labels=3),
        (9,),
    ),
    "bloom": ("BloomForCausalLM", tf.BloomConfig(**BLOOM), (7, 13)),
    "bloom-normed": (
        "BloomForCausalLM",
        tf.BloomConfig(
            **{**BLOOM, "n_head": 5}, apply_residual_connection_post_layernorm=True
        ),
        (7, 13),
    ),
    "bloom-class": (
        "BloomForSequenceClassification",
        tf.BloomConfig(**BLOOM, **THREE),
        (9,),
    ),
    "falcon": ("FalconForCausalLM", tf.FalconConfig(**FALCON, **rope()), (7, 13)),
    "falcon-groups": (
        "FalconForCausalLM",
        tf.FalconConfig(
            **{**FALCON, "num_attention_heads": 4},
            **rope(),
            num_kv_heads=2,
            new_decoder_architecture=True,
            bias=True,
        ),
        (7, 13),
    ),
    "falcon-one-norm": (
        "FalconForCausalLM",
        tf.FalconConfig(
            **{**FALCON, "num_attention_heads": 4},
            **rope(),
            num_kv_heads=1,
            new_decoder_architecture=True,
            num_ln_in_parallel_attn=1,
        ),
        (7, 13),
    ),
    "falcon-alibi": (
        "FalconForCausalLM",
        tf.FalconConfig(
            **{**FALCON, "num_hidden_layers": 1, "hidden_size": 20},
            alibi=True,
            multi_query=False,
            parallel_attn=False,
            bias=True,
        ),
        (7, 13),
    ),
    "falcon-class": (
        "FalconForSequenceClassification",
        tf.FalconConfig(**FALCON, **rope(), **THREE),
        (9,),
    ),
    "bigcode": ("GPTBigCodeForCausalLM", tf.GPTBigCodeConfig(**BIGCODE), (7, 13)),
    "bigcode-heads": (
        "GPTBigCodeForCausalLM",
        tf.GPTBigCodeConfig(**BIGCODE, multi_query=False),
        (7, 13),
    ),
    "bigcode-class": (
        "GPTBigCodeForSequenceClassification",
        tf.GPTBigCodeConfig(**BIGCODE, **THREE),
        (9,),
    ),
    "llama-linear": (
        "LlamaForCausalLM",
        tf.LlamaConfig(
            **LLAMA, tie_word_embeddings=False, **rope(rope_type="linear", factor=3.0)
        ),
        (7, 13),
    ),
    "llama-yarn": (
        "LlamaForCausalLM",
        tf.LlamaConfig(
            **LLAMA,
            tie_word_embeddings=False,
            attention_bias=True,
            mlp_bias=True,
            **rope(
                rope_type="yarn",
                factor=4.0,
                original_max_position_embeddings=16,
                beta_fast=4.0,
                beta_slow=1.0,
            ),
        ),
        (7, 19),
    ),
    "llama-class": (
        "LlamaForSequenceClassification",
        tf.LlamaConfig(**LLAMA, **rope(), **THREE),
        (9,),
    ),
    "mistral-full": (
        "MistralForCausalLM",
        tf.MistralConfig(**LLAMA, **rope(), sliding_window=None),
        (4, 13),
    ),
    "gemma": ("GemmaForCausalLM", tf.GemmaConfig(**GEMMA), (7, 13)),
    "gemma-class": (
        "GemmaForSequenceClassification",
        tf.GemmaConfig(**GEMMA, **THREE),
        (9,),
    ),
    "gemma2": (
        "Gemma2ForCausalLM",
        tf.Gemma2Config(
            **GEMMA,
            query_pre_attn_scalar=10,
            sliding_window=4,
            attn_logit_softcapping=2.0,
            final_logit_softcapping=3.0,
        ),
        (5, 15),
    ),
    "gemma2-uncapped": (
        "Gemma2ForCausalLM",
        tf.Gemma2Config(
            **GEMMA,
            query_pre_attn_scalar=7,
            sliding_window=6,
            attn_logit_softcapping=None,
            final_logit_softcapping=None,
            layer_types=["full_attention", "sliding_attention", "full_attention"],
        ),
        (5, 15),
    ),
    "phi": ("PhiForCausalLM", tf.PhiConfig(**PHI), (7, 13)),
    "phi-normed": (
        "PhiForCausalLM",
        tf.PhiConfig(**PHI, num_key_value_heads=1, qk_layernorm=True),
        (7, 13),
    ),
    "phi-class": (
        "PhiForSequenceClassification",
        tf.PhiConfig(**PHI, **THREE),
        (9,),
    ),
    "phi3": ("Phi3ForCausalLM", tf.Phi3Config(**PHI3, **rope(), sliding_window=5), (4, 13)),
    "phi3-long": (
        "Phi3ForCausalLM",
        tf.Phi3Config(**PHI3, **LONGROPE, original_max_position_embeddings=12),
        (7, 12, 17),
    ),
    "phi3-class": (
        "Phi3ForSequenceClassification",
        tf.Phi3Config(**PHI3, **rope(), num_labels=3),
        (9,),
    ),
    "olmo2": ("Olmo2ForCausalLM", tf.Olmo2Config(**OLMO2), (7, 13)),
    "olmo2-class": (
        "Olmo2ForSequenceClassification",
        tf.Olmo2Config(**OLMO2, num_labels=3),
        (9,),
    ),
    "smollm3": (
        "SmolLM3ForCausalLM",
        tf.SmolLM3Config(
            **SMOLLM3, no_rope_layers=[1, 0, 1], use_sliding_window=True, sliding_window=5
        ),
        (4, 13),
    ),
    "smollm3-class": (
        "SmolLM3ForSequenceClassification",
        tf.SmolLM3Config(**SMOLLM3, num_labels=3, no_rope_layer_interval=2),
        (9,),
    ),
}



def old_rope(config):
    """The keys that held the rotary settings before Transformers 5."""
    params = config.pop("rope_parameters")
    config.pop("dtype", None)
    scaling = {
        k: v for k, v in params.items() if k not in ("rope_theta", "partial_rotary_factor")
    }
    config["rope_theta"] = params["rope_theta"]
    config["rope_scaling"] = scaling if scaling.get("rope_type") != "default" else None
    if "partial_rotary_factor" in params:
        config["partial_rotary_factor"] = params["partial_rotary_factor"]
    return config


def neox_old(weights, config):
    config = old_rope(config)
    config["rotary_emb_base"] = config.pop("rope_theta")
    config["rotary_pct"] = config.pop("partial_rotary_factor")
    for layer in range(config["num_hidden_layers"]):
        stem = f"gpt_neox.layers.{layer}.attention."
        weights[stem + "bias"] = torch.ones(1, 1, 8, 8).tril()
        weights[stem + "masked_bias"] = torch.tensor(-1e9)
        weights[stem + "rotary_emb.inv_freq"] = torch.zeros(2)
    return weights, config


def neo_old(weights, config):
    """No prefix, the masks stored as "bias", the list of layers only as runs."""
    del config["attention_layers"]
    weights = {k.removeprefix("transformer."): v for k, v in weights.items()}
    for layer in range(config["num_layers"]):
        weights[f"h.{layer}.attn.attention.bias"] = torch.ones(1, 1, 8, 8).tril()
        weights[f"h.{layer}.attn.attention.masked_bias"] = torch.tensor(-1e9)
    return weights, config


def opt_old(weights, config):
    weights = {k.removeprefix("model."): v for k, v in weights.items()}
    weights["lm_head.weight"] = weights["decoder.embed_tokens.weight"].clone()
    return weights, config


def falcon_old(weights, config):
    config = old_rope(config)
    for new, old in (("num_hidden_layers", "n_layer"), ("num_attention_heads", "n_head")):
        config[old] = config.pop(new)
    config["n_head_kv"] = config.pop("num_kv_heads")
    return weights, config


def phi3_old(weights, config):
    config = old_rope(config)
    scaling = config["rope_scaling"]
    del scaling["rope_type"], scaling["original_max_position_embeddings"]
    scaling["type"] = "su"
    return weights, config


# name: (the model whose arrays it must reproduce, what makes it of weights and config)
FORMS = {
    "neox-old": ("neox", neox_old),
    "gpt-neo-old": ("gpt-neo", neo_old),
    "opt-old": ("opt-post", opt_old),
    "falcon-old": ("falcon-groups", falcon_old),
    "phi-old": ("phi", lambda weights, config: (weights, old_rope(config))),
    "phi3-long-old": ("phi3-long", phi3_old),
    "llama-yarn-old": ("llama-yarn", lambda weights, config: (weights, old_rope(config))),
}

# One model of each family, and those whose attention changes as the text grows.
WRITERS = (
    "bigcode",
    "bigcode-heads",
    "bloom",
    "falcon",
    "falcon-groups",
    "gemma",
    "gemma2",
    "gemma3",
    "gpt-neo",
    "gpt2-lm",
    "gptj",
    "llama-gqa",
    "llama-rope3",
    "llama-yarn",
    "mistral",
    "neox",
    "olmo2",
    "opt",
    "opt-post",
    "phi",
    "phi3",
    "phi3-long",
    "qwen2",
    "qwen3",
    "smollm3",
)
LENGTH = 20


def write_generation(name, model, doc, out):
    """Greedy search; the choice must never hang on rounding. `model` is fresh, in float64.

    Random models soon repeat one token for ever, so pairs of tokens may not come again; the end
    token is one that is not written."""
    model.generation_config = tf.GenerationConfig(no_repeat_ngram_size=2)
    ids = torch.from_numpy(doc["input_ids"])[None]
    written = model.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=LENGTH,
        do_sample=False,
        output_scores=True,
        return_dict_in_generate=True,
    )
    for scores in written.scores:
        first, second = scores[0].topk(2).values
        assert first - second > 1e-3, (name, "two tokens are equally likely")
    greedy = written.sequences[0, ids.shape[1] :].numpy().astype(np.int64)
    end = next(i for i in range(model.config.vocab_size) if i not in greedy)
    tf.GenerationConfig(no_repeat_ngram_size=2, eos_token_id=end).save_pretrained(out)
    print(f"{name:18s} writes {' '.join(map(str, greedy))}")
    np.savez_compressed(
        out / "generate.0.npz", length=np.array([LENGTH], np.int64), greedy=greedy
    )
