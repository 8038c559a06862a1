"""The float64 reference run behind the fixtures: a model of Transformers, every array kept.

Transformers keeps parts of its mathematics in float32 whatever the dtype of the model
(root-mean-square norms, the softmax of Llama-like models, rotary tables). `double_precision`
undoes that, so that what is written is the mathematics of the model and not one rounding of it.
Attention is taken at the seam that all families share, the attention function; the same model is
then run a second time with the library's own eager attention, and the two must agree to 1e-12,
or nothing is written.
"""

import collections
import contextlib
import functools
import math
import re

import numpy as np
import torch
from torch import nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import eager_mask

import fixture_vision
import reference_decoders
import reference_encoders

TIGHT = 1e-12
STACKS = {"enc": "encoder", "dec": "decoder"}
ENCODERS = (
    "albert",
    "bert",
    "big_bird",
    "deberta-v2",
    "distilbert",
    "electra",
    "esm",
    "longformer",
    "mpnet",
    "roberta",
    "xlm-roberta",
    *fixture_vision.ENCODERS,
)
# Patterns that the library gives in a form of its own are not compared; what they weigh is.
SPARSE = ("big_bird", "longformer")


def separate_pairs(x, width):
    """The first `width` dims from neighbouring pairs to two halves."""
    return torch.cat([x[..., 0:width:2], x[..., 1:width:2], x[..., width:]], dim=-1)


def softmax_with_sinks(scores, sinks):
    """exp(score) over its row's sum, to which a head's sink adds exp(sink)."""
    if sinks is None:
        return torch.softmax(scores, dim=-1)
    extra = sinks.reshape(1, -1, 1, 1).expand(*scores.shape[:3], 1)
    return torch.softmax(torch.cat([scores, extra], dim=-1), dim=-1)[..., :-1]


class Recorder:
    """Collects q, k, v, scores, pattern and z of every call of the attention function.

    As the program exports them: q before the scale, rotary pairs of q and k as two halves."""

    def __init__(self):
        self.calls = []
        self.extra = {}  # arrays of a call beyond those
        self.gates = None  # [calls, H] factors of z; with them, gradients are kept

    def __call__(self, module, query, key, value, mask, scaling=None, position_bias=None, **kw):
        if scaling is None:
            scaling = query.shape[-1] ** -0.5
        if type(module).__name__ == "EsmSelfAttention":  # has scaled the query already
            scaling = query.shape[-1] ** -0.5
            query = query / scaling
        group = query.shape[1] // key.shape[1]
        wide_k = key.repeat_interleave(group, dim=1)
        wide_v = value.repeat_interleave(group, dim=1)
        scores = query @ wide_k.transpose(-1, -2) * scaling
        if kw.get("softcap") is not None:
            scores = torch.tanh(scores / kw["softcap"]) * kw["softcap"]
        if position_bias is not None:
            scores = scores + position_bias
        if mask is not None:
            hidden = mask < torch.finfo(mask.dtype).min / 2
            assert bool((mask[~hidden] == 0).all()), "a mask that is neither open nor closed"
            scores = scores.masked_fill(hidden, -math.inf)
        other = kw.get("other")
        if other is not None:  # rows with projections of their own
            rows, own_q, own_k, own_v = other
            own = own_q @ own_k.transpose(-1, -2) * scaling + position_bias
            scores = torch.where(rows[:, None], own, scores)
        pattern = softmax_with_sinks(scores, getattr(module, "sinks", None))
        z = pattern @ wide_v
        if other is not None:
            z = torch.where(rows[:, None], pattern @ own_v, z)
            self.extra[len(self.calls)] = dict(q_global=own_q, k_global=own_k, v_global=own_v)
        if self.gates is not None:
            z = z * self.gates[len(self.calls), : z.shape[1], None, None]
            for x in (scores, pattern, z):
                x.retain_grad()
        name = type(module).__name__
        if name == "OPTAttention":  # scales the queries itself
            query = query / module.scaling
        elif name == "GPTJAttention":
            query, key = (separate_pairs(x, module.rotary_dim) for x in (query, key))
        self.calls.append((module, query, key, value, scores, pattern, z))
        return z.transpose(1, 2).contiguous(), pattern


RECORDER = Recorder()
AttentionInterface.register("recorded", lambda *a, **k: RECORDER(*a, **k))
AttentionMaskInterface.register("recorded", eager_mask)


def set_attention(model, name):
    if model._can_set_attn_implementation():
        model.set_attn_implementation(name)
    else:
        model.config._attn_implementation = name


@contextlib.contextmanager
def recorded(model):
    """While active, every attention step goes through the recorder."""
    set_attention(model, "recorded" if model._can_set_attn_implementation() else "eager")
    with reference_encoders.own_attention(model, RECORDER):
        with reference_decoders.own_attention(RECORDER):
            yield


def inverse_frequencies(params, width, length, positions):
    """theta^(-2i/K) in float64, scaled, for a text of `length` tokens; and the factor on cos and
    sin."""
    freq = params["rope_theta"] ** (-np.arange(0, width, 2, dtype=np.float64) / width)
    kind = params.get("rope_type", "default")
    factor, attention = params.get("factor"), 1.0
    original = params.get("original_max_position_embeddings")
    if kind == "llama3":
        factor, length = params["factor"], params["original_max_position_embeddings"]
        low, high = params["low_freq_factor"], params["high_freq_factor"]
        wave = 2 * np.pi / freq
        blend = (length / wave - low) / (high - low)
        mixed = (1 - blend) * freq / factor + blend * freq
        freq = np.where(
            wave > length / low, freq / factor, np.where(wave < length / high, freq, mixed)
        )
    elif kind == "linear":
        freq = freq / factor
    elif kind == "yarn":
        bounds = [
            width * np.log(original / (turns * 2 * np.pi)) / (2 * np.log(params["rope_theta"]))
            for turns in (params["beta_fast"], params["beta_slow"])
        ]
        if params.get("truncate", True):
            bounds = [np.floor(bounds[0]), np.ceil(bounds[1])]
        low, high = max(bounds[0], 0), min(bounds[1], width - 1)
        ramp = np.clip((np.arange(width // 2) - low) / (high - low), 0, 1)
        freq = freq / factor * ramp + freq * (1 - ramp)
        attention = 0.1 * np.log(factor) + 1
    elif kind == "longrope":
        freq = freq / np.array(params["long_factor" if length > original else "short_factor"])
        attention = math.sqrt(1 + math.log(positions / original) / math.log(original))
    elif kind != "default":
        raise ValueError(f"no float64 form of rope type {kind}")
    return torch.from_numpy(freq), attention


def exact_rotary(module, length):
    """Replaces the float32 tables of a rotary module by float64 ones, checked against them."""
    if type(module).__name__ == "GPTJRotaryEmbedding":
        exact_sincos(module)
        return
    config = module.config
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    params = getattr(config, "rope_parameters", None) or {"rope_theta": config.rope_theta}
    if "rope_theta" in params:
        made = getattr(module, "original_inv_freq", module.inv_freq)
        sets, buffers = {None: params}, {None: made}
    else:
        kinds = sorted(set(config.layer_types))
        sets = {kind: params[kind] for kind in kinds}
        buffers = {kind: getattr(module, f"{kind}_inv_freq") for kind in kinds}
    tables, factors = {}, {}
    for kind, chosen in sets.items():
        turning = int(width * chosen.get("partial_rotary_factor", 1.0))
        for n in (0, length):  # the module is made for short texts
            tables[kind], factors[kind] = inverse_frequencies(
                chosen, turning, n, config.max_position_embeddings
            )
            if n == 0:
                near = torch.allclose(tables[kind], buffers[kind].double(), rtol=1e-5, atol=0)
                assert near, "rotary table"
    once = type(module).__name__ == "GptOssRotaryEmbedding"  # takes every angle once

    def forward(x, position_ids, layer_type=None):
        angle = position_ids[..., None].double() * tables[layer_type]
        angle = angle if once else torch.cat([angle, angle], dim=-1)
        return angle.cos() * factors[layer_type], angle.sin() * factors[layer_type]

    module.forward = forward


def exact_sincos(module):
    """The same for a module that keeps sines beside cosines."""
    freq, _ = inverse_frequencies({"rope_theta": 10000.0}, module.pos_embd_dim, 0, 0)
    angle = torch.arange(module.max_positions).double()[:, None] * freq
    table = torch.cat([angle.sin(), angle.cos()], dim=1)
    assert torch.allclose(table, module.embed_positions.double(), atol=1e-5), "rotary table"
    module.embed_positions = table


@contextlib.contextmanager
def double_precision():
    """While active, a float64 tensor stays float64 where the library would take it to float32."""
    to, as_float, softmax = torch.Tensor.to, torch.Tensor.float, nn.functional.softmax

    def keep(self, *args, **kw):
        if self.dtype == torch.float64:
            args = tuple(torch.float64 if a is torch.float32 else a for a in args)
            if kw.get("dtype") is torch.float32:
                kw["dtype"] = torch.float64
        return to(self, *args, **kw)

    def double_softmax(x, dim=None, dtype=None, **kw):
        return softmax(x, dim=dim, **kw)

    torch.Tensor.to = keep
    torch.Tensor.float = lambda self, *a, **k: (
        self if self.dtype == torch.float64 else as_float(self, *a, **k)
    )
    nn.functional.softmax = double_softmax
    try:
        yield
    finally:
        torch.Tensor.to, torch.Tensor.float, nn.functional.softmax = to, as_float, softmax


BLOCK = re.compile(r"(?:^|\.)(?:layer|layers|h|block|albert_layers)\.(\d+)$")


def find_blocks(model, stack):
    """{module name: layer} of the outermost numbered modules (inside encoder/decoder for T5). Of
    ALBERT, which runs few modules for many layers, the numbers mean nothing."""
    blocks = {}
    for name, _ in model.named_modules():
        found = BLOCK.search(name)
        if not found or (stack and f"{stack}." not in name):
            continue
        if not any(name.startswith(outer + ".") for outer in blocks):
            blocks[name] = int(found.group(1))
    return blocks


OUTPUT = {
    "DistilBertSelfAttention": lambda name: name + ".out_lin",
    "GPT2Attention": lambda name: name + ".c_proj",
    "T5Attention": lambda name: name + ".o",
    "GPTNeoSelfAttention": lambda name: name + ".out_proj",
    "GPTJAttention": lambda name: name + ".out_proj",
    "GPTNeoXAttention": lambda name: name + ".dense",
    "OPTAttention": lambda name: name + ".out_proj",
    "BloomAttention": lambda name: name + ".dense",
    "FalconAttention": lambda name: name + ".dense",
    "GPTBigCodeAttention": lambda name: name + ".c_proj",
    "PhiAttention": lambda name: name + ".dense",
    "BartAttention": lambda name: name + ".out_proj",
    "MBartAttention": lambda name: name + ".out_proj",
    "MarianAttention": lambda name: name + ".out_proj",
    "CLIPAttention": lambda name: name + ".out_proj",
    "WhisperAttention": lambda name: name + ".out_proj",
    "AlbertAttention": lambda name: name + ".dense",
    "MPNetSelfAttention": lambda name: name + ".o",
}
# Attention modules called "self", which leave the projection to their neighbour.
OUTPUT.update(
    dict.fromkeys(
        (
            "BertSelfAttention",
            "RobertaSelfAttention",
            "XLMRobertaSelfAttention",
            "ElectraSelfAttention",
            "EsmSelfAttention",
            "DisentangledSelfAttention",
            "LongformerSelfAttention",
            "BigBirdSelfAttention",
            "BigBirdBlockSparseAttention",
        ),
        lambda name: name.removesuffix("self") + "output.dense",
    )
)


def output_projection(model, module, name):
    """The weight [D, H*K] and the module that multiplies by it."""
    find = OUTPUT.get(type(module).__name__, lambda n: n + ".o_proj")
    proj = model.get_submodule(find(name))
    weight = proj.weight if isinstance(proj, nn.Linear) else proj.weight.t()
    return weight, proj


def stack_of(name, stacks):
    """The stack that a module belongs to; decoders have modules called encoder_attn."""
    return next(s for s, part in stacks.items() if not part or f"{part}." in name)


def kind_of(name):
    return "cross" if "EncDec" in name or "encoder_attn" in name else "self"


def close(a, b, what):
    error = (a - b).abs().max().item() if a.numel() else 0.0
    assert error <= TIGHT * max(1.0, b.abs().max().item()), f"{what}: differs by {error:.3g}"


def head_outputs(weight, z):
    """[H, T, D]: z times its head's columns of the output projection."""
    heads, width = z.shape[0], z.shape[2]
    split = weight.reshape(weight.shape[0], heads, width)
    return torch.einsum("htk,dhk->htd", z, split)


def reset(model):
    """Undoes what a document left: a short one switches BigBird to full attention for good."""
    if model.config.model_type == "big_bird":
        model.base_model.set_attention_type(model.config.attention_type)


def prepare(model, length):
    """The model in float64, ready for evaluation, its float32 constants replaced."""
    model = model.double().eval()
    model.config.use_cache = False
    for module in model.modules():
        if type(module).__name__.endswith("RotaryEmbedding"):
            exact_rotary(module, length)
        if hasattr(module, "embed_scale") and isinstance(module.embed_scale, torch.Tensor):
            module.embed_scale = torch.tensor(model.config.hidden_size**0.5, dtype=torch.float64)
    reset(model)
    return model


def logits_of(out):
    """[T, V] or [classes] of whatever the head gives, None without one."""
    if "start_logits" in out:
        return torch.stack([out.start_logits[0], out.end_logits[0]], dim=-1)
    if "logits" not in out:
        return None
    logits = out.logits[0]
    return logits[:, None] if type(out).__name__ == "ElectraForPreTrainingOutput" else logits


def run(model, inputs):
    """One document through the model; the arrays of the contract by name, in float64."""
    tokens = inputs["input_ids"].shape[1] if "input_ids" in inputs else 0  # some pad inside
    model = prepare(model, tokens)
    both = model.config.is_encoder_decoder
    alone = "enc" if model.config.model_type in ENCODERS else "dec"
    stacks = STACKS if both else {alone: ""}

    arrays, hooks, streams = {}, [], {}

    def keep_first(m, a, k, short):
        streams.setdefault(f"{short}.embed", a[0] if a else k["hidden_states"])

    def keep_next(m, a, out, short):
        layer = sum(name.startswith(f"{short}.") and name.endswith(".resid") for name in streams)
        streams[f"{short}.{layer}.resid"] = out[0] if isinstance(out, tuple) else out

    for short, part in stacks.items():
        for name in find_blocks(model, part):
            block = model.get_submodule(name)
            hooks.append(
                block.register_forward_pre_hook(
                    functools.partial(keep_first, short=short), with_kwargs=True
                )
            )
            hooks.append(block.register_forward_hook(functools.partial(keep_next, short=short)))
        for module in reference_encoders.behind_first_block(model):
            hooks.append(
                module.register_forward_hook(
                    lambda m, a, out, s=short: streams.__setitem__(f"{s}.0.resid", out)
                )
            )
        base = getattr(model.base_model, part) if part else model.base_model
        base = base.decoder if model.config.model_type == "opt" else base
        hooks.append(
            base.register_forward_hook(
                lambda m, a, out, s=short: streams.__setitem__(f"{s}.hidden", out.last_hidden_state)
            )
        )
    narrow = getattr(base, "project_out", None)
    if narrow is not None:
        hooks.append(
            narrow.register_forward_pre_hook(lambda m, a: streams.__setitem__("wide", a[0]))
        )
    projected = {}
    for name, module in model.named_modules():
        hooks.append(
            module.register_forward_hook(
                lambda m, a, out: projected.setdefault(id(m), []).append(out)
            )
        )

    with torch.no_grad(), double_precision():
        RECORDER.calls, RECORDER.extra = [], {}
        with recorded(model):
            out = model(**inputs)
        calls, seen = RECORDER.calls, dict(projected)
        for hook in hooks:
            hook.remove()
        # Falcon's eager code adds ALiBi twice (reference_decoders.py): no maps to compare with.
        maps = not getattr(model.config, "alibi", False)
        set_attention(model, "eager" if maps else "sdpa")
        again = model(**inputs, output_attentions=maps, output_hidden_states=True)

    names = {id(m): n for n, m in model.named_modules()}
    theirs = {
        "enc.self": again.get("encoder_attentions" if both else "attentions"),
        "dec.self": again.get("decoder_attentions" if both else "attentions"),
        "dec.cross": again.get("cross_attentions"),
    }
    layers = collections.Counter()
    for call, (module, q, k, v, scores, pattern, z) in enumerate(calls):
        name = names[id(module)]
        stack = stack_of(name, stacks)
        kind = kind_of(name)
        layer = layers[stack, kind]
        layers[stack, kind] += 1
        weight, proj = output_projection(model, module, name)
        outputs = head_outputs(weight, z[0])
        whole = outputs.sum(0) + (proj.bias if proj.bias is not None else 0)
        close(whole, seen[id(proj)].pop(0).reshape(whole.shape), f"{name} head outputs")
        if model.config.model_type not in SPARSE and maps:
            close(pattern, theirs[f"{stack}.{kind}"][layer], f"{name} pattern")
        sinks = getattr(module, "sinks", None)
        close(softmax_with_sinks(scores, sinks), pattern, f"{name} softmax")
        if type(module).__name__ == "WhisperAttention":  # scales queries, not scores
            q = q / module.scaling
        for site, value in (
            ("q", q),
            ("k", k),
            ("v", v),
            ("scores", scores),
            ("pattern", pattern),
            ("z", z),
            *RECORDER.extra.get(call, {}).items(),
        ):
            arrays[f"{stack}.{kind}.{layer}.{site}"] = value[0]
        arrays[f"{stack}.{kind}.{layer}.head_out"] = outputs
    if model.config.model_type in SPARSE:
        arrays = {
            name: value[:, :tokens, :tokens] if re.search("pattern|scores", name) else value[:, :tokens]
            for name, value in arrays.items()
        }
        streams = {name: value[:, :tokens] for name, value in streams.items()}

    for short in stacks:
        states = again.get(
            {"enc": "encoder_hidden_states", "dec": "decoder_hidden_states"}[short]
            if both
            else "hidden_states"
        )
        if model.config.model_type in SPARSE:
            states = [state[:, :tokens] for state in states]
        close(streams[f"{short}.embed"], states[0], f"{short}.embed")
        for layer in range(len(states) - 2):
            close(streams[f"{short}.{layer}.resid"], states[layer + 1], f"{short}.{layer}.resid")
        last = f"{short}.hidden"
        if model.config.model_type in fixture_vision.ENCODERS:  # theirs is before the last norm
            last = f"{short}.{len(states) - 2}.resid"
        close(streams[last], states[-1], last)
    if narrow is not None:  # a part of the read-out here
        streams["dec.hidden"] = streams.pop("wide")
    arrays.update({name: value[0] for name, value in streams.items()})
    if logits_of(out) is not None:
        close(logits_of(out), logits_of(again), "logits")
        arrays["logits"] = logits_of(out)
    elif fixture_vision.embedding(model, out) is not None:
        arrays["logits"] = fixture_vision.embedding(model, out)
    arrays = {name: value.detach().numpy() for name, value in arrays.items()}
    for name, value in arrays.items():
        assert value.dtype == np.float64, name
    assert "dec.embed" in arrays or "enc.embed" in arrays
    return arrays


def entropies(arrays):
    """Mean entropy over ln(visible keys): neither 0 nor 1 in a useful fixture."""
    found = {}
    for name, p in arrays.items():
        if name.endswith(".pattern"):
            seen = np.isfinite(arrays[name.replace("pattern", "scores")]).sum(-1)
            rows = -(p * np.log(np.where(p > 0, p, 1))).sum(-1)
            use = seen > 1
            if not use.any():
                continue
            found[name.removesuffix(".pattern")] = float(np.mean(rows[use] / np.log(seen[use])))
    return found
