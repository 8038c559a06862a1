#!/usr/bin/env python3
"""Makes tests/data/models/esm-contacts: a tiny protein model with a contact head, and its contacts.

    OMP_NUM_THREADS=1 venv/bin/python tools/make_contact_fixtures.py   (as tools/make_fixtures.py)

contacts.N.npz hold `ids` and the `contacts` [R, R] that Transformers predicts for them in float64:
0 and 1 are the sequences of two.fasta, 2 has an end token in its middle and a mask token, 3 is one
residue, 4 is longer than one block of rows.
"""

import numpy as np
import torch
import transformers as tf
from make_fixtures import OUT, randomise

RESIDUES = "LAGVSERTIDPKQNFYMHWCXBUZO.-"
SEQUENCES = ["MKTAYIAKQRQ", "GAVLSTR"]


def main():
    out = OUT / "esm-contacts"
    config = tf.EsmConfig(
        vocab_size=33, hidden_size=18, num_hidden_layers=3, num_attention_heads=3,
        intermediate_size=25, max_position_embeddings=90, position_embedding_type="rotary",
        token_dropout=True, mask_token_id=32, pad_token_id=1, layer_norm_eps=1e-5, hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, rope_theta=100.0, tie_word_embeddings=True,
    )  # fmt: skip
    model = tf.EsmForMaskedLM(config).eval()
    randomise(model, torch.float32, 5)
    with torch.no_grad():  # maps are small numbers: weights that make contacts of all strengths
        model.esm.contact_head.regression.weight.mul_(40)
    model.save_pretrained(out)
    (out / "generation_config.json").unlink(missing_ok=True)
    pieces = ["<cls>", "<pad>", "<eos>", "<unk>", *RESIDUES, "<null_1>", "<mask>"]
    (out / "vocab.txt").write_text("\n".join(pieces) + "\n")
    (out / "tokenizer_config.json").write_text('{"tokenizer_class": "EsmTokenizer"}\n')
    lines = [f">{'ab'[i]}\n{s}\n" for i, s in enumerate(SEQUENCES)]
    (out / "two.fasta").write_text("".join(lines))
    documents = [[0, *(pieces.index(c) for c in s), 2] for s in SEQUENCES]
    documents += [[0, 5, 9, 2, 32, 14, 20, 2], [0, 7, 2]]
    gen = torch.Generator().manual_seed(9)
    documents.append([0, *torch.randint(4, 31, (70,), generator=gen).tolist(), 2])
    model = tf.EsmForMaskedLM.from_pretrained(out, dtype=torch.float64, attn_implementation="eager")
    model.eval()
    for n, ids in enumerate(documents):
        ids = torch.tensor([ids])
        with torch.no_grad():
            contacts = model.predict_contacts(ids, torch.ones_like(ids))[0]
        np.savez(out / f"contacts.{n}.npz", ids=ids[0].numpy(), contacts=contacts.numpy())


if __name__ == "__main__":
    main()
