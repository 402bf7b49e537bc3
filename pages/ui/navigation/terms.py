"""Terms that the app teaches: what each means, in a line, and which page shows it.

The search finds them, and settings link to the pages that explain them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pages.i18n import N_
from tfm_core.variants.activations import ACTIVATIONS
from tfm_core.variants.norms import NORMS
from tfm_core.variants.optimisers import OPTIMISERS
from tfm_core.variants.positions import POSITIONS
from tfm_core.variants.record import Registry, Variant


@dataclass(frozen=True, slots=True)
class Term:
    """A term and the page that teaches it.

    name, meaning: translated where they are drawn. page: a name of ``page_table.PAGES``. view: what
    the page's address says besides. settings: the settings of an experiment that it explains.
    also: other words that find it.
    """

    name: str
    meaning: str
    page: str
    view: Mapping[str, str] = field(default_factory=dict)
    settings: tuple[str, ...] = ()
    also: str = ""


def _labels(variants: Registry[Variant]) -> str:
    return " ".join(variant.label for variant in variants.values())


TERMS = (
    Term(N_("How attention works"), N_("Each token averages the values of others."),
         "by-hand",
         also="어텐션"),
    Term(N_("Query, key, value"), N_("What a token seeks, offers and passes on."),
         "by-hand", {"stage": "projections"}, ("projection_bias",),
         also="Q K V projection W_Q W_K W_V q_mappings k_mappings v_mappings queries "
         "keys values 쿼리 키 값"),
    Term(N_("Attention head"), N_("One of several parallel attentions."),
         "by-hand", {"stage": "heads"}, ("n_heads",),
         also="multi-head d_head num_heads head_dim W_O fc_out out_projection My_MHA "
         "mha msa MultiHeadAttention 멀티헤드 어텐션 헤드"),
    Term(N_("Scaled dot product"), N_("q·k over √d, so softmax does not saturate."),
         "by-hand", also="score sqrt energy d_k 스케일드 닷 프로덕트"),
    Term(N_("Softmax"), N_("Turns scores into shares that sum to 1."),
         "tensors", {"op": "softmax"},
         also="소프트맥스"),
    Term(N_("Cross-attention"), N_("The decoder reads the encoder."),
         "attention",
         also="enc_dec_attention 교차 어텐션 크로스"),
    Term(N_("Self-attention"), N_("Tokens of a sequence read each other."), "attention",
         also="SingleHeadAttention 셀프 어텐션"),
    Term(N_("Attention map"), N_("A head's weights: queries × keys."),
         "attention", also="heatmap weights"),
    Term(N_("Alignment"), N_("Which source word each output word matches."),
         "attention", {"deeper": "alignment"}),
    Term(N_("Attention is not explanation"), N_("Weights show reading, not effect."),
         "attention", {"deeper": "explain"}, also="ablation attribution"),
    Term(N_("Mask"), N_("Which query may attend to which key."), "masks",
         also="masked_fill 마스크 마스킹"),
    Term(N_("Causal mask"), N_("Attend only to earlier tokens."),
         "masks", {"mask": "causal"},
         also="autoregressive future make_tgt_mask make_trg_mask look-ahead tril 캐주얼 "
         "룩어헤드 마스크"),
    Term(N_("Padding mask"), N_("Hides padding."),
         "masks", {"mask": "padding"},
         also="make_src_mask src_mask 패딩 마스크"),
    Term(N_("Sliding window"), N_("Attend only to neighbours."),
         "masks", {"mask": "window"}, ("window",), also="local attention"),
    Term(N_("Positional encoding"), N_("How attention learns order."),
         "positions", {}, ("position", "text_position"),
         also="sinusoidal position embedding PositionalEncoding pos_encoding 위치 인코딩"),
    Term(N_("Learned positions"), N_("A trained vector per position."),
         "positions", {"view": "learned"},
         also="pos_embedding position_embedding 위치 임베딩"),
    *(
        Term(kind.label, kind.help, "positions", {"view": kind.name})
        for kind in POSITIONS.values()
        if kind.is_inside
    ),
    Term(N_("Knock-out"), N_("Switch a part off to see its effect."),
         "knockouts", also="ablation lesion"),
    Term(N_("Head pruning"), N_("Remove the least important heads."),
         "knockouts", {"view": "pruning"}, also="importance Michel"),
    Term(N_("Encoder-decoder"), N_("One part reads, the other writes."),
         "build", {"show": "transformer-base"}, ("family", "n_encoder_layers", "n_decoder_layers"),
         also="seq2seq translation Transformer EncoderDecoderTransformer 트랜스포머 인코더-디코더"),
    Term(N_("Encoder"), N_("Reads a whole sequence at once."), "encoders",
         also="BERT EncoderBlock EncoderLayer TransformerBlock MyEncoder 인코더"),
    Term(N_("Decoder"), N_("Writes token by token."), "gpt",
         also="DecoderBlock DecoderLayer 디코더"),
    Term(N_("Models of the study notebooks"),
         N_("Their models as configurations."),
         "build", {"show": "text-encoder"},
         also="Encoder(3, 16, 4, 2) SimpleTransformer SentimentAnalyzer ImageCaptioning "
         "My_Transformer"),
    Term(N_("MyVIT"), N_("The notebook's ViT: 1,770 parameters."),
         "build", {"show": "text-vit"}),
    Term(N_("Vision Transformer"), N_("Reads an image as patches."),
         "encoders", {"view": "patches"}, ("patch_size", "stem"),
         also="ViT patch image patchify linear_mapper mlp_head 비전 트랜스포머 패치"),
    Term(N_("CLS token"), N_("Summarises the whole sequence."),
         "encoders", {"view": "patches"}, ("pooling",), also="pooling class_token cls_token"),
    Term(N_("Masked language model"), N_("Guesses hidden words, as BERT."),
         "encoders", {"view": "blanks"}, also="MLM BERT"),
    Term(N_("Span corruption"), N_("T5's task: restore hidden spans."),
         "encoders", {"view": "blanks"}, also="T5 sentinel"),
    Term(N_("Sentiment"), N_("One label per sentence."), "encoders",
         {"view": "sentiment"}, also="classification"),
    Term(N_("Language model"), N_("Predicts the next token."), "gpt",
         also="GPT next token"),
    Term(N_("Temperature"), N_("Flattens or sharpens probabilities."),
         "gpt", {"part": "write"}),
    Term(N_("Top-k and top-p"), N_("Sample only the likeliest tokens."),
         "gpt", {"part": "write"}, also="nucleus sampling"),
    Term(N_("Beam search"), N_("Keeps the likeliest few texts."),
         "gpt", {"part": "write"}, also="greedy decoding"),
    Term(N_("Perplexity"), N_("How many tokens the model hesitates between."),
         "gpt", {"part": "read"}, also="surprise entropy"),
    Term(N_("Logit lens"), N_("What each layer would predict."),
         "gpt", {"part": "lens"}, also="residual stream"),
    Term(N_("Token"), N_("A numbered piece of text."), "words",
         {"view": "tokens"}, ("unit",),
         also="tokeniser vocabulary tokenizer 토큰화 토큰 어휘 사전"),
    Term(N_("Byte-pair encoding"), N_("Merges frequent pairs into tokens."),
         "words", {"cut": "bpe"}, also="BPE subword"),
    Term(N_("Batch"), N_("Several examples, padded to one length."), "words",
         {"view": "batch"}, ("batch_size", "batch_warmup"), also="padding batch_size 패딩 배치"),
    Term(N_("Embedding"), N_("A trained vector per token."), "words",
         {"view": "embeddings"}, ("d_model", "tie_embeddings"),
         also="lookup vector embed_size embed_dim n_hidden word_embedding "
         "token_embedding enc_embed 임베딩"),
    Term(N_("Tensor"), N_("Numbers with a shape."), "tensors",
         also="텐서"),
    Term(N_("view and reshape"), N_("Another shape, same numbers."), "tensors",
         {"op": "view"}, also="stride contiguous"),
    Term(N_("transpose"), N_("Swaps two axes."), "tensors",
         {"op": "transpose"}, also="permute 전치"),
    Term(N_("Matrix product"), N_("Rows times columns."), "tensors",
         {"op": "matmul"}, also="matmul @ mm 행렬 곱"),
    Term(N_("einsum"), N_("A product by named axes."), "tensors", {"op": "einsum"}),
    Term(N_("Broadcasting"), N_("Repeats a tensor along missing axes."),
         "tensors", {"op": "broadcast"}),
    Term(N_("Feed-forward network"), N_("Two linear layers per token."),
         "walk", {}, ("d_ff", "activation"),
         also=f"MLP FFN {_labels(ACTIVATIONS)} fc1 fc2 "
         "linear_1 linear_2 hidden_dim d_ff 피드포워드"),
    Term(N_("Residual connection"), N_("A layer adds to its input."),
         "walk", {}, also="skip addnorm 잔차 연결"),
    Term(N_("Layer normalisation"), N_("Mean 0 and deviation 1 per token."),
         "walk", {}, ("norm", "norm_eps", "norm_first", "final_norm"),
         also=f"{_labels(NORMS)} pre-norm post-norm addnorm ln1 norm1 ln_final 레이어 층 정규화"),
    Term(N_("Dropout"), N_("Zeroes random activations."), "walk", {}, ("dropout",),
         also="드롭아웃"),
    Term(N_("Parameter count"), N_("Where a model's weights are."),
         "parameters", {}, ("n_layers", "bias"), also="count weights size memory FLOPs"),
    Term(N_("Recurrent network"), N_("Reads word by word."), "before", {},
         ("cell", "is_bidirectional"), also="RNN LSTM GRU"),
    Term(N_("Additive attention"), N_("Bahdanau's scores: a small network."),
         "before", {"view": "history"}, ("attention",), also="Bahdanau Luong"),
    Term(N_("Captioning"), N_("From image to sentence."), "captions"),
    Term(N_("Loss"), N_("What training lowers."),
         "training-step", {"stage": "loss"}, ("label_smoothing",),
         also="cross-entropy CrossEntropyLoss logits 손실 로짓"),
    Term(N_("Teacher forcing"), N_("The decoder trains on true words."),
         "training-step", {"stage": "batch"}),
    Term(N_("Backpropagation"), N_("Computes every weight's gradient."), "training-step",
         {"stage": "backward"}, ("clip_norm",), also="gradient clipping chain rule 역전파"),
    Term(N_("Optimiser"), N_("Turns gradients into updates."), "training-step",
         {"stage": "update"}, ("optimizer", "beta1", "beta2", "weight_decay"),
         also=f"{_labels(OPTIMISERS)} momentum Newton-Schulz orthogonal"),
    Term(N_("Learning rate"), N_("How far weights move per step."), "training-step",
         {"stage": "update"}, ("learning_rate", "schedule", "warmup"),
         also="warmup schedule 학습률"),
    Term(N_("Overfitting"), N_("Memorising the training examples."), "practice",
         {"step": "train"}, also="memorise generalise 과적합"),
    Term(N_("Training, validation, test"), N_("Train, choose, judge once."),
         "practice", {"step": "split"}, ("n_train", "n_validation", "n_test", "final_test"),
         also="split"),
    Term(N_("Early stopping"), N_("Stop when validation stalls."),
         "practice", {"step": "early"}, ("patience", "validate_every")),
    Term(N_("Augmentation"), N_("Varies every image a little."),
         "practice", {"step": "augment"}, ("shift", "rotation", "scale", "slant")),
    Term(N_("Confusion matrix"), N_("Which class is taken for which."),
         "mistakes",
         also="혼동 행렬"),
    Term(N_("Checkpoint"), N_("Saved weights to resume from."), "practice",
         {"step": "save"}, also="state_dict save"),
    Term(N_("Fused attention"), N_("The same result without maps."), "speed",
         {"compare": "attention"}, also="FlashAttention SDPA scaled_dot_product_attention"),
    Term(N_("Mixed precision"), N_("16-bit where it suffices."), "speed",
         {"compare": "precision"}, ("precision",), also="bfloat16 float16 autocast"),
    Term(N_("Gradient checkpointing"), N_("Less memory, more compute."), "speed",
         {"compare": "checkpointing"}, ("checkpointing",)),
    Term(N_("torch.compile"), N_("Compiles a model's operations."), "speed",
         {"compare": "compile"}, ("compile",)),
)  # fmt: skip
BY_SETTING = {setting: term for term in TERMS for setting in term.settings}
"""The term that teaches a setting of an experiment, by the setting's name, such as ``n_heads``."""
