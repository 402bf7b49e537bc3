"""The picture: a model at work on one example, drawn on a canvas to zoom into.

The numbers travel as float16 behind a JSON header. Everything that follows the pointer, from the
whole model to the arithmetic of one number, happens in the browser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pages.components.component import (
    component,
    is_name,
    is_whole,
    pack_bytes,
    player_words,
    table_words,
)
from pages.components.digits import SIDE, board_words, decode
from pages.i18n import _
from tfm_core.plots.palette import COLOURS, DIVERGING, MASKED, SCALES, ThemeName
from tfm_core.probe.labels import STACKS
from tfm_core.trace.picture import N_ANSWERS, Picture, Stage, pooled_columns, stages


@dataclass(frozen=True, slots=True)
class Knocks:
    """What can be knocked out.

    codes: path of a stage or block and number of a head from 0, or -1 -> the code of a part. out:
    the codes and names of those that are. on_knock: gets a code.
    """

    codes: Mapping[tuple[str, int], str]
    out: Mapping[str, str]
    on_knock: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Board:
    """A board to draw the picture on that the model reads.

    is_own: whether the picture was drawn. on_draw: gets a drawing (SIDE, SIDE), or None for an
    empty board.
    """

    is_own: bool
    on_draw: Callable[[npt.NDArray[np.uint8] | None], None]


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts that a click opens.

    of: the name of the part of each stage, a list a lane. facts: lines on each. chosen: the name of
    the one that is open. on_open: gets a name.
    """

    of: Sequence[Sequence[str]]
    facts: Mapping[str, Sequence[str]]
    chosen: str
    on_open: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Training:
    """The steps of a training whose weights were saved, ascending, and the one that is shown.

    about: the same for all steps of what is shown, and for nothing else: the browser keeps the
    pictures of the steps that it has seen. is_live: whether more will come. on_step: gets a step.
    """

    steps: tuple[int, ...]
    step: int
    about: str
    is_live: bool
    on_step: Callable[[int], None]

    def told(self) -> dict[str, Any]:
        steps = {"steps": self.steps, "step": self.step}
        return {**steps, "about": self.about, "isLive": self.is_live}


_FILLS: dict[ThemeName, dict[str, str]] = {
    "light": {
        "data": "#fbfaf7",
        "embedding": "#f6e3c3",
        "attention": "#cfe2f3",
        "cross": "#ecd5e4",
        "feed-forward": "#cfe9e1",
        "norm": "#eceae3",
        "head": "#ece5c4",
    },
    "dark": {
        "data": "#14171c",
        "embedding": "#4d3a17",
        "attention": "#1d3d5a",
        "cross": "#4a2d40",
        "feed-forward": "#17443a",
        "norm": "#2c323b",
        "head": "#453e1a",
    },
}
"""The colours of stages that have only a shape, by kind of part; others are data."""
_LIKE = {
    "positions": "embedding",
    "stem": "embedding",
    "segments": "embedding",
    "stack": "attention",
    "block": "attention",
    "readout": "feed-forward",
}
"""Kinds of parts that have the colour of another."""
MAX_COLUMNS = 256  # of a vector; of a longer one each is the mean of several
MAX_NUMBERS = 8_000_000  # that are sent: 16 MB
_LONGEST = 16  # letters of an answer
_FEW_COLUMNS = 64  # of a vector, where there are many
_component = component(
    "picture",
    css=[
        "data_table.css",
        "drawing_board.css",
        "picture.css",
    ],
)


def draw(
    shown: Picture,
    *,
    theme: ThemeName,
    on_step: Callable[[str, int], None],
    glosses: Mapping[str, str] | None = None,
    knocks: Knocks | None = None,
    training: Training | None = None,
    board: Board | None = None,
    key: str,
) -> None:
    """Draw a picture.

    on_step: gets the walk's step that explains a stage, and the number of its block from 1, or 0.
    glosses: the translation of each token that has one.
    """
    steps = frozenset((stage.step, stage.block) for _lane, _place, stage in stages(shown))
    known = frozenset([*knocks.codes.values(), *knocks.out]) if knocks else frozenset()

    def stepped(value: object) -> None:
        if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str):
            name, block = value
            if is_whole(block) and (name, block) in steps:
                on_step(name, block)

    def knocked(value: object) -> None:
        if knocks is not None and is_name(value, known):
            knocks.on_knock(value)

    def drawn(value: object) -> None:
        if board is not None and isinstance(value, str):
            board.on_draw(decode(value))

    def scrubbed(value: object) -> None:
        if training is not None and is_whole(value) and value in training.steps:
            training.on_step(value)

    words = {**board_words(), "draw": _("Draw a digit"), "back": _("Back to the example")}
    own = None if board is None else {"side": SIDE, "isOwn": board.is_own, "words": words}
    more = {"training": training and training.told(), "board": own, "glosses": dict(glosses or {})}
    _component(
        pack(shown, theme=theme, knocks=knocks, more=more),
        on={"step": stepped, "knock": knocked, "drawn": drawn, "weights": scrubbed},
        key=key,
    )


def draw_parts(shown: Picture, *, theme: ThemeName, parts: Parts, key: str) -> None:
    """Draw a picture whose parts open with a click."""

    def opened(name: object) -> None:
        if is_name(name, parts.facts):
            parts.on_open(name)

    more: dict[str, Any] = {"training": None, "board": None, "glosses": {}}
    _component(pack(shown, theme=theme, parts=parts, more=more), on={"open": opened}, key=key)


def pack(
    shown: Picture,
    *,
    theme: ThemeName,
    knocks: Knocks | None = None,
    parts: Parts | None = None,
    more: Mapping[str, Any] | None = None,
) -> bytes:
    """Return what the browser gets: header length (uint32), JSON header, float16 values."""
    arrays: list[np.ndarray[Any, Any]] = []
    described: list[list[dict[str, Any]]] = [[] for _lane in shown.lanes]
    offset = 0
    columns, has_scores, has_maps = _sent(shown)
    codes = knocks.codes if knocks else {}
    for lane, place, stage in stages(shown):
        header, values = _described(stage, columns)
        if stage.kind == "heads" and not has_maps:
            values = None
        kept = {
            "offset": values,
            "scores": stage.scores if has_scores else None,
            "before": stage.before,
        }
        for name, numbers in kept.items():
            header[name] = -1 if numbers is None else offset
            if numbers is not None:
                arrays.append(numbers.astype(np.float16).ravel())
                offset += numbers.size
        if parts is not None:
            name = header["name"] = parts.of[lane][place]
            header["facts"] = [_(line) for line in parts.facts[name]]
            is_cross = stage.path.endswith("cross_attention")
            kind = "cross" if is_cross else _LIKE.get(stage.part.kind, stage.part.kind)
            header["fill"] = _FILLS[theme].get(kind, _FILLS[theme]["data"])
        described[lane].append(header)
    header = {
        "codes": {f"{path} {head}": code for (path, head), code in codes.items()},
        "out": knocks.out if knocks else {},
        "answers": N_ANSWERS,
        "lanes": [
            {
                "name": lane.name,
                "title": _(STACKS.get(lane.name, lane.name)),
                "tokens": lane.tokens,
                "stages": made,
            }
            for lane, made in zip(shown.lanes, described, strict=True)
        ],
        "scale": SCALES[theme],
        "masked": MASKED[theme],
        "diverging": DIVERGING[theme],
        "ink": {name: COLOURS[name] for name in ("encoder", "decoder", "cross", "query", "wrong")},
        "words": _words(),
        "opens": parts is not None,
        "chosen": "" if parts is None else parts.chosen,
        **(more or {}),
    }
    values = np.concatenate(arrays) if arrays else np.zeros(0, np.float16)
    return pack_bytes(header, values)


def _sent(shown: Picture) -> tuple[int, bool, bool]:
    """Return how many columns of vectors are sent, and whether scores are, and maps at all.

    A picture of hundreds of patches has too many numbers: scores go first, then columns, then maps.
    """
    drawn = [(one.kind, one.values) for *_at, one in stages(shown) if one.values is not None]
    n_maps = sum(values.size for kind, values in drawn if kind == "heads")
    rows = sum(len(values) for kind, values in drawn if kind == "vectors")
    for columns, has_scores in ((MAX_COLUMNS, True), (MAX_COLUMNS, False), (_FEW_COLUMNS, False)):
        if rows * columns + n_maps * (1 + has_scores) <= MAX_NUMBERS:
            return columns, has_scores, True
    return _FEW_COLUMNS, False, False


def _described(stage: Stage, columns: int) -> tuple[dict[str, Any], Any]:
    values, group = stage.values, 1
    if stage.kind == "vectors" and values is not None:
        values, group = pooled_columns(values, columns)
    shape = stage.shape if values is None else values.shape
    header = {
        "kind": stage.kind,
        "title": _(stage.title),
        "isNorm": stage.is_norm,
        "path": stage.path,
        "key": stage.key,
        "shape": shape,
        "whole": stage.shape,
        "columns": shape[-1] if shape else 1,
        "group": group,
        "rows": stage.rows,
        "keys": stage.keys,
        "block": stage.block,
        "step": stage.step,
        "skips": stage.skips_from,
        "answers": [[_short(word) for word in row] for row in stage.words],
        "were": [_short(word) for word in stage.were],
        "sure": stage.sure,
        "truths": [_short(word) for word in stage.truths],
        "facts": [],
    }
    return header, values


def _short(word: str) -> str:
    return word if len(word) <= _LONGEST else f"{word[: _LONGEST - 1]}…"


def _words() -> dict[str, str]:
    return {
        **table_words(),
        **player_words(),
        "part": _("Part"),
        "shapeOf": _("Shape"),
        "factsOf": _("Numbers"),
        "token": _("Token"),
        "answer": _("Answer"),
        "share": _("Probability"),
        "truthOf": _("Truth"),
        "picture": _(
            "The model at work. Arrows move, Enter zooms in, Escape zooms out, Delete knocks out."
        ),
        "whole": _("Whole model"),
        "block": _("Block {n}"),
        "head": _("Head {n}"),
        "number": _("number {n}"),
        "explain": _("Explain this step"),
        "knock": _("Knock out"),
        "restore": _("Put back"),
        "larger": _("Zoom in"),
        "smaller": _("Zoom out"),
        "all": _("Whole model"),
        "patch": _("Patch {patch}"),
        "scrub": _("Weights of step"),
        "step": _("Step {step}"),
        "newest": _("(newest)"),
        "knocked": _("Knocked out:"),
        "changed": _(
            "{n} of {all} answers change; probability of the original: {before} → {after}"
        ),
        "same": _("Still {now}: {before} → {after}"),
        "other": _("Now {now}; {was}: {before} → {after}"),
        "was": _("was"),
        "instead": _("before: {word}"),
        "wrong": _("not the true answer"),
        "weightScale": _("attention weight, 0 to each head’s largest"),
        "numberScale": _("number, negative to positive"),
        "hint": _("Click a part to zoom in; drag to move."),
        "shape": _("{rows} tokens × {columns} numbers"),
        "maps": _(
            "{heads} heads, {rows} queries × {keys} keys; darkest: each head’s largest weight"
        ),
        "masked": _("masked"),
        "reads": _("{query} reads"),
        "weight": _("weight"),
        "mean": _("mean of all heads"),
        "group": _("Each cell is the mean of {n} numbers."),
        "shapes_only": _("This model is too large for numbers, so you see only shapes."),
        "truth": _("True answer: {truth}"),
        "softmax": _("softmax of its scores: exp({score}) / {sum} = {weight}"),
        "added": _("{before} + {change} = {sum}"),
    }
