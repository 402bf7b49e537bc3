"""Alignment: how much of each head's attention is on the true source words."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import streamlit as st

from pages.attention import heads
from pages.i18n import _, paragraph
from pages.ui import show
from tfm_core import byte_cache
from tfm_core.config import Experiment
from tfm_core.inspect.attention import alignment
from tfm_core.inspect.attention.example import Example
from tfm_core.plots.heads.head_scores import score_lines
from tfm_core.runs.run import Run

_TABLE = "attention-alignment-table"


def scores(run: Run, step: int) -> None:
    """Show the score of every head over the training, and name the one that learned to align."""
    frame = _scores(run.folder, tuple(run.snapshot_steps()))
    best = alignment.best_head(frame, step)
    if best is None:
        show.problem(_("The heads of this step cannot be scored."))
        return
    module, head = str(best["module"]), int(best["head"]) - 1
    formed = alignment.formed_at(frame, module, head)
    aligned = alignment.aligned(frame, step)
    st.markdown(_verdict(best, formed, aligned))
    left, right = st.columns([5, 4], gap="medium")
    with left:
        figure = score_lines(frame, chosen=(module, head), at_step=step)
        show.live_figure(
            figure,
            _("Attention on the true source; dotted: even attention."),
            key="attention-alignment",
        )
    with right:
        _table(run, frame[frame["step"] == step].reset_index(drop=True))
    if run.experiment.model.family == "decoder-only":
        st.caption(paragraph("attention/single-sequence"))


def true_cells(experiment: Experiment, example: Example, module: str) -> npt.NDArray[np.bool_]:
    """Return the true cells (Q, K) of a map; none where they are not known."""
    try:
        return alignment.truth_on_map(experiment, example.item, module)
    except ValueError:
        return np.zeros(example.attention[module].shape[1:], np.bool_)


def _verdict(best: pd.Series[Any], formed: int | None, aligned: alignment.Aligned) -> str:
    values = {
        "layer": best["layer"],
        "head": best["head"],
        "share": show.percent(best["share"]),
        "aer": f"{best['aer']:.3f}",
    }
    if not aligned.n:
        return paragraph("attention/no-head-aligns", **values)
    if aligned.n == 1:
        words, step = paragraph("attention/one-head-aligns", **values), formed
    else:
        values |= {
            "n": aligned.n,
            "n_heads": aligned.n_heads,
            "low": show.percent(aligned.least),
            "high": show.percent(aligned.most),
        }
        words = paragraph("attention/heads-align", **values)
        step = aligned.step if aligned.are_all else None
    if aligned.n_heads == 1 or step is None:
        return words
    return words + " " + _("Aligned from step {step} on.", step=f"{step:,}")


def _table(run: Run, frame: pd.DataFrame) -> None:
    frame = frame.sort_values("share", ascending=False).reset_index(drop=True)

    share = st.column_config.ProgressColumn
    st.dataframe(
        frame[["layer", "head", "share", "aer"]],
        key=_TABLE,
        hide_index=True,
        on_select=partial(heads.open_picked, run, frame, _TABLE),
        selection_mode="single-row",
        height=min(340, 38 + 35 * max(1, len(frame))),
        column_config={
            "layer": _("Layer"),
            "head": _("Head"),
            "share": share(_("On the true source"), format="percent", min_value=0, max_value=1),
            "aer": st.column_config.NumberColumn(
                _("Error rate"),
                format="%.3f",
                help=_(
                    "Alignment error rate (Och & Ney 2003); 0: every row’s strongest cell is true."
                ),
            ),
        },
    )
    st.caption(_("Click beside a row to open that head."))


@byte_cache.cached
def _scores(folder: Path, steps: tuple[int, ...]) -> pd.DataFrame:
    """Return the scores at every snapshot. The steps are in the key: a live run gets new ones."""
    return alignment.score_over_training(Run(folder))
