"""The known answer: which head looks at the source words that a target word truly comes from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from pages.attention import selection as chosen
from pages.attention.selection_link import Selection
from pages.i18n import _
from pages.ui import show
from tfm_core import byte_cache
from tfm_core.config import Experiment
from tfm_core.inspect.attention import alignment
from tfm_core.inspect.attention.example import Example
from tfm_core.plots.head_scores import score_lines
from tfm_core.runs.run import Run

_TABLE = "attention-alignment-table"


def scores(run: Run, selection: Selection, step: int) -> None:
    """Show the score of every head over the training, and name the one that learned to align."""
    frame = _scores(run.folder, tuple(run.snapshot_steps()))
    best = alignment.best_head(frame, step)
    if best is None:
        show.problem(_("The heads of this step cannot be scored."))
        return
    formed = alignment.formed_at(frame, best.module, best.head)
    aligned = alignment.aligned(frame, step)
    truth = _truth(run.experiment)
    st.markdown(_sentence(best, formed, aligned, truth))
    left, right = st.columns([5, 4], gap="medium")
    with left:
        figure = score_lines(frame, chosen=(best.module, best.head), at_step=step)
        words = _(
            "The share of each head’s attention that lies on {truth}. Dotted: what even attention "
            "would have.",
            truth=truth,
        )
        show.live_figure(figure, f"{words} {_look_for(aligned)}", key="attention-alignment")
    with right:
        _table(run, frame[frame["step"] == step].reset_index(drop=True))
    if run.experiment.model.family == "decoder-only":
        st.caption(
            _(
                "In a single sequence a head can also attend to `<bos>` and to the text so far: "
                "shares count all its attention, and the error rate uses its strongest source "
                "token."
            )
        )


def true_cells(experiment: Experiment, example: Example, module: str) -> npt.NDArray[np.bool_]:
    """Return the true cells (Q, K) of a map; none where they are not known."""
    try:
        return alignment.truth_on_map(experiment, example.item, module)
    except ValueError:
        return np.zeros(example.attention[module].shape[1:], np.bool_)


def _truth(experiment: Experiment) -> str:
    """Return what a head should attend to, worded for a sentence."""
    if experiment.task.describes_pictures:
        return _("the digit that the next word names")
    return _("the true source words")


def _look_for(aligned: alignment.Aligned) -> str:
    """Return what to look for in the lines, which depends on how many of them rise."""
    if not aligned.n:
        return _("Here no line has risen above a half.")
    step = f"{aligned.step:,}"
    if aligned.n_heads > 1 and aligned.are_all:
        return _("Look for how close together the lines rise: from step {step} on all of them "
                 "align.", step=step)  # fmt: skip
    if aligned.n == 1:
        return _("Look for the step where one line leaves the others.")
    return _("Look for the steps at which {n} lines leave the others.", n=aligned.n)


def _sentence(
    best: alignment.BestHead, formed: int | None, aligned: alignment.Aligned, truth: str
) -> str:
    which = {"layer": best.layer + 1, "head": best.head + 1}
    figures = {"share": show.percent(best.share), "aer": f"{best.aer:.3f}", "truth": truth}
    if not aligned.n:
        words = _(
            "No head has learned to align. The closest is layer {layer}, head {head}: {share} "
            "of its attention lies on {truth}; alignment error rate {aer}."
        )
        return words.format(**which, **figures)
    if aligned.n == 1:
        words = _(
            "**Layer {layer}, head {head}** learned to align: {share} of its attention lies on "
            "{truth}; alignment error rate {aer}.",
            **which,
            **figures,
        )
        if aligned.n_heads == 1 or formed is None:
            return words
        return words + _(" It has done so from step {step} on.", step=f"{formed:,}")
    rule = _(
        "**{n} of the {n_heads} heads align**: {least} to {most} of their attention lies on "
        "{truth}. Best is layer {layer}, head {head}, with {share}."
    )
    if aligned.are_all:
        rule = _(
            "**All {n_heads} heads align**: {least} to {most} of their attention lies on {truth}. "
            "Best is layer {layer}, head {head}, with {share}."
        )
    return rule.format(
        n=aligned.n,
        n_heads=aligned.n_heads,
        least=show.percent(aligned.least),
        most=show.percent(aligned.most),
        **which,
        **figures,
    )


def _table(run: Run, frame: pd.DataFrame) -> None:
    frame = frame.sort_values("share", ascending=False).reset_index(drop=True)

    def picked() -> None:
        rows = st.session_state[_TABLE].selection.rows
        if rows and rows[0] < len(frame):
            row = frame.iloc[rows[0]]
            chosen.choose(
                run.id, kind=row["kind"], layer=int(row["layer"]) - 1, head=int(row["head"]) - 1
            )

    share = st.column_config.ProgressColumn
    st.dataframe(
        frame[["layer", "head", "share", "aer"]],
        key=_TABLE,
        hide_index=True,
        on_select=picked,
        selection_mode="single-row",
        height=min(340, 38 + 35 * max(1, len(frame))),
        column_config={
            "layer": _("Layer"),
            "head": _("Head"),
            "share": share(_("On the truth"), format="percent", min_value=0, max_value=1),
            "aer": st.column_config.NumberColumn(
                _("Error rate"),
                format="%.3f",
                help=_(
                    "Alignment error rate (Och & Ney 2003). 0: the strongest cell of every row is "
                    "a true one."
                ),
            ),
        },
    )
    st.caption(_("Click beside a row to open that head; the true cells are outlined on its map."))


@byte_cache.kept
def _scores(folder: Path, steps: tuple[int, ...]) -> pd.DataFrame:
    """Return the scores at every snapshot. The steps are in the key: a live run gets new ones."""
    return alignment.score_over_training(Run(folder))
