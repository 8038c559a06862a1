#!/usr/bin/env python3
"""Writes tests/data/torch: files of torch.save that the tests open.

    python tools/make_torch_fixtures.py      (torch, safetensors)

views.bin and views.stream.bin hold the same odd tensors in both forms; evil.bin names os.system.
gpt2-zip, gpt2-stream and gpt2-shards are tests/data/models/gpt2-lm in other files.
"""
import argparse
import json
import os
import shutil
from collections import OrderedDict

import torch
from safetensors.torch import load_file

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "data")
OUT = os.path.join(ROOT, "torch")
SOURCE = os.path.join(ROOT, "models", "gpt2-lm")


def views():
    plain = torch.arange(6.0).view(2, 3)
    rows = torch.arange(12.0).view(4, 3)
    weights = OrderedDict(plain=plain, tied=plain, turned=plain.t(), slice=rows[1:3],
                          column=rows[:, 1], half=torch.tensor([0.5, -2.0]).half(),
                          bf16=torch.tensor([0.5, -2.0]).bfloat16(),
                          double=torch.tensor([0.1], dtype=torch.float64),
                          long=torch.tensor([[-1, 1 << 40]]), bool=torch.tensor([True, False]),
                          parameter=torch.nn.Parameter(torch.tensor([1.5])),
                          scalar=torch.tensor(2.5), empty=torch.zeros(0, 3))
    weights._metadata = {"": {"version": 1}}
    return {"epoch": 3, "args": argparse.Namespace(lr=0.1), "state_dict": weights}


class Evil:
    def __reduce__(self):
        return os.system, ("touch executed",)


def model(name, save):
    out = os.path.join(OUT, name)
    os.makedirs(out)
    shutil.copy(os.path.join(SOURCE, "config.json"), out)
    save(out, load_file(os.path.join(SOURCE, "model.safetensors")))


def shards(out, weights):
    names = sorted(weights)
    files = ["pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"]
    halves = [names[: len(names) // 2], names[len(names) // 2:]]
    for file, half in zip(files, halves):
        torch.save({n: weights[n] for n in half}, os.path.join(out, file))
    index = {"metadata": {}, "weight_map": {n: f for f, half in zip(files, halves) for n in half}}
    with open(os.path.join(out, "pytorch_model.bin.index.json"), "w") as f:
        json.dump(index, f)


def main():
    shutil.rmtree(OUT, ignore_errors=True)
    os.makedirs(OUT)
    torch.save(views(), os.path.join(OUT, "views.bin"))
    torch.save(views(), os.path.join(OUT, "views.stream.bin"),
               _use_new_zipfile_serialization=False)
    torch.save({"weight": torch.ones(2), "x": Evil()}, os.path.join(OUT, "evil.bin"))
    model("gpt2-zip", lambda o, w: torch.save(w, os.path.join(o, "pytorch_model.bin")))
    model("gpt2-stream", lambda o, w: torch.save(w, os.path.join(o, "model.pt"),
                                                 _use_new_zipfile_serialization=False))
    model("gpt2-shards", shards)


main()
