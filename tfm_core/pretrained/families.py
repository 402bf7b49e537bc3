"""The families of Hugging Face models that can be opened, by the ``model_type`` of their config.

Each record says how its config.json becomes a configuration of the engine. Which tensor goes where
is a column of names in ``anatomy.hugging_face``; ``adapt`` is what remains: a transposed matrix, a
kernel that is a matrix here, rows of a table that no token has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from tfm_core.config import (
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ModelConfig,
    ViTConfig,
)
from tfm_core.config.pretrained_tasks import ARCHITECTURES
from tfm_core.config.shape import ImageShape, Shape, TextShape
from tfm_core.pretrained.folder import Unopenable
from tfm_core.pretrained.settings import MAX_WORDS, Settings, unsupported
from tfm_core.pretrained.stream import reordered
from tfm_core.sentences import N_
from tfm_core.variants.record import Named, Registry

Adapt = Callable[[str, list[Tensor]], Tensor]
"""From the name of a parameter here, and its tensors there, to its values."""


def stacked(name: str, parts: list[Tensor]) -> Tensor:
    """Return one tensor of several, one below the other."""
    return parts[0] if len(parts) == 1 else torch.cat(parts)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to build, and how its weights are read.

    sources: parameters here that have other tensors there than the column says. zeros: parameters
    here that the model lacks and that change nothing where they are zero. notes: what differs from
    the folder, in sentences.
    """

    model: ModelConfig
    shape: Shape
    adapt: Adapt = stacked
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    zeros: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainedFamily(Named):
    """A family. name: its model_type. column: in ``anatomy.hugging_face.COLUMNS``.

    base: what stands in front of all names but those of heads. heads: beginnings of the names of
    heads that are not opened, buffers: a pattern of what changes no answer. plan(settings, names):
    what to build, from config.json and the names of the tensors.
    """

    column: str
    base: str | None
    heads: tuple[str, ...]
    buffers: str | None
    plan: Callable[[Settings, Set[str]], Plan]

    @property
    def label(self) -> str:
        """What the family is called."""
        return ARCHITECTURES[self.name]


BENDS = {
    "gelu": "gelu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh", "relu": "relu",
}  # fmt: skip
GATES = {"silu": "swiglu", "gelu": "geglu"}
TRANSPOSED = ("in_projection.weight", "out_projection.weight", "up.weight", "down.weight")


def _gpt2(settings: Settings, names: Set[str]) -> Plan:
    settings.only("add_cross_attention", False)
    model, words = DecoderOnlyConfig.parse(_gpt2_settings(settings)), _words(settings)
    shape = TextShape(
        words, words, pad_id=None, one_vocabulary=True, output_bias=False,
        scale_embedding=False, has_source=False,
    )  # fmt: skip
    return Plan(model, shape, _turned)


def _gpt2_settings(settings: Settings) -> dict[str, Any]:
    settings.only("scale_attn_weights", True)
    settings.only("scale_attn_by_inverse_layer_idx", False)
    width = settings.whole("n_embd", "hidden_size")
    return {
        "d_model": width,
        "n_heads": settings.whole("n_head", "num_attention_heads"),
        "n_layers": settings.whole("n_layer", "num_hidden_layers"),
        "d_ff": settings.whole("n_inner", default=4 * width),
        "activation": settings.chosen("activation_function", "gelu_new", BENDS),
        "norm_eps": settings.number("layer_norm_epsilon", 1e-5),
        "position": "learned",
        "max_len": settings.whole("n_positions", "max_position_embeddings"),
        "tie_embeddings": settings.boolean("tie_word_embeddings", True),
    }  # fmt: skip


def _turned(name: str, parts: list[Tensor]) -> Tensor:
    """GPT-2's layers are Conv1D, whose matrices have their inputs first."""
    return parts[0].t() if name.endswith(TRANSPOSED) else parts[0]


def _encoder_decoder(settings: Settings, names: Set[str]) -> Plan:
    """Return the plan of an encoder of Megatron's BERT and a GPT-2 that reads what it hands over.

    They may differ in nothing but their depth and their words: a model here has one width.
    """
    reader = settings.section("encoder", "megatron-bert")
    writer = settings.section("decoder", "gpt2")
    writer.only("add_cross_attention", True)
    written = _gpt2_settings(writer)
    read = _megatron_settings(reader)
    for name, value in read.items():
        if name != "n_layers" and written[name] != value:
            raise Unopenable(
                "{name} is {one} in the encoder and {other} in the decoder; both must be equal.",
                name=name, one=str(value), other=str(written[name]),
            )  # fmt: skip
    model = EncoderDecoderConfig.parse({
        **{name: value for name, value in written.items() if name != "n_layers"},
        "n_encoder_layers": read["n_layers"], "n_decoder_layers": written["n_layers"],
    })  # fmt: skip
    shape = TextShape(
        _words(reader), _words(writer), pad_id=reader.token("pad_token_id", 0),
        output_bias=False, scale_embedding=False,
    )  # fmt: skip

    def adapt(name: str, parts: list[Tensor]) -> Tensor:
        if name.startswith("decoder.layers") and name.endswith(TRANSPOSED):
            return torch.cat([part.t() for part in parts])
        return _typed(name, parts)

    return Plan(model, shape, adapt, sources=_typed_positions("encoder.embeddings"))


def _megatron(settings: Settings, names: Set[str]) -> Plan:
    head, n_answers = "states", _words(settings)
    if "pooler.dense.weight" in names:
        head = "pooler"
    elif "classifier.weight" in names:
        head, n_answers = "tokens", settings.labels()
    shape = TextShape(
        _words(settings), n_answers, pad_id=settings.token("pad_token_id", 0), head=head,
        scale_embedding=False,
    )  # fmt: skip
    model = EncoderOnlyConfig.parse(_megatron_settings(settings))
    return Plan(model, shape, _typed, sources=_typed_positions("embeddings"))


def _megatron_settings(settings: Settings) -> dict[str, Any]:
    settings.only("position_embedding_type", "absolute", None)
    settings.only("is_decoder", False)
    return {
        "d_model": settings.whole("hidden_size"),
        "n_heads": settings.whole("num_attention_heads"),
        "n_layers": settings.whole("num_hidden_layers"),
        "d_ff": settings.whole("intermediate_size"),
        "activation": settings.chosen("hidden_act", "gelu", BENDS),
        "norm_eps": settings.number("layer_norm_eps", 1e-12),
        "position": "learned", "max_len": settings.whole("max_position_embeddings"),
    }  # fmt: skip


def _typed_positions(stack: str) -> dict[str, tuple[str, ...]]:
    """Return where positions come from: no norm follows, so the first segment is added to them."""
    names = ("position_embeddings", "token_type_embeddings")
    return {"src_positions.table": tuple(f"{stack}.{name}.weight" for name in names)}


def _typed(name: str, parts: list[Tensor]) -> Tensor:
    if name == "src_positions.table":
        positions, types = parts
        return positions + types[:1]
    return stacked(name, parts)


def _marian(settings: Settings, names: Set[str]) -> Plan:
    """Return the plan of the Transformer of 2017, with two vocabularies."""
    settings.only("share_encoder_decoder_embeddings", False)
    heads = settings.whole("encoder_attention_heads", default=16)
    settings.only("decoder_attention_heads", heads)
    d_ff = settings.whole("encoder_ffn_dim", default=4096)
    settings.only("decoder_ffn_dim", d_ff)
    width, words = settings.whole("d_model", default=1024), _words(settings)
    model = EncoderDecoderConfig.parse({
        "d_model": width, "n_heads": heads, "d_ff": d_ff,
        "n_encoder_layers": settings.whole("encoder_layers", default=12),
        "n_decoder_layers": settings.whole("decoder_layers", default=12),
        "activation": settings.chosen("activation_function", "gelu", BENDS),
        "norm_first": False, "position": "sinusoidal",
        "tie_embeddings": settings.boolean("tie_word_embeddings", True),
    })  # fmt: skip
    shape = TextShape(
        words, settings.whole("decoder_vocab_size", default=words, most=MAX_WORDS),
        pad_id=settings.token("pad_token_id", 58100),
        scale_embedding=settings.boolean("scale_embedding", False),
    )  # fmt: skip
    order = torch.arange(width).view(2, -1).t().flatten()  # a sine and a cosine, pair by pair

    def adapt(name: str, parts: list[Tensor]) -> Tensor:
        """Marian's waves are all sines, then all cosines: so are the dimensions of its vectors."""
        value = parts[0][0] if name == "output.bias" else stacked(name, parts)
        return reordered(name, value, order)

    return Plan(model, shape, adapt, sources={"output.bias": ("final_logits_bias",)})


def _bert(settings: Settings, names: Set[str]) -> Plan:
    settings.only("position_embedding_type", "absolute")
    settings.only("is_decoder", False)
    return _encoder(settings, names, settings.whole("max_position_embeddings"))


def _roberta(settings: Settings, names: Set[str]) -> Plan:
    """Return the plan of a BERT whose first token has the position behind the padding's."""
    settings.only("position_embedding_type", "absolute")
    settings.only("is_decoder", False)
    skipped = (settings.token("pad_token_id", 1) or 0) + 1

    def adapt(name: str, parts: list[Tensor]) -> Tensor:
        return parts[0][skipped:] if name == "src_positions.table" else stacked(name, parts)

    rows = settings.whole("max_position_embeddings") - skipped
    return _encoder(settings, names, rows, default_pad=1, adapt=adapt)


def _encoder(
    settings: Settings, names: Set[str], rows: int, *, default_pad: int = 0, adapt: Adapt = stacked
) -> Plan:
    model = EncoderOnlyConfig.parse({
        "d_model": settings.whole("hidden_size"),
        "n_heads": settings.whole("num_attention_heads"),
        "n_layers": settings.whole("num_hidden_layers"),
        "d_ff": settings.whole("intermediate_size"),
        "activation": settings.chosen("hidden_act", "gelu", BENDS),
        "norm_eps": settings.number("layer_norm_eps", 1e-12),
        "norm_first": False, "position": "learned", "max_len": rows,
    })  # fmt: skip
    head = "pooler" if "pooler.dense.weight" in names else "states"
    segments = settings.whole("type_vocab_size", default=2)
    shape = _encoder_shape(settings, head, segments, default_pad)
    return Plan(model, shape, adapt)


def _encoder_shape(settings: Settings, head: str, segments: int, default_pad: int) -> TextShape:
    words = _words(settings)
    return TextShape(
        words, words, pad_id=settings.token("pad_token_id", default_pad), one_vocabulary=True,
        head=head, n_segments=segments, scale_embedding=False,
    )  # fmt: skip


def _distilbert(settings: Settings, names: Set[str]) -> Plan:
    """Return the plan of a BERT without segments; the one that it gets here is zero."""
    model = EncoderOnlyConfig.parse({
        "d_model": settings.whole("dim"),
        "n_heads": settings.whole("n_heads"),
        "n_layers": settings.whole("n_layers"),
        "d_ff": settings.whole("hidden_dim"),
        "activation": settings.chosen("activation", "gelu", BENDS),
        "norm_eps": 1e-12, "norm_first": False, "position": "learned",
        "max_len": settings.whole("max_position_embeddings"),
    })  # fmt: skip
    note = N_("DistilBERT has no segments: here it has one, of zeros.")
    shape = _encoder_shape(settings, "states", 1, 0)
    return Plan(model, shape, zeros=("segments.table.weight",), notes=(note,))


def _vit(settings: Settings, names: Set[str]) -> Plan:
    settings.only("qkv_bias", True)
    if "classifier.weight" not in names:
        raise Unopenable("This Vision Transformer has no classifier.")
    model = ViTConfig.parse({
        "d_model": settings.whole("hidden_size"),
        "n_heads": settings.whole("num_attention_heads"),
        "n_layers": settings.whole("num_hidden_layers"),
        "d_ff": settings.whole("intermediate_size"),
        "activation": settings.chosen("hidden_act", "gelu", BENDS),
        "norm_eps": settings.number("layer_norm_eps", 1e-12),
        "patch_size": settings.whole("patch_size", default=16),
        "pooling": "cls", "position": "learned", "stem": "patches",
    })  # fmt: skip
    return Plan(model, _picture_shape(settings, model.patch_size, settings.labels()), _flattened)


def _picture_shape(settings: Settings, patch_size: int, n_classes: int) -> ImageShape:
    size = settings.whole("image_size", default=224, most=4096)
    if size % patch_size:
        raise unsupported("patch_size", patch_size, f"image_size {size}")
    return ImageShape(size, settings.whole("num_channels", default=3, most=16), n_classes)


def _flattened(name: str, parts: list[Tensor]) -> Tensor:
    """A kernel (D, C, P, P) is the matrix (D, C * P * P) here, and a table has no batch."""
    return parts[0][0] if name == "positions.table" else _unrolled(name, parts)


def _siglip(settings: Settings, names: Set[str]) -> Plan:
    """Return the plan of a ViT whose head reads the mean of its patches."""
    pictures = settings.section("vision_config", "siglip_vision_model")
    pictures.only("vision_use_head", False)
    if "classifier.weight" not in names:
        raise Unopenable("This SigLIP has no classifier of pictures.")
    model = ViTConfig.parse({
        "d_model": pictures.whole("hidden_size", default=768),
        "n_heads": pictures.whole("num_attention_heads", default=12),
        "n_layers": pictures.whole("num_hidden_layers", default=12),
        "d_ff": pictures.whole("intermediate_size", default=3072),
        "activation": pictures.chosen("hidden_act", "gelu_pytorch_tanh", BENDS),
        "norm_eps": pictures.number("layer_norm_eps", 1e-6),
        "patch_size": pictures.whole("patch_size", default=16),
        "pooling": "mean", "position": "learned", "stem": "patches",
    })  # fmt: skip
    return Plan(model, _picture_shape(pictures, model.patch_size, settings.labels()), _unrolled)


def _unrolled(name: str, parts: list[Tensor]) -> Tensor:
    return parts[0].flatten(1) if name == "stem.projection.weight" else stacked(name, parts)


def _t5(settings: Settings, names: Set[str]) -> Plan:
    settings.only("relative_attention_num_buckets", 32)
    settings.only("relative_attention_max_distance", 128)
    width, heads = settings.whole("d_model"), settings.whole("num_heads")
    d_kv = settings.whole("d_kv", default=64)
    layers, words = settings.whole("num_layers"), _words(settings)
    n_decoder_layers = settings.whole("num_decoder_layers", default=layers)
    activation = settings.chosen("feed_forward_proj", "relu", _T5_BENDS)
    sources = {}
    if activation == "geglu_tanh":  # beside a gate, the first matrix has another name
        sources = _beside_gates({"encoder": (layers, 1), "decoder": (n_decoder_layers, 2)})
    has_output = "lm_head.weight" in names
    is_scaled = settings.boolean(
        "scale_decoder_outputs", settings.boolean("tie_word_embeddings", True)
    )
    model = EncoderDecoderConfig.parse({
        "d_model": width, "n_heads": heads, "d_ff": settings.whole("d_ff"),
        "head_dim": 0 if d_kv * heads == width else d_kv, "n_encoder_layers": layers,
        "n_decoder_layers": n_decoder_layers, "activation": activation,
        "norm": "rmsnorm", "norm_eps": settings.number("layer_norm_epsilon", 1e-6),
        "bias": False, "position": "t5-bias", "mistakes": ("no-scale",),
        "tie_embeddings": not (has_output or is_scaled),
    })  # fmt: skip
    # T5 begins what it writes with its padding, which is attended to like any other token
    shape = TextShape(
        words, words, pad_id=None, one_vocabulary=True, output_bias=False, scale_embedding=False,
    )  # fmt: skip
    if not is_scaled:
        return Plan(model, shape, sources=sources)

    def adapt(name: str, parts: list[Tensor]) -> Tensor:
        """T5 divides what its output layer reads by sqrt(d_model): the matrix does that here."""
        return parts[0] * width**-0.5 if name == "output.weight" else stacked(name, parts)

    note = N_("T5 scales what its output layer reads: here the matrix is scaled.")
    if not has_output:
        sources["output.weight"] = ("shared.weight",)
    return Plan(model, shape, adapt, sources=sources, notes=(note,))


_T5_BENDS = {"relu": "relu", "gated-gelu": "geglu_tanh"}


def _beside_gates(stacks: Mapping[str, tuple[int, int]]) -> dict[str, tuple[str, ...]]:
    """Return where the first matrices of T5's gated layers are. stacks: layers, and the place."""
    return {
        f"{stack}.layers.{i}.feed_forward.up.weight": (
            f"{stack}.block.{i}.layer.{place}.DenseReluDense.wi_1.weight",
        )
        for stack, (n_layers, place) in stacks.items()
        for i in range(n_layers)
    }


def _qwen3(settings: Settings, names: Set[str]) -> Plan:
    """Return the plan of a Llama that norms each head's queries and keys."""
    settings.only("use_sliding_window", False)
    plan = _of_llama(settings, d_head=128)
    return replace(plan, model=plan.model.replace(qk_norm=True))


def _qwen2(settings: Settings, names: Set[str]) -> Plan:
    """Return the plan of a Llama whose queries, keys and values have biases."""
    settings.only("use_sliding_window", False)
    plan = _of_llama(settings)
    return replace(plan, model=plan.model.replace(qkv_bias=True))


def _mixtral(settings: Settings, names: Set[str]) -> Plan:
    """Return the plan of a Mistral with experts, whose shares sum to 1."""
    plan = _mistral(settings, names)
    n, top_k = (
        settings.whole("num_local_experts", default=8),
        settings.whole("num_experts_per_tok", default=2),
    )
    if top_k == 1:  # whose share is 1 there, and what the router gives it here
        raise unsupported("num_experts_per_tok", top_k, f"2 … {n}")
    return replace(plan, model=plan.model.replace(n_experts=n, top_k=top_k))


def _mistral(settings: Settings, names: Set[str]) -> Plan:
    """Return the plan of a Llama with a window, in which it counts the query itself."""
    plan, window = _of_llama(settings), settings.whole("sliding_window", default=1)
    return replace(plan, model=plan.model.replace(window=window - 1))


def _llama(settings: Settings, names: Set[str]) -> Plan:
    settings.only("sliding_window", None)
    return _of_llama(settings)


def _of_llama(settings: Settings, *, d_head: int | None = None) -> Plan:
    """Return the plan of a Llama. d_head: of a config.json that says none."""
    heads, width = settings.whole("num_attention_heads"), settings.whole("hidden_size")
    kv_heads = settings.whole("num_key_value_heads", default=heads)
    usual = max(1, width // heads)
    d_head = settings.whole("head_dim", default=d_head or usual)
    for name in ("attention_bias", "mlp_bias"):
        settings.only(name, False, None)
    words = _words(settings)
    model = DecoderOnlyConfig.parse({
        "d_model": width, "n_heads": heads, "n_kv_heads": kv_heads if kv_heads != heads else 0,
        "head_dim": d_head if d_head != usual else 0,
        "n_layers": settings.whole("num_hidden_layers"),
        "d_ff": settings.whole("intermediate_size"),
        "activation": settings.chosen("hidden_act", "silu", GATES),
        "norm": "rmsnorm", "norm_eps": settings.number("rms_norm_eps", 1e-6),
        "bias": False, "position": "rotary", **_rope(settings),
        "tie_embeddings": settings.boolean("tie_word_embeddings", False),
    })  # fmt: skip
    shape = TextShape(
        words, words, pad_id=None, one_vocabulary=True, output_bias=False,
        scale_embedding=False, has_source=False,
    )  # fmt: skip

    def adapt(name: str, parts: list[Tensor]) -> Tensor:
        """Pair i is dimensions i and i + d_head / 2 there, 2i and 2i + 1 here."""
        if name.endswith((".query_norm.weight", ".key_norm.weight")):
            return interleaved(parts[0][:, None], 1)[:, 0]
        if name.endswith("in_projection.bias"):
            q, k, v = (part[:, None] for part in parts)
            return torch.cat([interleaved(q, heads), interleaved(k, kv_heads), v])[:, 0]
        if not name.endswith("in_projection.weight"):
            return stacked(name, parts)
        q, k, v = parts
        return torch.cat([interleaved(q, heads), interleaved(k, kv_heads), v])

    return Plan(model, shape, adapt)


_SCALINGS = {"default": "none", "linear": "linear", "llama3": "llama3"}


def _rope(settings: Settings) -> dict[str, Any]:
    """Return our settings of rotary positions, which Transformers 5 keeps in one place."""
    new, old = settings.part("rope_parameters"), settings.part("rope_scaling")
    theta = new.number("rope_theta", settings.number("rope_theta", 10000.0))
    given = new if new.has("rope_type") else old
    kind = given.chosen("rope_type" if given.has("rope_type") else "type", "default", _SCALINGS)
    found: dict[str, Any] = {"rope_theta": theta, "rope_scaling": kind}
    if kind != "none":
        found["rope_factor"] = given.number("factor", 1.0)
    if kind == "llama3":
        given.only("low_freq_factor", 1.0)
        given.only("high_freq_factor", 4.0)
        found["rope_original_len"] = given.whole("original_max_position_embeddings", most=10**7)
    return found


def interleaved(weight: Tensor, n_heads: int) -> Tensor:
    """Return the rows of each head, pair by pair, where all first ones stand before the second."""
    width = weight.size(1)
    return weight.view(n_heads, 2, -1, width).transpose(1, 2).reshape(-1, width)


def _words(settings: Settings) -> int:
    return settings.whole("vocab_size", most=MAX_WORDS)


_POSITION_IDS = r"embeddings\.position_ids"

PRETRAINED = Registry(
    "pretrained model",
    PretrainedFamily(
        name="gpt2", column="gpt2", base="transformer.", heads=("score.",),
        buffers=r"h\.\d+\.attn\.(masked_)?bias", plan=_gpt2,
    ),
    PretrainedFamily(
        name="bert", column="bert", base="bert.",
        heads=("cls.", "classifier.", "qa_outputs."), buffers=_POSITION_IDS, plan=_bert,
    ),
    PretrainedFamily(
        name="roberta", column="bert", base="roberta.",
        heads=("lm_head.", "classifier.", "qa_outputs."), buffers=_POSITION_IDS, plan=_roberta,
    ),
    PretrainedFamily(
        name="distilbert", column="distilbert", base="distilbert.",
        heads=("vocab_", "pre_classifier.", "classifier.", "qa_outputs."),
        buffers=_POSITION_IDS, plan=_distilbert,
    ),
    PretrainedFamily(
        name="vit", column="vit", base="vit.", heads=(), buffers=None, plan=_vit,
    ),
    PretrainedFamily(
        name="t5", column="t5", base=None, heads=(),
        buffers=r"(encoder|decoder)\.embed_tokens\.weight", plan=_t5,
    ),
    PretrainedFamily(
        name="llama", column="llama", base="model.", heads=("score.",),
        buffers=r"(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq", plan=_llama,
    ),
    PretrainedFamily(
        name="mistral", column="llama", base="model.", heads=("score.",),
        buffers=r"(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq", plan=_mistral,
    ),
    PretrainedFamily(
        name="qwen3", column="qwen3", base="model.", heads=("score.",),
        buffers=r"rotary_emb\.inv_freq", plan=_qwen3,
    ),
    PretrainedFamily(
        name="qwen2", column="llama", base="model.", heads=("score.",),
        buffers=r"(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq", plan=_qwen2,
    ),
    PretrainedFamily(
        name="mixtral", column="mixtral", base="model.", heads=("score.",),
        buffers=r"(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq", plan=_mixtral,
    ),
    PretrainedFamily(
        name="encoder-decoder", column="encoder-decoder",
        base=None, heads=(),
        buffers=r"encoder\.(pooler\..*|embeddings\.position_ids)"
        r"|decoder\.transformer\.h\.\d+\.(attn|crossattention)\.(masked_)?bias",
        plan=_encoder_decoder,
    ),
    PretrainedFamily(
        name="marian", column="bart", base="model.", heads=(),
        buffers=r"(encoder|decoder)\.embed_positions\.weight", plan=_marian,
    ),
    PretrainedFamily(
        name="megatron-bert", column="megatron-bert", base="bert.",
        heads=("cls.", "classifier.", "qa_outputs."), buffers=_POSITION_IDS, plan=_megatron,
    ),
    PretrainedFamily(
        name="siglip", column="siglip", base=None, heads=(),
        buffers=r"vision_model\.(embeddings\.position_ids|head\..*)", plan=_siglip,
    ),
)  # fmt: skip
