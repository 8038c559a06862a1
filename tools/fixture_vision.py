"""Models that read features among the tiny models of make_fixtures.py: pictures and spectra.

Their documents hold `features` [channels, height, width] (or [mel, frames]) in the place of `ids`.
"""

import numpy as np
import torch
import transformers as tf

VIT = dict(
    hidden_size=18,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=25,
    image_size=14,
    patch_size=4,
)
DINO = {**VIT, "image_size": 15, "patch_size": 5, "mlp_ratio": 2}
DINO.pop("intermediate_size")
CLIP = {**VIT, "image_size": 12, "patch_size": 3, "projection_dim": 7}
WHISPER = dict(
    vocab_size=53,
    d_model=20,
    encoder_layers=2,
    encoder_attention_heads=4,
    encoder_ffn_dim=27,
    decoder_layers=3,
    decoder_attention_heads=2,
    decoder_ffn_dim=29,
    num_mel_bins=5,
    max_source_positions=11,
    max_target_positions=19,
    pad_token_id=50,
    bos_token_id=50,
    eos_token_id=50,
    decoder_start_token_id=51,
    suppress_tokens=None,
    begin_suppress_tokens=None,
)
LABELS = {"num_labels": 3}

# Lengths are of the decoder's input; pictures have none.
MODELS = {
    "vit-class": ("ViTForImageClassification", tf.ViTConfig(**VIT, **LABELS), (0, 0)),
    "vit-base": ("ViTModel", tf.ViTConfig(**{**VIT, "qkv_bias": False, "num_channels": 1}), (0, 0)),
    "deit-teacher": (
        "DeiTForImageClassificationWithTeacher",
        tf.DeiTConfig(**VIT, **LABELS),
        (0, 0),
    ),
    "deit-class": ("DeiTForImageClassification", tf.DeiTConfig(**VIT, **LABELS), (0, 0)),
    "dinov2-class": ("Dinov2ForImageClassification", tf.Dinov2Config(**DINO, **LABELS), (0, 0)),
    "dinov2-giant": (
        "Dinov2Model",
        tf.Dinov2Config(**DINO, use_swiglu_ffn=True),
        (0, 0),
    ),
    "dinov2-registers": (
        "Dinov2WithRegistersForImageClassification",
        tf.Dinov2WithRegistersConfig(**DINO, **LABELS, num_register_tokens=3),
        (0, 0),
    ),
    "clip-image": (
        "CLIPVisionModelWithProjection",
        tf.CLIPVisionConfig(**CLIP),
        (0, 0),
    ),
    "whisper": ("WhisperForConditionalGeneration", tf.WhisperConfig(**WHISPER), (5, 13)),
}


def documents(config, lengths, seed):
    """Smooth pictures with some noise, so that neighbouring patches are alike."""
    rng = np.random.default_rng(seed)
    for length in lengths:
        if config.model_type == "whisper":
            shape = (config.num_mel_bins, 2 * config.max_source_positions)
        else:
            shape = (config.num_channels, config.image_size, config.image_size)
        wave = sum(
            np.sin(rng.uniform(0.2, 1.2) * index + rng.uniform(0, 6))
            for index in np.indices(shape)
        )
        values = (wave * 0.6 + rng.normal(0, 0.5, shape)).astype(np.float32)
        if config.model_type != "whisper":
            yield {"pixel_values": values}
            continue
        rest = rng.integers(3, config.vocab_size - 4, length - 1)
        ids = np.concatenate([[config.decoder_start_token_id], rest])
        yield {"input_features": values, "decoder_input_ids": ids}


def reads_features(config):
    return config.model_type in KINDS


ENCODERS = ("vit", "deit", "dinov2", "dinov2_with_registers", "clip_vision_model")
KINDS = (*ENCODERS, "whisper")


def embedding(model, out):
    """What a model without a classifier answers: one vector of the picture."""
    if "image_embeds" in out:
        return out.image_embeds[0]
    if type(model).__name__ in ("ViTModel", "Dinov2Model"):
        return out.last_hidden_state[0, 0]
    return None


def spread(config, module_name):
    if config.model_type not in KINDS:
        return 1.0
    return 1.7 if module_name.endswith(("query", "q_proj")) else 1.0


def clip_whole(weights, config):
    """The image tower inside a whole CLIP, as checkpoints have it."""
    gen = torch.Generator().manual_seed(1)
    whole = dict(weights)
    whole["logit_scale"] = torch.tensor(2.6)
    whole["text_projection.weight"] = torch.randn(7, 10, generator=gen)
    for name, shape in (
        ("embeddings.token_embedding.weight", (30, 10)),
        ("embeddings.position_embedding.weight", (8, 10)),
        ("final_layer_norm.weight", (10,)),
        ("encoder.layers.0.self_attn.k_proj.weight", (10, 10)),
    ):
        whole[f"text_model.{name}"] = torch.randn(shape, generator=gen)
    whole["vision_model.embeddings.position_ids"] = torch.arange(17)[None]
    keep = ("projection_dim", "dtype")
    return whole, {
        "architectures": ["CLIPModel"],
        "model_type": "clip",
        "projection_dim": config["projection_dim"],
        "text_config": {"hidden_size": 10, "model_type": "clip_text_model"},
        "vision_config": {k: v for k, v in config.items() if k not in keep},
    }
