"""The tiny models that make_fixtures.py makes: class, config, lengths of the two documents, dtype.

Other files add theirs: fixture_decoders.py, fixture_seq2seq.py, fixture_vision.py.
"""

import torch
import transformers as tf

import fixture_decoders
import fixture_seq2seq
import fixture_vision

BERT = dict(
    vocab_size=61,
    hidden_size=21,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=31,
    max_position_embeddings=37,
    type_vocab_size=2,
)
ROBERTA = dict(
    vocab_size=67,
    hidden_size=20,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=27,
    max_position_embeddings=29,
    type_vocab_size=1,
    layer_norm_eps=1e-5,
    pad_token_id=1,
    bos_token_id=0,
    eos_token_id=2,
)
DISTIL = dict(
    vocab_size=61, dim=18, n_layers=2, n_heads=2, hidden_dim=29, max_position_embeddings=31
)
GPT2 = dict(
    vocab_size=71,
    n_embd=20,
    n_layer=3,
    n_head=4,
    n_positions=33,
    n_inner=33,
    bos_token_id=0,
    eos_token_id=0,
)
LLAMA = dict(
    vocab_size=73,
    hidden_size=24,
    num_hidden_layers=2,
    num_attention_heads=6,
    num_key_value_heads=2,
    head_dim=10,
    intermediate_size=37,
    max_position_embeddings=64,
    rms_norm_eps=1e-5,
    bos_token_id=1,
    eos_token_id=2,
)
LLAMA3_ROPE = dict(
    rope_type="llama3",
    rope_theta=500.0,
    factor=4.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=16,
)
SMALL_BASE = {"rope_parameters": {"rope_type": "default", "rope_theta": 200.0}}
GEMMA3 = dict(
    vocab_size=79,
    hidden_size=28,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=10,
    intermediate_size=33,
    sliding_window=4,
    max_position_embeddings=64,
    query_pre_attn_scalar=7,
    bos_token_id=2,
    eos_token_id=1,
    layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    rope_parameters={
        "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
        "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 10000.0},
    },
)
T5 = dict(
    vocab_size=67,
    d_model=21,
    d_kv=6,
    d_ff=29,
    num_layers=2,
    num_decoder_layers=3,
    num_heads=4,
    relative_attention_num_buckets=8,
    relative_attention_max_distance=12,
    decoder_start_token_id=0,
)
THREE = {"num_labels": 3}
LONGFORMER = dict(
    vocab_size=53,
    hidden_size=20,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=27,
    max_position_embeddings=64,
    type_vocab_size=1,
    layer_norm_eps=1e-5,
    attention_window=[4, 8, 4],
)
BIG_BIRD = dict(
    vocab_size=53,
    hidden_size=18,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=25,
    max_position_embeddings=43,
    block_size=3,
    num_random_blocks=1,
    sep_token_id=2,
)
SMALL_BERT = dict(BERT, hidden_size=14, num_attention_heads=2, num_hidden_layers=1, vocab_size=47)
ALBERT = dict(
    vocab_size=53,
    embedding_size=11,
    hidden_size=20,
    num_hidden_layers=3,
    num_hidden_groups=2,
    num_attention_heads=4,
    intermediate_size=27,
    max_position_embeddings=29,
)
ELECTRA = dict(
    vocab_size=53,
    embedding_size=11,
    hidden_size=18,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=25,
    max_position_embeddings=29,
)
MPNET = dict(
    vocab_size=53,
    hidden_size=18,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=25,
    max_position_embeddings=43,
    layer_norm_eps=1e-5,
)
DEBERTA = dict(
    vocab_size=53,
    hidden_size=21,
    num_hidden_layers=2,
    num_attention_heads=3,
    intermediate_size=25,
    max_position_embeddings=29,
    type_vocab_size=0,
    relative_attention=True,
    pos_att_type="p2c|c2p",
    share_att_key=True,
    position_buckets=6,
    max_relative_positions=-1,
    norm_rel_ebd="layer_norm",
    position_biased_input=False,
)
ESM = dict(
    vocab_size=33,
    hidden_size=20,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=27,
    max_position_embeddings=40,
    layer_norm_eps=1e-5,
    mask_token_id=32,
    pad_token_id=1,
    position_embedding_type="rotary",
    rope_theta=100.0,
    token_dropout=True,
)

# name: (class, config, lengths of the documents, dtype of the file)
MODELS = {
    "bert-mlm": ("BertForMaskedLM", tf.BertConfig(**BERT), (7, 13), torch.float32),
    "gpt2-lm": ("GPT2LMHeadModel", tf.GPT2Config(**GPT2), (7, 13), torch.float32),
    "llama-gqa": (
        "LlamaForCausalLM",
        tf.LlamaConfig(
            **LLAMA,
            tie_word_embeddings=False,
            rope_parameters={"rope_type": "default", "rope_theta": 1000.0},
        ),
        (7, 13),
        torch.float32,
    ),
    "t5": (
        "T5ForConditionalGeneration",
        tf.T5Config(**T5, feed_forward_proj="relu", tie_word_embeddings=True),
        ((7, 5), (15, 14)),
        torch.float32,
    ),
    "bert-class": (
        "BertForSequenceClassification",
        tf.BertConfig(**BERT, **THREE),
        (5, 11),
        torch.float32,
    ),
    "bert-base": ("BertModel", tf.BertConfig(**BERT), (1, 9), torch.float32),
    "roberta-mlm": ("RobertaForMaskedLM", tf.RobertaConfig(**ROBERTA), (7, 13), torch.float32),
    "roberta-class": (
        "RobertaForSequenceClassification",
        tf.RobertaConfig(**ROBERTA, **THREE),
        (5, 11),
        torch.float32,
    ),
    "distilbert-mlm": (
        "DistilBertForMaskedLM",
        tf.DistilBertConfig(**DISTIL),
        (7, 13),
        torch.float32,
    ),
    "distilbert-class": (
        "DistilBertForSequenceClassification",
        tf.DistilBertConfig(**DISTIL, **THREE),
        (5, 11),
        torch.float32,
    ),
    "gpt2-inverse": (
        "GPT2LMHeadModel",
        tf.GPT2Config(**GPT2, scale_attn_by_inverse_layer_idx=True),
        (1, 11),
        torch.float32,
    ),
    "gpt2-class": (
        "GPT2ForSequenceClassification",
        tf.GPT2Config(**GPT2, **THREE),
        (5, 11),
        torch.float32,
    ),
    "llama-rope3": (
        "LlamaForCausalLM",
        tf.LlamaConfig(**LLAMA, tie_word_embeddings=True, rope_parameters=LLAMA3_ROPE),
        (5, 19),
        torch.float32,
    ),
    "mistral": (
        "MistralForCausalLM",
        tf.MistralConfig(
            **{**LLAMA, "head_dim": 6, "num_attention_heads": 4}, **SMALL_BASE, sliding_window=5
        ),
        (4, 13),
        torch.float32,
    ),
    "qwen2": (
        "Qwen2ForCausalLM",
        tf.Qwen2Config(
            **{**{k: v for k, v in LLAMA.items() if k != "head_dim"}, "num_attention_heads": 4},
            **SMALL_BASE,
        ),
        (7, 13),
        torch.float32,
    ),
    "qwen3": (
        "Qwen3ForCausalLM",
        tf.Qwen3Config(**LLAMA, **SMALL_BASE, tie_word_embeddings=True),
        (7, 13),
        torch.float32,
    ),
    "gemma3": ("Gemma3ForCausalLM", tf.Gemma3TextConfig(**GEMMA3), (5, 15), torch.float32),
    "t5-gated": (
        "T5ForConditionalGeneration",
        tf.T5Config(
            **{**T5, "num_layers": 1, "num_decoder_layers": 2},
            feed_forward_proj="gated-gelu",
            tie_word_embeddings=False,
        ),
        ((9, 3), (14, 15)),
        torch.float32,
    ),
    "t5-resaved": (
        "T5ForConditionalGeneration",
        tf.T5Config(
            **{**T5, "num_layers": 1, "num_decoder_layers": 1},
            feed_forward_proj="gated-gelu",
            tie_word_embeddings=False,
        ),
        ((4, 3), (5, 6)),
        torch.float32,
    ),
    "llama-bf16": (
        "LlamaForCausalLM",
        tf.LlamaConfig(**LLAMA, **SMALL_BASE, tie_word_embeddings=False),
        (5, 11),
        torch.bfloat16,
    ),
    "bert-token": (
        "BertForTokenClassification",
        tf.BertConfig(**SMALL_BERT, **THREE),
        (4, 9),
        torch.float32,
    ),
    "bert-span": ("BertForQuestionAnswering", tf.BertConfig(**SMALL_BERT), (4, 9), torch.float32),
    "roberta-token": (
        "RobertaForTokenClassification",
        tf.RobertaConfig(**dict(ROBERTA, num_hidden_layers=1), **THREE),
        (4, 9),
        torch.float32,
    ),
    "roberta-span": (
        "RobertaForQuestionAnswering",
        tf.RobertaConfig(**dict(ROBERTA, num_hidden_layers=1)),
        (4, 9),
        torch.float32,
    ),
    "distilbert-token": (
        "DistilBertForTokenClassification",
        tf.DistilBertConfig(**dict(DISTIL, n_layers=1), **THREE),
        (4, 9),
        torch.float32,
    ),
    "distilbert-span": (
        "DistilBertForQuestionAnswering",
        tf.DistilBertConfig(**dict(DISTIL, n_layers=1)),
        (4, 9),
        torch.float32,
    ),
    "xlm-roberta": (
        "XLMRobertaForMaskedLM",
        tf.XLMRobertaConfig(**dict(ROBERTA, num_hidden_layers=1)),
        (4, 9),
        torch.float32,
    ),
    "albert-mlm": ("AlbertForMaskedLM", tf.AlbertConfig(**ALBERT), (7, 13), torch.float32),
    "albert-class": (
        "AlbertForSequenceClassification",
        tf.AlbertConfig(**dict(ALBERT, num_hidden_groups=1, hidden_act="gelu"), **THREE),
        (4, 9),
        torch.float32,
    ),
    "albert-token": (
        "AlbertForTokenClassification",
        tf.AlbertConfig(**dict(ALBERT, num_hidden_layers=2), **THREE),
        (4, 9),
        torch.float32,
    ),
    "albert-span": (
        "AlbertForQuestionAnswering",
        tf.AlbertConfig(**dict(ALBERT, num_hidden_layers=2, num_hidden_groups=1)),
        (4, 9),
        torch.float32,
    ),
    "electra-generator": ("ElectraForMaskedLM", tf.ElectraConfig(**ELECTRA), (7, 13), torch.float32),
    "electra-detector": (
        "ElectraForPreTraining",
        tf.ElectraConfig(**dict(ELECTRA, embedding_size=18)),
        (4, 9),
        torch.float32,
    ),
    "electra-class": (
        "ElectraForSequenceClassification",
        tf.ElectraConfig(**dict(ELECTRA, num_hidden_layers=1), **THREE),
        (4, 9),
        torch.float32,
    ),
    "electra-token": (
        "ElectraForTokenClassification",
        tf.ElectraConfig(**dict(ELECTRA, num_hidden_layers=1), **THREE),
        (4, 9),
        torch.float32,
    ),
    "electra-span": (
        "ElectraForQuestionAnswering",
        tf.ElectraConfig(**dict(ELECTRA, num_hidden_layers=1, embedding_size=18)),
        (4, 9),
        torch.float32,
    ),
    "mpnet-mlm": ("MPNetForMaskedLM", tf.MPNetConfig(**MPNET), (7, 25), torch.float32),
    "mpnet-class": (
        "MPNetForSequenceClassification",
        tf.MPNetConfig(**dict(MPNET, num_hidden_layers=1), **THREE),
        (4, 9),
        torch.float32,
    ),
    "mpnet-token": (
        "MPNetForTokenClassification",
        tf.MPNetConfig(**dict(MPNET, num_hidden_layers=1), **THREE),
        (4, 9),
        torch.float32,
    ),
    "mpnet-span": (
        "MPNetForQuestionAnswering",
        tf.MPNetConfig(**dict(MPNET, num_hidden_layers=1)),
        (4, 9),
        torch.float32,
    ),
    "deberta-mlm": (
        "DebertaV2ForMaskedLM",
        tf.DebertaV2Config(**DEBERTA),
        (7, 37),
        torch.float32,
    ),
    "deberta-original": (
        "DebertaV2ForMaskedLM",
        tf.DebertaV2Config(
            **dict(
                DEBERTA,
                num_hidden_layers=1,
                hidden_size=22,
                num_attention_heads=2,
                position_buckets=9,
                max_relative_positions=50,
                legacy=False,
            )
        ),
        (1, 75),
        torch.float32,
    ),
    "deberta-class": (
        "DebertaV2ForSequenceClassification",
        tf.DebertaV2Config(
            **dict(
                DEBERTA,
                share_att_key=False,
                position_buckets=-1,
                max_relative_positions=5,
                norm_rel_ebd="none",
                position_biased_input=True,
                type_vocab_size=2,
                pooler_hidden_act="tanh",
            ),
            **THREE,
        ),
        (5, 17),
        torch.float32,
    ),
    "deberta-token": (
        "DebertaV2ForTokenClassification",
        tf.DebertaV2Config(
            **dict(
                DEBERTA,
                num_hidden_layers=1,
                pos_att_type=["c2p"],
                share_att_key=False,
                embedding_size=13,
                position_buckets=8,
                max_relative_positions=11,
            ),
            **THREE,
        ),
        (4, 23),
        torch.float32,
    ),
    "deberta-span": (
        "DebertaV2ForQuestionAnswering",
        tf.DebertaV2Config(**dict(DEBERTA, num_hidden_layers=1, pos_att_type=["p2c"])),
        (4, 19),
        torch.float32,
    ),
    "deberta-conv": (
        "DebertaV2ForMaskedLM",
        tf.DebertaV2Config(
            **dict(
                DEBERTA,
                hidden_size=14,
                num_attention_heads=2,
                conv_kernel_size=3,
                conv_act="gelu",
                norm_rel_ebd="none",
            )
        ),
        (2, 17),
        torch.float32,
    ),
    "deberta-plain": (
        "DebertaV2Model",
        tf.DebertaV2Config(
            **dict(
                DEBERTA, num_hidden_layers=1, relative_attention=False, position_biased_input=True
            )
        ),
        (3, 11),
        torch.float32,
    ),
    "esm-mlm": ("EsmForMaskedLM", tf.EsmConfig(**ESM), (9, 15), torch.float32),
    "esm-class": (
        "EsmForSequenceClassification",
        tf.EsmConfig(
            **dict(ESM, position_embedding_type="absolute", emb_layer_norm_before=True), **THREE
        ),
        (4, 9),
        torch.float32,
    ),
    "esm-token": (
        "EsmForTokenClassification",
        tf.EsmConfig(**dict(ESM, num_hidden_layers=1), **THREE),
        (4, 9),
        torch.float32,
    ),
    "longformer-mlm": (
        "LongformerForMaskedLM",
        tf.LongformerConfig(**LONGFORMER),
        (5, 27),
        torch.float32,
    ),
    "longformer-base": (
        "LongformerModel",
        tf.LongformerConfig(**dict(LONGFORMER, num_hidden_layers=2, attention_window=4)),
        (17, 21),
        torch.float32,
    ),
    "longformer-class": (
        "LongformerForSequenceClassification",
        tf.LongformerConfig(
            **dict(LONGFORMER, num_hidden_layers=2, attention_window=[4, 8]), **THREE
        ),
        (5, 13),
        torch.float32,
    ),
    "longformer-token": (
        "LongformerForTokenClassification",
        tf.LongformerConfig(**dict(LONGFORMER, num_hidden_layers=1, attention_window=[4]), **THREE),
        (5, 17),
        torch.float32,
    ),
    "longformer-span": (
        "LongformerForQuestionAnswering",
        tf.LongformerConfig(**dict(LONGFORMER, num_hidden_layers=2, attention_window=[4, 8])),
        (11, 15),
        torch.float32,
    ),
    "big-bird-mlm": ("BigBirdForMaskedLM", tf.BigBirdConfig(**BIG_BIRD), (11, 31), torch.float32),
    "big-bird-class": (
        "BigBirdForSequenceClassification",
        tf.BigBirdConfig(
            **dict(BIG_BIRD, block_size=2, num_random_blocks=2, use_bias=False), **THREE
        ),
        (18, 24),
        torch.float32,
    ),
    "big-bird-token": (
        "BigBirdForTokenClassification",
        tf.BigBirdConfig(**dict(BIG_BIRD, num_hidden_layers=1, block_size=2), **THREE),
        (16, 21),
        torch.float32,
    ),
    "big-bird-full": (
        "BigBirdForTokenClassification",
        tf.BigBirdConfig(
            **dict(
                BIG_BIRD,
                num_hidden_layers=1,
                attention_type="original_full",
                rescale_embeddings=True,
            ),
            **THREE,
        ),
        (5, 29),
        torch.float32,
    ),
    "big-bird-span": (
        "BigBirdForQuestionAnswering",
        tf.BigBirdConfig(**BIG_BIRD),
        (11, 31),
        torch.float32,
    ),
    "gpt2-f16": ("GPT2LMHeadModel", tf.GPT2Config(**GPT2), (5, 11), torch.float16),
}

MODELS.update({k: (*v, torch.float32) for k, v in fixture_seq2seq.MODELS.items()})
MODELS.update({k: (*v, torch.float32) for k, v in fixture_decoders.MODELS.items()})
MODELS.update({k: (*v, torch.float32) for k, v in fixture_vision.MODELS.items()})

NORM_PLUS_ONE = ("GemmaRMSNorm", "Gemma2RMSNorm", "Gemma3RMSNorm")
