"""The model here that is most like a pasted one, what it counts, and where both differ."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from typing import Any

from tfm_core.anatomy.blocks import N_BUCKETS
from tfm_core.config.base import ConfigError
from tfm_core.config.model import MODEL_CONFIGS
from tfm_core.config.shape import ImageShape, Shape, TextShape
from tfm_core.facts.architectures import ARCHITECTURES, Architecture
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.inspect.notebook.blocks import Stack, stacks_of, unbuildable
from tfm_core.inspect.notebook.ends import Ends, missing
from tfm_core.inspect.notebook.given import (
    FLAGS,
    LEN,
    MAX_LEN,
    MAX_WORDS,
    PIXELS,
    WORDS,
    Values,
    activation_of,
    given_in,
    whole,
)
from tfm_core.inspect.notebook.pasted import Layer, Pasted, Unread, read
from tfm_core.sentences import N_, StudentError
from tfm_core.variants.activations import ACTIVATIONS

_USUAL: Mapping[str, object] = {"norm_first": False, "activation": "relu", "dropout": 0.0}
"""What a notebook's model is where it does not say: that of 2017."""
_PYTORCH: Mapping[str, object] = {
    "family": "encoder-decoder", "d_model": 512, "n_heads": 8, "n_encoder_layers": 6,
    "n_decoder_layers": 6, "d_ff": 2048, "dropout": 0.1, "activation": "relu",
    "norm_first": False, "final_norm": "always",
}  # fmt: skip
"""What ``nn.Transformer`` is where its call does not say."""
_OF_CLASS = {
    "Encoder": "text-encoder",
    "SimpleTransformer": "text-simple",
    "SentimentAnalyzer": "text-sentiment",
    "EncoderDecoderTransformer": "text-korean",
    "My_Transformer": "text-synthetic",
    "Transformer": "text-transformer",
    "MyVIT": "text-vit",
}


@dataclass(frozen=True, slots=True)
class YourModel:
    """A pasted model, built here.

    counted: the parameters that the text shows or states, None where neither. differences:
    sentences on what differs, and on what the text leaves open. sizes: a short text that gives the
    same model again, for a link.
    """

    architecture: Architecture
    counted: int | None
    total: int
    differences: tuple[str, ...]
    unread: tuple[Unread, ...]
    n_lines: int
    sizes: str


@lru_cache(maxsize=64)
def your_model(text: str) -> YourModel:
    """Return the model of a text. Raises ValueError, in a sentence, where it says none."""
    pasted = read(text)
    said: list[str] = []
    values, shape = _of_layers(pasted, said) if pasted.layers else _of_sizes(pasted)
    config, found = _made(values, shape)
    lengths = _lengths(pasted, found, getattr(config, "max_len", MAX_LEN))
    label = N_("Your notebook")
    known = Architecture("notebook", label, config, found, *lengths, batch=2)
    total = parameter_table(config, found).total
    if pasted.counted is not None and pasted.layers and pasted.total not in (None, pasted.counted):
        said.append(
            N_(
                "The text states {stated:,} parameters; its own lines add up to {n:,}.",
                stated=pasted.total,
                n=pasted.counted,
            )
        )
    sizes = _sizes_text(known)
    return YourModel(
        known, pasted.counted, total, tuple(said), tuple(pasted.unread), pasted.n_lines, sizes
    )


def _made(values: Values, shape: Values) -> tuple[Any, Shape]:
    family = str(values.pop("family", "encoder-only"))
    if family not in MODEL_CONFIGS or family in ("recurrent", "captioner"):
        known = [name for name in MODEL_CONFIGS if name not in ("recurrent", "captioner")]
        raise StudentError(
            "family is {family}; choose from {known}.", family=family[:40], known=", ".join(known)
        )
    config = MODEL_CONFIGS[family]
    used = {name: value for name, value in values.items() if name in config.model_fields}
    try:
        made = config.parse(used)
    except ConfigError as error:
        raise StudentError(error.sentences[0]) from None
    kind: type[Any] = ImageShape if family == "vit" else TextShape
    names = {one.name for one in fields(kind)}
    sizes = {name: value for name, value in shape.items() if name in names}
    found: Shape = kind(**sizes)
    parameter_table(made, found)  # refuses patches that do not divide the picture
    return made, found


def _lengths(pasted: Pasted, shape: Shape, longest: int) -> tuple[int, int]:
    if not isinstance(shape, TextShape):
        return 0, 0
    src, tgt = (whole(pasted.sizes, name, LEN, 1, MAX_LEN) for name in ("src_len", "tgt_len"))
    src, tgt = min(src, longest), min(tgt, longest)
    if not shape.has_source:
        return 0, tgt
    return src, 1 if shape.is_label else tgt if shape.head == "tokens" else src


def _of_sizes(pasted: Pasted) -> tuple[Values, Values]:
    """Return the settings and the shape of a model of which a text gives the sizes alone."""
    sizes = pasted.sizes
    known = ARCHITECTURES.get(_OF_CLASS.get(pasted.root, ""))
    if not sizes and known is None:
        raise StudentError(
            "No model was found. Paste sizes such as d_model = 512, what print(model) says, or a "
            "table of parameters."
        )
    if pasted.root == "nn.Transformer":
        values: Values = {**_PYTORCH, **given_in(sizes)}
        shape: Values = {"scale_embedding": False}
    elif known is not None and "family" not in sizes:
        values = {**known.model.model_dump(), **given_in(sizes)}
        shape = asdict(known.shape)
    else:
        values = {**_USUAL, "family": _family_of(pasted), **given_in(sizes)}
        shape = {"scale_embedding": False}
    return values, _shape(values["family"], sizes, shape)


def _family_of(pasted: Pasted) -> str:
    sizes, words = pasted.sizes, " ".join(sorted(pasted.classes)).lower()
    if "patch_size" in sizes or "vit" in words:
        return "vit"
    both = {"n_decoder_layers", "n_encoder_layers", "tgt_vocabulary"} & sizes.keys()
    if both or words == "transformer":
        return "encoder-decoder"
    return "decoder-only" if "gpt" in words else "encoder-only"


def _shape(family: str, sizes: Mapping[str, str], usual: Values) -> Values:
    shape = {**usual}
    if family == "vit":
        shape = {"image_size": PIXELS, "channels": 1, "n_classes": 10, **shape}
        for name, most in (("image_size", 4_096), ("channels", 256), ("n_classes", MAX_WORDS)):
            shape[name] = whole(sizes, name, shape[name], 1, most)
        return shape
    shape = {"src_vocabulary": WORDS, "tgt_vocabulary": 0, **shape}
    src = whole(sizes, "src_vocabulary", shape["src_vocabulary"], 1, MAX_WORDS)
    tgt = whole(sizes, "tgt_vocabulary", shape["tgt_vocabulary"] or src, 1, MAX_WORDS)
    if shape.get("one_vocabulary") or family == "decoder-only":
        src = tgt = src if "src_vocabulary" in sizes else tgt
    shape |= {"src_vocabulary": src, "tgt_vocabulary": tgt}
    if family == "decoder-only":
        shape |= {"one_vocabulary": True, "has_source": False}
    elif family == "encoder-only" and "head" not in sizes and "head" not in usual:
        shape |= {"one_vocabulary": True, "head": "states", "tgt_vocabulary": src}
    for name in ("n_hidden", "n_labels", "n_segments"):
        shape[name] = whole(sizes, name, shape.get(name, 0), 0, MAX_WORDS)
    for name in ("one_vocabulary", "output_bias", "scale_embedding", "has_source"):
        if name in sizes:
            shape[name] = FLAGS.get(sizes[name].lower(), True)
    if "head" in sizes:
        shape["head"] = sizes["head"]
    return shape


def _of_layers(pasted: Pasted, said: list[str]) -> tuple[Values, Values]:
    """Return the settings and the shape of a model of which a text shows the layers."""
    is_tied = _count_ties_once(pasted, said)
    stacks, around = stacks_of(pasted)
    if not stacks:
        raise StudentError("No blocks with attention were found among {n} layers.",
                           n=len(pasted.layers))  # fmt: skip
    why = unbuildable(stacks)
    if why:
        raise StudentError(why)
    block = stacks[-1].block
    values: Values = {**_USUAL, "d_model": block.d_model, "d_ff": block.d_ff}
    _of_blocks(pasted, stacks, values, said)
    family = _family(pasted, stacks, around)
    values["family"] = family
    for name, stack in zip(
        ("n_encoder_layers", "n_decoder_layers") if len(stacks) > 1 else ("n_layers",),
        sorted(stacks, key=lambda one: one.block.n_attentions),
        strict=True,
    ):
        values[name] = stack.n_layers
    if len(stacks) > 1 and {one.block.n_attentions for one in stacks} != {1, 2}:
        said.append(N_("No block of yours looks at the other stack; here the decoder's do."))
    ends = Ends(pasted, values, block.d_model, said, is_tied)
    shape = ends.of_pictures(around) if family == "vit" else ends.of_words(family, around)
    given = given_in(pasted.sizes)
    said.extend(
        N_("{name} = {text} is not followed: the layers say it.", name=name, text=text[:20])
        for name, text in sorted((name, str(value)) for name, value in given.items())
        if name not in _UNPRINTED and name != "family" and str(values.get(name, "")) != text
    )
    values |= {name: value for name, value in given.items() if name in _UNPRINTED}
    unsaid = {name: text for name, text in pasted.sizes.items() if name not in shape}
    return values, _shape(family, unsaid, shape)


_UNPRINTED = {
    "n_heads", "norm_first", "activation", "position", "max_len", "pooling", "window",
}  # fmt: skip
"""What layers do not say, so that a line beside them may."""


def _count_ties_once(pasted: Pasted, said: list[str]) -> bool:
    """Take out the layers that a print of Transformers shows again, though their weight is one.

    ``shared`` of BART, Marian and T5 is the table of both stacks and of the output; ``wte`` of
    GPT-2 that of its output. Returns whether there were any.
    """
    tables = [one for one in pasted.layers if one.kind == "embedding"]
    owner = next((one for one in tables if re.search(r"\b(shared|wte)$", one.path)), None)
    if owner is None:
        return False
    sizes = {owner.into, owner.out}
    again = [
        one
        for one in pasted.layers
        if one is not owner and {one.into, one.out} == sizes and not one.has_bias
        and re.search(r"embed_tokens$|lm_head$", one.path)
    ]  # fmt: skip
    for one in again:
        pasted.layers.remove(one)
    if again:
        names = ", ".join(one.path for one in again)
        said.append(
            N_("{names}: the weights of “{owner}” again, counted once.", names=names,
               owner=owner.path)
        )  # fmt: skip
    return bool(again)


def _family(pasted: Pasted, stacks: Sequence[Stack], around: Sequence[Layer]) -> str:
    words = " ".join([*pasted.classes, pasted.root, *(one.path for one in around)]).lower()
    if len(stacks) > 1:
        return "encoder-decoder"
    if any(one.kind == "conv" for one in around) or "patch" in words or "vit" in words:
        return "vit"
    has_cls = any(re.search(r"(^|[._])cls(_token)?$", one.path) for one in around)
    if "linear_mapper" in words or "class_token" in words or has_cls:
        return "vit"
    if pasted.sizes.get("family") in ("encoder-only", "decoder-only"):
        return pasted.sizes["family"]
    is_writer = any(word in words for word in ("gpt", "lm_head", "causallm", "decoder"))
    return "decoder-only" if is_writer else "encoder-only"


def _of_blocks(pasted: Pasted, stacks: Sequence[Stack], values: Values, said: list[str]) -> None:
    block = stacks[-1].block
    for stack in stacks:
        if not stack.are_equal:
            said.append(N_("Your blocks differ from each other; here all are as the first."))
        for layer in stack.block.rest:
            if "relative_attention_bias" in layer.path and layer.into == N_BUCKETS:
                values["position"] = "t5-bias"  # one table for all blocks of a stack
            else:
                said.append(missing(layer, stack.n_layers))
    mistakes = []
    if block.sliced:
        mistakes.append("sliced-heads")
    elif not block.has_output:
        mistakes.append("no-output-projection")
    values["n_heads"] = block.sliced or _heads(pasted, block.d_model, said)
    if block.sliced and block.has_output:
        said.append(N_("Your heads on slices are followed by a matrix; here they are not."))
    _of_norms(pasted, stacks, values, mistakes, said)
    values["mistakes"] = ",".join(mistakes)
    _of_biases(block.bias, block.attention_bias, values, said)
    lost = sum(stack.block.n_lost_biases * stack.n_layers for stack in stacks)
    if lost:
        said.append(
            N_("Only some matrices of your attention have biases ({n:,} parameters); here none "
               "has.", n=lost)
        )  # fmt: skip
    _of_activation(pasted, block.is_gated, values, said)
    shares = {one for one in pasted.dropouts if one}
    values["dropout"] = max(shares, default=0.0)
    if len(pasted.dropouts) > 1:
        listed = ", ".join(f"{one:g}" for one in sorted(pasted.dropouts))
        said.append(N_("Your dropouts are {listed}; here all are the largest.", listed=listed))


def _heads(pasted: Pasted, d_model: int, said: list[str]) -> int:
    if "n_heads" in pasted.sizes or "d_head" in pasted.sizes:
        given = given_in({"d_model": str(d_model), **pasted.sizes})
        text = str(given["n_heads"])
        return int(text) if text.isdecimal() and int(text[:6]) > 0 else 1
    n = d_model // 64 if d_model % 64 == 0 else next(h for h in (4, 2, 1) if d_model % h == 0)
    said.append(
        N_("No line says how many heads; {n} of {width} are taken. Add n_heads = … (the count "
           "stays the same).", n=n, width=d_model // n)
    )  # fmt: skip
    return n


def _of_norms(
    pasted: Pasted, stacks: Sequence[Stack], values: Values, mistakes: list[str], said: list[str]
) -> None:
    block = stacks[-1].block
    if not block.n_norms:
        values["norm"] = "none"
        return
    if block.n_norms == 1:
        mistakes.append("shared-norm")
    elif block.n_norms != block.n_attentions + 1:
        said.append(N_("Your blocks have {n} norms; here one for each sublayer.", n=block.n_norms))
    values["norm"] = "rmsnorm" if "rms" in block.norm_layer.lower() else "layernorm"
    if block.eps is not None:
        values["norm_eps"] = block.eps
    given = FLAGS.get(pasted.sizes.get("norm_first", "").lower())
    values["norm_first"] = bool(block.is_norm_before) if given is None else given
    if block.is_norm_before is None and "norm_first" not in pasted.sizes:
        said.append(
            N_("No line says where the norms stand; here after each sum. Add norm_first = true "
               "for before.")
        )  # fmt: skip


def _of_biases(bias: bool, attention_bias: bool, values: Values, said: list[str]) -> None:
    values["bias"], values["projection_bias"] = bias or attention_bias, attention_bias
    if attention_bias and not bias:
        said.append(N_("Your feed-forward layers have no biases; here all layers have them."))


def _of_activation(pasted: Pasted, is_gated: bool, values: Values, said: list[str]) -> None:
    found = [activation_of(layer) for path, layer in pasted.plain.items() if "pooler" not in path]
    names = [name for name in found if name is not None]
    name = max(set(names), key=names.count) if names else None
    if is_gated:
        values["activation"] = "swiglu"
        if name not in (None, "silu"):
            said.append(
                N_("Your feed-forward layers are gated by {name}; here by SiLU.", name=name)
            )
    elif name == "silu":
        said.append(N_("SiLU without a gate is not built here; ReLU is taken."))
    elif name in ACTIVATIONS and not ACTIVATIONS[str(name)].is_gated:
        values["activation"] = name
    elif "activation" not in pasted.sizes:
        said.append(N_("No line names the activation; ReLU is taken. Add activation = gelu."))


def _sizes_text(known: Architecture) -> str:
    """Return a model as lines of sizes that give it again."""
    config = type(known.model)
    values: dict[str, str] = {"family": known.model.family}
    values |= {
        name: _plain(value)
        for name, value in known.model.model_dump().items()
        if name != "family" and value != _USUAL.get(name, config.model_fields[name].default)
    }
    usual = {one.name: one.default for one in fields(known.shape)}
    always = ("head", "one_vocabulary", "scale_embedding", "has_source", "output_bias")
    for name, value in asdict(known.shape).items():
        if name not in ("pad_id", "mask_id") and (name in always or usual[name] != value):
            values[name] = _plain(value)
    if isinstance(known.shape, TextShape):
        values |= {"src_len": str(known.src_len or 1), "tgt_len": str(known.tgt_len)}
    return ", ".join(f"{name} = {value}" for name, value in values.items())


def _plain(value: object) -> str:
    if isinstance(value, tuple):
        return "+".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
