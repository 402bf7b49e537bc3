"""What the axes of an attention map mean: which attention it is, and whose tokens stand where.

Torch-free. A map of a snapshot is padded to the longest example of the probe; the tokens here say
how much of it is real.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tfm_core.anatomy import attention_paths
from tfm_core.config import (
    CaptionerConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    Experiment,
    PictureTaskConfig,
    ViTConfig,
    WriterConfig,
    shape,
)
from tfm_core.probe.attention_kinds import KINDS, AttentionKind, seen_through
from tfm_core.sentences import N_, StudentError
from tfm_core.variants.causalities import CAUSALITIES
from tfm_core.variants.poolings import POOLINGS

__all__ = [
    "BOS",
    "CLS",
    "EOS",
    "KINDS",
    "AttentionKind",
    "Axes",
    "RowNames",
    "Rows",
    "axes",
    "has_cls",
    "kind_of",
    "kinds_of",
    "layer_of",
    "modules_by_kind",
    "patch_names",
    "patches_per_side",
    "rows",
    "written_tokens",
]

BOS, CLS, EOS = "<bos>", "CLS", "<eos>"
RowNames = Literal["written", "read"]
"""A row that writes a token is called by that token, or by the one that is read in its place."""


@dataclass(frozen=True, slots=True)
class Axes:
    """The tokens of one map, without padding. query: Q tokens, key: K tokens."""

    query: tuple[str, ...]
    key: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of queries and of keys."""
        return len(self.query), len(self.key)


@dataclass(frozen=True, slots=True)
class Rows:
    """How the rows of a map are called.

    names: Q names for an axis. words: Q phrases for a sentence or a hover, ``2: writes 이, after
    선생님``; title: what they are.
    """

    names: tuple[str, ...]
    words: tuple[str, ...]
    title: str


def kind_of(experiment: Experiment, module_name: str) -> AttentionKind:
    """Return which attention a module is. Raises ValueError when it is none of this model's."""
    stack, _layer, attention = _parts(module_name)
    if attention == "cross_attention":
        is_pictured = isinstance(experiment.model, CaptionerConfig)
        return KINDS["picture" if is_pictured else "cross"]
    if isinstance(experiment.model, CaptionerConfig):
        return _of_stack(experiment.model, KINDS["patches"], stack)
    if isinstance(experiment.model, ViTConfig):
        return KINDS["patches"]
    if isinstance(experiment.model, EncoderOnlyConfig):
        return KINDS[_READERS[experiment.task.facts.answer]]
    if isinstance(experiment.model, EncoderDecoderConfig):
        return _of_stack(experiment.model, KINDS["encoder"], stack)
    kind = KINDS["text" if experiment.task.facts.answer == "text" else "sequence"]
    assert isinstance(experiment.model, WriterConfig)
    return seen_through(kind, CAUSALITIES[experiment.model.causality])


def _of_stack(model: WriterConfig, reading: AttentionKind, stack: str) -> AttentionKind:
    """Return the self-attention of an encoder, which is ``reading``, or of the decoder."""
    if stack == "encoder":
        return reading
    return seen_through(KINDS["decoder"], CAUSALITIES[model.causality])


def kinds_of(experiment: Experiment) -> dict[str, AttentionKind]:
    """Return the kinds of attention of a model by name, in words that fit its masks."""
    modules = modules_by_kind(experiment)
    return {name: kind_of(experiment, of[0]) for name, of in modules.items()}


def layer_of(module_name: str) -> int:
    """Return the layer that an attention module stands in, from 0. Raises ValueError."""
    return _parts(module_name)[1]


def modules_by_kind(experiment: Experiment) -> dict[str, list[str]]:
    """Return the names of a model's attention modules: kind name -> one module a layer."""
    paths = attention_paths(experiment.model).values()
    return {kind_of(experiment, names[0]).name: names for names in paths}


def axes(experiment: Experiment, item: Mapping[str, Any], module_name: str) -> Axes:
    """Return the tokens of an example's map in one attention module.

    item: an example of the probe, ``src`` and ``tgt`` tokens (text); pictures need none.
    Raises ValueError when the module is no attention of this model.
    """
    kind = kind_of(experiment, module_name)
    return Axes(*_tokens(experiment, item, kind.name))


def rows(
    experiment: Experiment, item: Mapping[str, Any], module_name: str, by: RowNames | None = None
) -> Rows:
    """Return how the rows of an example's map are called in one attention module.

    by: None takes what the kind of attention says. Where a row writes nothing it is called by what
    is read there, and the words always say both.
    """
    kind = kind_of(experiment, module_name)
    read = axes(experiment, item, module_name).query
    written = written_tokens(experiment, item, module_name)
    if by is None:
        by = "written" if kind.is_named_by_written else "read"
    after = N_("{n}: writes {token}, after {at}")
    if kind.name == "slots":  # it answers where it stands
        after = N_("{n}: writes {token}, at {at}")
    words = []
    for n, (at, token) in enumerate(zip(read, written, strict=True), 1):
        if token is None:
            words.append(N_("query {n}: {at}", n=n, at=at))
        elif by == "written":
            words.append(N_(after, n=n, token=token, at=at))
        else:
            words.append(N_("{n}: {at}, and writes {token}", n=n, token=token, at=at))
    if by == "read" or not any(written):
        return Rows(read, tuple(words), kind.query)
    names = (at if token is None else token for at, token in zip(read, written, strict=True))
    return Rows(tuple(names), tuple(words), kind.written)


def written_tokens(
    experiment: Experiment, item: Mapping[str, Any], module_name: str
) -> tuple[str | None, ...]:
    """Return the token that each row of an example's map writes; None where it writes none.

    Of a fixed example that is the true token, which the model is to write there; of one's own
    example what the model wrote, without <eos> where it was cut off before (``is_cut``).
    """
    kind = kind_of(experiment, module_name)
    read = axes(experiment, item, module_name).query
    if not kind.written:
        return (None,) * len(read)
    ends = kind.name != "text" and not item.get("is_cut", False)  # a text goes on
    answer = (*item["tgt"], EOS) if ends else tuple(item["tgt"])
    before = len(item.get("src", ())) if kind.name in {"sequence", "text"} else 0
    known = (*(None for _ in range(before)), *answer)
    return (*known, *(None for _ in range(len(read) - len(known))))[: len(read)]


def patches_per_side(experiment: Experiment) -> int:
    """Return how many patches stand in a row of the picture. Raises ValueError for a text model."""
    model, task = experiment.model, experiment.task
    if not (isinstance(model, ViTConfig | CaptionerConfig) and isinstance(task, PictureTaskConfig)):
        raise StudentError("Only a Vision Transformer cuts pictures into patches; this reads text.")
    return shape.patches_per_side(task.image_size, model.patch_size)


def patch_names(side: int) -> tuple[str, ...]:
    """Return the names of patches, ``row,column`` from 1, row by row."""
    numbers = range(1, side + 1)
    return tuple(f"{row},{column}" for row in numbers for column in numbers)


def has_cls(experiment: Experiment) -> bool:
    """Return whether a CLS token stands before the patches, or before the words."""
    model = experiment.model
    if isinstance(model, EncoderOnlyConfig):
        return experiment.task.facts.answer == "label" and POOLINGS[model.pooling].has_cls
    return isinstance(model, ViTConfig) and POOLINGS[model.pooling].has_cls


def _tokens(
    experiment: Experiment, item: Mapping[str, Any], kind: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if kind == "patches":
        patches = patch_names(patches_per_side(experiment))
        patches = (CLS, *patches) if has_cls(experiment) else patches
        return patches, patches
    if kind == "picture":
        return (BOS, *item["tgt"]), patch_names(patches_per_side(experiment))
    src, tgt = tuple(item.get("src", ())), tuple(item["tgt"])
    if kind == "words" and has_cls(experiment):
        src = (CLS, *src)
    if kind in {"encoder", "words", "blanks"}:
        return src, src
    if kind == "slots":  # the target and <eos> need len(tgt) + 1 positions
        slots = (f"slot {i + 1}" for i in range(len(src), len(tgt) + 1))
        positions = (*src, *slots)
        return positions, positions
    if kind in {"sequence", "text"}:
        sequence = (*src, BOS, *tgt)
        return sequence, sequence
    decoder_input = (BOS, *tgt)
    return decoder_input, decoder_input if kind == "decoder" else src


_READERS = {"sequence": "slots", "label": "words", "blanks": "blanks"}
_MODULE = re.compile(r"(encoder|decoder)(?:\.layers\.(\d{1,4}))?\.(self_attention|cross_attention)")


def _parts(module_name: str) -> tuple[str, int, str]:
    match = _MODULE.fullmatch(module_name)
    if match is None:
        raise StudentError(
            "{module_name!r} is no attention module; one is encoder.layers.0.self_attention.",
            module_name=module_name,
        )
    return match[1], int(match[2] or 0), match[3]
