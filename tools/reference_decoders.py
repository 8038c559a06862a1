"""Decoders that compute their attention in place: the same steps through the recorder.

GPT-Neo, BLOOM and Falcon do not go through the attention function that the other families share.
`own_attention` replaces the forward methods of their attention modules, while it is active, by such
that do; the library's own code runs afterwards and must end in the same numbers.
"""

import contextlib

import torch
from transformers.models.bloom import modeling_bloom
from transformers.models.falcon import modeling_falcon
from transformers.models.gpt_neo import modeling_gpt_neo


def gpt_neo(record, module, hidden, attention_mask=None, **_):
    q, k, v = (
        module._split_heads(project(hidden), module.num_heads, module.head_dim)
        for project in (module.q_proj, module.k_proj, module.v_proj)
    )
    n, closed = hidden.shape[1], torch.finfo(hidden.dtype).min
    mask = attention_mask.masked_fill(~module.bias[..., :n, :n], closed)
    z, pattern = record(module, q, k, v, mask, scaling=1.0)
    return module.out_proj(z.flatten(-2)), pattern


def bloom(record, module, hidden, residual, alibi=None, attention_mask=None, **_):
    q, k, v = module._reshape(module.query_key_value(hidden))
    bias = alibi.view(1, module.num_heads, 1, -1)
    scale = module.inv_norm_factor
    z, pattern = record(module, q, k, v, attention_mask, scale, position_bias=bias)
    return module.dense(z.flatten(-2)) + residual, pattern


def falcon(
    record, module, hidden, alibi=None, attention_mask=None, position_embeddings=None, **_
):
    q, k, v = (x.transpose(1, 2) for x in module._split_heads(module.query_key_value(hidden)))
    if module.new_decoder_architecture:  # keys and values come repeated
        step = module.num_heads // module.num_kv_heads
        k, v = k[:, ::step], v[:, ::step]
    scale, bias, mask = module.inv_norm_factor, None, attention_mask
    if alibi is None:
        q, k = modeling_falcon.apply_rotary_pos_emb(q, k, *position_embeddings)
    else:
        # The mask holds the biases once more: the eager code of the library adds them twice, its
        # scaled-dot-product code, which the published models are run with, only with the mask.
        bias = alibi.view(1, module.num_heads, 1, -1) * scale
        closed = torch.finfo(mask.dtype).min
        mask = torch.zeros_like(mask).masked_fill(mask == closed, closed)
    z, pattern = record(module, q, k, v, mask, scale, position_bias=bias)
    return module.dense(z.flatten(-2)), pattern


@contextlib.contextmanager
def own_attention(record):
    """While active these families run the forms above."""
    forms = {
        modeling_gpt_neo.GPTNeoSelfAttention: gpt_neo,
        modeling_bloom.BloomAttention: bloom,
        modeling_falcon.FalconAttention: falcon,
    }
    before = {cls: cls.forward for cls in forms}
    for cls, form in forms.items():
        cls.forward = lambda module, *a, form=form, **k: form(record, module, *a, **k)
    try:
        yield
    finally:
        for cls, forward in before.items():
            cls.forward = forward
