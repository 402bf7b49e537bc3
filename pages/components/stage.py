"""The stage: curves, answers and all heads of a run on one screen, which one scrubber moves.

Two messages go to the browser. What a snapshot shows (answers, labels, weights) comes as bytes and
changes with a new snapshot alone, so that Streamlit sends it once; the curves come with each look.
Between two snapshots the browser mixes their weights itself, at its own frame rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st

from pages.components.component import component, is_index, plain
from pages.components.packing import packed, pooled
from pages.i18n import _
from tfm_core.inspect.attention.map_view import MapView
from tfm_core.inspect.stage import Answer, Frame, Stage
from tfm_core.plots.attention import MASKED, SCALES
from tfm_core.plots.palette import COLOURS
from tfm_core.plots.pictures import picture_url
from tfm_core.plots.stage import ROLE_COLOURS, StageLine

MAX_VALUES = 500_000
"""Weights of all snapshots together that are sent: 1 MB."""
MIN_SIDE = 16
"""Cells to a side that a map keeps when it is pooled; then snapshots are left out."""

_maps = component("stage_maps", html="")
_stage = component("stage", css=["packed.css", "stage.css"])


@dataclass(frozen=True, slots=True)
class Mark:
    """A level known before the training, as a dotted line with its words."""

    quantity: str
    value: float
    words: str


@dataclass(frozen=True, slots=True)
class Moving:
    """What changes with each look: the curves, how far the training is, and what happened when.

    begins: steps at which something went wrong, each with a word or two.
    now: the newest step. total: the last step there will be. is_live: more will come. moments: step
    and sentence, ascending.
    """

    lines: Sequence[StageLine]
    marks: Sequence[Mark]
    now: int
    total: int
    is_live: bool
    has_wholes: bool
    moments: Sequence[tuple[int, str]] = ()
    begins: Sequence[tuple[int, str]] = ()


def stage(
    shown: bytes | None,
    moving: Moving,
    *,
    name: str,
    key: str,
    autoplay: bool = False,
    loop: bool = False,
    compact: bool = False,
    on_choose: Callable[[int, int], None],
) -> None:
    """Show a stage. shown: of ``pack``, None before the first snapshot.

    on_choose: hears, before the next run of the script, which kind and which example were chosen,
    as numbers from 0 on; both are still to be checked against the run.
    """

    def chosen(value: object) -> None:
        if is_index(value, 16, 10_000):
            on_choose(*value)

    with st.container(gap=None, key=f"stage-box-{key}"):
        if shown is not None:
            _maps(shown, key=f"{key}-maps")
        _stage(
            plain(
                {
                    **told(moving, name=name),
                    "has_maps": shown is not None,
                    "autoplay": autoplay,
                    "loop": loop,
                    "compact": compact,
                }
            ),
            on={"choose": chosen},
            key=key,
        )


def told(moving: Moving, *, name: str) -> dict[str, Any]:
    """Return what the browser is told with each look, and the words of the stage.

    name: of the snapshots that it shows.
    """
    return {
        "name": name,
        "lines": [
            {
                "quantity": line.quantity,
                "role": line.role,
                "steps": line.steps,
                "values": line.values,
                "colour": line.colour,
            }
            for line in moving.lines
        ],
        "marks": [
            {"quantity": mark.quantity, "value": mark.value, "words": mark.words}
            for mark in moving.marks
        ],
        "begins": list(moving.begins),
        "ill": COLOURS["wrong"],
        "known": _known(moving),
        "grey": COLOURS["chance"],
        "now": moving.now,
        "total": moving.total,
        "live": moving.is_live,
        "wholes": moving.has_wholes,
        "moments": list(moving.moments),
        "words": _words(),
    }


def _known(moving: Moving) -> list[dict[str, str]]:
    """Return what is measured of this run, in order; what is not there yet has its place."""
    tested = {line.quantity for line in moving.lines if line.role == "test"}
    wholes = ["whole"] if moving.has_wholes else []
    averages: dict[str, list[str]] = {
        quantity: [
            line.role
            for line in moving.lines
            if line.quantity == quantity and line.role in {"average", "average_whole"}
        ]
        for quantity in ("loss", "accuracy")
    }
    roles: dict[str, list[str]] = {
        "loss": ["training", "validation", *averages["loss"]],
        "accuracy": ["training", "validation", *wholes, *averages["accuracy"]],
    }
    return [
        {"quantity": quantity, "role": role, "colour": COLOURS[ROLE_COLOURS[role]]}
        for quantity, known in roles.items()
        for role in [*known, *(["test"] if quantity in tested else [])]
    ]


def pack(shown: Stage, name: str, most: int = MAX_VALUES) -> bytes:
    """Return what the browser gets of the snapshots: JSON header and weights (F, L, H, Q, K).

    A masked weight is NaN. Where all would be more than ``most``, each value is the largest of a
    block of cells, and where that is not enough snapshots are left out; the header says so.
    """
    frames, weights, block = bounded(shown.frames, shown.weights, most)
    header = {
        **still(shown),
        "name": name,
        "frames": [_frame(frame) for frame in frames],
        "n_snapshots": len(shown.frames),
        "shape": weights.shape[1:],
        "block": block,
    }
    return packed(header, weights)


_NO_MAPS = MapView(np.zeros((1, 0), np.float16), (), (), query_title="", key_title="")


def still(shown: Stage) -> dict[str, Any]:
    """Return what all snapshots of a stage have in common, as the browser gets it."""
    maps = shown.maps or _NO_MAPS
    return {
        "kinds": [
            {"label": _(kind.label), "look_for": _(kind.look_for)} for kind in shown.kind_words
        ],
        "attention": shown.kinds.index(shown.kind) if shown.kind in shown.kinds else 0,
        "example": shown.example,
        "n_attended": shown.n_attended,
        "examples": [
            {
                "source": example.source,
                "truth": example.truth,
                "tokens": example.tokens,
                "picture": None if shown.pictures is None else picture_url(shown.pictures[n]),
            }
            for n, example in enumerate(shown.examples)
        ],
        "surface": shown.surface,
        "side": shown.side,
        "cls": shown.has_cls,
        "query": maps.query,
        "key": maps.key,
        "axes": _(
            "Rows: {query}. Columns: {key}.", query=_(maps.query_title), key=_(maps.key_title)
        ),
        "row_words": [_(words) for words in maps.query_words],
        "scales": SCALES,
        "masked": MASKED,
    }


def bounded(
    frames: Sequence[Frame], weights: npt.NDArray[Any] | None, most: int = MAX_VALUES
) -> tuple[Sequence[Frame], npt.NDArray[Any], int]:
    """Return frames and their weights within ``most``, and the block that a value stands for."""
    if weights is None:
        return frames, np.zeros((len(frames), 0, 0, 0, 0), np.float16), 1
    weights, block = pooled(weights, most // len(frames), least_side=MIN_SIDE)
    n_most = max(2, most // max(1, weights[0].size))
    if len(frames) <= n_most:
        return frames, weights, block
    kept = np.unique(np.linspace(0, len(frames) - 1, n_most).round().astype(int))
    return [frames[i] for i in kept], weights[kept], block


def _frame(frame: Frame) -> Mapping[str, Any]:
    return {
        "step": frame.step,
        "labels": [_(label) for label in frame.labels],
        "answers": answers(frame),
    }


def answers(frame: Frame) -> list[Mapping[str, Any]]:
    """Return the answers of a snapshot, as the browser gets them."""
    return [_answer(answer) for answer in frame.answers]


def _answer(answer: Answer) -> Mapping[str, Any]:
    return {
        "tokens": answer.tokens,
        "sure": [round(share, 3) for share in answer.confidence],
        "classes": [[name, round(share, 4)] for name, share in answer.classes],
        "right": answer.is_right,
    }


def _words() -> dict[str, str]:
    return {
        "play": _("Play the training"),
        "pause": _("Pause"),
        "back": _("Snapshot before"),
        "next": _("Next snapshot"),
        "scrub": _("Step of the training"),
        "step": _("step"),
        "at": _("Step {step}:"),
        "earlier": _("Earlier, at step {step}:"),
        "step_of": _("Step {step} of {total}"),
        "follow": _("Follow the training"),
        "between": _("Between snapshots: interpolated"),
        "smooth": _("Smooth"),
        "smooth_help": _(
            "Between two snapshots the maps are mixed from both. Off: each snapshot stands until "
            "the next."
        ),
        "loss": _("Loss"),
        "accuracy": _("Accuracy"),
        "training": _("training"),
        "validation": _("validation"),
        "whole": _("validation, whole"),
        "average": _("averaged"),
        "average_whole": _("averaged, whole"),
        "test": _("test"),
        "log_steps": _("Log steps"),
        "log_steps_help": _("Stretches the start, where most is learned."),
        "log_loss": _("Log loss"),
        "log_loss_help": _("Shows how a small loss goes on falling."),
        "curves": _("Loss and accuracy. Click to go to a step."),
        "heads": _("Attention heads"),
        "layer": _("Layer"),
        "head": _("Head"),
        "short": _("L{layer} H{head}"),
        "kind": _("Attention"),
        "example": _("Example"),
        "picture": _("Picture"),
        "key": _("key"),
        "patch": _("patch"),
        "weight": _("weight"),
        "mixed": _("weight, interpolated"),
        "largest": _("largest weight of the block"),
        "masked": _("masked"),
        "close": _("Back to all heads"),
        "enlarge": _("Enlarge"),
        "cls": _("Drawn over the picture: where CLS looks, which the answer is read from."),
        "mean": _("Drawn over the picture: how much each patch is looked at, the mean of all."),
        "word": _("To write"),
        "answers": _("Answers to examples it never trained on"),
        "truth": _("truth"),
        "right": _("right"),
        "wrong": _("wrong"),
        "missing": _("missing"),
        "nothing": _("nothing yet"),
        "probability": _("probability"),
        "waits": _("The first answers appear after the first step."),
        "blocks": _("A cell stands for {n} × {n} tokens: the largest weight of the block."),
        "fewer": _("{n} of {all} snapshots are shown."),
        "said": _("Labels: mean of {n} examples."),
        "kept": _("Maps are kept of the first {n} of {all} examples."),
        "not_kept": _("No maps are kept of this example."),
    }
