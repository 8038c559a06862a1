"""Reference runs of encoders whose attention is code of their own: their dense form, recorded.

MPNet, DeBERTa-v2, Longformer and BigBird do not go through the attention function that the other
families share. `own_attention` replaces the forward methods of their attention modules, while it is
active, by plain dense attention written from the definition: every score exists, what the pattern
hides is -inf, and a key that the pattern lists several times has the logarithm of that number added.
The library's own code runs afterwards and must end in the same numbers.
"""

import contextlib
import math

import torch
from transformers.models.big_bird import modeling_big_bird as big_bird_code
from transformers.models.deberta_v2 import modeling_deberta_v2 as deberta_code
from transformers.models.longformer import modeling_longformer as longformer_code
from transformers.models.mpnet import modeling_mpnet as mpnet_code


def heads(module, x, count):
    """[1, T, H*K] to [1, H, T, K]."""
    return module(x).unflatten(-1, (count, -1)).transpose(1, 2)


def t5_buckets(relative, count, most):
    """Bidirectional buckets of key - query; the logarithm in float32 like the library's."""
    half, exact = count // 2, count // 4
    far = relative.abs()
    log = torch.log(far.float() / exact) / math.log(most / exact) * (half - exact)
    bucket = torch.where(far < exact, far, (exact + log.long()).clamp(max=half - 1))
    return bucket + (relative > 0) * half


def mpnet(record, module, x, model):
    T = x.shape[1]
    q, k, v = (heads(p, x, module.num_attention_heads) for p in (module.q, module.k, module.v))
    table = model.base_model.encoder.relative_attention_bias.weight
    relative = torch.arange(T)[None, :] - torch.arange(T)[:, None]
    bias = table[t5_buckets(relative, 32, 128)].permute(2, 0, 1)
    z, _ = record(module, q, k, v, None, position_bias=bias)
    return (module.o(z.flatten(-2)),)


def log_bucket(relative, buckets, most):
    """DeBERTa's bucket of query - key: exact up to a half, then by logarithm, symmetric."""
    if buckets <= 0:
        return relative
    mid = buckets // 2
    far = relative.abs()
    ratio = torch.log(far / mid) / torch.log(torch.tensor((most - 1) / mid))
    log = torch.ceil(ratio * (mid - 1)) + mid
    return torch.where(far <= mid, relative, (log * relative.sign()).long())


def deberta(record, module, x, table):
    """The table of relative positions comes normalised, [2*span, D]."""
    T, H = x.shape[1], module.num_attention_heads
    q, k, v = (heads(p, x, H) for p in (module.query_proj, module.key_proj, module.value_proj))
    kinds = module.pos_att_type
    factor = 1 + ("c2p" in kinds) + ("p2c" in kinds)
    # The library takes this root in float32.
    scale = 1 / torch.sqrt(torch.tensor(float(q.shape[-1] * factor))).double().item()
    if not module.relative_attention:
        z, _ = record(module, q, k, v, None, scaling=scale)
        return z.flatten(-2), None
    relative = torch.arange(T)[:, None] - torch.arange(T)[None, :]
    span = module.pos_ebd_size
    bucket = log_bucket(relative, module.position_buckets, module.max_relative_positions)
    at = (bucket + span).clamp(0, 2 * span - 1)
    bias = torch.zeros(1, H, T, T, dtype=q.dtype)
    rows = torch.arange(T)
    if "c2p" in kinds:
        proj = module.key_proj if module.share_att_key else module.pos_key_proj
        pos = heads(proj, table[None], H)
        bias = bias + (q @ pos.transpose(-1, -2))[:, :, rows[:, None], at]
    if "p2c" in kinds:
        proj = module.query_proj if module.share_att_key else module.pos_query_proj
        pos = heads(proj, table[None], H)
        bias = bias + (k @ pos.transpose(-1, -2))[:, :, rows[None, :], at]
    z, _ = record(module, q, k, v, None, scaling=scale, position_bias=bias * scale)
    return z.flatten(-2), None


def longformer(record, module, x, attention_mask):
    """attention_mask: < 0 padding, > 0 global, as the library hands it to its modules."""
    H, T = module.num_heads, x.shape[1]
    real, everywhere = attention_mask[0] >= 0, attention_mask[0] > 0
    q, k, v = (heads(p, x, H) for p in (module.query, module.key, module.value))
    away = (torch.arange(T)[:, None] - torch.arange(T)[None, :]).abs()
    sees = (away <= module.one_sided_attn_window_size) | everywhere[None, :]
    sees = (sees | everywhere[:, None]) & real[None, :]
    sees = sees | torch.eye(T, dtype=torch.bool)  # padding sees itself, and nobody sees it
    closed = torch.zeros(T, T, dtype=q.dtype).masked_fill(~sees, -math.inf)
    parts = (module.query_global, module.key_global, module.value_global)
    other = (everywhere, *(heads(p, x, H) for p in parts))
    z, _ = record(module, q, k, v, None, position_bias=closed, other=other)
    return (z.flatten(-2),)


def big_bird(record, module, x, to_mask):
    """Blocks of keys that each block of queries sees, in evaluation mode: the library's random
    blocks are then all block 0."""
    H, T, size = module.num_attention_heads, x.shape[1], module.block_size
    q, k, v = (heads(p, x, H) for p in (module.query, module.key, module.value))
    blocks = T // size
    times = torch.zeros(blocks, blocks)
    times[[0, blocks - 1]] = 1
    for b in range(1, blocks - 1):
        times[b, b - 1 : b + 2] = 1
        times[b, [0, blocks - 1]] = 1
        times[b, 0] += module.num_random_blocks
    times = times.repeat_interleave(size, 0).repeat_interleave(size, 1) * to_mask[0, 0]
    z, _ = record(module, q, k, v, None, position_bias=times.to(q.dtype).log())
    return z.flatten(-2), None


def full(record, module, x):
    """BigBird on a short document."""
    parts = (module.query, module.key, module.value)
    q, k, v = (heads(p, x, module.num_attention_heads) for p in parts)
    z, _ = record(module, q, k, v, None)
    return z.flatten(-2), None


def behind_first_block(model):
    """Modules that still belong to the first block of the program: DeBERTa's convolution."""
    return [m for m in model.modules() if isinstance(m, deberta_code.ConvLayer)]


@contextlib.contextmanager
def own_attention(model, record):
    """While active the families above run their dense form, through `record`."""
    forms = {
        mpnet_code.MPNetSelfAttention: lambda m, x, *a, **kw: mpnet(record, m, x, model),
        deberta_code.DisentangledSelfAttention: lambda m, x, *a, **kw: deberta(
            record, m, x, kw["rel_embeddings"]
        ),
        longformer_code.LongformerSelfAttention: lambda m, x, *a, **kw: longformer(
            record, m, x, kw["attention_mask"]
        ),
        big_bird_code.BigBirdBlockSparseAttention: lambda m, x, band, start, to_mask, *a, **kw: (
            big_bird(record, m, x, to_mask)
        ),
        big_bird_code.BigBirdSelfAttention: lambda m, x, *a, **kw: full(record, m, x),
    }
    before = {cls: cls.forward for cls in forms}
    for cls, forward in forms.items():
        cls.forward = forward
    try:
        yield
    finally:
        for cls, forward in before.items():
            cls.forward = forward
