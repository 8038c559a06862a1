#!/usr/bin/env python3
"""Attention over a graph as large as Cora (2,708 nodes, 10,556 edges, 1,433 features), beside PyTorch
Geometric where it is installed.

    BUILD=DIR tools/bench/graph.py

The graph and the weights are drawn at random, with the sizes of the GAT paper: two layers, 8 heads of
8, 7 classes. Times are those inside the process, loading excluded; memory is the peak of the process.
"""
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
except ImportError:
    sys.exit("numpy is not installed, which draws the graph")

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.environ.get("BUILD", os.path.join(HERE, "..", "..", "build", "release"))
NODES, EDGES, FEATURES, WORDS = 2708, 10556, 1433, 18
CONFIG = dict(model_type="gat", in_channels=FEATURES, hidden_channels=64, num_layers=2,
              out_channels=7, heads=8, act="elu")
RUNS = 9


def draw_graph(rng):
    words = [sorted(rng.choice(FEATURES, WORDS, replace=False).tolist()) for _ in range(NODES)]
    one_way = rng.integers(0, NODES, (2, EDGES // 2))
    ends = np.concatenate([one_way, one_way[::-1]], axis=1)
    return dict(num_nodes=NODES, num_features=FEATURES, x_sparse_rows=words,
                edge_index=ends.tolist())


def draw_weights(rng):
    tensors = {}
    for layer, (width, out) in enumerate([(FEATURES, 8), (64, 7)]):
        shapes = dict(att_src=(1, 8, out), att_dst=(1, 8, out), bias=(64 if layer == 0 else 7,))
        shapes["lin.weight"] = (8 * out, width)
        for name, shape in shapes.items():
            tensors[f"convs.{layer}.{name}"] = rng.normal(0, 0.1, shape).astype("<f4")
    return tensors


def save(folder, tensors, graph):
    header, at = {}, 0
    for name, x in tensors.items():
        header[name] = dict(dtype="F32", shape=list(x.shape), data_offsets=[at, at + x.nbytes])
        at += x.nbytes
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for x in tensors.values():
            f.write(x.tobytes())
    for name, value in (("config.json", CONFIG), ("graph.json", graph)):
        with open(os.path.join(folder, name), "w") as f:
            json.dump(value, f)


def peer(tensors, graph):
    """The same model by PyTorch Geometric, attention weights of every head returned."""
    import torch
    from torch_geometric.nn.models import GAT

    config = {k: v for k, v in CONFIG.items() if k != "model_type"}
    model = GAT(**config).eval()
    model.load_state_dict({k: torch.from_numpy(v) for k, v in tensors.items()})
    x = torch.zeros(NODES, FEATURES)
    for node, words in enumerate(graph["x_sparse_rows"]):
        x[node, words] = 1
    edges = torch.tensor(graph["edge_index"])
    least = 1e9
    with torch.no_grad():
        for _ in range(RUNS):
            start = time.perf_counter()
            h = x
            for layer, conv in enumerate(model.convs):
                h, (_, weights) = conv(h, edges, return_attention_weights=True)
                h = model.act(h) if layer == 0 else h
            assert weights.shape[1] == CONFIG["heads"]
            least = min(least, time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"theirs   {least:.4f} s   the process {peak:.0f} MB (PyTorch Geometric, "
          f"{torch.get_num_threads()} threads: attention weights and classes)")


def main():
    rng = np.random.default_rng(1)
    graph, tensors = draw_graph(rng), draw_weights(rng)
    print(f"{NODES} nodes, {EDGES} edges, {FEATURES} features; a map of all pairs of nodes for "
          f"every head would be {8 * NODES * NODES * 4 / 2**20:.0f} MB a layer")
    sys.stdout.flush()
    with tempfile.TemporaryDirectory(prefix="mha-graph-") as folder:
        save(folder, tensors, graph)
        subprocess.run([os.path.join(BUILD, "tools/bench/bench_graph"), folder,
                        os.path.join(folder, "graph.json"), str(RUNS)], check=True)
    try:
        peer(tensors, graph)
    except ImportError:
        print("theirs   PyTorch Geometric is not installed, skipped")


main()
