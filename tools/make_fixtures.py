#!/usr/bin/env python3
"""Makes the tiny models under tests/data/models/ and what Transformers makes of them in float64.

    python3 -m venv venv && venv/bin/pip install torch==2.13.0 transformers==5.24.0 \
        safetensors==0.8.0 gguf==0.19.0 numpy
    OMP_NUM_THREADS=1 venv/bin/python tools/make_fixtures.py [NAME ...]

Without a name all of them are made. Every model has dims that divide by nothing, gains away from
1, biases away from 0 and weights large enough that its attention is neither flat nor saturated.
The weights are rounded to the dtype of the file first and the reference runs on exactly those,
in float64, so a difference to the expected arrays is arithmetic and nothing else. Each directory
holds config.json, the weights and expected.0.npz, expected.1.npz: two documents, arrays named as
the program's own `maps` names them (`enc.self.0.pattern`, `dec.2.resid`, `logits`, ...) plus
`ids`, and `types` and `target_ids` where the model takes them; float64, to ten digits. A
directory without expected arrays is the same model in another form, as is a .gguf file;
tests/data/models/same.tsv says whose arrays it must reproduce. The other forms are made anew in
every run. t5-buckets.npz is the table of relative positions of T5's usual settings.
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

import fixture_decoders
import fixture_seq2seq
import fixture_vision
import gguf_files
import reference
from fixture_models import MODELS, NORM_PLUS_ONE, SMALL_BASE

OUT = Path(__file__).resolve().parent.parent / "tests/data/models"


def randomise(model, dtype, seed):
    """Every parameter drawn anew and rounded to the dtype of the file."""
    gen = torch.Generator().manual_seed(seed)
    # T5 and GPT-Neo do not scale their scores: smaller queries keep them in the range of others.
    config = model.config
    kv = config.d_kv if config.model_type == "t5" else 1
    if config.model_type == "gpt_neo":
        kv = config.hidden_size / config.num_heads
    done = set()
    with torch.no_grad():
        for module_name, module in model.named_modules():
            for name, p in module.named_parameters(recurse=False):
                if id(p) in done:
                    continue
                done.add(id(p))
                if not p.requires_grad:  # tables that are computed
                    continue
                draw = torch.randn(p.shape, generator=gen)
                kind = type(module).__name__
                if p.dim() == 1 and "Norm" in kind and name == "weight":
                    base = 0.0 if kind in NORM_PLUS_ONE else 1.0
                    # Steps of 1/4096: adding the 1 that GGUF files add stays exact.
                    value = base + torch.round(draw * 0.3 * 4096) / 4096
                elif name == "lambda1":  # factors of layer scale
                    value = 0.7 + draw * 0.3
                elif p.dim() == 1:
                    value = draw * 0.3
                elif p.dim() == 3 and p.shape[0] == 1:  # tokens and positions of pictures
                    value = draw * 0.5
                elif kind == "Embedding":
                    value = draw * 0.8 * fixture_seq2seq.spread(model.config, module_name)
                else:
                    fan_in = p.shape[0] if kind == "Conv1D" else p[0].numel()
                    spread = 1.2 * fan_in**-0.5
                    if module_name.endswith(("Attention.q", "attention.q_proj")):
                        spread *= kv**-0.5
                    spread *= fixture_vision.spread(model.config, module_name)
                    value = draw * spread * fixture_seq2seq.spread(model.config, module_name)
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
        if target == "shifted":
            doc["input_ids"][-1] = config.eos_token_id
            start = [config.decoder_start_token_id]
            doc["decoder_input_ids"] = np.concatenate([start, doc["input_ids"][:-1]])
        elif target:
            rest = rng.integers(3, config.vocab_size, target - 1)
            doc["decoder_input_ids"] = np.concatenate([[config.decoder_start_token_id], rest])
        if getattr(config, "mask_token_id", None) is not None and n == 1:
            doc["input_ids"][[2, 5]] = config.mask_token_id
        if getattr(config, "type_vocab_size", 0) == 2 and n == 1:
            doc["token_type_ids"] = (np.arange(width) >= width // 2).astype(np.int64)
        if config.model_type in ("longformer", "big_bird"):
            if "QuestionAnswering" in config.architectures[0]:
                doc["input_ids"][[3, 4, width - 1]] = config.sep_token_id
            elif (
                config.model_type == "longformer"
                and n == 1
                and "SequenceClassification" not in config.architectures[0]
            ):
                doc["global_attention_mask"] = np.isin(np.arange(width), (0, 7, 8, 14)).astype(int)
        yield doc


def shorten(x):
    """Keeps 32 bits of the mantissa: 1e-10 of each value, and the file packs to two thirds."""
    mantissa, exponent = np.frexp(x)
    return np.ldexp(np.round(mantissa * 2.0**32) / 2.0**32, exponent)


STORED = {
    "input_ids": "ids",
    "decoder_input_ids": "target_ids",
    "token_type_ids": "types",
    "global_attention_mask": "global",
    "pixel_values": "features",
    "input_features": "features",
}


def write_config(path, config):
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


def check_loaded(model, out):
    """The library must have used every tensor of the file, each as it stands there."""
    # GPT-NeoX's read-out is called otherwise in files than in the library.
    have = dict(model.state_dict())
    have["embed_out.weight"] = have.get("lm_head.weight")
    for key, value in load_file(out / "model.safetensors").items():
        # ESM is saved under older names.
        key = key.replace("LayerNorm.gamma", "LayerNorm.weight")
        key = key.replace("LayerNorm.beta", "LayerNorm.bias")
        if key.endswith("rotary_embeddings.inv_freq"):
            key = "esm.rotary_embeddings.inv_freq"
        if key in have:
            assert torch.equal(have[key], value.double()), key
        else:  # pictures' models are saved under older names, and some fused
            for part in [value] if "weights_in" not in key else value.chunk(2):
                assert any(torch.equal(v, part.double()) for v in have.values()), key


def untie_t5(out, seed):
    """T5 1.1 and Flan-T5 have a head of their own, which this library reads but never makes."""
    weights = load_file(out / "model.safetensors")
    gen = torch.Generator().manual_seed(seed + 1)
    weights["lm_head.weight"] = torch.randn(weights["shared.weight"].shape, generator=gen) * 0.3
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((out / "config.json").read_text())
    config["tie_word_embeddings"] = False
    del config["scale_decoder_outputs"]
    write_config(out / "config.json", config)


def write_expected(model, docs, out):
    """Runs the documents and stores what came out; returns the entropies for the eye."""
    report = []
    for n, doc in enumerate(docs):
        inputs = {k: torch.from_numpy(v)[None] for k, v in doc.items()}
        inputs = {k: v.double() if v.is_floating_point() else v for k, v in inputs.items()}
        arrays = reference.run(model, inputs)
        entropy = reference.entropies(arrays)
        if n == 1:
            report = [f"{v:.2f}" for v in entropy.values()]
            assert all(0.15 < v < 0.97 for v in entropy.values()), (out.name, entropy)
        arrays = {key: shorten(value) for key, value in arrays.items()}
        arrays.update({STORED[k]: v for k, v in doc.items()})
        np.savez_compressed(out / f"expected.{n}.npz", **arrays)
    return report


def make(name):
    cls, config, lengths, dtype = MODELS[name]
    out = OUT / name
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    seed = zlib.crc32(name.encode())
    model = getattr(tf, cls)(config)
    randomise(model, dtype, seed)
    fixture_seq2seq.bias_of_end(model, name)
    model.to(dtype).save_pretrained(out)
    (out / "generation_config.json").unlink(missing_ok=True)
    if name == "t5-gated":
        untie_t5(out, seed)

    model = getattr(tf, cls).from_pretrained(out, dtype=torch.float64)
    check_loaded(model, out)
    make_documents = fixture_vision.documents if fixture_vision.reads_features(config) else documents
    docs = list(make_documents(config, lengths, seed))
    report = write_expected(model, docs, out)
    fixture_seq2seq.write_generation(model, name, docs, out)
    if name in fixture_decoders.WRITERS:
        fresh = getattr(tf, cls).from_pretrained(out, dtype=torch.float64)
        fixture_decoders.write_generation(name, fresh, docs[0], out)
    size = sum(f.stat().st_size for f in out.iterdir())
    print(f"{name:18s} {size / 1024:6.0f} KB  normalised entropies {' '.join(report)}")


def load(name):
    weights = load_file(OUT / name / "model.safetensors")
    return weights, json.loads((OUT / name / "config.json").read_text())


def store(name, weights, config):
    out = OUT / name
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    save_file(
        {k: v.contiguous() for k, v in weights.items()},
        out / "model.safetensors",
        metadata={"format": "pt"},
    )
    write_config(out / "config.json", config)


def old_rope(config, params):
    """The keys that held the rotary settings before Transformers 5."""
    config = {k: v for k, v in config.items() if k not in ("rope_parameters", "dtype")}
    scaling = {k: v for k, v in params.items() if k != "rope_theta"}
    config.update(
        rope_theta=params["rope_theta"],
        torch_dtype="float32",
        rope_scaling=scaling if len(scaling) > 1 else None,
    )
    return config


def bert_tf():
    """A BERT that came from TensorFlow: gamma and beta, buffers, the second head, copies."""
    weights, config = load("bert-mlm")
    renamed = {
        k.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): v
        for k, v in weights.items()
    }
    renamed["bert.embeddings.position_ids"] = torch.arange(config["max_position_embeddings"])[None]
    renamed["bert.pooler.dense.weight"] = torch.zeros(21, 21)
    renamed["bert.pooler.dense.bias"] = torch.zeros(21)
    renamed["cls.seq_relationship.weight"] = torch.zeros(2, 21)
    renamed["cls.seq_relationship.bias"] = torch.zeros(2)
    renamed["cls.predictions.decoder.weight"] = weights[
        "bert.embeddings.word_embeddings.weight"
    ].clone()
    renamed["cls.predictions.decoder.bias"] = weights["cls.predictions.bias"].clone()
    return renamed, {k: v for k, v in config.items() if k not in ("dtype", "tie_word_embeddings")}


def bert_prefixed():
    weights, config = load("bert-base")
    return {f"bert.{k}": v for k, v in weights.items()}, config


def roberta_old():
    weights, config = load("roberta-mlm")
    weights["lm_head.decoder.weight"] = weights["roberta.embeddings.word_embeddings.weight"].clone()
    weights["lm_head.decoder.bias"] = weights["lm_head.bias"].clone()
    weights["roberta.embeddings.position_ids"] = torch.arange(29)[None]
    return weights, config


def deberta_files():
    """As the authors' own files are: a head that is not used, the unused table of positions, the
    kinds of relative terms in one string, no class."""
    weights, config = load("deberta-original")
    width, length = config["hidden_size"], config["max_position_embeddings"]
    weights["deberta.embeddings.position_embeddings.weight"] = torch.ones(length, width)
    weights["deberta.embeddings.position_ids"] = torch.arange(length)[None]
    weights["mask_predictions.dense.weight"] = torch.ones(width, width)
    weights["mask_predictions.classifier.bias"] = torch.ones(1)
    config["pos_att_type"] = "|".join(config["pos_att_type"])
    for key in ("architectures", "dtype", "legacy", "pooler_hidden_size"):
        del config[key]
    return weights, config


def gpt2_old():
    """The form of the first GPT-2 files: no prefix, the causal masks stored as "bias"."""
    weights, config = load("gpt2-lm")
    renamed = {k.removeprefix("transformer."): v for k, v in weights.items()}
    size = config["n_positions"]
    for layer in range(config["n_layer"]):
        renamed[f"h.{layer}.attn.bias"] = torch.ones(size, size).tril().view(1, 1, size, size)
        renamed[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    keep = (
        "activation_function",
        "architectures",
        "layer_norm_epsilon",
        "model_type",
        "n_embd",
        "n_head",
        "n_inner",
        "n_layer",
        "n_positions",
        "vocab_size",
    )
    return renamed, {"n_ctx": size, **{k: config[k] for k in keep}}


def llama_old():
    weights, config = load("llama-rope3")
    return weights, old_rope(config, config["rope_parameters"])


def gemma3_old():
    weights, config = load("gemma3")
    params = config["rope_parameters"]
    config = old_rope(config, params["full_attention"])
    for key in ("layer_types", "_sliding_window_pattern"):
        del config[key]
    config.update(
        rope_local_base_freq=params["sliding_attention"]["rope_theta"], sliding_window_pattern=2
    )
    return weights, config


# name: (the model whose arrays it must reproduce, what makes it)
FORMS = {
    "bert-tf": ("bert-mlm", bert_tf),
    "bert-base-prefixed": ("bert-base", bert_prefixed),
    "roberta-old": ("roberta-mlm", roberta_old),
    "deberta-files": ("deberta-original", deberta_files),
    "gpt2-old": ("gpt2-lm", gpt2_old),
    "llama-rope3-old": ("llama-rope3", llama_old),
    "gemma3-old": ("gemma3", gemma3_old),
    "clip-whole": ("clip-image", lambda: fixture_vision.clip_whole(*load("clip-image"))),
}
for _name, (_base, _form) in fixture_decoders.FORMS.items():
    FORMS[_name] = (_base, lambda base=_base, form=_form: form(*load(base)))
SHARDED = "llama-gqa-sharded"
QUANTISED = "llama-quant"


def make_sharded():
    weights, config = load("llama-gqa")
    out = OUT / SHARDED
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    names = sorted(weights)
    files = {}
    for part, chosen in enumerate((names[: len(names) // 2], names[len(names) // 2 :])):
        file = f"model-{part + 1:05d}-of-00002.safetensors"
        save_file({k: weights[k] for k in chosen}, out / file, metadata={"format": "pt"})
        files.update(dict.fromkeys(chosen, file))
    size = sum(w.numel() * w.element_size() for w in weights.values())
    write_config(
        out / "model.safetensors.index.json",
        {"metadata": {"total_size": size}, "weight_map": files},
    )
    write_config(out / "config.json", config)


def quantised(path):
    """A GGUF file of many block types, and the model of the values that the blocks stand for."""
    config = tf.LlamaConfig(
        vocab_size=64,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        intermediate_size=256,
        max_position_embeddings=64,
        tie_word_embeddings=False,
        **SMALL_BASE,
    )
    model = tf.LlamaForCausalLM(config)
    seed = zlib.crc32(QUANTISED.encode())
    randomise(model, torch.float32, seed)
    weights = {k: v.detach().numpy() for k, v in model.state_dict().items()}
    meant = gguf_files.write_quantised(path, weights, config.to_dict())
    model.load_state_dict({k: torch.from_numpy(v) for k, v in meant.items()})
    return model


def make_quantised():
    model = quantised(OUT / f"{QUANTISED}.gguf")
    out = OUT / QUANTISED
    out.mkdir(parents=True, exist_ok=True)  # the gradients there are make_gradient_fixtures.py's
    seed = zlib.crc32(QUANTISED.encode())
    write_expected(model, documents(model.config, (3, 11), seed), out)


def make_buckets():
    """The usual buckets of T5: at powers of two a logarithm in float32 decides."""
    relative = torch.arange(-300, 301)
    bucket = tf.models.t5.modeling_t5.T5Attention._relative_position_bucket
    arrays = {"relative": relative}
    for name, both_ways in (("bidirectional", True), ("causal", False)):
        arrays[name] = bucket(relative, bidirectional=both_ways, num_buckets=32, max_distance=128)
    np.savez_compressed(OUT / "t5-buckets.npz", **{k: v.numpy() for k, v in arrays.items()})


def make_forms():
    """The same models as other programs and other years wrote them."""
    for name, (_, form) in FORMS.items():
        store(name, *form())
    make_sharded()
    same = {name: base for name, (base, _) in FORMS.items()}
    same[SHARDED] = "llama-gqa"
    same.update(gguf_files.write_all(OUT))
    make_quantised()
    make_buckets()
    same[f"{QUANTISED}.gguf"] = QUANTISED
    # make_graph_fixtures.py has lines of its own there.
    others = dict(line.split("\t") for line in (OUT / "same.tsv").read_text().splitlines())
    same = {**others, **same}
    lines = "".join(f"{name}\t{base}\n" for name, base in sorted(same.items()))
    (OUT / "same.tsv").write_text(lines)
    for file in OUT.rglob("*"):
        if file.is_file():
            file.chmod(0o644)
    print(f"{len(same)} other forms")


def main():
    parser = argparse.ArgumentParser(description="make the tiny reference models")
    parser.add_argument("names", nargs="*", choices=[[], *MODELS], default=[])
    args = parser.parse_args()
    torch.set_num_threads(1)
    tf.logging.set_verbosity_error()
    tf.logging.disable_progress_bar()
    for name in args.names or MODELS:
        make(name)
    make_forms()


if __name__ == "__main__":
    main()
