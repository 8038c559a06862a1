#!/usr/bin/env python3
"""Writes tests/data/own: a model that is nobody's family, and what PyTorch makes of it in float64.

    python tools/make_own_fixture.py      (torch, numpy)

own.family, which describes it, is written by hand.
"""
import json
from pathlib import Path

import numpy as np
import torch
from torch import nn

OUT = Path(__file__).resolve().parent.parent / "tests/data/own"
CONFIG = dict(model_type="own", width=18, heads=3, layers=2, hidden=25, positions=16, vocab=37)


class Model(nn.Module):
    def __init__(self, width, heads, layers, hidden, positions, vocab, **_):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.places = nn.Embedding(positions, width)
        layer = nn.TransformerEncoderLayer(width, heads, hidden, dropout=0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.read = nn.Linear(width, vocab)


def run(model, ids):
    """Layer by layer, as nn.TransformerEncoderLayer does it, with the weights of each head."""
    n, arrays = len(ids), {}
    mask = torch.full((n, n), float("-inf"), dtype=torch.float64).triu(1)
    x = (model.embed(ids) + model.places(torch.arange(n)))[None]
    whole = model.encoder(x, mask=mask)
    arrays["dec.embed"] = x[0]
    for i, layer in enumerate(model.encoder.layers):
        out, weights = layer.self_attn(x, x, x, attn_mask=mask, average_attn_weights=False)
        arrays[f"dec.self.{i}.pattern"] = weights[0]
        x = layer.norm1(x + out)
        x = layer.norm2(x + layer.linear2(torch.relu(layer.linear1(x))))
        arrays[f"dec.{i}.resid"] = x[0]
    assert torch.allclose(x, whole, atol=1e-12)
    arrays["dec.hidden"] = x[0]
    arrays["logits"] = model.read(x[0])
    return arrays


def main():
    torch.manual_seed(4)
    model = Model(**CONFIG)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.normal_(0, 0.5)
            if "norm" in name and name.endswith("weight"):
                p.add_(1)
    OUT.mkdir(exist_ok=True)
    (OUT / "config.json").write_text(json.dumps(CONFIG, indent=1) + "\n")
    torch.save(model.state_dict(), OUT / "model.pt")
    model.double().train()  # the fast path of eval() gives no weights
    for d, n in enumerate((5, 13)):
        ids = torch.randint(0, CONFIG["vocab"], (n,))
        with torch.no_grad():
            arrays = {k: v.numpy() for k, v in run(model, ids).items()}
        np.savez_compressed(OUT / f"expected.{d}.npz", ids=ids.numpy(), **arrays)


main()
