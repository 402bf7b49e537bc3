"""The confusion matrix: a press on a cell lists its errors alone."""

from __future__ import annotations

import streamlit as st

from pages.components import live_figure as component
from pages.i18n import _
from pages.mistakes import controls
from pages.mistakes.link import Cell
from pages.ui import state
from tfm_core.inspect.errors.answers import Answers
from tfm_core.inspect.errors.confusion import OTHERS, Confusion
from tfm_core.plots import errors as plots

_HEIGHT, _ROW = 400, 22  # pixels: of the figure at least, and of a class


def matrix(found: Answers, counted: Confusion, chosen: Cell | None) -> None:
    """Show what is said for what was meant."""
    numbers = counted.numbers
    told_apart = [place for place, number in enumerate(numbers) if number != OTHERS]
    is_shown = chosen is not None and set(chosen) <= set(numbers)
    figure = plots.confusion(
        counted.counts,
        counted.names,
        state.theme(),
        wrong=counted.n_wrong,
        top=int(counted.n_wrong[told_apart][:, told_apart].max(initial=0)),
        chosen=(numbers.index(chosen[0]), numbers.index(chosen[1]))
        if chosen is not None and is_shown
        else None,
        height=max(_HEIGHT, _ROW * len(numbers)),
    )
    component.live_figure(
        figure,
        key="mistakes-matrix",
        name=_("Predicted for each true class; press a cell for its examples"),
        on_pick=lambda row, column: controls.choose_cell((numbers[row], numbers[column])),
    )
    st.caption(_explained(found, counted))


def _explained(found: Answers, counted: Confusion) -> str:
    words = [_("Rows: true; columns: predicted; errors coloured. Press a cell for examples.")]
    if found.unit == "token":
        words.append(_("Each token is predicted from the true ones before it (teacher forcing)."))
    if OTHERS in counted.numbers:
        words.append(
            _(
                "Shown: the {n} most confused of {all} classes; … means all others.",
                n=len(counted.numbers) - 1,
                all=len(found.names),
            )
        )
    return " ".join(words)
