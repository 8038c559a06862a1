#!/usr/bin/env python3
"""Trains the bundled sample models and writes them to samples/models/ (and only there).

    python3 -m venv venv && venv/bin/pip install torch==2.13.0 transformers==5.24.0 \
        tokenizers==0.23.3 safetensors==0.8.0 numpy
    OMP_NUM_THREADS=1 venv/bin/python tools/make_samples.py shakespeare

The program never needs this script: the models it makes are committed. It is here so that anyone
can see what the samples are and make them again. Everything is seeded and runs on one thread;
another version of torch or another processor gives a model of the same kind, not the same bytes.

shakespeare: a three-layer GPT-2 (width 128, four heads, 256 learned positions, a byte-level BPE
of 512 tokens) trained on samples/inputs/shakespeare.txt.gz. Half of every batch is not text but
a run of random tokens, repeated to the end of the row, where only the repeats are predicted. A
repeat of random tokens can be predicted in one way only, by looking up what followed the token
last time, so the model grows the circuit that does it: a head that attends to the previous token
and, in a later layer, heads that attend to the token after the last occurrence. Left alone, the
first half of it takes most of the training to appear; a small extra loss leads head 0.0 to the
previous token in the first 300 steps and is gone afterwards. The induction heads grow without
help. The weights are stored as F16 after the training; the numbers printed at the end are those
of the stored model.

karate: a GAT of two layers (four heads of width 4, then four that are averaged) on Zachary's karate
club, 34 people and their 78 ties, which split into two clubs. Every node has a feature of its own,
and only the two leaders' clubs are given: the rest follows from who attends to whom. Needs
torch_geometric==2.8.1 and networkx==3.6.1 as well, and writes samples/inputs/karate.json too.
"""

import argparse
import gzip
import json
import math
import time
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    GPT2Config,
    GPT2LMHeadModel,
    logging,
)

ROOT = Path(__file__).resolve().parent.parent
SEED = 20240229
CONTEXT = 256
GUIDED = 300
END = "<|endoftext|>"


def bpe_tokenizer(text, size):
    """A byte-level BPE with GPT-2's pieces and no token added around a text."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tok.decoder = decoders.ByteLevel()
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    tok.train_from_iterator(
        text.split("\n\n"),
        trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=[END],
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    return tok


def sinusoids(rows, width, size):
    """[rows, width]: the shift by one position is one rotation, the same for every position."""
    angle = np.arange(rows)[:, None] * 10000.0 ** (-np.arange(0, width, 2) / width)
    table = np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
    return torch.from_numpy((size * table).astype(np.float32))


def write_tokenizer(tok, out):
    tok.save(str(out / "tokenizer.json"))
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": END,
        "eos_token": END,
        "unk_token": END,
        "model_max_length": CONTEXT,
        "clean_up_tokenization_spaces": False,
    }
    (out / "tokenizer_config.json").write_text(json.dumps(config, indent=2) + "\n")


def text_rows(ids, rows, rng):
    """[rows, CONTEXT] windows of the text; every next token counts."""
    starts = rng.integers(0, len(ids) - CONTEXT - 1, rows)
    x = np.stack([ids[s : s + CONTEXT] for s in starts])
    return x, np.ones_like(x, dtype=np.float32)


def repeat_rows(vocab, rng, late):
    """A run of random tokens again and again; only the repeats count. [rows, width]

    Short runs first: they can be half guessed from the tokens seen so far, and that is the way in.
    """
    rows, width, longest = (8, CONTEXT, 100) if late else (21, 96, 32)
    x = np.empty((rows, width), dtype=np.int64)
    w = np.ones((rows, width), dtype=np.float32)
    for r in range(rows):
        run = rng.integers(1, vocab, rng.integers(4, longest + 1))
        x[r] = np.resize(run, width)
        # The first token of a repeat cannot be foreseen: nothing says that the run is over.
        w[r, : len(run) + 1] = 0.0
    return x, w


def learning_rate(step, steps, peak):
    warm = 100
    if step < warm:
        return peak * (step + 1) / warm
    return peak * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * (step - warm) / (steps - warm))))


def token_loss(logits, x, w):
    """Mean cross-entropy of the next tokens, weighted by w."""
    loss = torch.nn.functional.cross_entropy(
        logits[:, :-1].reshape(-1, logits.shape[-1]), x[:, 1:].reshape(-1), reduction="none"
    )
    return (loss * w[:, 1:].reshape(-1)).sum() / w[:, 1:].sum()


def guide(pattern):
    """-ln of the weight that one head gives to the previous token; pattern [B, T, S]."""
    i = torch.arange(1, pattern.shape[1])
    return -torch.log(pattern[:, i, i - 1] + 1e-6).mean()


def train(model, ids, held_out, args):
    vocab = model.config.vocab_size
    rng = np.random.default_rng(SEED)
    decay = [p for p in model.parameters() if p.dim() == 2]
    plain = [p for p in model.parameters() if p.dim() != 2]
    opt = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.05}, {"params": plain, "weight_decay": 0.0}],
        betas=(0.9, 0.98),
    )
    began = time.time()
    model.set_attn_implementation("eager")
    for step in range(args.steps):
        if step == GUIDED:
            model.set_attn_implementation("sdpa")
        strength = 0.3 * (1 - step / GUIDED) if step < GUIDED else 0.0
        losses, total = [], 0.0
        for x, w in (
            text_rows(ids, args.text_rows, rng),
            repeat_rows(vocab, rng, step >= args.steps // 2),
        ):
            x, w = torch.from_numpy(x), torch.from_numpy(w)
            out = model(x, output_attentions=strength > 0)
            losses.append(token_loss(out.logits, x, w))
            total = total + losses[-1]
            if strength > 0:
                total = total + strength * guide(out.attentions[0][:, 0])
        for group in opt.param_groups:
            group["lr"] = learning_rate(step, args.steps, args.rate)
        opt.zero_grad(set_to_none=True)
        total.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 50 == 49 or step == args.steps - 1:
            text, repeats = (value.item() for value in losses)
            print(
                f"step {step + 1:5d}  text {text:.3f}  repeats {repeats:.3f}  "
                f"{time.time() - began:.0f} s",
                flush=True,
            )
    model.eval()
    with torch.no_grad():
        x = torch.from_numpy(np.stack([held_out[i : i + CONTEXT] for i in range(0, 8192, CONTEXT)]))
        print(f"held-out loss {model(x, labels=x).loss.item():.3f} nats a token")


def describe(path, prompt):
    """Opens what was written as a user would and prints the numbers that the sample is for."""
    model = AutoModelForCausalLM.from_pretrained(
        path, dtype=torch.float32, attn_implementation="eager"
    ).eval()
    tok = AutoTokenizer.from_pretrained(path)
    rng = np.random.default_rng(SEED + 1)
    period, docs = 24, 16
    run = rng.integers(1, model.config.vocab_size, (docs, period))
    x = torch.from_numpy(np.concatenate([run, run], axis=1))
    with torch.no_grad():
        maps = model(x, output_attentions=True).attentions
    rows = torch.arange(period, 2 * period - 1)
    print("head   previous  induction   (mean weight on repeated random tokens)")
    best = [0.0, 0.0]
    for layer, p in enumerate(maps):
        i = torch.arange(1, 2 * period)
        prev = p[:, :, i, i - 1].mean(dim=(0, 2))
        induction = p[:, :, rows, rows - period + 1].mean(dim=(0, 2))
        for h in range(p.shape[1]):
            print(f"{layer}.{h}    {prev[h]:8.3f}  {induction[h]:9.3f}")
            if layer == 0:
                best[0] = max(best[0], prev[h].item())
            else:
                best[1] = max(best[1], induction[h].item())
    ids = tok(prompt, return_tensors="pt").input_ids
    out = model.generate(ids, max_new_tokens=120, do_sample=False, pad_token_id=0)
    print(tok.decode(out[0]))
    print(f"best previous-token head of layer 0: {best[0]:.3f}")
    print(f"best induction head of later layers: {best[1]:.3f}")
    if best[0] <= 0.5 or best[1] <= 0.5:
        raise SystemExit("the heads that this sample is for did not form")


def shakespeare(args):
    with gzip.open(ROOT / "samples/inputs/shakespeare.txt.gz", "rt", encoding="utf-8") as f:
        text = f.read()
    out = args.out / "shakespeare"
    out.mkdir(parents=True, exist_ok=True)
    tok = bpe_tokenizer(text, 512)
    ids = np.array(tok.encode(text).ids, dtype=np.int64)
    cut = len(ids) - len(ids) // 20
    print(f"{len(text)} characters, {len(ids)} tokens, vocabulary {tok.get_vocab_size()}")

    torch.manual_seed(SEED)
    end = tok.token_to_id(END)
    config = GPT2Config(
        vocab_size=tok.get_vocab_size(),
        n_positions=CONTEXT,
        n_embd=128,
        n_layer=3,
        n_head=4,
        initializer_range=0.06,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=end,
        eos_token_id=end,
    )
    model = GPT2LMHeadModel(config).train()
    # Learned positions, but from a start where "the token before" is learned for all at once.
    with torch.no_grad():
        model.transformer.wpe.weight.copy_(sinusoids(CONTEXT, config.n_embd, 0.1))
    train(model, ids[:cut], ids[cut:], args)

    # A head that is tied to the embedding is left out, as Transformers itself does.
    state = {
        k: v.detach().to(torch.float16).contiguous()
        for k, v in model.state_dict().items()
        if k != "lm_head.weight"
    }
    save_file(state, out / "model.safetensors", metadata={"format": "pt"})
    config.architectures = ["GPT2LMHeadModel"]
    config.dtype = "float16"
    config.save_pretrained(out)
    write_tokenizer(tok, out)
    for file in out.iterdir():
        file.chmod(0o644)
    describe(out, "KING RICHARD:\nWhat")


def karate(args):
    import networkx as nx
    from torch_geometric.nn.models import GAT

    club = nx.karate_club_graph()
    names = ["Mr. Hi", "Officer"]
    ties = sorted(club.edges())
    both = ties + [(b, a) for a, b in ties]
    y = [names.index(club.nodes[i]["club"]) for i in range(len(club))]
    inputs = {
        "name": "karate",
        "num_nodes": len(club),
        "num_features": len(club),
        "x_sparse_rows": [[i] for i in range(len(club))],
        "edge_index": [[a for a, _ in both], [b for _, b in both]],
        "y": y,
    }
    lines = ",\n".join(f'  "{k}": {json.dumps(v)}' for k, v in inputs.items())
    (ROOT / "samples/inputs/karate.json").write_text("{\n" + lines + "\n}\n")

    out = args.out / "karate"
    out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(SEED)
    config = dict(
        in_channels=len(club),
        hidden_channels=16,
        num_layers=2,
        out_channels=2,
        heads=4,
        v2=False,
        concat=True,
        negative_slope=0.2,
        add_self_loops=True,
        act="elu",
    )
    model = GAT(**config, dropout=0.4).train()
    x, edges = torch.eye(len(club)), torch.tensor(inputs["edge_index"])
    target, leaders = torch.tensor(y), torch.tensor([0, 33])
    opt = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-3)
    for _ in range(300):
        opt.zero_grad()
        torch.nn.functional.cross_entropy(model(x, edges)[leaders], target[leaders]).backward()
        opt.step()
    model.eval()
    with torch.no_grad():
        logits = model(x, edges)
    print(f"{(logits.argmax(1) == target).sum().item()} of {len(club)} nodes right")
    save_file(model.state_dict(), out / "model.safetensors", metadata={"format": "pt"})
    config = {"model_type": "gat", **config, "id2label": dict(enumerate(names))}
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    for file in out.iterdir():
        file.chmod(0o644)


def main():
    parser = argparse.ArgumentParser(description="train the bundled sample models")
    parser.add_argument("model", choices=["shakespeare", "karate"])
    parser.add_argument("--out", type=Path, default=ROOT / "samples/models")
    parser.add_argument("--steps", type=int, default=2400)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--text-rows", type=int, default=8)
    parser.add_argument("--check", action="store_true", help="only print the numbers of the model")
    args = parser.parse_args()
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.use_deterministic_algorithms(True)
    if args.model == "karate":
        karate(args)
    elif args.check:
        describe(args.out / args.model, "KING RICHARD:\nWhat")
    else:
        shakespeare(args)


if __name__ == "__main__":
    main()
