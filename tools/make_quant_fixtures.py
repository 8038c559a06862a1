#!/usr/bin/env python3
"""Writes tests/data/quant: random blocks of every block type with the values they stand for.

NAME.bin holds the blocks, NAME.f32 the values as little-endian floats, as the `gguf` package decodes
them. Usage: tools/make_quant_fixtures.py   (needs gguf and numpy; run from anywhere)
"""
import pathlib

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import quants

# Where the f16 scales of a block are.
SCALES = {
    "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "IQ4_NL": [0],
    "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
}
ELEMENTS = 512


def main():
    out = pathlib.Path(__file__).resolve().parent.parent / "tests" / "data" / "quant"
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(7)
    for name, offsets in SCALES.items():
        block, size = gguf.GGML_QUANT_SIZES[Type[name]]
        count = ELEMENTS // block
        raw = rng.integers(0, 256, (count, size), dtype=np.uint8)
        for offset in offsets:
            scale = (rng.standard_normal(count) * 0.01).astype(np.float16)
            if count > 2:
                scale[0] = np.float16(3e-6)  # a denormal half
            raw[:, offset:offset + 2] = scale.view(np.uint8).reshape(count, 2)
        values = quants.dequantize(raw.reshape(1, -1), Type[name]).astype("<f4")
        raw.tofile(out / f"{name}.bin")
        values.tofile(out / f"{name}.f32")


if __name__ == "__main__":
    main()
