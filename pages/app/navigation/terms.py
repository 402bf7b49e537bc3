"""The glossary: every term that the app teaches, once, and the page that shows it.

The search finds them, settings link to the pages that explain them, and texts of pages carry them:
``marked`` makes the first use of each on a page a link ``#term-softmax`` that explains itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import streamlit as st

from pages.i18n import N_, _, language, paragraph
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.norms import NORMS
from tfm_core.choices.variants.optimisers import OPTIMISERS
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.choices.variants.record import Registry, Variant

ADDRESS = "#term-"
"""Begins the link of a marked term."""
_CLAIMS = "term-claims"


@dataclass(frozen=True, slots=True)
class Term:
    """A term and the page that teaches it.

    name: translated where it is drawn. key: of its two sentences, in ``texts/terms.md``. page: a
    name of ``page_table.PAGES``. view: what the page's address says besides. settings: the settings
    of an experiment that it explains. also: other words that find it. marked: the English words
    that are marked in texts, if not its name and the plural of that. variant: what a registry says
    of it, in place of sentences of its own.
    """

    name: str
    key: str
    page: str
    view: Mapping[str, str] = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    also: str = ""
    marked: tuple[str, ...] | None = None
    variant: str = ""

    @property
    def forms(self) -> tuple[str, ...]:
        name = self.name.casefold()
        return (name, f"{name}s") if self.marked is None else self.marked

    @property
    def sentences(self) -> tuple[str, str]:
        """Return what it means, in the session's language: a line for the search, and one more."""
        if self.variant:
            return _(self.variant), _("It acts inside attention, on each pair of query and key.")
        first, _newline, second = paragraph(f"terms/{self.key}").partition("\n")
        return first, second


def _labels(variants: Registry[Variant]) -> str:
    return " ".join(variant.label for variant in variants.values())


TERMS = (
    Term(N_("How attention works"), "attention",
         "by-hand",
         also="어텐션",
         marked=("attention",)),
    Term(N_("Query, key, value"), "query-key-value",
         "by-hand", {"stage": "projections"}, ("projection_bias",),
         also="Q K V projection W_Q W_K W_V q_mappings k_mappings v_mappings queries "
         "keys values 쿼리 키 값",
         marked=("query", "queries")),
    Term(N_("Attention head"), "head",
         "by-hand", {"stage": "heads"}, ("n_heads",),
         also="multi-head d_head num_heads head_dim W_O fc_out out_projection My_MHA "
         "mha msa MyMSA MultiHeadAttention 멀티헤드 어텐션 헤드",
         marked=("head", "heads", "attention head", "attention heads")),
    Term(N_("Scaled dot product"), "scaled-dot-product",
         "by-hand", also="score sqrt energy d_k scaling variance 스케일드 닷 프로덕트 스케일링 "
         "분산 폭주",
         marked=("scaled dot product",)),
    Term(N_("Softmax"), "softmax",
         "tensors", {"op": "softmax"},
         also="sink 소프트맥스"),
    Term(N_("Cross-attention"), "cross-attention",
         "attention",
         also="cross_attn encoder_attention enc_dec_attention 교차 어텐션 크로스"),
    Term(N_("Self-attention"), "self-attention", "attention",
         also="attn SingleHeadAttention 셀프 어텐션"),
    Term(N_("Attention map"), "attention-map",
         "attention", also="heatmap weights"),
    Term(N_("Alignment"), "alignment",
         "attention", {"deeper": "alignment"},
         marked=("alignment",)),
    Term(N_("Attention is not explanation"), "not-explanation",
         "attention", {"deeper": "explain"}, also="ablation attribution", marked=()),
    Term(N_("Mask"), "mask", "masks",
         also="masked_fill 마스크 마스킹"),
    Term(N_("Causal mask"), "causal-mask",
         "masks", {"mask": "causal"},
         also="autoregressive future make_tgt_mask make_trg_mask look-ahead "
         "lookahead tril torch.tril 캐주얼 "
         "룩어헤드 마스크 마스킹 미래 토큰"),
    Term(N_("Padding mask"), "padding-mask",
         "masks", {"mask": "padding"},
         also="make_src_mask src_mask 패딩 마스크"),
    Term(N_("Sliding window"), "sliding-window",
         "masks", {"mask": "window"}, ("window",), also="local attention"),
    Term(N_("Positional encoding"), "positional-encoding",
         "positions", {}, ("position", "text_position"),
         also="sinusoidal position embedding PositionalEncoding pos_encoding My_Position "
         "위치 포지셔널 인코딩"),
    Term(N_("Learned positions"), "learned-positions",
         "positions", {"view": "learned"},
         also="pos_embedding position_embedding 위치 임베딩", marked=()),
    *(
        Term(kind.label, kind.name, "positions", {"view": kind.name}, marked=(), variant=kind.help)
        for kind in POSITIONS.values()
        if kind.is_inside
    ),
    Term(N_("Knock-out"), "knock-out",
         "knockouts", also="ablation lesion"),
    Term(N_("Head pruning"), "head-pruning",
         "knockouts", {"view": "pruning"}, also="importance Michel"),
    Term(N_("Encoder-decoder"), "encoder-decoder",
         "build", {"show": "transformer-base"}, ("family", "n_encoder_layers", "n_decoder_layers"),
         also="seq2seq translation Transformer EncoderDecoderTransformer 트랜스포머 "
         "인코더-디코더 번역",
         marked=("encoder-decoder",)),
    Term(N_("Encoder"), "encoder", "try", {"view": "sentiment"},
         also="BERT EncoderBlock EncoderLayer TransformerBlock MyEncoder 인코더"),
    Term(N_("Decoder"), "decoder", "try", {"view": "read"},
         also="DecoderBlock DecoderLayer 디코더"),
    Term(N_("Models of the study notebooks"), "notebooks",
         "build", {"show": "text-encoder"},
         also="Encoder(3, 16, 4, 2) SimpleTransformer SentimentAnalyzer ImageCaptioning "
         "My_Transformer", marked=()),
    Term(N_("Your notebook"), "your-notebook",
         "build", {"show": "notebook"},
         also="model.py paste sizes config.json 노트북", marked=()),
    Term(N_("Names in other libraries"), "library-names",
         "parameters", {"names": "hugging-face"},
         also="HuggingFace transformers TransformerLens c_attn q_proj lm_head hook_pattern "
         "hook_z blocks W_E W_in state_dict", marked=()),
    Term(N_("MyVIT"), "my-vit",
         "build", {"show": "text-vit"}, marked=()),
    Term(N_("Vision Transformer"), "vision-transformer",
         "try", {"view": "patches"}, ("patch_size", "stem"),
         also="ViT patch image patchify linear_mapper mlp_head 비전 트랜스포머 패치",
         marked=("Vision Transformer",)),
    Term(N_("CLS token"), "cls",
         "try", {"view": "patches"}, ("pooling",), also="pooling class_token cls_token",
         marked=("CLS token", "CLS")),
    Term(N_("Masked language model"), "masked-language-model",
         "try", {"view": "blanks"}, also="MLM BERT"),
    Term(N_("Span corruption"), "span-corruption",
         "try", {"view": "blanks"}, also="T5 sentinel"),
    Term(N_("Sentiment"), "sentiment", "try",
         {"view": "sentiment"}, also="classification 감정 감성 분석", marked=()),
    Term(N_("Language model"), "language-model", "try", {"view": "read"},
         also="GPT next token"),
    Term(N_("Temperature"), "temperature",
         "try", {"view": "continue"}),
    Term(N_("Top-k and top-p"), "top-k-top-p",
         "try", {"view": "continue"}, also="nucleus sampling",
         marked=("top-k", "top-p")),
    Term(N_("Beam search"), "beam-search",
         "try", {"view": "continue"}, also="greedy decoding"),
    Term(N_("Perplexity"), "perplexity",
         "try", {"view": "read"}, also="surprise entropy"),
    Term(N_("Logit lens"), "logit-lens",
         "try", {"view": "lens"}, also="residual stream"),
    Term(N_("Token"), "token", "words",
         {"view": "tokens"}, ("unit",),
         also="tokeniser vocabulary tokenizer vocab_size 토큰화 토큰 어휘 사전"),
    Term(N_("Byte-pair encoding"), "bpe",
         "words", {"cut": "bpe"}, also="BPE subword"),
    Term(N_("Batch"), "batch", "words",
         {"view": "batch"}, ("batch_size", "batch_warmup"), also="padding batch_size 패딩 배치",
         marked=("batch", "batches")),
    Term(N_("Embedding"), "embedding", "words",
         {"view": "embeddings"}, ("d_model", "tie_embeddings"),
         also="dec_embed lookup vector embed_size embed_dim n_hidden word_embedding "
         "token_embedding enc_embed 임베딩"),
    Term(N_("Tensor"), "tensor", "tensors",
         also="randn randint ones numel assert Sequential ToTensor hstack unsqueeze 텐서"),
    Term(N_("view and reshape"), "view", "tensors",
         {"op": "view"}, also="stride contiguous", marked=()),
    Term(N_("transpose"), "transpose", "tensors",
         {"op": "transpose"}, also="permute 전치", marked=()),
    Term(N_("Matrix product"), "matrix-product", "tensors",
         {"op": "matmul"}, also="matmul @ mm 행렬 곱"),
    Term(N_("einsum"), "einsum", "tensors", {"op": "einsum"},
         marked=("einsum",)),
    Term(N_("Broadcasting"), "broadcasting",
         "tensors", {"op": "broadcast"}),
    Term(N_("Feed-forward network"), "feed-forward",
         "walk", {}, ("d_ff", "activation"),
         also=f"MLP FFN {_labels(ACTIVATIONS)} ffn fc1 fc2 "
         "linear_1 linear_2 hidden_dim d_ff FeedForward 피드포워드 활성화 함수"),
    Term(N_("Mixture of experts"), "experts", "parameters", {},
         ("n_experts", "top_k", "balance_weight"),
         also="MoE router top-k load balance Mixtral Switch 전문가 혼합 라우터"),
    Term(N_("Residual connection"), "residual",
         "walk", {}, also="skip addnorm addnorm1 addnorm2 addnorm3 잔차 연결"),
    Term(N_("Layer normalisation"), "layer-norm",
         "walk", {}, ("norm", "norm_eps", "norm_first", "final_norm"),
         also=f"{_labels(NORMS)} pre-norm post-norm addnorm ln1 ln2 ln3 "
         "norm1 norm2 norm3 ln_final q_norm k_norm 레이어 층 정규화"),
    Term(N_("Dropout"), "dropout", "walk", {}, ("dropout",),
         also="드롭아웃"),
    Term(N_("Parameter count"), "parameters",
         "parameters", {}, ("n_layers", "bias"), also="count weights size memory FLOPs 파라미터",
         marked=("parameter", "parameters")),
    Term(N_("Recurrent network"), "rnn", "before", {},
         ("cell", "is_bidirectional"), also="RNN LSTM GRU"),
    Term(N_("Additive attention"), "additive-attention",
         "before", {"view": "history"}, ("attention",), also="Bahdanau Luong 덧셈 어텐션"),
    Term(N_("Captioning"), "captioning", "try", {"view": "scene"},
         also="캡션 이미지 캡셔닝", marked=()),
    Term(N_("Loss"), "loss",
         "training-step", {"stage": "loss"}, ("label_smoothing",),
         also="cross-entropy CrossEntropyLoss logits 손실 로짓"),
    Term(N_("Teacher forcing"), "teacher-forcing",
         "training-step", {"stage": "batch"}),
    Term(N_("Backpropagation"), "backpropagation", "training-step",
         {"stage": "backward"}, ("clip_norm",), also="gradient clipping chain rule autograd "
         "역전파 자동 미분"),
    Term(N_("Optimiser"), "optimiser", "training-step",
         {"stage": "update"}, ("optimizer", "beta1", "beta2", "weight_decay"),
         also=f"{_labels(OPTIMISERS)} momentum Newton-Schulz orthogonal "
         "최적화 옵티마이저"),
    Term(N_("Learning rate"), "learning-rate", "training-step",
         {"stage": "update"}, ("learning_rate", "schedule", "warmup"),
         also="warmup schedule 학습률"),
    Term(N_("Overfitting"), "overfitting", "practice",
         {"step": "train"}, also="memorise generalise 과적합"),
    Term(N_("Training, validation, test"), "splits",
         "practice", {"step": "split"}, ("n_train", "n_validation", "n_test", "final_test"),
         also="split",
         marked=("validation", "test set")),
    Term(N_("Early stopping"), "early-stopping",
         "practice", {"step": "early"}, ("patience", "validate_every")),
    Term(N_("Augmentation"), "augmentation",
         "practice", {"step": "augment"}, ("shift", "rotation", "scale", "slant")),
    Term(N_("Confusion matrix"), "confusion-matrix",
         "mistakes",
         also="혼동 행렬"),
    Term(N_("Checkpoint"), "checkpoint", "practice",
         {"step": "save"}, also="state_dict save"),
    Term(N_("Fused attention"), "fused-attention", "speed",
         {"compare": "attention"}, also="FlashAttention SDPA scaled_dot_product_attention"),
    Term(N_("Mixed precision"), "mixed-precision", "speed",
         {"compare": "checkpointing"}, ("precision",), also="bfloat16 float16 autocast"),
    Term(N_("Gradient checkpointing"), "gradient-checkpointing", "speed",
         {"compare": "checkpointing"}, ("checkpointing",)),
    Term(N_("Gradient"), "gradient", "training-step", {"stage": "backward"},
         also="derivative slope norm grad_norm 기울기 그래디언트"),
    Term(N_("Gradient clipping"), "clipping", "training-step", {"stage": "update"},
         also="clip_norm exploding"),
    Term(N_("Weight decay"), "weight-decay", "training-step", {"stage": "update"},
         also="AdamW L2 regularisation"),
    Term(N_("Warm-up and schedule"), "schedule", "training-step", {"stage": "update"},
         also="warmup cosine",
         marked=("schedule", "warm-up",)),
    Term(N_("Label smoothing"), "label-smoothing", "training-step", {"stage": "loss"},
         also="smoothing"),
    Term(N_("Logit"), "logit", "training-step", {"stage": "loss"},
         also="로짓 logits"),
    Term(N_("Epoch"), "epoch", "practice", {"step": "train"},
         also="에폭 step iteration"),
    Term(N_("Vocabulary"), "vocabulary", "words", {"view": "batch"},
         also="어휘 사전 빈도 frequency <unk> <bos> <eos> special"),
    Term(N_("Padding"), "padding", "words", {"view": "batch"},
         also="<pad> 패딩"),
    Term(N_("Patch"), "patch", "try", {"view": "patches"},
         also="patchify patch_size linear_mapper 패치",
         marked=("patch", "patches",)),
    Term(N_("One-hot vector"), "one-hot", "words", {"view": "embeddings"},
         also="onehot lookup 원핫 원-핫"),
    Term(N_("Corpus and chunk"), "corpus", "words", {"view": "tokens"},
         also="document 말뭉치 코퍼스 청크 문서", marked=()),
    Term(N_("Unknown word"), "unknown-word", "words", {"view": "batch"},
         also="OOV out-of-vocabulary unk 미등록 단어", marked=()),
    Term(N_("WordPiece"), "wordpiece", "words", {"cut": "bpe"},
         also="BERT subword 워드피스", marked=()),
    Term(N_("Word2Vec and GloVe"), "word2vec", "words", {"view": "embeddings"},
         also="static vectors analogy king - man + woman queen 단어 벡터 유추", marked=()),
    Term(N_("Contextual embedding"), "contextual", "try", {"view": "lens"},
         also="bank ELMo BERT hidden state 문맥 은행", marked=()),
    Term(N_("Cosine similarity"), "cosine", "words", {"view": "embeddings"},
         also="cosine_similarity 코사인 유사도", marked=()),
    Term(N_("T5 and BART"), "t5-bart", "try", {"view": "blanks"}, marked=()),
    Term(N_("Device"), "device", "speed", also="GPU CUDA MPS CPU 장치 그래픽 카드", marked=()),
    Term(N_("Export"), "export", "practice", {"step": "save"},
         also="download zip share 내보내기 내려받기", marked=()),
    Term(N_("Presenter mode"), "presenter", "attention",
         also="present slides full screen 발표 전체 화면", marked=()),
    Term(N_("Entropy"), "entropy", "try", {"view": "blanks"},
         also="nats bits Kullback-Leibler divergence"),
    Term(N_("Baseline of guessing"), "guessing", "training-step", {"stage": "loss"},
         also="chance ln(n) start loss", marked=()),
    Term(N_("Accuracy"), "accuracy", "practice", {"step": "train"},
         also="정확도 token accuracy sequence accuracy"),
    Term(N_("Confidence interval"), "confidence-interval", "practice", {"step": "split"},
         also="Wilson significance error bar",
         marked=("confidence interval",)),
    Term(N_("Seed"), "seed", "compare",
         also="random reproducible 시드"),
    Term(N_("Sweep"), "sweep", "sweeps",
         also="Optuna grid search hyperparameter trial"),
    Term(N_("Autoregression"), "autoregression", "try", {"view": "continue"},
         also="autoregressive generation decoding", marked=()),
    Term(N_("Greedy decoding"), "greedy", "try", {"view": "write"},
         also="argmax decoding",
         marked=("greedy decoding", "greedy",)),
    Term(N_("FLOPs"), "flops", "parameters",
         also="compute cost"),
)  # fmt: skip
BY_SETTING = {setting: term for term in TERMS for setting in term.settings}
"""The term that teaches a setting of an experiment, by the setting's name, such as ``n_heads``."""
BY_KEY = {term.key: term for term in TERMS}


def begin() -> None:
    """Forget which texts of the page carry terms; called before a page is drawn."""
    st.session_state[_CLAIMS] = {}


def marked(text: str) -> str:
    """Return Markdown in which the first use of each term on this page is a link to its meaning.

    The text that used a term first keeps it when only a part of the page is drawn again.
    """
    claims: dict[str, str] = st.session_state.setdefault(_CLAIMS, {})
    known = _forms(language())
    parts = _WHOLE.split(text)  # odd ones are not running text
    used: set[str] = set()

    def link(match: re.Match[str]) -> str:
        key = known[match[0].casefold()]
        if key in used or _ends_emphasis(match) or claims.setdefault(key, text) != text:
            return match[0]
        used.add(key)
        return f"[{match[0]}]({ADDRESS}{key})"

    pattern = _pattern(language())
    linked = "".join(
        part if number % 2 else pattern.sub(link, part) for number, part in enumerate(parts)
    )
    return _BOLD_LINK.sub(r"[**\1**](\2)", linked)


def _ends_emphasis(match: re.Match[str]) -> bool:
    """Whether emphasis that holds more than a term ends behind it, and a particle follows.

    To Markdown, ``**`` between a bracket and a letter ends nothing.
    """
    before, after = match.string[: match.start()], match.string[match.end() :]
    stars = re.match(r"(\*{1,2})\w", after)
    return stars is not None and not (stars[1] == "**" and re.search(r"(?<!\w)\*\*$", before))


_BOLD_LINK = re.compile(r"\*\*\[([^\]]*)\]\(([^)]*)\)\*\*(?=\w)")
"""A bold term before a particle: the link goes around the bold word."""
_WHOLE = re.compile(
    r"(```.*?```|`[^`]*`|\$[^$]+\$|\[[^\]]*\]\([^)]*\)|:[a-z-]+:?\[|:material/\w+:|<[^>]*>|^#.*$)",
    re.DOTALL | re.MULTILINE,
)
"""What of Markdown is not running text: code, formulas, links, directives, headings."""


@lru_cache(maxsize=8)
def _forms(spoken: str) -> dict[str, str]:
    """Return the key of each word that is marked in texts of a language, in lower case."""
    if spoken == "en":
        return {form.casefold(): term.key for term in TERMS for form in term.forms}
    return {_(term.name).casefold(): term.key for term in TERMS}


@lru_cache(maxsize=8)
def _pattern(spoken: str) -> re.Pattern[str]:
    longest_first = sorted(_forms(spoken), key=len, reverse=True)
    end = r"(?![\w-])" if spoken == "en" else ""  # elsewhere particles may follow
    return re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, longest_first))}){end}", re.I)
