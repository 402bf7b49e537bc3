"""The families of Hugging Face models that can be opened, by the ``model_type`` of their config.

Each record says how its config.json becomes a configuration of the engine. Which tensor goes where
is a column of names in ``anatomy.hugging_face``; ``adapt`` is what remains: a transposed matrix,
or a kernel that is a matrix here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from tfm_core.choices.config import (
    DecoderOnlyConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    ModelConfig,
    ViTConfig,
)
from tfm_core.choices.config.pretrained_tasks import ARCHITECTURES
from tfm_core.choices.config.shape import ImageShape, Shape, TextShape
from tfm_core.choices.variants.record import Named, Registry
from tfm_core.data.opened_folder import Unopenable
from tfm_core.pretrained.heads import Part, head_of
from tfm_core.pretrained.settings import MAX_WORDS, Settings, unsupported
from tfm_core.sentences import N_, Paragraph

Adapt = Callable[[str, list[Tensor]], Tensor]
"""From the name of a parameter here, and its tensors there, to its values."""


def stacked(name: str, parts: list[Tensor]) -> Tensor:
    """Return one tensor of several, one below the other."""
    return parts[0] if len(parts) == 1 else torch.cat(parts)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to build, and how its weights are read.

    sources: parameters here that have other tensors there than the column says. notes: what
    differs from the folder, in sentences. head: the parts of a head, see ``heads``.
    """

    model: ModelConfig
    shape: Shape
    adapt: Adapt = stacked
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    head: Mapping[str, Part] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainedFamily(Named):
    """A family. name: its model_type, and its column in ``anatomy.hugging_face.COLUMNS``.

    base: what stands in front of all names but those of heads. heads: beginnings of the names of
    heads that are not opened, buffers: a pattern of what changes no answer. plan(settings, names):
    what to build, from config.json and the names of the tensors.
    """

    base: str | None
    heads: tuple[str, ...]
    buffers: str
    plan: Callable[[Settings, Set[str]], Plan]

    @property
    def label(self) -> str:
        """What the family is called."""
        return ARCHITECTURES[self.name]


BENDS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
}
GATES = {"silu": "swiglu", "gelu": "geglu"}
TRANSPOSED = ("in_projection.weight", "out_projection.weight", "up.weight", "down.weight")


def _gpt2(settings: Settings, names: Set[str]) -> Plan:
    settings.only("add_cross_attention", False)
    settings.only("scale_attn_weights", True)
    settings.only("scale_attn_by_inverse_layer_idx", False)
    width = settings.whole("n_embd", "hidden_size")
    model = DecoderOnlyConfig.parse(
        {
            "d_model": width,
            "n_heads": settings.whole("n_head", "num_attention_heads"),
            "n_layers": settings.whole("n_layer", "num_hidden_layers"),
            "d_ff": settings.whole("n_inner", default=4 * width),
            "activation": settings.chosen("activation_function", "gelu_new", BENDS),
            "norm_eps": settings.number("layer_norm_epsilon", 1e-5),
            "position": "learned",
            "max_len": settings.whole("n_positions", "max_position_embeddings"),
            "tie_embeddings": settings.boolean("tie_word_embeddings", True),
        }
    )
    shape = _writing(settings)
    head = head_of(settings, names, n_words=shape.tgt_vocabulary, width=width)
    return Plan(model, shape, _turned, head=head)


def _writing(settings: Settings) -> TextShape:
    """Return the shape of a language model."""
    words = _words(settings)
    return TextShape(
        words,
        words,
        pad_id=None,
        one_vocabulary=True,
        output_bias=False,
        scale_embedding=False,
        has_source=False,
    )


def _turned(name: str, parts: list[Tensor]) -> Tensor:
    """GPT-2's layers are Conv1D, whose matrices have their inputs first."""
    return parts[0].t() if name.endswith(TRANSPOSED) else parts[0]


def _bert(settings: Settings, names: Set[str]) -> Plan:
    settings.only("position_embedding_type", "absolute")
    settings.only("is_decoder", False)
    model = EncoderOnlyConfig.parse(
        {
            "d_model": settings.whole("hidden_size"),
            "n_heads": settings.whole("num_attention_heads"),
            "n_layers": settings.whole("num_hidden_layers"),
            "d_ff": settings.whole("intermediate_size"),
            "activation": settings.chosen("hidden_act", "gelu", BENDS),
            "norm_eps": settings.number("layer_norm_eps", 1e-12),
            "norm_first": False,
            "position": "learned",
            "max_len": settings.whole("max_position_embeddings"),
        }
    )
    words = _words(settings)
    shape = TextShape(
        words,
        words,
        pad_id=settings.token("pad_token_id", 0),
        one_vocabulary=True,
        head="pooler" if "pooler.dense.weight" in names else "states",
        n_segments=settings.whole("type_vocab_size", default=2),
        scale_embedding=False,
    )
    return Plan(model, shape, head=head_of(settings, names, n_words=words, width=model.d_model))


def _vit(settings: Settings, names: Set[str]) -> Plan:
    settings.only("qkv_bias", True)
    if "classifier.weight" not in names:
        raise Unopenable(Paragraph("pretrained/no-classes"))
    model = ViTConfig.parse(
        {
            "d_model": settings.whole("hidden_size"),
            "n_heads": settings.whole("num_attention_heads"),
            "n_layers": settings.whole("num_hidden_layers"),
            "d_ff": settings.whole("intermediate_size"),
            "activation": settings.chosen("hidden_act", "gelu", BENDS),
            "norm_eps": settings.number("layer_norm_eps", 1e-12),
            "patch_size": settings.whole("patch_size", default=16),
            "pooling": "cls",
            "position": "learned",
            "stem": "patches",
        }
    )
    size = settings.whole("image_size", default=224, most=4096)
    if size % model.patch_size:
        raise unsupported("patch_size", model.patch_size, f"image_size {size}")
    channels = settings.whole("num_channels", default=3, most=16)
    return Plan(model, ImageShape(size, channels, settings.labels()), _flattened)


def _flattened(name: str, parts: list[Tensor]) -> Tensor:
    """A kernel (D, C, P, P) is the matrix (D, C * P * P) here, and a table has no batch."""
    if name == "positions.table":
        return parts[0][0]
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
    is_scaled = settings.boolean(
        "scale_decoder_outputs", settings.boolean("tie_word_embeddings", True)
    )
    model = EncoderDecoderConfig.parse(
        {
            "d_model": width,
            "n_heads": heads,
            "d_ff": settings.whole("d_ff"),
            "head_dim": 0 if d_kv * heads == width else d_kv,
            "n_encoder_layers": layers,
            "n_decoder_layers": n_decoder_layers,
            "activation": activation,
            "norm": "rmsnorm",
            "norm_eps": settings.number("layer_norm_epsilon", 1e-6),
            "bias": False,
            "position": "t5-bias",
            "mistakes": ("no-scale",),
            "tie_embeddings": "lm_head.weight" not in names,
        }
    )
    # T5 begins what it writes with its padding, which is attended to like any other token
    shape = TextShape(
        words, words, pad_id=None, one_vocabulary=True, output_bias=False, scale_embedding=False
    )
    if not is_scaled:
        return Plan(model, shape, sources=sources)

    def adapt(name: str, parts: list[Tensor]) -> Tensor:
        """T5 divides what its output layer reads by sqrt(d_model): the last norm does that here."""
        is_last = name == "decoder.final_norm.weight"
        return parts[0] * width**-0.5 if is_last else stacked(name, parts)

    note = N_("T5 scales the input of its output layer; here its last norm does this.")
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


def _llama(settings: Settings, names: Set[str]) -> Plan:
    settings.only("sliding_window", None)
    for name in ("attention_bias", "mlp_bias"):
        settings.only(name, False, None)
    heads, width = settings.whole("num_attention_heads"), settings.whole("hidden_size")
    kv_heads = settings.whole("num_key_value_heads", default=heads)
    usual = max(1, width // heads)
    d_head = settings.whole("head_dim", default=usual)
    model = DecoderOnlyConfig.parse(
        {
            "d_model": width,
            "n_heads": heads,
            "n_kv_heads": kv_heads if kv_heads != heads else 0,
            "head_dim": d_head if d_head != usual else 0,
            "n_layers": settings.whole("num_hidden_layers"),
            "d_ff": settings.whole("intermediate_size"),
            "activation": settings.chosen("hidden_act", "silu", GATES),
            "norm": "rmsnorm",
            "norm_eps": settings.number("rms_norm_eps", 1e-6),
            "bias": False,
            "position": "rotary",
            **_rope(settings),
            "tie_embeddings": settings.boolean("tie_word_embeddings", False),
        }
    )

    def adapt(name: str, parts: list[Tensor]) -> Tensor:
        """Pair i is dimensions i and i + d_head / 2 there, 2i and 2i + 1 here."""
        if not name.endswith("in_projection.weight"):
            return stacked(name, parts)
        q, k, v = parts
        return torch.cat([_interleaved(q, heads), _interleaved(k, kv_heads), v])

    return Plan(model, _writing(settings), adapt)


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


def _interleaved(weight: Tensor, n_heads: int) -> Tensor:
    """Return the rows of each head, pair by pair, where all first ones stand before the second."""
    width = weight.size(1)
    return weight.view(n_heads, 2, -1, width).transpose(1, 2).reshape(-1, width)


def _words(settings: Settings) -> int:
    return settings.whole("vocab_size", most=MAX_WORDS)


PRETRAINED = Registry(
    "pretrained model",
    PretrainedFamily(
        name="gpt2",
        base="transformer.",
        heads=("score.",),
        buffers=r"h\.\d+\.attn\.(masked_)?bias",
        plan=_gpt2,
    ),
    PretrainedFamily(
        name="llama",
        base="model.",
        heads=("score.",),
        buffers=r"(layers\.\d+\.self_attn\.)?rotary_emb\.inv_freq",
        plan=_llama,
    ),
    PretrainedFamily(
        name="bert",
        base="bert.",
        heads=("cls.", "classifier.", "qa_outputs."),
        buffers=r"embeddings\.position_ids|cls\.predictions\.decoder\.(weight|bias)",
        plan=_bert,
    ),
    PretrainedFamily(name="vit", base="vit.", heads=(), buffers=r"(?!)", plan=_vit),
    PretrainedFamily(
        name="t5", base=None, heads=(), buffers=r"(encoder|decoder)\.embed_tokens\.weight", plan=_t5
    ),
)
