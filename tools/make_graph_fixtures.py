#!/usr/bin/env python3
"""Makes the tiny models of graphs under tests/data/models/ and what PyTorch Geometric makes of them.

    python3 -m venv venv && venv/bin/pip install torch==2.13.0 torch_geometric==2.8.1 \
        safetensors==0.8.0 numpy
    OMP_NUM_THREADS=1 venv/bin/python tools/make_graph_fixtures.py

Models are torch_geometric.nn.models.GAT with its own tensor names, stored in float32 and run in
float64. Each directory holds config.json, the weights, and of three graphs expected.N.npz (arrays
named as `maps` names them, and the graph itself: `graph.x`, `graph.edges`) and, where the model has
a read-out, gradient.N.npz by autograd: the terms of the loss, the gates, the loss, its gradient by
every gate, by every site (`graph.self.0.d_pattern`, ...) and by every tensor (`weights/NAME`).
Graph 0 has a node without edges, loops and edges that are there twice, graph 1 is larger, for two
models larger than one block of rows, graph 2 is one node alone.
"""

import json
import shutil
import zlib
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from torch_geometric.nn.conv import gat_conv, gatv2_conv
from torch_geometric.nn.models import GAT

OUT = Path(__file__).resolve().parent.parent / "tests/data/models"

SMALL = dict(in_channels=5, hidden_channels=12, num_layers=2, out_channels=3, heads=3)
MODELS = {
    "gat": dict(SMALL, act="elu"),
    "gat-v2": dict(SMALL, v2=True, act="elu"),
    "gat-mean": dict(SMALL, concat=False, hidden_channels=7, negative_slope=0.05),
    "gat-v2-mean": dict(SMALL, v2=True, concat=False, hidden_channels=7, bias=False, heads=2),
    "gat-open": dict(SMALL, add_self_loops=False, num_layers=3, act="tanh"),
    "gat-v2-open": dict(SMALL, v2=True, add_self_loops=False, num_layers=3, act=None),
    "gat-one": dict(SMALL, num_layers=1, heads=2, negative_slope=0.3),
    "gat-states": dict(SMALL, out_channels=None, act="gelu", heads=1),
}
LARGE = ("gat", "gat-v2")
# The same tensors under the names that releases before 2.5 and before 2 gave them.
OLD = {
    "gat-old": ("gat", {"lin": ("lin_src", "lin_dst")}),
    "gat-oldest": (
        "gat",
        {"lin": ("lin_l", "lin_r"), "att_src": ("att_l",), "att_dst": ("att_r",)},
    ),
}


def shorten(a):
    """Ten digits are enough and compress better."""
    return np.array([float(f"{v:.10g}") for v in np.ravel(a)]).reshape(np.shape(a))


def graph(n, large, features, seed):
    rng = np.random.default_rng(seed)
    nodes = (8, 67 if large else 21, 1)[n]
    edges = rng.integers(0, max(nodes - 1, 1), (2, (19, 3 * nodes, 0)[n]))
    if n == 0:  # loops, and two edges once more; nothing ends in node 4, and 7 stands alone
        edges = np.concatenate([edges, [[2, 2, 5], [2, 2, 5]], edges[:, [3, 8]]], axis=1)
        edges = edges[:, edges[1] != 4]
    x = rng.normal(0, 1, (nodes, features)).astype(np.float32)
    return torch.from_numpy(x).double(), torch.from_numpy(edges)


class Recorder:
    """Scores and patterns as the layers' own softmax sees them."""

    def __init__(self):
        self.calls = []
        for module in (gat_conv, gatv2_conv):
            module.softmax = self.wrap(module.softmax)

    def wrap(self, original):
        def softmax(src, *args, **kwargs):
            out = original(src, *args, **kwargs)
            if src.requires_grad:
                src.retain_grad()
                out.retain_grad()
            self.calls.append((src, out))
            return out

        return softmax


RECORDER = Recorder()


def run(model, config, x, edges, gates=None):
    """Logits or hidden states, and what happens in each layer."""
    layers, hooks = [], []
    heads = config["heads"]

    def before(conv, args):
        layers.append({"conv": conv, "in": args[0]})

    def gate(conv, original, index):
        def propagate(*args, **kwargs):
            z = original(*args, **kwargs)
            layers[index]["edges"] = args[0]
            if gates is not None:
                z = z * gates[index, :heads, None]
            layers[index]["z"] = z
            return z

        return propagate

    for index, conv in enumerate(model.convs):
        hooks.append(conv.register_forward_pre_hook(before))
        hooks.append(
            conv.register_forward_hook(lambda m, a, out, i=index: layers[i].update(out=out))
        )
        if "propagate" not in conv.__dict__:
            conv.plain = conv.propagate
        conv.propagate = gate(conv, conv.plain, index)
    RECORDER.calls = []
    out = model(x, edges)
    for hook in hooks:
        hook.remove()
    for index, layer in enumerate(layers):
        none = torch.zeros(0, heads, dtype=x.dtype)  # without edges there may be no softmax
        layer["scores"], layer["pattern"] = RECORDER.calls[index] if RECORDER.calls else (none, none)
        last = index == len(layers) - 1
        layer["resid"] = out if last else layers[index + 1]["in"]
    return out, layers


def projections(conv, config, x):
    """Queries are the targets', keys and values the sources'."""
    if config.get("v2"):
        return conv.lin_r(x), conv.lin_l(x), conv.lin_l(x)
    return (conv.lin(x),) * 3


def by_head(t, heads):
    return t.unflatten(-1, (heads, -1)).transpose(0, 1)


def expected(model, config, x, edges):
    heads, arrays = config["heads"], {}
    with torch.no_grad():
        out, layers = run(model, config, x, edges)
        for index, layer in enumerate(layers):
            name = f"graph.self.{index}"
            conv = layer["conv"]
            for site, value in zip("qkv", projections(conv, config, layer["in"]), strict=True):
                arrays[f"{name}.{site}"] = by_head(value, heads)
            z = layer["z"].transpose(0, 1)
            n, width = z.shape[1:]
            if conv.concat:
                parts = torch.zeros(heads, n, heads * width, dtype=z.dtype)
                for h in range(heads):
                    parts[h, :, h * width : (h + 1) * width] = z[h]
            else:
                parts = z / heads
            bias = conv.bias if conv.bias is not None else 0
            assert torch.allclose(parts.sum(0) + bias, layer["out"], atol=1e-12)
            arrays[f"{name}.z"] = z
            arrays[f"{name}.head_out"] = parts
            arrays[f"{name}.pattern"] = layer["pattern"].T
            arrays[f"{name}.scores"] = layer["scores"].T
            arrays[f"{name}.edge_index"] = layer["edges"]
            arrays[f"graph.{index}.resid"] = layer["resid"]
        arrays["graph.embed"] = x
        arrays["graph.hidden"] = out
        if config["out_channels"] is not None:
            arrays["logits"] = out
    return {k: shorten(v.numpy()) for k, v in arrays.items()}


def gradients(model, config, x, edges, n):
    rng = np.random.default_rng(n)
    classes, count = config["out_channels"], len(model.convs)
    rows = np.arange(0, x.shape[0], 2)
    targets = rng.integers(0, classes, len(rows))
    shape = (count, config["heads"])
    gate = np.ones(shape) if n == 0 else np.round(rng.uniform(-0.3, 1.5, shape).clip(0), 3)
    gate = gate.astype(np.float32).astype(np.float64)
    gates = torch.tensor(gate, requires_grad=True)
    model.zero_grad()
    x = x.clone().requires_grad_()
    out, layers = run(model, config, x, edges, gates)
    for layer in layers:
        for site in ("z", "out", "resid"):
            layer[site].retain_grad()
    loss = torch.nn.functional.cross_entropy(out[rows], torch.from_numpy(targets))
    loss.backward()
    arrays = dict(rows=rows, targets=targets, gate=gate, loss=shorten(np.array(loss.item())))
    arrays["gates"] = shorten(gates.grad.numpy())
    sites = {"graph.d_embed": x.grad, "graph.d_hidden": layers[-1]["resid"].grad}
    for index, layer in enumerate(layers):
        name = f"graph.self.{index}"
        if layer["pattern"].numel():
            sites[f"{name}.d_pattern"] = layer["pattern"].grad.T
            sites[f"{name}.d_scores"] = layer["scores"].grad.T
        sites[f"{name}.d_z"] = layer["z"].grad.transpose(0, 1)
        sites[f"{name}.d_attn_out"] = layer["out"].grad
        sites[f"graph.{index}.d_resid"] = layer["resid"].grad
    for name, p in model.named_parameters():
        grad = p.grad if p.grad is not None else torch.zeros_like(p)
        sites[f"weights/{name}"] = grad
    arrays.update({k: v.numpy().astype(np.float32) for k, v in sites.items()})
    return arrays


def save(path, arrays):
    np.savez_compressed(path, **arrays)
    path.chmod(0o644)


def draw(name, config):
    """A model of which every tensor matters. Where all sums of scores have one sign, one end of an
    edge has no say."""
    x, edges = graph(1, name in LARGE, config["in_channels"], zlib.crc32(f"{name} 1".encode()))
    for attempt in range(100):
        torch.manual_seed(zlib.crc32(f"{name}, draw {attempt}".encode()))
        model = GAT(**config).float().eval()
        with torch.no_grad():
            for p in model.parameters():  # the layers' own start has biases of 0
                p.copy_(torch.randn(p.shape) * (0.4 if p.dim() == 1 else 1.3 * p.shape[-1] ** -0.5))
        if config["out_channels"] is None:
            return model
        arrays = gradients(model.double(), config, x, edges, 1)
        largest = [abs(v).max() for k, v in arrays.items() if k.startswith("weights/")]
        if min(largest) > 1e-3 * max(largest):
            return model.float()
    raise SystemExit(f"{name}: no draw was good")


def make(name, config):
    out = OUT / name
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    model = draw(name, config)
    save_file(model.state_dict(), out / "model.safetensors", metadata={"format": "pt"})
    text = json.dumps(dict(model_type="gat", **config), indent=2)
    (out / "config.json").write_text(text + "\n")
    model = model.double()
    for n in range(3):
        x, edges = graph(n, name in LARGE, config["in_channels"], zlib.crc32(f"{name} {n}".encode()))
        arrays = expected(model, config, x, edges)
        arrays["ids"] = np.arange(x.shape[0])
        arrays["graph.x"] = x.numpy()
        arrays["graph.edges"] = edges.numpy()
        save(out / f"expected.{n}.npz", arrays)
        if config["out_channels"] is not None:
            save(out / f"gradient.{n}.npz", gradients(model, config, x, edges, n))
    for file in out.iterdir():
        file.chmod(0o644)
    print(f"{name:14s} {sum(f.stat().st_size for f in out.iterdir()) / 1024:6.0f} KB")
    return model.float().state_dict()


def make_old(name, base, names, state):
    out = OUT / name
    out.mkdir(parents=True, exist_ok=True)
    renamed = {}
    for key, value in state.items():
        conv, index, tensor, *rest = key.split(".")
        for old in names.get(tensor, (tensor,)):
            renamed[".".join([conv, index, old, *rest])] = value.clone()
    save_file(renamed, out / "model.safetensors", metadata={"format": "pt"})
    shutil.copyfile(OUT / base / "config.json", out / "config.json")
    for file in out.iterdir():
        file.chmod(0o644)
    same = OUT / "same.tsv"
    lines = {line for line in same.read_text().splitlines() if not line.startswith(f"{name}\t")}
    same.write_text("\n".join(sorted(lines | {f"{name}\t{base}"})) + "\n")


def main():
    torch.set_num_threads(1)
    states = {name: make(name, config) for name, config in MODELS.items()}
    for name, (base, names) in OLD.items():
        make_old(name, base, names, states[base])


if __name__ == "__main__":
    main()
