#!/usr/bin/env python3
"""Makes the fixtures of tokenizers in the style of SentencePiece, and of the rarer kinds.

    python3 -m venv venv
    venv/bin/pip install tokenizers==0.23.3 sentencepiece==0.2.3 gguf==0.19.0 transformers
    venv/bin/python tools/make_sentencepiece_fixtures.py

The form of the fixtures is that of make_tokenizer_fixtures.py. What a tokenizer.json gives is what
the library tokenizers makes of it, with one addition: a token that starts with U+2581 starts a new
word, also where the file has no pre-tokenizer. What a SentencePiece model file gives is what the
library sentencepiece makes of the text between special tokens; its alignment has only starts, so a
character reaches from its own start to the next one that differs.
"""

import io
import json
import re
import unicodedata
from pathlib import Path

import gguf
import sentencepiece
from sentencepiece import sentencepiece_model_pb2 as model_pb2
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

import make_tokenizer_fixtures as base
from make_tokenizer_fixtures import OUT, byte_offsets

MARK = "\u2581"
GPT4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
CLIP = (
    r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
)
BLOOM = " ?[^(\\s|.,!?…。，、।۔،)]+"


def short_strings(names):
    """Without the long ones and the mixtures: enough for what differs in one component."""
    return (
        base.PLAIN
        + base.DIGITS
        + base.PUNCTUATION[:24]
        + base.ACCENTS[:24]
        + base.CJK[:12]
        + base.EMOJI[:8]
        + base.RIGHT_TO_LEFT[:6]
        + base.INVISIBLE[:20]
        + base.special_strings(names[:1])
    )


def mark_words(case, tokens, added):
    """Words of a case, renumbered so that marked tokens start one."""
    words, last, new = [], None, -1
    for word, token, special in zip(case["words"], tokens, added):
        if word < 0:
            words.append(-1)
            continue
        if word != last or (token.startswith(MARK) and not special):
            new += 1
        last = word
        words.append(new)
    return words


def case(tok, text, pair=None):
    found = base.case(tok, text, pair)
    enc = tok.encode(text, pair) if pair is not None else tok.encode(text)
    added = {t.content for t in tok.get_added_tokens_decoder().values()}
    # Unigram shows an unknown run as itself, which may start with a mark, too.
    tokens = enc.tokens
    if pair is None:
        parts = [range(len(tokens))]
    else:
        second = [i for i, s in enumerate(enc.sequence_ids) if s == 1]
        parts = [[i for i in range(len(tokens)) if i not in set(second)], second]
    for part in parts:
        sub = {"words": [found["words"][i] for i in part]}
        new = mark_words(sub, [tokens[i] for i in part], [tokens[i] in added for i in part])
        for i, word in zip(part, new):
            found["words"][i] = word
    return found


def write(path, cases):
    with open(path / "cases.jsonl", "w", encoding="ascii") as f:
        for found in cases:
            f.write(json.dumps(found, separators=(",", ":")) + "\n")
    size = sum(f.stat().st_size for f in path.iterdir())
    print(f"{path.name:16s} {len(cases)} cases  {size / 1024:.0f} KB")


def finish(tok, name, strings, pairs=False, edit=None):
    path = OUT / name
    path.mkdir(parents=True, exist_ok=True)
    config = json.loads(tok.to_str())
    if edit:
        edit(config)
    text = json.dumps(config, ensure_ascii=False, separators=(",", ":"))
    (path / "tokenizer.json").write_text(text + "\n", encoding="utf-8")
    tok = Tokenizer.from_file(str(path / "tokenizer.json"))
    cases = [case(tok, s) for s in strings]
    if pairs:
        cases += [case(tok, a, b) for a, b in base.PAIRS]
    write(path, cases)


# --- SentencePiece models --------------------------------------------------------------------------

RULES = {
    "\t": " ", "\n": " ", "\r": " ", "\u00a0": " ", "\u2003": " ", "\u2009": " ", "\u3000": " ",
    "\u1680": " ", "\u202f": " ", "\u2028": " ", "\u0085": " ", "\u200b": " ", "\ufeff": "",
    "\u200d": "", "\u00ad": "", "\x01": "", "\x02": "", "\x07": "", "\x1b": "", "\x7f": "",
    "…": "...", "½": "1\u20442", "Ⅷ": "VIII", "①": "1", "²": "2", "³": "3", "㍿": "株式会社",
    "㌔": "キロ", "㈱": "(株)", "ﬁ": "fi", "ﬂ": "fl", "ﬀ": "ff", "ŉ": "\u02bcn", "ſ": "s",
    "ﷺ": "صلى الله عليه وسلم", "™": "TM", "\u212a": "K", "\u212b": "Å", "Ǆ": "DŽ",
    "e\u0301": "é", "a\u0300": "à", "o\u0308": "ö", "n\u0303": "ñ", "c\u0327": "ç", "A\u030a": "Å",
    "e\u0302": "ê", "e\u0302\u0301": "ế", "\u0301": "", "\u0334": "", "¨": " \u0308",
    "\u1100\u1161": "가", "\u1100\u1161\u11a8": "각", "ｶﾞ": "ガ", "ﾊ": "ハ", "``": '"', "''": '"',
}  # fmt: skip
RULES.update({chr(0xFF01 + i): chr(0x21 + i) for i in range(94)})


def train(kind, size, **options):
    rules = OUT / "rules.tsv"
    rules.write_text(
        "".join(
            " ".join(f"{ord(c):X}" for c in a) + "\t" + " ".join(f"{ord(c):X}" for c in b) + "\t\n"
            for a, b in RULES.items()
        )
    )
    model = io.BytesIO()
    if kind == "unigram":
        options["normalization_rule_tsv"] = str(rules)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(s for s in base.corpus() if s.strip()),
        model_writer=model,
        model_type=kind,
        vocab_size=size,
        max_sentence_length=1 << 20,
        num_threads=1,
        minloglevel=2,
        **options,
    )
    rules.unlink()
    proto = model_pb2.ModelProto()
    proto.ParseFromString(model.getvalue())
    # How the model was trained is of no use here, and names this machine's files.
    proto.trainer_spec.ClearField("input")
    proto.normalizer_spec.ClearField("normalization_rule_tsv")
    return proto


class Splitter:
    """A SentencePiece model with special tokens around and in the text, which it is kept from."""

    def __init__(self, proto, specials, ids=None, always=True, lstrip=()):
        self.first = sentencepiece.SentencePieceProcessor(model_proto=proto.SerializeToString())
        self.rest = self.first
        if not always:
            bare = model_pb2.ModelProto()
            bare.CopyFrom(proto)
            bare.normalizer_spec.add_dummy_prefix = False
            self.rest = sentencepiece.SentencePieceProcessor(model_proto=bare.SerializeToString())
        self.specials = specials
        self.ids = ids or (lambda piece, id: id)
        self.lstrip = set(lstrip)

    def chunks(self, text):
        if not self.specials:
            yield 0, text
            return
        names = "|".join(
            (r"\s*" if s in self.lstrip else "") + re.escape(s)
            for s in sorted(self.specials, key=len, reverse=True)
        )
        at = 0
        for m in re.finditer(names, text):
            if m.start() > at:
                yield at, text[at : m.start()]
            yield m.start(), m
            at = m.end()
        if at < len(text):
            yield at, text[at:]

    def words(self, sp, chunk):
        """Tokens of a chunk: id, first and last character, text."""
        norm, starts = sp.normalize(chunk, with_offsets=True)
        ends = [
            next((s for s in starts[i + 1 :] if s > starts[i]), starts[-1])
            for i in range(len(norm))
        ]
        at, bytes_left = 0, 0
        for piece in sp.encode(chunk, return_type="proto").pieces:
            if sp.IsByte(piece.id):
                bytes_left = bytes_left or len(norm[at].encode("utf-8"))
                yield self.ids(piece.piece, piece.id), starts[at], ends[at], norm[at]
                bytes_left -= 1
                at += bytes_left == 0
                continue
            n = len(piece.piece)
            assert norm[at : at + n] == piece.piece
            yield self.ids(piece.piece, piece.id), starts[at], ends[at + n - 1], piece.piece
            at += n
        assert at == len(norm)

    def encode(self, text):
        ids, offsets, words, word = [], [], [], -1
        for start, chunk in self.chunks(text):
            if not isinstance(chunk, str):
                word += 1
                ids.append(self.specials[chunk.group().lstrip()])
                offsets.append([chunk.start(), chunk.end()])
                words.append(word)
                continue
            new, split = True, False
            for id, a, b, piece in self.words(self.first if start == 0 else self.rest, chunk):
                # A character that is split into bytes is a word once.
                again = split and offsets[-1] == [start + a, start + b]
                split = piece == MARK and b - a == 1 and id != self.first.piece_to_id(MARK)
                word += new or (piece.startswith(MARK) and not again)
                new = False
                ids.append(id)
                offsets.append([start + a, start + b])
                words.append(word)
        return ids, byte_offsets(text, offsets), words


def spm_case(splitter, text, before, after, offsets=True):
    ids, spans, words = splitter.encode(text)
    found = {
        "text": text,
        "ids": before + ids + after,
        "offsets": [[0, 0]] * len(before) + spans + [[0, 0]] * len(after),
        "words": [-1] * len(before) + words + [-1] * len(after),
        "special": [1] * len(before) + [0] * len(ids) + [1] * len(after),
        "types": [0] * (len(before) + len(ids) + len(after)),
    }
    if not offsets:
        del found["offsets"], found["words"]
    return found


def spm_directory(name, file, proto, config, extra=None):
    path = OUT / name
    path.mkdir(parents=True, exist_ok=True)
    (path / file).write_bytes(proto.SerializeToString())
    if config:
        (path / "tokenizer_config.json").write_text(json.dumps(config) + "\n")
    for other, value in (extra or {}).items():
        (path / other).write_text(json.dumps(value) + "\n")
    return path


def gguf_file(name, arch, kind, proto, specials, count, keys):
    """The model as a converter writes it; unnamed places up to `count` are placeholders."""
    pieces = [(p.piece, p.score, p.type) for p in proto.pieces]
    pieces += [(f"[PAD{i}]", -1000.0, 5) for i in range(len(pieces), count)]
    writer = gguf.GGUFWriter(OUT / f"{name}.gguf", arch)
    writer.add_tokenizer_model(kind)
    writer.add_tokenizer_pre("default")
    writer.add_token_list([p[0] for p in pieces])
    writer.add_token_scores([p[1] for p in pieces])
    writer.add_token_types([p[2] for p in pieces])
    for key, value in keys.items():
        if isinstance(value, bool):
            writer.add_bool(f"tokenizer.ggml.{key}", value)
        elif isinstance(value, bytes):
            writer.add_array(f"tokenizer.ggml.{key}", value)
        else:
            writer.add_uint32(f"tokenizer.ggml.{key}", value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def pieces_of(proto):
    return {p.piece: i for i, p in enumerate(proto.pieces)}


def t5(proto):
    """Plain ids, the end token behind, sentinels behind the pieces."""
    n = len(proto.pieces)
    extra = {f"<extra_id_{i}>": n + 99 - i for i in range(100)}
    specials = {"</s>": 1, "<pad>": 0, "<unk>": 2, **extra}
    path = spm_directory("t5-spm", "spiece.model", proto, {"tokenizer_class": "T5Tokenizer"})
    splitter = Splitter(proto, specials)
    names = ["</s>", "<extra_id_0>", "<extra_id_99>"]
    write(path, [spm_case(splitter, s, [], [1]) for s in base.hard_strings(names)])
    gguf_file(
        "t5-spm", "t5", "t5", proto, specials, n + 100,
        {
            "eos_token_id": 1, "padding_token_id": 0, "unknown_token_id": 2,
            "add_bos_token": False, "add_eos_token": True, "add_space_prefix": True,
            "remove_extra_whitespaces": True,
            "precompiled_charsmap": proto.normalizer_spec.precompiled_charsmap,
        },
    )  # fmt: skip


def llama(proto):
    """BPE with bytes for unknown characters; a space before the text only."""
    specials = {"<s>": 1, "</s>": 2, "<unk>": 0}
    path = spm_directory("llama-spm", "tokenizer.model", proto, {"tokenizer_class": "LlamaTokenizer"})
    splitter = Splitter(proto, specials, always=False)
    names = ["<s>", "</s>", "<tool>", "\n\n"]
    write(path, [spm_case(splitter, s, [1], []) for s in base.hard_strings(names)])
    gguf_file(
        "llama-spm", "llama", "llama", proto, specials, 0,
        {"bos_token_id": 1, "eos_token_id": 2, "unknown_token_id": 0, "add_bos_token": True},
    )  # fmt: skip


def fairseq(proto):
    """The ids of XLM-R and mBART: four special ones first, then the file's from place 3 on."""
    names = ["<s>", "<pad>", "</s>", "<unk>"]
    n = len(proto.pieces)

    def ids(piece, id):
        return 3 if id == 0 else id + 1

    config = {"tokenizer_class": "XLMRobertaTokenizerFast"}
    path = spm_directory("xlmr-spm", "sentencepiece.bpe.model", proto, config)
    specials = {**{s: i for i, s in enumerate(names)}, "<mask>": n + 1}
    splitter = Splitter(proto, specials, ids, lstrip=["<mask>"])
    strings = base.PLAIN + base.special_strings(["<mask>", "</s>"])
    write(path, [spm_case(splitter, s, [0], [2]) for s in strings])

    config = {"tokenizer_class": "MBartTokenizer", "src_lang": "de_DE"}
    path = spm_directory("mbart-spm", "sentencepiece.bpe.model", proto, config)
    codes = "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP nl_XX ro_RO ru_RU si_LK tr_TR vi_VN zh_CN"
    codes = codes.split()
    specials = {s: i for i, s in enumerate(names)}
    specials.update({c: n + 1 + i for i, c in enumerate(codes)})
    specials["<mask>"] = n + 1 + len(codes)
    splitter = Splitter(proto, specials, ids, lstrip=["<mask>"])
    strings = base.PLAIN[:24] + base.special_strings(["<mask>", "en_XX"])
    write(path, [spm_case(splitter, s, [], [2, specials["de_DE"]]) for s in strings])


def marian(proto, target):
    """Ids of vocab.json, in an order of their own; some pieces have none."""
    known = [p.piece for i, p in enumerate(proto.pieces) if i % 7 and p.type == 1]
    known += [p.piece for p in target.pieces if p.type == 1 and p.piece not in set(known)]
    known.sort(key=lambda s: (len(s), s))
    vocab = {"</s>": 0, "<unk>": 1, ">>fra<<": 2, ">>deu<<": 3}
    for piece in known:
        vocab.setdefault(piece, len(vocab))
    vocab["<pad>"] = len(vocab)
    path = spm_directory(
        "marian", "source.spm", proto, {"tokenizer_class": "MarianTokenizer"}, {"vocab.json": vocab}
    )
    (path / "target.spm").write_bytes(target.SerializeToString())
    specials = {s: vocab[s] for s in ("</s>", "<unk>", "<pad>", ">>fra<<", ">>deu<<")}

    def ids(piece, id):
        return vocab.get(piece, 1)

    splitter = Splitter(proto, specials, ids)
    strings = base.PLAIN + base.ACCENTS[:20] + [">>fra<< hello world", ">>deu<<hello", "a </s> b"]
    write(path, [spm_case(splitter, s, [], [0]) for s in strings])


def albert(proto):
    """Quotes, accents and case go first; no offsets, as that is no business of SentencePiece."""
    renamed = model_pb2.ModelProto()
    renamed.CopyFrom(proto)
    for i, name in enumerate(["[CLS]", "[SEP]"]):
        renamed.pieces[3 + i].piece = name
        renamed.pieces[3 + i].type = 3
    for p in renamed.pieces:
        if len(p.piece) >= 2 and p.piece[-1] == "," and p.piece[-2] in "0123456789":
            p.score -= 100
    path = spm_directory("albert-spm", "spiece.model", renamed, None, {"config.json": {"model_type": "albert"}})
    specials = {"[CLS]": 3, "[SEP]": 4, "[MASK]": len(renamed.pieces)}
    splitter = Splitter(renamed, specials)
    cases = []
    for s in base.PLAIN + base.ACCENTS[:20] + base.CJK[:8] + ["``a'' 12, 3", "2024, 1,000, x,"]:
        text = unicodedata.normalize("NFKD", s.replace("``", '"').replace("''", '"'))
        text = "".join(c for c in text if not unicodedata.category(c).startswith("M")).lower()
        found = spm_case(splitter, text, [3], [4], offsets=False)
        found["text"] = s
        cases.append(found)
    write(path, cases)


def deberta(proto):
    """Special pieces of the model's own names; the mask stands behind all of them."""
    config = {"config.json": {"model_type": "deberta-v2"}}
    path = spm_directory(
        "deberta-spm", "spm.model", proto, {"do_lower_case": False, "vocab_type": "spm"}, config
    )
    specials = {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3, "[MASK]": len(proto.pieces)}
    splitter = Splitter(proto, specials)
    write(path, [spm_case(splitter, s, [1], [2]) for s in short_strings(["[MASK]", "[SEP]"])])


# --- tokenizer.json of the same models -------------------------------------------------------------


def unigram_json(name, proto, vocab, unk, normalizer, pre, post, added, strings, **options):
    tok = Tokenizer(models.Unigram(vocab, unk, options.pop("byte_fallback", False)))
    tok.normalizer = normalizer
    tok.pre_tokenizer = pre
    tok.decoder = options.pop("decoder", decoders.Metaspace())
    tok.add_special_tokens([t if isinstance(t, AddedToken) else AddedToken(t) for t in added])
    tok.post_processor = post(tok)
    finish(tok, name, strings, **options)


def template(single, pair, names):
    return lambda tok: processors.TemplateProcessing(
        single=single, pair=pair, special_tokens=[(s, tok.token_to_id(s)) for s in names]
    )


def unigram_forms(proto):
    scored = [(p.piece, p.score) for p in proto.pieces]
    charsmap = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)

    def old_metaspace(config):
        """As files were written before prepend_scheme."""
        for part in ("pre_tokenizer", "decoder"):
            config[part] = {
                "type": "Metaspace", "replacement": MARK, "add_prefix_space": True, "str_rep": MARK,
            }  # fmt: skip

    unigram_json(
        "t5", proto, scored, 2,
        normalizers.Sequence(
            [charsmap, normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), MARK)]
        ),
        pre_tokenizers.Metaspace(), template("$A </s>", "$A </s> $B </s>", ["</s>"]),
        ["<pad>", "</s>", "<unk>", "<extra_id_1>", "<extra_id_0>"],
        base.hard_strings(["</s>", "<extra_id_0>"]), pairs=True, edit=old_metaspace,
    )  # fmt: skip
    fairseq_vocab = [(s, 0.0) for s in ("<s>", "<pad>", "</s>", "<unk>")] + scored[3:] + [("<mask>", 0.0)]
    unigram_json(
        "xlmr", proto, fairseq_vocab, 3, charsmap,
        pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]),
        template("<s> $A </s>", "<s> $A </s> </s> $B </s>", ["<s>", "</s>"]),
        ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True)],
        short_strings(["<mask>"]), pairs=True,
    )  # fmt: skip
    with_bytes = scored + [(f"<0x{b:02X}>", 0.0) for b in range(256)]
    unigram_json(
        "nmt", proto, with_bytes, 2,
        normalizers.Sequence([normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]),
        pre_tokenizers.Metaspace(prepend_scheme="first"), template("$A </s>", "$A </s> $B </s>", ["</s>"]),
        ["<pad>", "</s>", "<unk>"], short_strings(["</s>"]), byte_fallback=True,
        decoder=decoders.Sequence([decoders.ByteFallback(), decoders.Metaspace(prepend_scheme="first")]),
    )  # fmt: skip
    albert = [("<pad>", 0.0), ("<unk>", 0.0), ("[CLS]", 0.0), ("[SEP]", 0.0), ("[MASK]", 0.0)] + scored[3:]
    unigram_json(
        "albert", proto, albert, 1,
        normalizers.Sequence(
            [
                normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(),
                normalizers.StripAccents(), normalizers.Lowercase(), charsmap,
                normalizers.Replace(Regex(" {2,}"), " "),
            ]
        ),
        pre_tokenizers.Metaspace(prepend_scheme="always"),
        template("[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1", ["[CLS]", "[SEP]"]),
        ["<pad>", "<unk>", "[CLS]", "[SEP]", AddedToken("[MASK]", lstrip=True)],
        short_strings(["[MASK]"]) + ["``quoted'' '' ``"], pairs=True,
    )  # fmt: skip


def merges_of(proto):
    """All ways to join two pieces into a third, the largest score first."""
    pieces = {p.piece: i for i, p in enumerate(proto.pieces)}
    found = []
    for p in proto.pieces:
        for k in range(1, len(p.piece)):
            left, right = p.piece[:k], p.piece[k:]
            if p.type == 1 and left in pieces and right in pieces:
                found.append((-p.score, pieces[left], pieces[right], left, right))
    return pieces, [(m[3], m[4]) for m in sorted(found)]


def bpe_json(name, vocab, merges, normalizer, pre, strip, strings, specials, **options):
    tok = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    if normalizer:
        tok.normalizer = normalizer
    if pre:
        tok.pre_tokenizer = pre
    steps = [decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse()]
    tok.decoder = decoders.Sequence(steps + ([decoders.Strip(" ", 1, 0)] if strip else []))
    tok.add_special_tokens([AddedToken(s, normalized=False) for s in specials])
    tok.post_processor = template("<s> $A", "<s> $A <s>:1 $B:1", ["<s>"])(tok)
    finish(tok, name, strings, **options)


def bpe_forms(proto):
    vocab, merges = merges_of(proto)
    specials = ["<unk>", "<s>", "</s>"]
    bpe_json(
        "llama2", vocab, merges,
        normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)]), None, True,
        short_strings(["<s>", "</s>"]) + base.LONG[8:14], specials, pairs=True,
    )  # fmt: skip
    bpe_json(
        "mistral", vocab, merges, None,
        pre_tokenizers.Metaspace(prepend_scheme="first", split=False), True,
        short_strings(["<s>"]), specials, pairs=True,
    )  # fmt: skip
    # Some bytes have no piece, so that both bytes and unknown pieces stand in one text.
    missing = {p for p in vocab if re.fullmatch("<0x(9.|A[0-7]|F.)>", p)}
    fewer = {p: None for p in vocab if p not in missing}
    bpe_json(
        "gemma", {p: i for i, p in enumerate(fewer)}, merges, normalizers.Replace(" ", MARK),
        pre_tokenizers.Split(" ", "merged_with_previous"), False,
        short_strings(["<s>"]) + base.LONG[:10] + base.EMOJI, specials,
    )  # fmt: skip


# --- other kinds ------------------------------------------------------------------------------------


def word_level():
    tok = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    tok.pre_tokenizer = pre_tokenizers.Whitespace()
    tok.train_from_iterator(
        base.corpus(),
        trainers.WordLevelTrainer(vocab_size=400, special_tokens=["[UNK]", "[PAD]"], show_progress=False),
    )
    finish(tok, "wordlevel", short_strings(["[PAD]"]))
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.CharDelimiterSplit("e"), pre_tokenizers.FixedLength(3)]
    )
    tok.train_from_iterator(
        base.corpus(),
        trainers.WordLevelTrainer(vocab_size=300, special_tokens=["[UNK]", "[PAD]"], show_progress=False),
    )
    finish(tok, "fixedlength", base.PLAIN + base.CJK[:8])


def byte_level(name, pre, specials, normalizer=None):
    tok = base.byte_bpe(pre, specials, size=600)
    if normalizer:
        tok.normalizer = normalizer
    finish(tok, name, short_strings(specials))


def byte_level_forms():
    byte_level(
        "bloom",
        pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(BLOOM), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        ),
        ["</s>"],
    )
    byte_level(
        "falcon",
        pre_tokenizers.Sequence(
            [
                pre_tokenizers.Punctuation("contiguous"),
                pre_tokenizers.ByteLevel(add_prefix_space=False),
                pre_tokenizers.Digits(individual_digits=False),
                pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated"),
            ]
        ),
        ["<|endoftext|>"],
    )
    byte_level("gpt4o", base.split(GPT4O), ["<|endoftext|>"])


def clip():
    """Pieces that end a word carry a suffix."""
    start, end = "<|startoftext|>", "<|endoftext|>"
    tok = Tokenizer(models.BPE(unk_token=end, end_of_word_suffix="</w>"))
    tok.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    tok.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(CLIP), behavior="removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tok.train_from_iterator(
        base.corpus(),
        trainers.BpeTrainer(
            vocab_size=1100,
            initial_alphabet=alphabet,
            end_of_word_suffix="</w>",
            show_progress=False,
        ),
    )
    # Every byte can end a word, as in the models' own vocabularies.
    config = json.loads(tok.to_str())
    vocab = config["model"]["vocab"]
    for c in alphabet:
        vocab.setdefault(c + "</w>", len(vocab))
    tok = Tokenizer.from_str(json.dumps(config))
    tok.add_special_tokens([AddedToken(start, normalized=False), AddedToken(end, normalized=False)])
    tok.decoder = decoders.ByteLevel()
    tok.post_processor = processors.RobertaProcessing(
        (end, tok.token_to_id(end)), (start, tok.token_to_id(start)), False, False
    )
    finish(tok, "clip", short_strings([end]), pairs=True, edit=base.string_merges)

    config = json.loads((OUT / "clip/tokenizer.json").read_text(encoding="utf-8"))
    old = OUT / "clip-merges"
    old.mkdir(parents=True, exist_ok=True)
    vocab = dict(config["model"]["vocab"])
    vocab.update({t["content"]: t["id"] for t in config["added_tokens"]})
    (old / "vocab.json").write_text(json.dumps(vocab) + "\n")
    (old / "merges.txt").write_text(
        "#version: 0.2\n" + "".join(m + "\n" for m in config["model"]["merges"]), encoding="utf-8"
    )
    (old / "tokenizer_config.json").write_text('{"tokenizer_class": "CLIPTokenizer"}\n')


def byt5():
    from transformers import ByT5Tokenizer

    path = OUT / "byt5"
    path.mkdir(parents=True, exist_ok=True)
    (path / "tokenizer_config.json").write_text('{"tokenizer_class": "ByT5Tokenizer"}\n')
    tok = ByT5Tokenizer()
    cases = []
    for text in base.PLAIN + base.ACCENTS[:12] + base.EMOJI[:6] + ["a<extra_id_0>b", "x <extra_id_124>"]:
        parts = re.split(r"(<extra_id_\d+>)", text)
        offsets, words, word, at = [], [], -1, 0
        for part in parts:
            if part:
                word += 1
            if part.startswith("<extra"):
                offsets.append([at, at + len(part)])
                words.append(word)
            else:
                for k, c in enumerate(part):
                    offsets += [[at + k, at + k + 1]] * len(c.encode("utf-8"))
                words += [word] * len(part.encode("utf-8"))
            at += len(part)
        ids = tok(text)["input_ids"]
        cases.append(
            {
                "text": text,
                "ids": ids,
                "offsets": byte_offsets(text, offsets) + [[0, 0]],
                "words": words + [-1],
                "special": [0] * (len(ids) - 1) + [1],
                "types": [0] * len(ids),
            }
        )
        assert len(ids) == len(offsets) + 1
    write(path, cases)


def esm():
    from transformers import EsmTokenizer

    pieces = ["<cls>", "<pad>", "<eos>", "<unk>"] + list("LAGVSERTIDPKQNFYMHWCXBUZO.-")
    pieces += ["<null_1>", "<mask>"]
    path = OUT / "esm"
    path.mkdir(parents=True, exist_ok=True)
    (path / "vocab.txt").write_text("\n".join(pieces))
    (path / "tokenizer_config.json").write_text('{"tokenizer_class": "EsmTokenizer"}\n')
    tok = EsmTokenizer(str(path / "vocab.txt"))
    texts = [
        "MKTAYIAKQR", "M K T A", "mkta", "MKjjTA", "MK<mask>TA", "<cls>MK", "", " ", "M-K.X", "MJK",
        "M\nK", "  MK", "MK  ", "ACDEFGHIKLMNPQRSTVWY", "a b C", "<mask><mask>", "<MASK>", "M<null_1>K", "é", "MKé A",
    ]  # fmt: skip
    cases = [
        {"text": t, "ids": ids, "special": [1] + [0] * (len(ids) - 2) + [1], "types": [0] * len(ids)}
        for t in texts
        for ids in [tok(t)["input_ids"]]
    ]
    write(path, cases)


def main():
    unigram = train(
        "unigram", 1000, character_coverage=0.985, pad_id=0, eos_id=1, unk_id=2, bos_id=-1,
    )  # fmt: skip
    fairseq_like = train("unigram", 600, character_coverage=0.98, unk_id=0, bos_id=1, eos_id=2)
    bpe = train(
        "bpe", 800, character_coverage=0.99, byte_fallback=True, split_digits=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False,
        allow_whitespace_only_pieces=True, user_defined_symbols=["<tool>", "\n\n", "\u2581\u2581\u2581"],
    )  # fmt: skip
    t5(unigram)
    llama(bpe)
    fairseq(fairseq_like)
    marian(fairseq_like, train("bpe", 400, character_coverage=0.98, normalization_rule_name="identity"))
    albert(fairseq_like)
    names = dict(pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]", unk_piece="[UNK]")
    deberta(
        train(
            "unigram", 500, character_coverage=0.98, pad_id=0, bos_id=1, eos_id=2, unk_id=3, **names
        )
    )
    unigram_forms(unigram)
    bpe_forms(bpe)
    word_level()
    byte_level_forms()
    clip()
    byt5()
    esm()
    same = dict(line.split("\t") for line in (OUT / "same.tsv").read_text().splitlines())
    same.update({"t5-spm.gguf": "t5-spm", "llama-spm.gguf": "llama-spm", "clip-merges": "clip"})
    lines = "".join(f"{form}\t{found}\n" for form, found in sorted(same.items()))
    (OUT / "same.tsv").write_text(lines)


if __name__ == "__main__":
    main()
