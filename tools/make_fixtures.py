#!/usr/bin/env python3
"""Makes the tiny models under tests/data/models/ and what Transformers computes for them in float64.

    python3 -m venv venv && venv/bin/pip install torch==2.13.0 transformers==5.24.0 \
        safetensors==0.8.0 gguf==0.19.0 numpy
    OMP_NUM_THREADS=1 venv/bin/python tools/make_fixtures.py [NAME ...]

Without a name all of them are made. Every model has dims that divide by nothing, gains away from 1,
biases away from 0 and weights large enough that its attention is neither flat nor saturated. The
weights are rounded to the dtype of the file first and the reference runs on exactly those, in
float64, so a difference to the expected arrays is arithmetic and nothing else. Each directory holds
config.json, the weights and expected.0.npz, expected.1.npz: two documents, arrays named as the
program's own `maps` names them (`enc.self.0.pattern`, `dec.2.resid`, `logits`, ...) plus `ids`,
and `types` and `target_ids` where the model takes them. A directory without expected arrays is the
same model in another form; tests/data/models/same.tsv says whose arrays it must reproduce.
"""

import argparse
import json
import shutil
import zlib
from pathlib import Path

import numpy as np
import torch
import transformers as tf
from safetensors.torch import load_file, save_file

import reference

OUT = Path(__file__).resolve().parent.parent / "tests/data/models"

BERT = dict(vocab_size=61, hidden_size=21, num_hidden_layers=2, num_attention_heads=3,
            intermediate_size=31, max_position_embeddings=37, type_vocab_size=2)
ROBERTA = dict(vocab_size=67, hidden_size=20, num_hidden_layers=2, num_attention_heads=4,
               intermediate_size=27, max_position_embeddings=29, type_vocab_size=1,
               layer_norm_eps=1e-5, pad_token_id=1, bos_token_id=0, eos_token_id=2)
DISTIL = dict(vocab_size=61, dim=18, n_layers=2, n_heads=2, hidden_dim=29,
              max_position_embeddings=31)
GPT2 = dict(vocab_size=71, n_embd=20, n_layer=3, n_head=4, n_positions=33, n_inner=33,
            bos_token_id=0, eos_token_id=0)
LLAMA = dict(vocab_size=73, hidden_size=24, num_hidden_layers=2, num_attention_heads=6,
             num_key_value_heads=2, head_dim=10, intermediate_size=37, max_position_embeddings=64,
             rms_norm_eps=1e-5, bos_token_id=1, eos_token_id=2)
LLAMA3_ROPE = dict(rope_type="llama3", rope_theta=500.0, factor=4.0, low_freq_factor=1.0,
                   high_freq_factor=4.0, original_max_position_embeddings=16)
GEMMA3 = dict(vocab_size=79, hidden_size=28, num_hidden_layers=3, num_attention_heads=4,
              num_key_value_heads=2, head_dim=10, intermediate_size=33, sliding_window=4,
              max_position_embeddings=64, query_pre_attn_scalar=7, bos_token_id=2, eos_token_id=1,
              layer_types=["sliding_attention", "full_attention", "sliding_attention"],
              rope_parameters={
                  "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
                  "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 10000.0}})
T5 = dict(vocab_size=67, d_model=21, d_kv=6, d_ff=29, num_layers=2, num_decoder_layers=3,
          num_heads=4, relative_attention_num_buckets=8, relative_attention_max_distance=12,
          decoder_start_token_id=0)
THREE = {"num_labels": 3}

# name: (class, config, lengths of the documents, dtype of the file)
MODELS = {
    "bert-mlm": ("BertForMaskedLM", tf.BertConfig(**BERT), (7, 13), torch.float32),
    "gpt2-lm": ("GPT2LMHeadModel", tf.GPT2Config(**GPT2), (7, 13), torch.float32),
    "llama-gqa": ("LlamaForCausalLM",
                  tf.LlamaConfig(**LLAMA, tie_word_embeddings=False,
                                 rope_parameters={"rope_type": "default", "rope_theta": 1000.0}),
                  (7, 13), torch.float32),
    "t5": ("T5ForConditionalGeneration",
           tf.T5Config(**T5, feed_forward_proj="relu", tie_word_embeddings=True),
           ((7, 5), (15, 14)), torch.float32),
    "bert-class": ("BertForSequenceClassification", tf.BertConfig(**BERT, **THREE), (5, 11),
                   torch.float32),
    "bert-base": ("BertModel", tf.BertConfig(**BERT), (1, 9), torch.float32),
    "roberta-mlm": ("RobertaForMaskedLM", tf.RobertaConfig(**ROBERTA), (7, 13), torch.float32),
    "roberta-class": ("RobertaForSequenceClassification", tf.RobertaConfig(**ROBERTA, **THREE),
                      (5, 11), torch.float32),
    "distilbert-mlm": ("DistilBertForMaskedLM", tf.DistilBertConfig(**DISTIL), (7, 13),
                       torch.float32),
    "distilbert-class": ("DistilBertForSequenceClassification",
                         tf.DistilBertConfig(**DISTIL, **THREE), (5, 11), torch.float32),
    "gpt2-inverse": ("GPT2LMHeadModel",
                     tf.GPT2Config(**GPT2, scale_attn_by_inverse_layer_idx=True), (1, 11),
                     torch.float32),
    "gpt2-class": ("GPT2ForSequenceClassification", tf.GPT2Config(**GPT2, **THREE), (5, 11),
                   torch.float32),
    "llama-rope3": ("LlamaForCausalLM",
                    tf.LlamaConfig(**LLAMA, tie_word_embeddings=True, rope_parameters=LLAMA3_ROPE),
                    (5, 23), torch.float32),
    "mistral": ("MistralForCausalLM",
                tf.MistralConfig(**{**LLAMA, "head_dim": 6, "num_attention_heads": 4},
                                 sliding_window=5),
                (4, 13), torch.float32),
    "qwen2": ("Qwen2ForCausalLM",
              tf.Qwen2Config(**{**{k: v for k, v in LLAMA.items() if k != "head_dim"},
                                "num_attention_heads": 4}),
              (7, 13), torch.float32),
    "qwen3": ("Qwen3ForCausalLM", tf.Qwen3Config(**LLAMA, tie_word_embeddings=True), (7, 13),
              torch.float32),
    "gemma3": ("Gemma3ForCausalLM", tf.Gemma3TextConfig(**GEMMA3), (5, 15), torch.float32),
    "t5-gated": ("T5ForConditionalGeneration",
                 tf.T5Config(**T5, feed_forward_proj="gated-gelu", tie_word_embeddings=False),
                 ((9, 3), (14, 15)), torch.float32),
    "llama-bf16": ("LlamaForCausalLM",
                   tf.LlamaConfig(**LLAMA, tie_word_embeddings=False), (5, 11), torch.bfloat16),
    "gpt2-f16": ("GPT2LMHeadModel", tf.GPT2Config(**GPT2), (5, 11), torch.float16),
}

NORM_PLUS_ONE = ("Gemma3RMSNorm",)


def randomise(model, dtype, seed):
    """Every parameter drawn anew and rounded to the dtype of the file."""
    gen = torch.Generator().manual_seed(seed)
    # T5 does not scale its scores: smaller queries keep them in the range of the others.
    kv = getattr(model.config, "d_kv", 1) if model.config.model_type == "t5" else 1
    done = set()
    with torch.no_grad():
        for module_name, module in model.named_modules():
            for name, p in module.named_parameters(recurse=False):
                if id(p) in done:
                    continue
                done.add(id(p))
                draw = torch.randn(p.shape, generator=gen)
                kind = type(module).__name__
                if p.dim() == 1 and "Norm" in kind and name == "weight":
                    base = 0.0 if kind in NORM_PLUS_ONE else 1.0
                    # Steps of 1/4096: adding the 1 that GGUF files add stays exact.
                    value = base + torch.round(draw * 0.3 * 4096) / 4096
                elif p.dim() == 1:
                    value = draw * 0.3
                elif kind == "Embedding":
                    value = draw * 0.8
                else:
                    fan_in = p.shape[0] if kind == "Conv1D" else p.shape[1]
                    spread = 1.2 * fan_in**-0.5
                    if module_name.endswith("Attention.q"):
                        spread *= kv**-0.5
                    value = draw * spread
                p.copy_(value.to(dtype))


def documents(config, lengths, seed):
    """Token ids as the model would get them, without the padding id."""
    rng = np.random.default_rng(seed)
    for n, length in enumerate(lengths):
        width, target = length if isinstance(length, tuple) else (length, 0)
        doc = {"input_ids": rng.integers(3, config.vocab_size, width)}
        # A repeated pair, so that a head that looks for repeats has something to find.
        if width >= 11:
            doc["input_ids"][7:9] = doc["input_ids"][2:4]
        if target:
            rest = rng.integers(3, config.vocab_size, target - 1)
            doc["decoder_input_ids"] = np.concatenate([[config.decoder_start_token_id], rest])
        if getattr(config, "type_vocab_size", 0) == 2 and n == 1:
            doc["token_type_ids"] = (np.arange(width) >= width // 2).astype(np.int64)
        yield doc


def shorten(x):
    """Keeps 32 bits of the mantissa: 1e-10 of each value, and the file packs to two thirds."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.round(mantissa * 2.0**32) / 2.0**32, exponent)


STORED = {"input_ids": "ids", "decoder_input_ids": "target_ids", "token_type_ids": "types"}


def write_config(path, config):
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def make(name):
    cls, config, lengths, dtype = MODELS[name]
    out = OUT / name
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    seed = zlib.crc32(name.encode())
    model = getattr(tf, cls)(config)
    randomise(model, dtype, seed)
    model.to(dtype).save_pretrained(out)
    (out / "generation_config.json").unlink(missing_ok=True)
    for file in out.iterdir():
        file.chmod(0o644)

    model = getattr(tf, cls).from_pretrained(out, dtype=torch.float64)
    report = []
    for n, doc in enumerate(documents(config, lengths, seed)):
        inputs = {k: torch.from_numpy(v)[None] for k, v in doc.items()}
        arrays = reference.run(model, inputs)
        entropy = reference.entropies(arrays)
        if n == 1:
            report = [f"{v:.2f}" for v in entropy.values()]
            assert all(0.15 < v < 0.97 for v in entropy.values()), (name, entropy)
        arrays = {key: shorten(value) for key, value in arrays.items()}
        arrays.update({STORED[k]: v.astype(np.int64) for k, v in doc.items()})
        np.savez_compressed(out / f"expected.{n}.npz", **arrays)
    size = sum(f.stat().st_size for f in out.iterdir())
    print(f"{name:18s} {size / 1024:6.0f} KB  normalised entropies {' '.join(report)}")


def main():
    parser = argparse.ArgumentParser(description="make the tiny reference models")
    parser.add_argument("names", nargs="*", choices=[[], *MODELS], default=[])
    args = parser.parse_args()
    torch.set_num_threads(1)
    tf.logging.set_verbosity_error()
    tf.logging.disable_progress_bar()
    for name in args.names or MODELS:
        make(name)


if __name__ == "__main__":
    main()
