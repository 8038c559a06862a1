"""Writes fixture models as GGUF files, with what the usual converter does to their weights.

Llama's q and k rows are interleaved within each head, GPT-2's matrices are transposed, one is
added to Gemma's norm gains, BERT loses its pooler. `write_all` writes the F32 files;
`write_quantised` writes a model whose matrices have many block types and returns the values that
those blocks stand for.
"""

import json

import gguf
import numpy as np
from gguf import GGMLQuantizationType as T
from safetensors.numpy import load_file

LLAMA_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
GEMMA3_NAMES = {
    **LLAMA_NAMES,
    "post_attention_layernorm": "post_attention_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}
GPT2_NAMES = {
    "wte": "token_embd",
    "wpe": "position_embd",
    "ln_f": "output_norm",
    "ln_1": "attn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "ln_2": "ffn_norm",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}
PHI2_NAMES = {
    **LLAMA_NAMES,
    "model.final_layernorm": "output_norm",
    "self_attn.dense": "attn_output",
    "mlp.fc1": "ffn_up",
    "mlp.fc2": "ffn_down",
}
PHI3_NAMES = {**LLAMA_NAMES, "self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up"}
NEOX_NAMES = {
    "embed_in": "token_embd",
    "embed_out": "output",
    "final_layer_norm": "output_norm",
    "word_embeddings": "token_embd",
    "word_embeddings_layernorm": "token_embd_norm",
    "ln_f": "output_norm",
    "input_layernorm": "attn_norm",
    "attention.query_key_value": "attn_qkv",
    "attention.dense": "attn_output",
    "self_attention.query_key_value": "attn_qkv",
    "self_attention.dense": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.dense_h_to_4h": "ffn_up",
    "mlp.dense_4h_to_h": "ffn_down",
}
BERT_NAMES = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}


def read(folder):
    return load_file(folder / "model.safetensors"), json.loads((folder / "config.json").read_text())


def rename(name, table, layers):
    """model.layers.3.mlp.up_proj.weight -> blk.3.ffn_up.weight"""
    stem, _, end = name.rpartition(".")
    if stem.startswith(layers):
        layer, _, rest = stem.removeprefix(layers).partition(".")
        return f"blk.{layer}.{table[rest]}.{end}"
    return f"{table[stem]}.{end}"


def interleave(w, heads):
    """Rows of each head from two halves to pairs, the order that llama files have."""
    shape = w.shape
    return np.ascontiguousarray(
        w.reshape(heads, 2, shape[0] // heads // 2, *shape[1:]).swapaxes(1, 2).reshape(shape)
    )


def separate(w, heads):
    """The way back."""
    shape = w.shape
    return np.ascontiguousarray(
        w.reshape(heads, shape[0] // heads // 2, 2, *shape[1:]).swapaxes(1, 2).reshape(shape)
    )


def write(path, arch, keys, tensors):
    """tensors: name -> float32 array, or (bytes as uint8 rows, type)."""
    writer = gguf.GGUFWriter(path, arch)
    writer.add_name(path.stem)
    for key, value in keys.items():
        name = f"{arch}.{key}"
        if isinstance(value, bool):
            writer.add_bool(name, value)
        elif isinstance(value, int):
            writer.add_uint32(name, value)
        elif isinstance(value, float):
            writer.add_float32(name, value)
        elif isinstance(value, list):
            writer.add_array(name, value)
        else:
            writer.add_string(name, value)
    for name, value in tensors.items():
        if isinstance(value, tuple):
            writer.add_tensor(name, value[0], raw_dtype=value[1])
        else:
            writer.add_tensor(name, np.ascontiguousarray(value))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def llama_keys(config):
    width = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    return {
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "block_count": config["num_hidden_layers"],
        "feed_forward_length": config["intermediate_size"],
        "vocab_size": config["vocab_size"],
        "attention.head_count": config["num_attention_heads"],
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.key_length": width,
        "attention.value_length": width,
        "attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
        "rope.dimension_count": width,
    }


def llama_like(folder, path, arch):
    weights, config = read(folder)
    keys = llama_keys(config)
    keys["rope.freq_base"] = float(config["rope_parameters"]["rope_theta"])
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    tensors = {}
    for name, value in weights.items():
        new = rename(name, LLAMA_NAMES, "model.layers.")
        kind = new.split(".")[-2]
        tensors[new] = (
            interleave(value, heads[kind]) if arch == "llama" and kind in heads else value
        )
    if config["rope_parameters"]["rope_type"] == "llama3":
        tensors["rope_freqs.weight"] = llama3_divisors(
            config["rope_parameters"], keys["rope.dimension_count"]
        )
    write(path, arch, keys, tensors)


def llama3_divisors(params, width):
    """What the llama3 stretching divides each frequency by."""
    wave = 2 * np.pi * params["rope_theta"] ** (np.arange(0, width, 2, dtype=np.float64) / width)
    length, low, high = (
        params["original_max_position_embeddings"],
        params["low_freq_factor"],
        params["high_freq_factor"],
    )
    blend = (length / wave - low) / (high - low)
    divisor = 1 / ((1 - blend) / params["factor"] + blend)
    divisor = np.where(
        wave < length / high, 1.0, np.where(wave > length / low, params["factor"], divisor)
    )
    return divisor.astype(np.float32)


def gemma3(folder, path):
    weights, config = read(folder)
    keys = llama_keys(config)
    rope = config["rope_parameters"]
    keys.update(
        {
            "rope.freq_base": rope["full_attention"]["rope_theta"],
            "rope.freq_base_swa": rope["sliding_attention"]["rope_theta"],
            "rope.scaling.type": "linear",
            "rope.scaling.factor": rope["full_attention"]["factor"],
            "attention.sliding_window": config["sliding_window"],
            "attention.sliding_window_pattern": [
                t.startswith("sliding") for t in config["layer_types"]
            ],
            "attention.scale": config["query_pre_attn_scalar"] ** -0.5,
        }
    )
    tensors = {}
    for name, value in weights.items():
        new = rename(name, GEMMA3_NAMES, "model.layers.")
        tensors[new] = value + np.float32(1) if "norm" in new else value
    write(path, "gemma3", keys, tensors)


def gemma(folder, path, arch):
    """Gemma 1 and 2; neither the scale nor the pattern of windows is in the file."""
    weights, config = read(folder)
    keys = llama_keys(config)
    keys["rope.freq_base"] = config["rope_parameters"]["rope_theta"]
    if arch == "gemma2":
        keys["attention.sliding_window"] = config["sliding_window"]
        for key in ("attn_logit_softcapping", "final_logit_softcapping"):
            keys[key] = float(config[key])
    tensors = {}
    for name, value in weights.items():
        new = rename(name, LLAMA_NAMES if arch == "gemma" else GEMMA3_NAMES, "model.layers.")
        tensors[new] = value + np.float32(1) if "norm" in new else value
    write(path, arch, keys, tensors)


def partly_turning(config):
    """Keys of models in which only the first dims of a head turn."""
    rope = config["rope_parameters"]
    width = config["hidden_size"] // config["num_attention_heads"]
    return {
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "block_count": config["num_hidden_layers"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": config["num_attention_heads"],
        "rope.dimension_count": int(width * rope.get("partial_rotary_factor", 1.0)),
        "rope.freq_base": rope["rope_theta"],
    }


def phi2(folder, path):
    weights, config = read(folder)
    keys = {**partly_turning(config), "attention.layer_norm_epsilon": config["layer_norm_eps"]}
    write(
        path, "phi2", keys, {rename(k, PHI2_NAMES, "model.layers."): v for k, v in weights.items()}
    )


def phi3(folder, path):
    weights, config = read(folder)
    rope = config["rope_parameters"]
    keys = {
        **partly_turning(config),
        "attention.head_count_kv": config["num_key_value_heads"],
        "attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
    }
    if config.get("sliding_window"):
        keys["attention.sliding_window"] = config["sliding_window"]
    tensors = {rename(k, PHI3_NAMES, "model.layers."): v for k, v in weights.items()}
    if rope["rope_type"] == "longrope":
        original = config["original_max_position_embeddings"]
        stretch = config["max_position_embeddings"] / original
        keys["rope.scaling.original_context_length"] = original
        keys["rope.scaling.attn_factor"] = float(np.sqrt(1 + np.log(stretch) / np.log(original)))
        for size in ("long", "short"):
            divisors = np.array(rope[f"{size}_factor"], np.float32)
            tensors[f"rope_factors_{size}.weight"] = divisors
    write(path, "phi3", keys, tensors)


def thirds(value, heads):
    """q, k and v of each head in turn become all q, all k, all v."""
    split = value.reshape(heads, 3, -1, *value.shape[1:])
    return np.ascontiguousarray(split.swapaxes(0, 1).reshape(value.shape))


def neox(folder, path):
    weights, config = read(folder)
    keys = {
        **partly_turning(config),
        "attention.layer_norm_epsilon": config["layer_norm_eps"],
        "use_parallel_residual": config["use_parallel_residual"],
    }
    tensors = {}
    for name, value in weights.items():
        new = rename(name.removeprefix("gpt_neox."), NEOX_NAMES, "layers.")
        heads = config["num_attention_heads"]
        tensors[new] = thirds(value, heads) if "attn_qkv" in new else value
    write(path, "gptneox", keys, tensors)


def bloom(folder, path):
    weights, config = read(folder)
    keys = {
        "context_length": 64,
        "embedding_length": config["hidden_size"],
        "block_count": config["n_layer"],
        "feed_forward_length": 4 * config["hidden_size"],
        "attention.head_count": config["n_head"],
        "attention.layer_norm_epsilon": config["layer_norm_epsilon"],
    }
    tensors = {}
    for name, value in weights.items():
        new = rename(name.removeprefix("transformer."), NEOX_NAMES, "h.")
        tensors[new] = thirds(value, config["n_head"]) if "attn_qkv" in new else value
    write(path, "bloom", keys, tensors)


def gpt2(folder, path):
    weights, config = read(folder)
    keys = {
        "context_length": config["n_positions"],
        "embedding_length": config["n_embd"],
        "block_count": config["n_layer"],
        "feed_forward_length": config["n_inner"],
        "attention.head_count": config["n_head"],
        "attention.layer_norm_epsilon": float(config["layer_norm_epsilon"]),
    }
    tensors = {}
    for name, value in weights.items():
        new = rename(name.removeprefix("transformer."), GPT2_NAMES, "h.")
        tensors[new] = value.T if ".c_" in name and value.ndim == 2 else value
    write(path, "gpt2", keys, tensors)


def bert(folder, path):
    weights, config = read(folder)
    keys = {
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "block_count": config["num_hidden_layers"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": config["num_attention_heads"],
        "attention.layer_norm_epsilon": float(config["layer_norm_eps"]),
        "attention.causal": False,
    }
    tensors = {
        rename(name, BERT_NAMES, "encoder.layer."): value
        for name, value in weights.items()
        if not name.startswith("pooler")
    }
    write(path, "bert", keys, tensors)


def write_all(out):
    """The F32 files; returns which model's arrays each must reproduce."""
    llama_like(out / "llama-gqa", out / "llama-gqa.gguf", "llama")
    llama_like(out / "llama-rope3", out / "llama-rope3.gguf", "llama")
    llama_like(out / "qwen2", out / "qwen2.gguf", "qwen2")
    llama_like(out / "qwen3", out / "qwen3.gguf", "qwen3")
    gemma3(out / "gemma3", out / "gemma3.gguf")
    gpt2(out / "gpt2-lm", out / "gpt2-lm.gguf")
    bert(out / "bert-base", out / "bert-base.gguf")
    gemma(out / "gemma", out / "gemma.gguf", "gemma")
    gemma(out / "gemma2", out / "gemma2.gguf", "gemma2")
    phi2(out / "phi", out / "phi.gguf")
    phi3(out / "phi3", out / "phi3.gguf")
    phi3(out / "phi3-long", out / "phi3-long.gguf")
    neox(out / "neox", out / "neox.gguf")
    neox(out / "neox-serial", out / "neox-serial.gguf")
    bloom(out / "bloom", out / "bloom.gguf")
    llamas = ("llama-gqa", "llama-rope3", "qwen2", "qwen3")
    gemmas = ("gemma", "gemma2", "gemma3")
    others = ("gpt2-lm", "bert-base", "phi", "phi3", "phi3-long", "neox", "neox-serial", "bloom")
    return {f"{name}.gguf": name for name in (*llamas, *gemmas, *others)}


# Types that the package reads but does not write, and where the f16 scales stand in their blocks.
SCALES = {T.Q4_K: [0, 2], T.Q6_K: [208], T.IQ4_NL: [0]}


def random_blocks(kind, rows, blocks, scales, rng):
    """[rows, bytes] blocks of random bits; scales [number of scales, rows * blocks]."""
    size = gguf.GGML_QUANT_SIZES[kind][1]
    raw = rng.integers(0, 256, (rows * blocks, size), dtype=np.uint8)
    for at, values in zip(SCALES[kind], scales):
        raw[:, at : at + 2] = np.asarray(values, dtype="<f2").reshape(-1, 1).view(np.uint8)
    return raw.reshape(rows, blocks * size)


# Types of a model that mixes them, and of its second layer where they differ.
MIXED = {
    "token_embd": T.Q8_0,
    "output": T.IQ4_NL,
    "attn_q": T.Q4_0,
    "attn_k": T.Q5_0,
    "attn_v": T.F16,
    "attn_output": T.Q4_1,
    "ffn_gate": T.Q5_1,
    "ffn_up": T.BF16,
    "ffn_down": T.Q4_K,
}
MIXED_LATER = {"ffn_down": T.Q6_K, "attn_v": T.Q8_0, "attn_q": T.F32}
# The spread of d for random blocks whose values have a standard deviation of about 1.
UNIT = {T.Q4_K: (1 / 240, 7.5 / 240), T.Q6_K: (1 / 1350,), T.IQ4_NL: (1 / 70,)}


def quantised(weight, kind, rng):
    """(stored form, the float32 values that it stands for) of a matrix [out, in]."""
    if kind == T.F32:
        return weight, weight
    if kind in UNIT:
        rows, width = weight.shape
        blocks = width // gguf.GGML_QUANT_SIZES[kind][0]
        scales = [np.full(rows * blocks, u * weight.std()) for u in UNIT[kind]]
        raw = random_blocks(kind, rows, blocks, scales, rng)
    else:
        raw = gguf.quants.quantize(weight, kind)
    if kind == T.F16:
        return raw, raw.astype(np.float32)
    return (raw, kind), gguf.quants.dequantize(raw, kind).astype(np.float32)


def write_quantised(path, weights, config):
    """Writes a llama file of mixed types; returns the weights by their names in safetensors."""
    rng = np.random.default_rng(13)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    keys = llama_keys(config)
    keys["rope.freq_base"] = float(config["rope_parameters"]["rope_theta"])
    tensors, meant = {}, {}
    for name, value in weights.items():
        new = rename(name, LLAMA_NAMES, "model.layers.")
        kind = new.split(".")[-2]
        if value.ndim == 1:
            tensors[new] = meant[name] = value
            continue
        later = MIXED_LATER if new.startswith("blk.1.") else {}
        tensors[new], values = quantised(value, later.get(kind, MIXED[kind]), rng)
        meant[name] = separate(values, heads[kind]) if kind in heads else values
    write(path, "llama", keys, tensors)
    return meant
