#!/usr/bin/env python3
"""Makes gradient.N.npz beside the expected arrays of the tiny models: gradients by torch autograd.

    OMP_NUM_THREADS=1 venv/bin/python tools/make_gradient_fixtures.py [NAME ...]

Everything is float64, on the documents of expected.N.npz. Each file holds the terms of the loss
(`rows`, `targets`: cross-entropy of a token id or class at a row of the logits; the loss is their
mean), the value of every head's gate (`gate` [A, H], by attention step in running order: 1 in
document 0, between 0 and 1.5 with some zeros in document 1), the `loss` and its gradient by every
gate (`gates` [A, H]): what every head gives to its output projection is multiplied by it. Some models also hold, of document 1, the gradients of each
step's attention weights (`STACK.KIND.LAYER.d_pattern`) and scores, of the heads' gated outputs, of
the residual stream, and of every tensor of the file (`weights/NAME`), in float32.
"""

import argparse
import collections
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers as tf

import make_fixtures
import reference
import reference_encoders
from make_fixtures import MODELS, OUT, QUANTISED, STORED, shorten

# Models that also get gradients of sites and weights: one of each kind of block.
DETAILED = (
    "bert-class",
    "gpt2-lm",
    "gemma3",
    "t5-gated",
    "albert-mlm",
    "mpnet-class",
    "deberta-mlm",
    "deberta-class",
    "deberta-conv",
    "bart",
    "longformer-mlm",
    "big-bird-class",
)


def terms(model, arrays):
    """The usual loss of the model's head: rows of the logits and what they should say."""
    kind = type(model).__name__
    if "PreTraining" in kind or "QuestionAnswering" in kind or getattr(model.config, "num_labels", 2) == 1:
        return [], []  # no loss is defined
    ids = [int(i) for i in arrays["ids"]] if "ids" in arrays else []
    if "TokenClassification" in kind:
        return list(range(len(ids))), [i % model.config.num_labels for i in range(len(ids))]
    if "Classification" in kind:
        return [0], [len(ids) % model.config.num_labels]
    if "MaskedLM" in kind:
        return list(range(0, len(ids), 3)), ids[::3]
    if "target_ids" in arrays:
        target = [int(i) for i in arrays["target_ids"]]
        return list(range(len(target))), [*target[1:], 1]
    if "LM" in kind:
        return list(range(len(ids) - 1)), ids[1:]
    return [], []


def stacks_of(model):
    if model.config.is_encoder_decoder:
        return reference.STACKS
    return {"enc" if model.config.model_type in reference.ENCODERS else "dec": ""}


def attention_steps(model, inputs):
    """(label, heads) of every attention step in running order."""
    recorder = reference.RECORDER
    recorder.calls = []
    reference.reset(model)
    with torch.no_grad(), reference_encoders.own_attention(model, recorder):
        model(**inputs)
    names = {id(m): n for n, m in model.named_modules()}
    layers, steps = collections.Counter(), []
    for module, q, *_ in recorder.calls:
        name = names[id(module)]
        part = f"{reference.stack_of(name, stacks_of(model))}.{reference.kind_of(name)}"
        steps.append((f"{part}.{layers[part]}", q.shape[1]))
        layers[part] += 1
    return steps


def keep_streams(model):
    """Hooks that fill the residual stream behind every block, in running order by stack."""
    streams, hooks = collections.defaultdict(list), []
    for short, part in stacks_of(model).items():
        for name in reference.find_blocks(model, part):

            def keep(module, args, out, short=short):
                x = out[0] if isinstance(out, tuple) else out
                x.retain_grad()
                streams[short].append(x)

            hooks.append(model.get_submodule(name).register_forward_hook(keep))
        for module in reference_encoders.behind_first_block(model):

            def replace(module, args, out, short=short):
                out.retain_grad()
                streams[short][0] = out

            hooks.append(module.register_forward_hook(replace))
    return streams, hooks


def gradients(model, inputs, steps, rows, targets, gate):
    """Loss, gradient of the gates, gradients of the sites."""
    recorder = reference.RECORDER
    recorder.calls, recorder.gates = [], torch.tensor(gate, requires_grad=True)
    streams, hooks = keep_streams(model)
    with reference_encoders.own_attention(model, recorder):
        logits = reference.logits_of(model(**inputs))
    loss = torch.nn.functional.cross_entropy(
        logits.reshape(-1, logits.shape[-1])[rows], torch.tensor(targets)
    )
    loss.backward()
    for hook in hooks:
        hook.remove()
    sites = {}
    for (label, _), (*_, scores, pattern, z) in zip(steps, recorder.calls, strict=True):
        sites[f"{label}.d_pattern"] = pattern.grad[0]
        sites[f"{label}.d_scores"] = scores.grad[0]
        sites[f"{label}.d_z"] = z.grad[0]
    for short, blocks in streams.items():
        sites.update({f"{short}.{layer}.d_resid": x.grad[0] for layer, x in enumerate(blocks)})
    if model.config.model_type in reference.SPARSE:  # padded inside
        tokens = inputs["input_ids"].shape[1]
        for name, x in sites.items():
            x = x[:tokens] if name.endswith("resid") else x[:, :tokens]
            sites[name] = x if name.endswith(("resid", "d_z")) else x[..., :tokens]
    grad = recorder.gates.grad.numpy()
    recorder.gates = None
    return loss.item(), grad, sites


def load(name):
    """The model and its tensors by their names in the file."""
    if name == QUANTISED:
        with tempfile.TemporaryDirectory() as scratch:
            return make_fixtures.quantised(Path(scratch) / "model.gguf"), {}
    model = getattr(tf, MODELS[name][0]).from_pretrained(OUT / name, dtype=torch.float64)
    make_fixtures.check_loaded(model, OUT / name)
    # Tied tensors stand in the file once, under one of their names.
    stored = make_fixtures.load_file(OUT / name / "model.safetensors")
    named = model.named_parameters(remove_duplicate=False)
    return model, {key: p for key, p in named if key in stored}


def make_document(name, model, tensors, n):
    expected = OUT / name / f"expected.{n}.npz"
    if not expected.exists():
        return
    arrays = np.load(expected)
    inputs = {k: torch.from_numpy(arrays[v])[None] for k, v in STORED.items() if v in arrays}
    inputs = {k: v.double() if v.is_floating_point() else v for k, v in inputs.items()}
    rows, targets = terms(model, arrays)
    if not rows:
        return
    reference.prepare(model, len(arrays["ids"]) if "ids" in arrays else 0)
    with reference.double_precision(), reference.recorded(model):
        steps = attention_steps(model, inputs)
    shape = (len(steps), max(heads for _, heads in steps))
    rng = np.random.default_rng(n)
    gate = np.ones(shape) if n == 0 else np.round(rng.uniform(-0.3, 1.5, shape).clip(0), 3)
    gate = gate.astype(np.float32).astype(np.float64)
    model.zero_grad()
    with reference.double_precision(), reference.recorded(model):
        loss, gates, sites = gradients(model, inputs, steps, rows, targets, gate)
    out = {
        "rows": np.array(rows, np.int64),
        "targets": np.array(targets, np.int64),
        "gate": gate,
        "loss": shorten(np.array(loss)),
        "gates": shorten(gates),
    }
    if n == 1 and name in DETAILED:
        out.update({k: v.numpy().astype(np.float32) for k, v in sites.items()})
        for key, p in tensors.items():
            grad = p.grad if p.grad is not None else torch.zeros_like(p)
            out[f"weights/{key}"] = grad.numpy().astype(np.float32)
    path = OUT / name / f"gradient.{n}.npz"
    np.savez_compressed(path, **out)
    path.chmod(0o644)
    largest = np.abs(gates).max()
    print(f"{name:18s} {n}  loss {loss:.6f}  largest gate gradient {largest:.3g}")


def make(name):
    model, tensors = load(name)
    for n in (0, 1):
        make_document(name, model, tensors, n)


def main():
    parser = argparse.ArgumentParser(description="make gradients of the tiny reference models")
    parser.add_argument("names", nargs="*", choices=[[], *MODELS, QUANTISED], default=[])
    args = parser.parse_args()
    torch.set_num_threads(1)
    tf.logging.set_verbosity_error()
    tf.logging.disable_progress_bar()
    for name in args.names or [*MODELS, QUANTISED]:
        make(name)


if __name__ == "__main__":
    main()
