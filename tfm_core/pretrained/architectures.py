"""The architectures of Transformers that hold a model, and what their config.json says of it.

The way in and the way out share their tables: names are those of ``anatomy.hugging_face``, and a
config.json is right where the reader of ``families`` makes the same settings of it. A setting of
which it makes another one is what stands in the way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tfm_core.choices.config import BlockConfig, DecoderOnlyConfig, ModelConfig, ViTConfig
from tfm_core.choices.config.base import acts, choices_of, needs_of, plain
from tfm_core.choices.config.shape import ImageShape, Shape, TextShape
from tfm_core.choices.variants.positions import HIGHEST_TURNS, LOWEST_TURNS, POSITIONS
from tfm_core.data.vocabulary import BOS, EOS, PAD
from tfm_core.pretrained.families import BENDS, GATES, PRETRAINED, Plan, PretrainedFamily
from tfm_core.pretrained.rewriting import Form, joins_words
from tfm_core.pretrained.settings import Settings
from tfm_core.sentences import N_, StudentError, listed


class Unexportable(StudentError):
    """No architecture gives the answers of a model; the sentence says what stands in the way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """An architecture. name: its model_type. model_class: of Transformers, auto: what loads it.

    family: our kind of models. form: of a model's own form and the longest text, the form in which
    it is written. config: what config.json says of that form, and of which the model's own one was.
    """

    name: str
    family: str
    model_class: str
    auto: str
    form: Callable[[Any, Any, int], Form]
    config: Callable[[Any, Any, Form], dict[str, Any]]

    @property
    def reader(self) -> PretrainedFamily:
        """How it is read."""
        return PRETRAINED[self.name]


@dataclass(frozen=True, slots=True)
class Fit:
    """How a model is written. config: the config.json. plan: how the reader takes it."""

    architecture: Architecture
    ours: Form
    form: Form
    config: Mapping[str, Any]
    plan: Plan


def fit(model: ModelConfig, shape: Shape, *, length: int) -> Fit:
    """Return how a model is written for Transformers. length: tokens of its longest text.

    Raises Unexportable.
    """
    if isinstance(model, BlockConfig) and not model.has_feed_forward:
        raise Unexportable(
            "Every Transformers architecture has feed-forward layers; this model has none."
        )
    tries: list[tuple[Fit, list[str]]] = []
    errors = [
        Unexportable(
            "Only decoder-only models and Vision Transformers can be saved as a Hugging Face "
            "folder."
        )
    ]
    for architecture in ARCHITECTURES:
        if architecture.family != model.family:
            continue
        try:
            tries.append(_fit(architecture, model, shape, length))
        except Unexportable as error:
            errors.append(error)
    if not tries:
        raise errors[-1]
    found, obstacles = min(tries, key=lambda attempt: len(attempt[1]))
    if obstacles:
        raise Unexportable(
            "No Transformers architecture matches this model. The closest, {label}, would need "
            "{settings}.",
            label=found.architecture.reader.label,
            settings=listed(obstacles),
        )
    return found


def _fit(
    architecture: Architecture, model: ModelConfig, shape: Shape, length: int
) -> tuple[Fit, list[str]]:
    """Return how an architecture would hold a model, and the settings that it lacks, in words."""
    ours = Form(model, shape)
    form = architecture.form(model, shape, length)
    config = architecture.config(model, shape, form)
    try:
        plan = architecture.reader.plan(Settings(config), _NAMES)
    except StudentError as error:  # of a size beyond all bounds
        raise Unexportable(error.sentence) from None
    wanted, found = _effective(form), _effective(Form(plan.model, plan.shape))
    obstacles: list[str] = [
        N_(
            "{setting}: {needed}, not {value}",
            setting=type(model).model_fields[name].title or name,
            needed=_shown(model, name, found[name]),
            value=_shown(model, name, wanted[name]),
        )
        for name in wanted
        if found[name] != wanted[name] and name != "max_len"  # which follows from the positions
    ]
    if architecture.form is _llama_form and joins_words(model, shape):
        obstacles.append(N_("one vocabulary for both source and answer"))
    return Fit(architecture, ours, form, config, plan), obstacles


_WITHOUT_EFFECT = {"dropout": 0.0, "query_key_gain": 1.0, "balance_weight": 0.0}
"""Settings that change training, or the first weights, alone."""


def _effective(form: Form) -> dict[str, Any]:
    """Return the settings of a model; those without an effect are what they always are."""
    model: Any = form.model
    values: dict[str, Any] = model.model_dump()
    for name, field in type(model).model_fields.items():
        if not acts(needs_of(field), values):
            values[name] = field.default
    values |= _WITHOUT_EFFECT
    values["n_kv_heads"] = model.n_kv_heads if model.is_grouped else 0
    values["head_dim"] = model.d_head
    values["qkv_bias"] = model.qkv_bias and not model.attention_bias
    values["n_experts"] = model.n_experts if model.has_experts else 0
    values["top_k"] = model.top_k if model.has_experts else 0
    values["projection_bias"] = model.attention_bias == model.bias
    usual = model.norm_first == model.has_final_norm
    values["final_norm"] = "pre-norm" if usual else values["final_norm"]
    if "max_len" in values:
        values["max_len"] = model.n_positions
    if "tie_embeddings" in values:
        assert isinstance(form.shape, TextShape)
        values["tie_embeddings"] = model.is_tied(form.shape)
    if isinstance(form.shape, TextShape):
        values.pop("pooling", None)  # of labels alone
    return values


def _shown(model: ModelConfig, name: str, value: object) -> str:
    """Return a value of a setting as the app shows it."""
    choices = choices_of(type(model).model_fields[name]) or {}
    if isinstance(value, tuple | list):
        return listed(choices[one].label for one in value) if value else N_("none")
    if isinstance(value, str) and value in choices:
        return choices[value].label
    if isinstance(value, bool):
        return N_("on") if value else N_("off")
    return plain(value) if isinstance(value, int | float) else str(value)


def _form(model: Any, shape: Shape, **changes: Any) -> Form:
    """Return a form; what it says may not be possible, which then stands in the way."""
    if not model.has_own_width:  # so that heads follow a stream that gets wider
        changes["head_dim"] = 0
    return Form(model.model_copy(update=changes), shape)


_WITH_BIASES = {"bias": True, "projection_bias": True, "n_kv_heads": 0}


def _gpt2_form(model: DecoderOnlyConfig, shape: TextShape, length: int) -> Form:
    is_joined = joins_words(model, shape)
    n_words = shape.tgt_vocabulary + (shape.src_vocabulary if is_joined else 0)
    is_wider = Form(model, shape).has_output_bias or is_joined
    # heads of another width would not fit what they are written as
    width = model.d_model + model.n_heads * (is_wider and not model.has_own_width)
    changes: dict[str, Any] = {
        **_WITH_BIASES,
        "d_model": width,
        "norm_eps": model.norm_eps * model.d_model / width,
        "tie_embeddings": model.is_tied(shape) and not (shape.scale_embedding or is_wider),
    }
    if not POSITIONS[model.position].is_inside:
        changes |= {"position": "learned", "max_len": model.n_positions or max(2, length)}
    return _form(model, _writing(n_words), **changes)


def _writing(n_words: int) -> TextShape:
    """Return the shape of a language model in Transformers."""
    return TextShape(
        n_words,
        n_words,
        pad_id=None,
        one_vocabulary=True,
        output_bias=False,
        scale_embedding=False,
        has_source=False,
    )


def _gpt2_config(model: DecoderOnlyConfig, shape: TextShape, form: Form) -> dict[str, Any]:
    new: Any = form.model
    first = shape.src_vocabulary if joins_words(model, shape) else 0
    assert isinstance(form.shape, TextShape)
    return {
        "model_type": "gpt2",
        "vocab_size": form.shape.tgt_vocabulary,
        "n_positions": new.max_len,
        "n_embd": new.d_model,
        "n_layer": new.n_layers,
        "n_head": new.n_heads,
        "n_inner": new.d_ff,
        "activation_function": _named(new.activation, BENDS),
        "layer_norm_epsilon": new.norm_eps,
        "attn_pdrop": new.dropout,
        "embd_pdrop": new.dropout,
        "resid_pdrop": new.dropout,
        "tie_word_embeddings": new.tie_embeddings,
        "pad_token_id": first + PAD,
        "bos_token_id": first + BOS,
        "eos_token_id": first + EOS,
    }


def _llama_form(model: DecoderOnlyConfig, shape: TextShape, length: int) -> Form:
    is_tied = model.is_tied(shape) and not shape.scale_embedding
    new = _writing(shape.tgt_vocabulary)
    return _form(model, new, max_len=max(2, length), tie_embeddings=is_tied)


def _llama_config(model: DecoderOnlyConfig, shape: TextShape, form: Form) -> dict[str, Any]:
    new: Any = form.model
    return {
        "model_type": "llama",
        "vocab_size": shape.tgt_vocabulary,
        "max_position_embeddings": new.max_len,
        "hidden_size": new.d_model,
        "num_hidden_layers": new.n_layers,
        "num_attention_heads": new.n_heads,
        "num_key_value_heads": new.n_kv_heads or new.n_heads,
        "head_dim": new.d_head,
        "intermediate_size": new.d_ff,
        "hidden_act": _named(new.activation, GATES),
        "rms_norm_eps": new.norm_eps,
        "attention_dropout": new.dropout,
        "tie_word_embeddings": new.tie_embeddings,
        "rope_theta": new.rope_theta,
        "rope_scaling": _rope_scaling(new),
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
    }


def _rope_scaling(model: DecoderOnlyConfig) -> dict[str, Any] | None:
    if model.rope_scaling == "none":
        return None
    written: dict[str, Any] = {"rope_type": model.rope_scaling, "factor": model.rope_factor}
    if model.rope_scaling == "llama3":
        written |= {
            "low_freq_factor": float(LOWEST_TURNS),
            "high_freq_factor": float(HIGHEST_TURNS),
            "original_max_position_embeddings": model.rope_original_len,
        }
    return written


def _vit_form(model: ViTConfig, shape: ImageShape, length: int) -> Form:
    is_inside = POSITIONS[model.position].is_inside
    return _form(model, shape, **_WITH_BIASES, **({} if is_inside else {"position": "learned"}))


def _vit_config(model: ViTConfig, shape: ImageShape, form: Form) -> dict[str, Any]:
    return {
        "model_type": "vit",
        "hidden_size": model.d_model,
        "num_attention_heads": model.n_heads,
        "num_hidden_layers": model.n_layers,
        "intermediate_size": model.d_ff,
        "hidden_act": _named(model.activation, BENDS),
        "layer_norm_eps": model.norm_eps,
        "patch_size": model.patch_size,
        "image_size": shape.image_size,
        "num_channels": shape.channels,
        "num_labels": shape.n_classes,
        "qkv_bias": True,
        "hidden_dropout_prob": model.dropout,
        "attention_probs_dropout_prob": model.dropout,
    }


def _named(ours: str, names: Mapping[str, str]) -> str:
    """Return Transformers' name of a variant, or of the first there is where it has none."""
    return next((name for name, one in names.items() if one == ours), next(iter(names)))


_NAMES = frozenset({"classifier.weight"})
"""Names of tensors by which the reader of a ViT knows that it answers."""

ARCHITECTURES = (
    Architecture(
        name="gpt2",
        family="decoder-only",
        model_class="GPT2LMHeadModel",
        auto="AutoModelForCausalLM",
        form=_gpt2_form,
        config=_gpt2_config,
    ),
    Architecture(
        name="llama",
        family="decoder-only",
        model_class="LlamaForCausalLM",
        auto="AutoModelForCausalLM",
        form=_llama_form,
        config=_llama_config,
    ),
    Architecture(
        name="vit",
        family="vit",
        model_class="ViTForImageClassification",
        auto="AutoModelForImageClassification",
        form=_vit_form,
        config=_vit_config,
    ),
)
"""The one to prefer first."""
