"""What the axes of an attention map mean: which attention it is, and whose tokens stand where.

Torch-free. A map of a snapshot is padded to the longest example of the probe; the tokens here say
how much of it is real, and the mask which weights are zero because the model may not look there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.config import (
    CaptionerConfig,
    CaptionTaskConfig,
    EncoderDecoderConfig,
    EncoderOnlyConfig,
    Experiment,
    ImageTaskConfig,
    RecurrentConfig,
    ViTConfig,
)

BOS, CLS = "<bos>", "CLS"


@dataclass(frozen=True, slots=True)
class AttentionKind:
    """One attention of the model in words: its name, what asks, what is asked, what to look for."""

    name: str
    label: str
    help: str
    query: str
    key: str
    look_for: str


KINDS: dict[str, AttentionKind] = {
    kind.name: kind
    for kind in (
        AttentionKind(
            "encoder",
            "Encoder self-attention",
            "Every source token asks all source tokens, before and behind it.",
            "source token",
            "source token",
            "A diagonal is a head that copies a token, a line beside it a head that looks at the "
            "neighbour, a column a token that everybody reads.",
        ),
        AttentionKind(
            "slots",
            "Encoder self-attention",
            "Every position asks the source tokens. Position t answers target token t; where the "
            "source is shorter than the answer, empty slots ask too, but nobody can ask them.",
            "position that answers",
            "source token",
            "Position t writes target token t: the strongest cells of its row are what it is made "
            "of. The columns of slots are masked: nobody may read an empty slot.",
        ),
        AttentionKind(
            "words",
            "Self-attention over the words",
            "Every word asks all words, before and behind it, and so does the CLS token, where one "
            "stands in front. One label is read from the CLS token, or from the mean of all words.",
            "word",
            "word",
            "Look where the words that decide are read: a negation by its adjective, “but” by "
            "everybody. In the last layer the row of CLS, if there is one, gathers the answer.",
        ),
        AttentionKind(
            "blanks",
            "Self-attention around the blanks",
            "Every place asks all places, before and behind it. A blank is answered where it "
            "stands.",
            "place",
            "place",
            "The row of a blank says which words it is guessed from: its article, its verb, its "
            "time. A causal model would see only the left half of that row.",
        ),
        AttentionKind(
            "decoder",
            "Decoder self-attention (causal)",
            "Every target token asks itself and the target tokens before it.",
            "target token so far",
            "target token so far",
            "The grey triangle is exactly 0: the causal mask hides the future. Each row predicts "
            "the token after its own.",
        ),
        AttentionKind(
            "cross",
            "Cross-attention",
            "Every target token asks the source, whose tokens the encoder has read.",
            "target token so far",
            "source token",
            "The strongest cell of a row is often where the next target token comes from: a "
            "diagonal where the order is kept, an anti-diagonal where it is reversed.",
        ),
        AttentionKind(
            "sequence",
            "Self-attention (causal)",
            "Source (where there is one) and target are one sequence; every token asks itself and "
            "those before it.",
            "token",
            "token",
            "The grey triangle is exactly 0: the causal mask hides the future. From <bos> on, each "
            "row predicts the token after its own; strong cells left of <bos>, if any, read the "
            "source.",
        ),
        AttentionKind(
            "picture",
            "Cross-attention over the picture",
            "Every word asks the patches of the picture, which the encoder has read. A patch is "
            "named row,column, from 1.",
            "word so far",
            "patch",
            "A row says where the model looks while it writes the word after its own: for a number "
            "that should be where that digit stands.",
        ),
        AttentionKind(
            "patches",
            "Attention over patches",
            "Every patch of the picture asks all patches. A patch is named row,column, from 1.",
            "patch",
            "patch",
            "Columns are patches that everybody reads, often those with ink; a diagonal is a head "
            "that stays where it is.",
        ),
    )
}


@dataclass(frozen=True, slots=True, eq=False)
class Axes:
    """The tokens of one map, without padding, and what the mask allows.

    query: Q tokens, key: K tokens, may_attend: bool (Q, K), True = may attend.
    """

    query: tuple[str, ...]
    key: tuple[str, ...]
    may_attend: npt.NDArray[np.bool_]


def kind_of(experiment: Experiment, module_name: str) -> AttentionKind:
    """Return which attention a module is. Raises ValueError when it is none of this model's."""
    stack, _layer, attention = _parts(module_name)
    if attention == "cross_attention":
        is_pictured = isinstance(experiment.model, CaptionerConfig)
        return KINDS["picture" if is_pictured else "cross"]
    if isinstance(experiment.model, CaptionerConfig):
        return KINDS["patches" if stack == "encoder" else "decoder"]
    if isinstance(experiment.model, ViTConfig):
        return KINDS["patches"]
    if isinstance(experiment.model, EncoderOnlyConfig):
        return KINDS[_READERS[experiment.task.facts.answer]]
    if isinstance(experiment.model, EncoderDecoderConfig):
        return KINDS["encoder" if stack == "encoder" else "decoder"]
    return KINDS["sequence"]


def layer_of(module_name: str) -> int:
    """Return the layer that an attention module stands in, from 0. Raises ValueError."""
    return _parts(module_name)[1]


def modules_by_kind(experiment: Experiment) -> dict[str, list[str]]:
    """Return the names of a model's attention modules: kind name -> one module a layer."""
    model = experiment.model
    if isinstance(model, EncoderDecoderConfig | CaptionerConfig):
        decoder = range(model.n_decoder_layers)
        stacks = (
            [_name("encoder", i) for i in range(model.n_encoder_layers)],
            [_name("decoder", i) for i in decoder],
            [_name("decoder", i, "cross_attention") for i in decoder],
        )
        return {kind_of(experiment, names[0]).name: names for names in stacks}
    if isinstance(model, RecurrentConfig):
        return {"cross": ["decoder.cross_attention"]}
    stack = "decoder" if model.family == "decoder-only" else "encoder"
    names = [_name(stack, i) for i in range(model.n_layers)]
    return {kind_of(experiment, names[0]).name: names}


def axes(experiment: Experiment, item: Mapping[str, Any], module_name: str) -> Axes:
    """Return the tokens and the mask of an example's map in one attention module.

    item: an example of the probe, ``src`` and ``tgt`` tokens (text); pictures need none.
    Raises ValueError when the module is no attention of this model.
    """
    kind = kind_of(experiment, module_name)
    query, key = _tokens(experiment, item, kind.name)
    allowed = np.ones((len(query), len(key)), dtype=np.bool_)
    if kind.name in {"decoder", "sequence"}:
        allowed = np.tril(allowed)
    if kind.name == "slots":
        allowed[:, len(item["src"]) :] = False
    window = getattr(experiment.model, "window", 0)
    if window and kind.name not in {"cross", "picture"}:
        places = np.arange(len(query))
        allowed &= np.abs(places[:, None] - places[None, :]) <= window
    return Axes(query, key, allowed)


def axis_tokens(
    experiment: Experiment, item: Mapping[str, Any], module_name: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the query and the key tokens of an example's map; see ``axes``."""
    found = axes(experiment, item, module_name)
    return found.query, found.key


def patches_per_side(experiment: Experiment) -> int:
    """Return how many patches stand in a row of the picture. Raises ValueError for a text model."""
    model, task = experiment.model, experiment.task
    if not (
        isinstance(model, ViTConfig | CaptionerConfig)
        and isinstance(task, ImageTaskConfig | CaptionTaskConfig)
    ):
        raise ValueError("Only a Vision Transformer cuts pictures into patches; this reads text.")
    return task.facts.image_size // model.patch_size


def patch_names(side: int) -> tuple[str, ...]:
    """Return the names of patches, ``row,column`` from 1, row by row."""
    places = range(1, side + 1)
    return tuple(f"{row},{column}" for row in places for column in places)


def has_cls(experiment: Experiment) -> bool:
    """Return whether a CLS token stands before the patches, or before the words."""
    model = experiment.model
    if isinstance(model, EncoderOnlyConfig):
        return experiment.task.facts.answer == "label" and model.pooling == "cls"
    return isinstance(model, ViTConfig) and model.pooling == "cls"


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
    if kind == "sequence":
        sequence = (*src, BOS, *tgt)
        return sequence, sequence
    decoder_input = (BOS, *tgt)
    return decoder_input, decoder_input if kind == "decoder" else src


_READERS = {"sequence": "slots", "label": "words", "blanks": "blanks"}
_MODULE = re.compile(r"(encoder|decoder)(?:\.layers\.(\d{1,4}))?\.(self_attention|cross_attention)")


def _parts(module_name: str) -> tuple[str, int, str]:
    found = _MODULE.fullmatch(module_name)
    if found is None:
        raise ValueError(
            f"{module_name!r} is no attention module; one is encoder.layers.0.self_attention."
        )
    return found[1], int(found[2] or 0), found[3]


def _name(stack: str, layer: int, attention: str = "self_attention") -> str:
    return f"{stack}.layers.{layer}.{attention}"
