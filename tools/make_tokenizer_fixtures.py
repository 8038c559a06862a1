#!/usr/bin/env python3
"""Makes small tokenizers of the kinds that saved models use, and what they do to hard strings.

    python3 -m venv venv && venv/bin/pip install tokenizers==0.23.3 gguf==0.19.0
    venv/bin/python tools/make_tokenizer_fixtures.py

Each directory under tests/data/tokenizers/ holds tokenizer.json (or the older vocab.txt, or
vocab.json with merges.txt) and cases.jsonl, one case a line:

    text, pair      the input; pair only where there is one
    ids             with the special tokens that the tokenizer adds
    offsets         [[start, end], ...] in bytes of the UTF-8 text (of the pair for its tokens)
    words           word index in its own text, -1 for added special tokens
    special         1 for tokens that the template added
    types           segment of every token

A token that is a part of a character's bytes has the offsets of the whole character. Directories
with older files and GGUF files have no cases of their own: same.tsv names the directory whose
ids they must give (a GGUF file says nothing about pairs, so those cases are not for it). The
vocabularies are trained on samples/inputs/ and on the hard strings themselves, so that few of
them end as unknown tokens. The trainer does not find the same WordPiece vocabulary twice, so a
vocab.txt that is there is kept. No string has a character younger than Unicode 14 or a NUL.
"""

import gzip
import json
import random
from pathlib import Path

import gguf
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

ROOT = Path(__file__).resolve().parent.parent
OUT = ROOT / "tests/data/tokenizers"
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

# fmt: off
PLAIN = [
    "", " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", " \n ", "\n \n", "a", "A", " a", "a ",
    " a ", "  a  b   c    ", "Hello world", "hello world", "Hello, world!", "HELLO WORLD",
    "The quick brown fox jumps over the lazy dog.", "don't", "DON'T", "Don't", "I'm you're he'll we've",
    "I'M YOU'RE HE'LL WE'VE IT'S THEY'D", "it’s a curly apostrophe, isn’t it", "'s 't 're 've 'm 'll 'd",
    "'S 'T 'RE 'VE 'M 'LL 'D", "o'clock rock'n'roll 'tis 'twas", "''s '''", "x'sy x'ty",
    "line one\nline two\n\nline four", "tab\tseparated\tvalues", "trailing spaces   ", "   leading spaces",
    "mixed \t\n  white \r\n space", "a\n\n\nb", "a \n b", "a\n b", "a \nb", "\n\n  \n\n x", "x\r\n\r\ny",
    "end with newline\n", "end with newlines\n\n\n", "end.\n", "(end)\n\n(start)", "!!!\n", "?\r\n?",
]
DIGITS = [
    "0", "1", "12", "123", "1234", "12345", "1234567890", "3.14159", "1,000,000.00", "2024-02-29",
    "v1.2.3-rc4", "a1b2c3", "1a2b3c", "100%", "$100", "1e10", "0x1F", "١٢٣", "१२३४", "²³¹", "½ ⅓ Ⅷ", "①②③",
    "１２３４", "12 34  56", "room 101b", "1st 2nd 3rd", "192.168.0.1", "+49 (0)30 123456",
]
PUNCTUATION = [
    "...", "!?", "a.b,c;d:e", "(parenthesised)", "[brackets] {braces} <angles>", "\"quoted\" 'single'",
    "“curly” ‘single’ „low“ «guillemets»", "em—dash en–dash hy-phen", "under_score", "snake_case camelCase PascalCase",
    "a+b=c", "x^2 + y^2", "~tilde`backtick|pipe", "C++ C# .NET", "e-mail@example.org",
    "https://example.org/path?query=1&x=%20#frag", "#hashtag @mention", "$ % & * /", "\\backslash\\",
    "…ellipsis…", "¿Qué? ¡Sí!", "§ 5 ¶ 6 † ‡ • ·", "™ © ® ° €5 £6 ¥7 ₹8", "→ ← ⇒ ∀x∃y ∈ ∑ √2 ∞ ≠ ≤", "½-price", "a--b---c",
    "if (x) {\n    return x[0];\n}\n", "def f(x):\n\treturn x  # comment\n", "<html><b>bold</b></html>",
    "{\"key\": [1, 2, null]}", "((((nested))))", "!@#$%^&*()_+-=[]{}|;':\",./<>?", "-", "--", "'", "\"", "_", "`",
]
ACCENTS = [
    "café", "cafe\u0301", "naïve façade", "Ångström", "A\u030angstro\u0308m", "Zürich Straße", "STRASSE straße ẞ",
    "İstanbul ısırgan I i", "İİ", "Ǆ ǅ ǆ", "ŒUVRE œuvre Æther æther", "ﬁne ﬂow oﬃce ﬀ ﬅ", "Ελληνικά ΣΊΣΥΦΟΣ σίσυφος", "ΆΈΉΊΌΎΏ",
    "Москва ёлка Ёж йод", "Việt Nam tiếng Việt", "e\u0302\u0301 ê\u0301 ế", "a\u0300\u0301\u0302\u0303b", "\u0301", " \u0301x", "x\u0301\u0301\u0301",
    "ñ n\u0303 Ñ", "ç c\u0327", "ő ű Ő Ű", "ą ę ł Ł ż", "đ Đ ø Ø ħ", "ŀ ŉ ſ", "Å (angstrom) Ω (ohm) K (kelvin)", "ﾊﾝｶｸ ｶﾞ",
    "Z\u0351\u036b\u0343a\u0328l\u0321g\u0337o", "p\u0307\u0323 p\u0323\u0307", "\u1e9b\u0323", "가 \u1100\u1161 각 \u1100\u1161\u11a8",
    "क्षत्रिय हिन्दी", "தமிழ்", "ไทย ภาษาไทย", "မြန်မာ", "ខ្មែរ", "འབྲུག", "አማርኛ", "ქართული ᲥᲐᲠᲗᲣᲚᲘ", "Հայերեն",
]
CJK = [
    "中文", "我爱北京天安门", "今天天气很好。", "日本語のテキスト", "ひらがなとカタカナ", "漢字かな交じり文", "한국어 텍스트", "한국어와 中文 mixed with English",
    "中a文b", "a中", "中a", "中 文", "、。「」『』【】", "全角ＡＢＣａｂｃ１２３！？", "ｆｕｌｌ ｗｉｄｔｈ", "㍿ ㌔ ㈱ ㊗", "〇一二三", "々〆〤", "𠀀𠀁", "𪜀 𫝀 𫠠 𫠝",
    "豈更", "丽丸", "鿿䶿", "・ー〜", "\u3000ideographic\u3000space\u3000", "東京2020", "第1章", "２０２４年１２月３１日",
]
EMOJI = [
    "😀", "😀😀", "a😀b", "👍🏽", "👩‍💻", "👨‍👩‍👧‍👦 family", "🏳️‍🌈", "🇩🇪🇫🇷", "❤️ ❤ ☺️", "1️⃣ #️⃣", "🤷🏿‍♀️ shrug", "☃ ☂ ⚡", "🎉party🎉", "(╯°□°)╯︵ ┻━┻", "¯\\_(ツ)_/¯",
    "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝒎𝒂𝒕𝒉 𝟙𝟚𝟛", "🅰🅱", "\U0001f9d1\u200d\U0001f91d\u200d\U0001f9d1",
]
RIGHT_TO_LEFT = [
    "שלום עולם", "שָׁלוֹם", "مرحبا بالعالم", "مُحَمَّد", "السَّلَامُ عَلَيْكُمْ", "abc אבג 123", "\u200fabc\u200e", "\u202eoverride\u202c", "پژوهش گچ", "۱۲۳ فارسی", "اردو ٹیکسٹ؟", "ﷺ ﷽", "ܫܠܡܐ",
]
INVISIBLE = [
    "\u00a0", "a\u00a0b", "\u00a0a\u00a0", "a\u2009b\u200ac", "\u2003em\u2003space", "zero\u200bwidth", "zero\u200cwidth\u200djoiner", "\u200b", "\u2060word\u2060joiner",
    "\ufeffbom", "mid\ufeffdle", "soft\u00adhyphen", "\u180e", "a\u180eb", "next\u0085line", "\u0085", "line\u2028sep para\u2029sep", "\u2028", "ogham\u1680space", "\u202f\u205f",
    "\x01\x02\x03", "a\x07b", "\x1b[31mred\x1b[0m", "\x7fdel", "\x0bvertical\x0cform", "a\x0b\x0cb", "\x1c\x1d\x1e\x1f", "c1\x80\x9f", "\ufffd", "a\ufffdb", "\ufffd\ufffd \ufffd",
    "\ud7ff|\ue000", "\ue000private\uf8ff", "\ufffe\uffff", "\U0010ffff", "\U000f0000", "\ufff9annot\ufffb", "\u2066isolate\u2069", "\U000e0041tag", "var\ufe00 \U000e0100", "\u034fcgj", "\u061calm",
]
LONG = [
    "a" * 99, "a" * 100, "a" * 101, "b" * 257, "ab" * 150, "é" * 100, "é" * 101, "中" * 120, "😀" * 40, " " * 50, "\n" * 33, "." * 120, "1" * 50, "-" * 77,
    "x" + " " * 20 + "y", "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
    "pneumonoultramicroscopicsilicovolcanoconiosis", "e\u0301" * 60, "ha" * 20 + "!" * 20, "th" * 51,
]
# fmt: on


def special_strings(names):
    """Strings with the tokenizer's own special tokens inside."""
    found = []
    for name in names:
        found += [
            name,
            f"a{name}b",
            f"a {name} b",
            f"a  {name}  b",
            f"{name}{name}",
            f" {name} ",
            f"{name}\n",
            f"\n{name}x",
            name.lower(),
            name.upper(),
            name[:-1],
            name[1:],
            f"{name}.",
            f"'s{name}'s",
        ]
    return found + ["".join(names), " ".join(names)]


def mixtures(count):
    """Pieces of the strings above in random company."""
    rng = random.Random(7)
    pool = [
        s
        for s in PLAIN + DIGITS + PUNCTUATION + ACCENTS + CJK + EMOJI + RIGHT_TO_LEFT + INVISIBLE
        if 0 < len(s) < 25
    ]
    joints = ["", "", " ", " ", "  ", "\n", "\t", ", ", "'s ", "\u00a0"]
    return [
        "".join(rng.choice(pool) + rng.choice(joints) for _ in range(rng.randint(2, 6)))
        for _ in range(count)
    ]


def sentences():
    return (ROOT / "samples/inputs/sentences.txt").read_text(encoding="utf-8").splitlines()


def plays():
    with gzip.open(ROOT / "samples/inputs/shakespeare.txt.gz", "rt", encoding="utf-8") as f:
        return f.read()


def hard_strings(names):
    return (
        PLAIN
        + DIGITS
        + PUNCTUATION
        + ACCENTS
        + CJK
        + EMOJI
        + RIGHT_TO_LEFT
        + INVISIBLE
        + LONG
        + special_strings(names)
        + mixtures(60)
        + sentences()[:20]
    )


PAIRS = [
    ("Hello", "world"),
    ("", ""),
    ("a", ""),
    ("", "b"),
    (" left ", " right "),
    ("Who?", "It's me.\n"),
    ("中文", "English"),
    ("café", "cafe\u0301"),
    ("😀", "  "),
    ("one two three", "four five"),
]


def corpus():
    text = plays()[:300000].split("\n\n") + sentences() * 3
    # Twice, so that pairs of bytes of the rarer scripts are merged too.
    return text + (hard_strings([]) * 2)


def byte_offsets(text, offsets):
    at = [0]
    for c in text:
        at.append(at[-1] + len(c.encode("utf-8")))
    return [[at[s], at[e]] for s, e in offsets]


def case(tok, text, pair=None):
    enc = tok.encode(text, pair) if pair is not None else tok.encode(text)
    offsets = []
    for which, span in zip(enc.sequence_ids, enc.offsets):
        offsets += (
            byte_offsets(pair if which == 1 else text, [span]) if which is not None else [[0, 0]]
        )
    found = {"text": text}
    if pair is not None:
        found["pair"] = pair
    found.update(
        ids=enc.ids,
        offsets=offsets,
        words=[-1 if w is None else w for w in enc.word_ids],
        special=enc.special_tokens_mask,
        types=enc.type_ids,
    )
    return found


def write_cases(tok, path, names, pairs):
    cases = [case(tok, text) for text in hard_strings(names)]
    if pairs:
        cases += [case(tok, a, b) for a, b in PAIRS]
    with open(path / "cases.jsonl", "w", encoding="ascii") as f:
        for found in cases:
            f.write(json.dumps(found, separators=(",", ":")) + "\n")
    return len(cases)


def finish(tok, name, names, pairs=False, edit=None):
    """Saves the tokenizer, reads the file back, and writes what the file does."""
    path = OUT / name
    path.mkdir(parents=True, exist_ok=True)
    config = json.loads(tok.to_str())
    if edit:
        edit(config)
    text = json.dumps(config, ensure_ascii=False, indent=1)
    (path / "tokenizer.json").write_text(text + "\n", encoding="utf-8")
    tok = Tokenizer.from_file(str(path / "tokenizer.json"))
    count = write_cases(tok, path, names, pairs)
    size = sum(f.stat().st_size for f in path.iterdir())
    print(f"{name:16s} vocabulary {tok.get_vocab_size():5d}  {count} cases  {size / 1024:.0f} KB")
    return config


def wordpiece(name, lowercase):
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    old = OUT / f"{name}-vocab"
    old.mkdir(parents=True, exist_ok=True)
    tok = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=100))
    tok.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tok.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tok.decoder = decoders.WordPiece()
    if (old / "vocab.txt").exists():
        lines = (old / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]
        tok.model = models.WordPiece(
            {v: i for i, v in enumerate(lines)}, unk_token="[UNK]", max_input_chars_per_word=100
        )
        tok.add_special_tokens(specials)
    else:
        tok.train_from_iterator(
            corpus(),
            trainers.WordPieceTrainer(
                vocab_size=2600,
                min_frequency=2,
                special_tokens=specials,
                limit_alphabet=700,
                show_progress=False,
            ),
        )
    cls, sep = tok.token_to_id("[CLS]"), tok.token_to_id("[SEP]")
    tok.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", cls), ("[SEP]", sep)],
    )
    config = finish(tok, name, ["[CLS]", "[SEP]", "[MASK]", "[UNK]", "[PAD]"], pairs=True)

    vocab = sorted(config["model"]["vocab"], key=config["model"]["vocab"].get)
    (old / "vocab.txt").write_text("".join(v + "\n" for v in vocab), encoding="utf-8")
    settings = {"do_lower_case": lowercase, "tokenizer_class": "BertTokenizer"}
    (old / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


def byte_bpe(pre, specials, size=1000):
    """A trained byte-level BPE with the special tokens at the end of the vocabulary."""
    tok = Tokenizer(models.BPE())
    tok.pre_tokenizer = pre
    tok.decoder = decoders.ByteLevel()
    tok.train_from_iterator(
        corpus(),
        trainers.BpeTrainer(
            vocab_size=size,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    tok.add_special_tokens(
        [s if isinstance(s, AddedToken) else AddedToken(s, normalized=False) for s in specials]
    )
    return tok


def split(pattern):
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )


def string_merges(config):
    """The older way to write merges: one string with a space."""
    config["model"]["merges"] = [" ".join(pair) for pair in config["model"]["merges"]]


def gpt2():
    end = "<|endoftext|>"
    tok = byte_bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), [end])
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    config = finish(tok, "gpt2", [end], edit=string_merges)

    old = OUT / "gpt2-merges"
    old.mkdir(parents=True, exist_ok=True)
    vocab = dict(config["model"]["vocab"])
    vocab.update({t["content"]: t["id"] for t in config["added_tokens"]})
    (old / "vocab.json").write_text(json.dumps(vocab) + "\n")
    (old / "merges.txt").write_text(
        "#version: 0.2\n" + "".join(m + "\n" for m in config["model"]["merges"]), encoding="utf-8"
    )
    settings = {
        "tokenizer_class": "GPT2Tokenizer",
        "add_prefix_space": False,
        "bos_token": end,
        "eos_token": end,
        "unk_token": end,
        "model_max_length": 1e30,
    }
    (old / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


def roberta():
    specials = [
        "<s>",
        "<pad>",
        "</s>",
        "<unk>",
        AddedToken("<mask>", lstrip=True, normalized=False),
    ]
    tok = byte_bpe(pre_tokenizers.ByteLevel(add_prefix_space=False), specials)
    tok.post_processor = processors.RobertaProcessing(
        ("</s>", tok.token_to_id("</s>")),
        ("<s>", tok.token_to_id("<s>")),
        trim_offsets=True,
        add_prefix_space=False,
    )
    finish(tok, "roberta", ["<s>", "</s>", "<mask>"], pairs=True)


def llama3():
    bos = "<|begin_of_text|>"
    tok = byte_bpe(split(LLAMA3), [bos, "<|end_of_text|>", "<|eot_id|>"])
    tok.post_processor = processors.Sequence(
        [
            processors.ByteLevel(trim_offsets=False),
            processors.TemplateProcessing(
                single=f"{bos} $A",
                pair=f"{bos} $A {bos}:1 $B:1",
                special_tokens=[(bos, tok.token_to_id(bos))],
            ),
        ]
    )

    def whole_words(config):
        """Words that no merge leads to: only ignore_merges finds them. They go behind the merged
        pieces, and the special tokens move behind them: the model's own ids have no holes."""
        config["model"]["ignore_merges"] = True
        vocab = config["model"]["vocab"]
        merged = len(vocab)
        for word in (
            "Ġworld",
            "Hello",
            "Ġquick",
            "Ġjumps",
            "HELLO",
            "ĠEnglish",
            "Ġmixed",
            "don",
            "cafÃ©",
            "ä¸Ńæĸĩ",
            "ĠÃ©",
            "Ġxyzzy",
        ):
            if word not in vocab:
                vocab[word] = len(vocab)
        moved = {t["content"]: t["id"] + len(vocab) - merged for t in config["added_tokens"]}
        for token in config["added_tokens"]:
            token["id"] = moved[token["content"]]
        template = config["post_processor"]["processors"][1]
        for name, token in template["special_tokens"].items():
            token["ids"] = [moved[name]]

    finish(tok, "llama3", [bos, "<|eot_id|>"], pairs=True, edit=whole_words)


def qwen2():
    tok = byte_bpe(split(QWEN2), ["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tok.normalizer = normalizers.NFC()
    tok.add_tokens(
        [
            AddedToken("<tool_call>", normalized=False),
            AddedToken("nai\u0308ve", normalized=True, single_word=True),
        ]
    )
    tok.post_processor = processors.ByteLevel(trim_offsets=False)
    finish(
        tok, "qwen2", ["<|im_start|>", "<|endoftext|>", "<tool_call>", "nai\u0308ve", "na\u00efve"]
    )


def smollm():
    pre = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tok = byte_bpe(pre, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    finish(tok, "smollm", ["<|im_start|>", "<|endoftext|>"])


GGUF = {
    # directory: (architecture, tokenizer model, pre-tokenizer, keys by token)
    "bert-uncased": (
        "bert",
        "bert",
        "default",
        {
            "cls_token_id": "[CLS]",
            "seperator_token_id": "[SEP]",
            "mask_token_id": "[MASK]",
            "unknown_token_id": "[UNK]",
            "padding_token_id": "[PAD]",
        },
    ),
    "gpt2": (
        "gpt2",
        "gpt2",
        "gpt-2",
        {"bos_token_id": "<|endoftext|>", "eos_token_id": "<|endoftext|>"},
    ),
    "llama3": (
        "llama",
        "gpt2",
        "llama-bpe",
        {"bos_token_id": "<|begin_of_text|>", "eos_token_id": "<|end_of_text|>"},
    ),
    "smollm": (
        "llama",
        "gpt2",
        "smollm",
        {"bos_token_id": "<|im_start|>", "eos_token_id": "<|im_end|>"},
    ),
}


def gguf_piece(piece):
    """WordPiece in GGUF marks the start of a word instead of its continuation."""
    if piece.startswith("[") and piece.endswith("]"):
        return piece
    return piece[2:] if piece.startswith("##") else "\u2581" + piece


def write_gguf(name):
    """The tokenizer alone as a GGUF file without tensors."""
    arch, model, pre, ids = GGUF[name]
    config = json.loads((OUT / name / "tokenizer.json").read_text(encoding="utf-8"))
    vocab = dict(config["model"]["vocab"])
    added = {t["content"]: t["special"] for t in config["added_tokens"]}
    vocab.update({t["content"]: t["id"] for t in config["added_tokens"]})
    pieces = sorted(vocab, key=vocab.get)
    assert [vocab[piece] for piece in pieces] == list(range(len(pieces)))
    writer = gguf.GGUFWriter(OUT / f"{name}.gguf", arch)
    writer.add_tokenizer_model(model)
    writer.add_tokenizer_pre(pre)
    writer.add_token_list([gguf_piece(p) for p in pieces] if model == "bert" else pieces)
    kinds = {True: gguf.TokenType.CONTROL, False: gguf.TokenType.USER_DEFINED}
    writer.add_token_types(
        [kinds[added[p]] if p in added else gguf.TokenType.NORMAL for p in pieces]
    )
    if model == "gpt2":
        writer.add_token_merges(
            [m if isinstance(m, str) else " ".join(m) for m in config["model"]["merges"]]
        )
        writer.add_add_bos_token(name == "llama3")
    for key, token in ids.items():
        writer.add_uint32(f"tokenizer.ggml.{key}", vocab[token])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    wordpiece("bert-uncased", True)
    wordpiece("bert-cased", False)
    gpt2()
    roberta()
    llama3()
    qwen2()
    smollm()
    same = {
        "bert-uncased-vocab": "bert-uncased",
        "bert-cased-vocab": "bert-cased",
        "gpt2-merges": "gpt2",
    }
    for name in GGUF:
        write_gguf(name)
        same[f"{name}.gguf"] = name
    lines = "".join(f"{form}\t{base}\n" for form, base in sorted(same.items()))
    (OUT / "same.tsv").write_text(lines)


if __name__ == "__main__":
    main()
