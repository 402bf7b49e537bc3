"""The stage: curves, answers and all heads of a run on one screen, which one scrubber moves.

Two messages go to the browser. What a snapshot shows (answers, labels, weights) comes as bytes and
changes with a new snapshot alone, so that Streamlit sends it once; the curves come with each look.
Between two snapshots the browser mixes their weights itself, at its own frame rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import numpy.typing as npt
import streamlit as st

from pages.components.component import (
    component,
    is_index,
    pack_bytes,
    plain,
    player_words,
    pooled,
    table_words,
)
from pages.i18n import _
from tfm_core.inspect.attention.maps import MapView
from tfm_core.inspect.stage import Shown, Stage
from tfm_core.plots.described import LINE, LINE_AND_EXTREMES, ONE_VALUE
from tfm_core.plots.heads.attention import MANY_KEYS, usual_top
from tfm_core.plots.palette import COLOURS, MASKED, ORANGE, SCALES
from tfm_core.plots.png import picture_url
from tfm_core.plots.training.curves import ROLE_COLOURS

MAX_VALUES = 500_000
"""Weights of all snapshots together that are sent: 1 MB."""
MIN_SIDE = 16
"""Cells to a side that a map keeps when it is pooled; then snapshots are left out."""

_FURTHER = ("average", "average_whole", "test")  # roles of curves that not every run has
_maps = component("stage_maps", html="")
_stage = component("stage", css=["stage.css", "data_table.css"])


def stage(
    shown: bytes | None,
    moving: Mapping[str, Any],
    *,
    key: str,
    plays: bool,
    is_glossed: bool,
    on_choose: Callable[[int, int], None],
    on_gloss: Callable[[bool], None],
) -> None:
    """Draw a stage. shown: of ``pack``; None before the first snapshot. moving: of ``told``.

    plays: it is a small one with the accuracy, the heads that show most, and answers, and plays
    again and again. is_glossed: target tokens carry their glosses. on_choose: called with the
    indices of the chosen kind and example, not yet checked against the run. on_gloss: called when
    glosses are switched on or off.
    """
    look = {"autoplay": plays, "loop": plays, "compact": plays, "glossed": is_glossed}

    def chosen(value: object) -> None:
        if is_index(value, 16, 10_000):
            on_choose(*value)

    def switched(value: object) -> None:
        if isinstance(value, bool):
            on_gloss(value)

    with st.container(gap=None, key=f"stage-box-{key}"):
        if shown is not None:
            _maps(shown, key=f"{key}-maps")
        _stage(
            plain({**moving, "has_maps": shown is not None, **look}),
            on={"choose": chosen, "gloss": switched},
            key=key,
        )


def told(
    lines: Sequence[dict[str, Any]], *, scores_sequences: bool, are_unseen: bool, **moving: Any
) -> dict[str, Any]:
    """Return the data of each update, and the words of the stage.

    are_unseen: the model did not learn from the examples. moving: what the browser takes as it is:
    the name of the snapshots that it shows; marks: levels, each with its quantity, value and words;
    now: the newest step; total: the last one; live: it is still training; paused: nothing is
    announced; ended: how it ended, once it has; moments: steps and sentences, ascending; begins:
    steps at which something went wrong, each with a word or two; turns: the same where a setting
    was changed; better: between which steps validation looks better than training, and why.
    """
    there = {(line["quantity"], line["role"]) for line in lines}
    wholes = ["whole"] if scores_sequences else []
    usual = {"loss": ["training", "validation"], "accuracy": ["training", "validation", *wholes]}
    return {
        **moving,
        "lines": lines,
        "known": [  # the curves that this run has or will have, in order
            {"quantity": quantity, "role": role, "colour": ROLE_COLOURS[role]}
            for quantity, roles in usual.items()
            for role in (*roles, *_FURTHER)
            if role in roles or (quantity, role) in there
        ],
        "ill": COLOURS["wrong"],
        "grey": COLOURS["chance"],
        "wholes": scores_sequences,
        "glossed": None,  # as the browser's language asks for
        "words": {**table_words(), **_words(are_unseen=are_unseen)},
    }


def pack(shown: Stage, name: str, most: int = MAX_VALUES) -> bytes:
    """Return what the browser gets of the snapshots: JSON header and weights (F, L, H, Q, K).

    A masked weight is NaN. More than ``most`` values are max-pooled, and if that is not enough,
    snapshots are left out; the header says so.
    """
    frames, weights, block = bounded(shown.frames, shown.weights, most)
    header = {
        **still(shown),
        "name": name,
        "frames": [
            {**frame, "labels": [_(label) for label in frame["labels"]]} for frame in frames
        ],
        "n_snapshots": len(shown.frames),
        "shape": weights.shape[1:],
        "block": block,
        "tops": [usual_top(head) for layer in weights[-1:] for heads in layer for head in heads],
    }
    return pack_bytes(header, weights)


def kind_number(shown: Stage) -> int:
    """Return the index of the kind of attention that a stage shows."""
    return shown.kinds.index(shown.kind) if shown.kind in shown.kinds else 0


_NO_MAPS = MapView(np.zeros((1, 0), np.float16), (), (), query_title="", key_title="")


def still(shown: Stage) -> dict[str, Any]:
    """Return the data that all snapshots of a stage share."""
    maps = shown.maps or _NO_MAPS
    is_long = len(maps.key) >= MANY_KEYS
    return {
        "kinds": [
            {"label": _(kind.label), "look_for": _(kind.look_for)} for kind in shown.kind_words
        ],
        "attention": kind_number(shown),
        "example": shown.example,
        "n_attended": shown.n_attended,
        "examples": [
            {
                **example,
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
        )
        + (f" {_('The strongest colour is the top 1% of each map.')}" if is_long else ""),
        "row_words": [_(words) for words in maps.query_words],
        "glosses": None if shown.glosses is None else asdict(shown.glosses),
        "language": shown.language or "",
        "truth": shown.truth,
        "truth_ink": ORANGE,
        "telling": shown.telling,
        "scales": SCALES,
        "masked": MASKED,
    }


def bounded(
    frames: Sequence[Shown], weights: npt.NDArray[Any] | None, most: int = MAX_VALUES
) -> tuple[Sequence[Shown], npt.NDArray[Any], int]:
    """Return at most ``most`` values: frames, weights, and cells per side of a value."""
    if weights is None:
        return frames, np.zeros((len(frames), 0, 0, 0, 0), np.float16), 1
    weights, block = pooled(weights, most // len(frames), least_side=MIN_SIDE)
    n_most = max(2, most // max(1, weights[0].size))
    if len(frames) <= n_most:
        return frames, weights, block
    kept = np.unique(np.linspace(0, len(frames) - 1, n_most).round().astype(int))
    return [frames[i] for i in kept], weights[kept], block


def _words(*, are_unseen: bool) -> dict[str, str]:
    return {
        **player_words(),
        "step": _("step"),
        "measured": _("{name}: {value}."),
        "training_accuracy": _("Training accuracy"),
        "validation_accuracy": _("Validation accuracy"),
        "step_of": _("Step {step} of {total}"),
        "follow": _("Follow the training"),
        "between": _("Interpolated"),
        "smooth": _("Smooth"),
        "smooth_help": _("Interpolates the maps between snapshots."),
        "loss": _("Loss"),
        "accuracy": _("Accuracy"),
        "batch": _("{measure}, this batch", measure=_("training")),
        "training": _("training"),
        "validation": _("validation"),
        "whole": _("validation, sequences"),
        "average": _("averaged"),
        "average_whole": _("averaged, sequences"),
        "test": _("test"),
        "log_steps": _("Log steps"),
        "log_steps_help": _("Stretches the start."),
        "log_loss": _("Log loss"),
        "log_loss_help": _("Spreads small losses."),
        "sound": _("Sound"),
        "sound_help": _("The pitch follows the loss."),
        "why_better": _("Why is validation better here?"),
        "curves": _("Loss and accuracy"),
        "one_value": _(ONE_VALUE),
        "line": _(LINE),
        "line_and_extremes": _(LINE_AND_EXTREMES),
        "chart": _("{name} by step."),
        "heads": _("Attention heads"),
        "named": _("Layer {layer}, head {head}"),
        "truth_frames": _("Orange marks the true source."),
        "of_heads": _("{n} of {all} heads."),
        "glosses": _("Glosses"),
        "glosses_help": _("Shows the source word below each translated word."),
        "kind": _("Attention"),
        "example": _("Example"),
        "picture": _("Picture"),
        "key": _("key"),
        "patch": _("patch"),
        "weight": _("weight"),
        "mixed": _("weight, interpolated"),
        "largest": _("largest in block"),
        "masked": _("masked"),
        "strongest": _("Largest weight {weight}: {place}."),
        "back_to_heads": _("Back to all heads"),
        "enlarge": _("Enlarge"),
        "cls": _("Colour shows the attention of CLS."),
        "mean": _("Colour shows the mean attention to each patch."),
        "word": _("To write"),
        "answers": _("Answers to unseen examples") if are_unseen else _("Answers to the examples"),
        "truth": _("truth"),
        "right": _("right"),
        "wrong": _("wrong"),
        "missing": _("missing"),
        "nothing": _("nothing yet"),
        "probability": _("probability"),
        "waits": _("Answers appear after the first step."),
        "blocks": _("Each cell is the largest weight of {n} × {n} tokens."),
        "fewer": _("{n} of {all} snapshots."),
        "said": _("Labels average {n} examples."),
        "kept": _("{n} of {all} examples have maps."),
        "not_kept": _("This example has no maps."),
    }
