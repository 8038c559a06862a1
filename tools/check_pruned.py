#!/usr/bin/env python3
"""check_pruned.py: opens pruned models in the installed version of Transformers.

usage: check_pruned.py MHA_INSPECT [MODEL...] >> tests/data/pruned.tsv

Prunes the tiny models of tests/data/models in a few ways and compares, where the program promises
that this version of Transformers opens the result, the logits (or last hidden states) of both.
Prints a line for each: model, how it was pruned, version, what was promised, what came of it, and
the largest difference over the largest value; first the model as it is. Run once with each version; fails when a promise is
broken. No test needs it: tests/data/pruned.tsv holds what it printed.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers

IDS, TARGET = "2,7,8,9,10,6", "0,5,6"
MAJOR = int(transformers.__version__.split(".")[0])
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "data", "models")


def run(program, *args):
    return subprocess.run([program, *args], capture_output=True, text=True)


def steps(program, model):
    """Attention steps as (name, heads, key/value heads)."""
    done = run(program, "info", model, "--format", "json")
    if done.returncode != 0:  # a file of another kind
        return []
    rows = json.loads(done.stdout)["rows"]
    return [(f"{r['stack']}.{r['kind']}.{r['layer']}", r["heads"], r["kv_heads"]) for r in rows]


def cases(program, model):
    """Name and options of each way to prune."""
    every = steps(program, model)
    if not every or every[0][0].startswith("graph"):  # graphs are not for Transformers
        return
    groups = [f"{name}.0-{heads // kv - 1}" for name, heads, kv in every]
    whole = f"{every[0][0]}.0-{every[0][1] - 1}"
    yield "whole", None  # the model as it is: versions of Transformers differ in that already
    yield "one", ["--heads", groups[0]]
    yield "equal", ["--heads", ",".join(groups)]
    yield "layer", ["--heads", whole]
    yield "mask", ["--heads", f"{every[0][0]}.0", "--mode", "mask"]


def ours(program, directory, decoder):
    target = ["--target-ids", TARGET] if decoder else []
    out = os.path.join(directory, "..", "ours.npz")
    sites = "logits"
    done = run(program, "maps", directory, "--ids", IDS, *target, "--sites", sites, "-o", out, "--force")
    if done.returncode != 0:
        done = run(program, "maps", directory, "--ids", IDS, *target, "--sites", "hidden", "-o", out,
                   "--force")
    assert done.returncode == 0, done.stderr
    arrays = np.load(out)
    names = [n for n in arrays.files if n == "logits"] or [n for n in arrays.files if "hidden" in n][-1:]
    return arrays[names[0]]


def open_model(directory):
    with open(os.path.join(directory, "config.json")) as f:
        config = json.load(f)
    name = (config.get("architectures") or [None])[0]
    if name is not None:
        return getattr(transformers, name).from_pretrained(directory, torch_dtype=torch.float32)
    auto = transformers.AutoModel
    if config["model_type"] not in ("bert",):
        auto = transformers.AutoModelForCausalLM
    return auto.from_pretrained(directory, torch_dtype=torch.float32)


def theirs(directory):
    model = open_model(directory).eval()
    ids = torch.tensor([[int(i) for i in IDS.split(",")]])
    arguments = {"input_ids": ids}
    if model.config.is_encoder_decoder:
        arguments["decoder_input_ids"] = torch.tensor([[int(i) for i in TARGET.split(",")]])
    with torch.no_grad():
        out = model(**arguments)
    if "start_logits" in out:
        return torch.stack([out.start_logits, out.end_logits], -1)[0].numpy()
    value = out.logits if "logits" in out else out.last_hidden_state
    return value[0].float().numpy()


def compare(program, directory):
    with open(os.path.join(directory, "config.json")) as f:
        config = json.load(f)
    found = theirs(directory)
    wanted = ours(program, directory, bool(config.get("is_encoder_decoder") or "num_decoder_layers" in config))
    found = found.reshape(wanted.shape)
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def check(program, model, name, options, scratch):
    directory = os.path.join(scratch, "pruned")
    if options is None:
        if model.endswith(".gguf"):
            return "", "", ""
        shutil.copytree(os.path.join(ROOT, model), directory, dirs_exist_ok=True)
        return judge(program, directory, "")
    done = run(program, "prune", os.path.join(ROOT, model), *options, "-o", directory, "--force")
    if done.returncode != 0:
        return "refused", "", ""
    line = next(l for l in done.stdout.splitlines() if l.startswith("opens in"))
    promised = f"Transformers {MAJOR}" in line or f"and {MAJOR}" in line
    return judge(program, directory, "yes" if promised else "no")


def judge(program, directory, promised):
    try:
        difference = compare(program, directory)
        result = "same" if difference < 1e-4 else "other numbers"
        return promised, result, f"{difference:.1e}"
    except Exception as e:  # whatever Transformers says: it does not open it
        return promised, type(e).__name__, ""


def main():
    program, models = sys.argv[1], sys.argv[2:]
    if not models:
        # these two want inputs of their own: an end token, separators
        models = sorted(m for m in os.listdir(ROOT) if not m.endswith((".tsv", ".npz"))
                        and m not in ("bart-class", "longformer-span"))
    broken = 0
    transformers.logging.set_verbosity_error()
    for model in models:
        with tempfile.TemporaryDirectory() as scratch:
            baseline = "same"
            for name, options in cases(program, os.path.join(ROOT, model)):
                promised, result, difference = check(program, model, name, options, scratch)
                if name == "whole":
                    baseline = result or "same"
                broken += promised == "yes" and result != "same" and baseline == "same"
                print(model, name, transformers.__version__, promised, result, difference, sep="\t",
                      flush=True)
    if broken:
        sys.exit(f"{broken} promises are broken")


if __name__ == "__main__":
    main()
