#!/usr/bin/env python3
"""Makes tests/data/pictures: small pictures in several formats and what the image processors of
Transformers (on Pillow) make of them.

    OMP_NUM_THREADS=1 venv/bin/python tools/make_picture_fixtures.py

NAME.png and NAME.jpg are the pictures; NAME.SUFFIX.npz holds `rgb` [H, W, 3], the decoded pixels, and
one array [C, H, W] for each line of cases.jsonl, which are preprocessor configs with a name.
"""

import json
from pathlib import Path

import numpy as np
from PIL import Image
from transformers.models.bit.image_processing_pil_bit import BitImageProcessorPil
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.deit.image_processing_pil_deit import DeiTImageProcessorPil
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

OUT = Path(__file__).resolve().parent.parent / "tests/data/pictures"
PROCESSORS = {
    "ViTImageProcessor": ViTImageProcessorPil,
    "DeiTImageProcessor": DeiTImageProcessorPil,
    "CLIPImageProcessor": CLIPImageProcessorPil,
    "CLIPFeatureExtractor": CLIPImageProcessorPil,
    "BitImageProcessor": BitImageProcessorPil,
}

# name: config
CASES = {
    "vit": {"image_processor_type": "ViTImageProcessor", "size": {"height": 14, "width": 14}},
    "vit-number": {"image_processor_type": "ViTImageProcessor", "size": 15, "do_normalize": False},
    "vit-larger": {
        "image_processor_type": "ViTImageProcessor",
        "size": {"height": 80, "width": 96},
        "resample": 3,
    },
    "clip": {"image_processor_type": "CLIPImageProcessor", "size": 20, "crop_size": 14},
    "clip-old": {
        "feature_extractor_type": "CLIPFeatureExtractor",
        "size": {"shortest_edge": 17},
        "crop_size": {"height": 15, "width": 13},
        "image_mean": [0.1, 0.2, 0.3],
        "image_std": [0.5, 0.25, 2.0],
    },
    "bit-shortest": {
        "image_processor_type": "BitImageProcessor",
        "size": {"shortest_edge": 31},
        "crop_size": {"height": 28, "width": 28},
    },
    "deit": {
        "image_processor_type": "DeiTImageProcessor",
        "size": {"height": 24, "width": 24},
        "crop_size": 14,
        "rescale_factor": 0.00784313725490196,
    },
    "crop-outside": {
        "image_processor_type": "BitImageProcessor",
        "do_resize": False,
        "crop_size": {"height": 70, "width": 52},
    },
    "lanczos": {
        "image_processor_type": "ViTImageProcessor",
        "size": {"height": 21, "width": 100},
        "resample": 1,
        "do_rescale": False,
        "do_normalize": False,
    },
    "nearest": {
        "image_processor_type": "ViTImageProcessor",
        "size": {"height": 33, "width": 14},
        "resample": 0,
        "image_mean": 0.25,
        "image_std": 0.5,
    },
    "as-it-is": {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": False,
        "do_rescale": False,
        "do_normalize": False,
    },
}


def scene():
    """Slopes, edges and grain: what resampling filters can get wrong."""
    rng = np.random.default_rng(3)
    height, width = 47, 61
    y, x = np.mgrid[:height, :width]
    red = 255 * x / (width - 1)
    green = 127 + 120 * np.sin(0.35 * x + 0.2 * y)
    blue = np.where((x - 40) ** 2 + (y - 20) ** 2 < 150, 250, 20) + 0 * x
    image = np.stack([red, green, blue], -1) + rng.normal(0, 12, (height, width, 3))
    return np.clip(image, 0, 255).astype(np.uint8)


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    rgb = Image.fromarray(scene())
    alpha = rgb.convert("RGBA")
    alpha.putalpha(Image.fromarray(np.tile(np.arange(61, dtype=np.uint8) * 4, (47, 1))))
    deep = (np.asarray(rgb.convert("L"), np.uint16) * 257).astype(np.uint16)
    pictures = {
        "scene.png": (rgb, {}),
        "scene.jpg": (rgb, {"quality": 90}),
        "progressive.jpg": (rgb, {"quality": 60, "progressive": True}),
        "grey.png": (rgb.convert("L"), {}),
        "grey.jpg": (rgb.convert("L"), {"quality": 85}),
        "bits.png": (rgb.convert("1"), {}),
        "palette.png": (rgb.quantize(37), {}),
        "alpha.png": (alpha, {}),
        "deep.png": (Image.fromarray(deep), {}),
    }
    for name, (image, options) in pictures.items():
        image.save(OUT / name, **options)
        loaded = Image.open(OUT / name)
        if name == "deep.png":
            loaded = rgb.convert("L")  # Pillow clips 16 bits; the upper 8 are kept here
        loaded = loaded.convert("RGB")
        arrays = {"rgb": np.asarray(loaded)}
        if name.startswith(("scene", "palette")):
            for case, config in CASES.items():
                keys = {k: v for k, v in config.items() if not k.endswith("_type")}
                kind = config.get("image_processor_type") or config["feature_extractor_type"]
                processor = PROCESSORS[kind](**keys)
                out = processor(loaded, return_tensors="np")["pixel_values"][0]
                arrays[case] = np.asarray(out, np.float32)
        np.savez_compressed(OUT / f"{name}.npz", **arrays)
    lines = (json.dumps({"name": name, **config}) for name, config in CASES.items())
    (OUT / "cases.jsonl").write_text("\n".join(lines) + "\n")
    for file in OUT.iterdir():
        file.chmod(0o644)


if __name__ == "__main__":
    main()
