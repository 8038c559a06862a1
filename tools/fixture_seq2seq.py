"""Encoder-decoders among the tiny models of make_fixtures.py, and what they write.

`generate.N.npz` beside expected.N.npz holds what the reference writes for document N, start token
left out: `greedy`, and `beam.B` for some widths B, with at most `length` new tokens each, by the
model's own generation_config.json. The reference runs in float64.
"""

import numpy as np
import torch
import transformers as tf

BART = dict(
    vocab_size=61,
    d_model=24,
    encoder_layers=3,
    encoder_attention_heads=3,
    encoder_ffn_dim=29,
    decoder_layers=2,
    decoder_attention_heads=4,
    decoder_ffn_dim=31,
    max_position_embeddings=37,
    scale_embedding=False,
    pad_token_id=1,
    bos_token_id=0,
    eos_token_id=2,
    decoder_start_token_id=2,
    forced_eos_token_id=None,
)
MARIAN = {
    **BART,
    "vocab_size": 59,
    "d_model": 20,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "activation_function": "swish",
    "scale_embedding": True,
    "pad_token_id": 58,
    "eos_token_id": 0,
    "bos_token_id": None,
    "decoder_start_token_id": 58,
}

# A length of the decoder that is not a number: its input is the text shifted right.
MODELS = {
    "bart": ("BartForConditionalGeneration", tf.BartConfig(**BART), ((6, 4), (12, 10))),
    "bart-class": (
        "BartForSequenceClassification",
        tf.BartConfig(**{**BART, "encoder_layers": 1, "decoder_layers": 1}, num_labels=3),
        ((5, "shifted"), (11, "shifted")),
    ),
    "mbart": (
        "MBartForConditionalGeneration",
        tf.MBartConfig(
            **{**BART, "encoder_layers": 1, "decoder_layers": 2, "scale_embedding": True},
            activation_function="relu",
        ),
        ((6, 8), (11, 5)),
    ),
    "marian": ("MarianMTModel", tf.MarianConfig(**MARIAN), ((6, 4), (11, 9))),
}

# Keys of generation_config.json, and the widths of the beams.
GENERATION = {
    "t5": (
        {
            "decoder_start_token_id": 0,
            "eos_token_id": 1,
            "pad_token_id": 0,
            "no_repeat_ngram_size": 2,
        },
        (3, 5),
    ),
    "bart": (
        {
            "decoder_start_token_id": 2,
            "eos_token_id": 2,
            "pad_token_id": 1,
            "bos_token_id": 0,
            "forced_bos_token_id": 0,
            "forced_eos_token_id": 2,
            "no_repeat_ngram_size": 2,
            "min_length": 6,
            "length_penalty": 2.0,
            "early_stopping": True,
            "num_beams": 4,
        },
        (2, 4),
    ),
    "whisper": (
        {
            "decoder_start_token_id": 51,
            "eos_token_id": 50,
            "pad_token_id": 50,
            "suppress_tokens": [7, 8, 9],
            "begin_suppress_tokens": [10, 50],
            "no_repeat_ngram_size": 2,
        },
        (3,),
    ),
    "marian": (
        {
            "decoder_start_token_id": 58,
            "eos_token_id": 0,
            "pad_token_id": 58,
            "bad_words_ids": [[58]],
            "forced_eos_token_id": 0,
            "no_repeat_ngram_size": 1,
            "num_beams": 4,
        },
        (2, 4, 6),
    ),
}
LENGTH = 14


def bias_of_end(model, name):
    """Makes the end token likely enough that some texts end and some do not."""
    if name in ("bart", "marian"):
        with torch.no_grad():
            bias = model.final_logits_bias
            gen = torch.Generator().manual_seed(len(name))
            bias.copy_(torch.round(torch.randn(bias.shape, generator=gen) * 256) / 128)
            bias[0, model.config.eos_token_id] += 2 if name == "bart" else 5
            bias[0, model.config.pad_token_id] += -4 if name == "bart" else 9


def write_generation(model, name, docs, out):
    """Greedy and beam search on every document; False for a model that does not write."""
    if name not in GENERATION:
        return
    keys, widths = GENERATION[name]
    config = tf.GenerationConfig(**keys)
    config.save_pretrained(out)
    model.generation_config = tf.GenerationConfig.from_pretrained(out)
    for n, doc in enumerate(docs):
        if "input_ids" in doc:
            ids = torch.from_numpy(doc["input_ids"])[None]
            inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        else:
            inputs = {"input_features": torch.from_numpy(doc["input_features"])[None].double()}
        arrays = {"length": np.array([LENGTH], np.int64)}
        for width in (1, *widths):
            with torch.no_grad():
                written = tf.GenerationMixin.generate(  # Whisper has one of its own on top
                    model,
                    **inputs,
                    num_beams=width,
                    max_new_tokens=LENGTH,
                    do_sample=False,
                    use_cache=False,
                )
            key = "greedy" if width == 1 else f"beam.{width}"
            arrays[key] = written[0, 1:].numpy().astype(np.int64)
            print(f"{name:18s} {n} {key:8s} {' '.join(map(str, arrays[key]))}")
        np.savez_compressed(out / f"generate.{n}.npz", **arrays)


def spread(config, module_name):
    """A factor on the weights of a module that keeps attention between flat and saturated."""
    if config.model_type not in ("bart", "mbart", "marian"):
        return 1.0
    if getattr(config, "scale_embedding", False) and module_name.endswith("shared"):
        return config.d_model**-0.5
    if not module_name.endswith("q_proj"):
        return 1.0
    return 4.0 if config.model_type == "marian" and "encoder_attn" in module_name else 2.0
