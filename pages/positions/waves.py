"""Sinusoidal positions: waves, the whole matrix, wavelengths, the product by distance."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.i18n import _, paragraph
from pages.ui import show, state
from pages.ui.runs import shown_run
from pages.ui.typed import escape
from tfm_core.config import ConfigError, Experiment
from tfm_core.config.experiment import sequence_len
from tfm_core.inspect.positions import tables
from tfm_core.plots.model import positions as plots

BASES = (2.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0, 1000000.0)
WIDTHS = (4, 8, 16, 32, 64, 128, 256, 512)


def base(key: str, start: float = 10000.0) -> float:
    """Ask for a base; each one to start from has its own slider."""
    return float(
        st.select_slider(
            _("Base"),
            sorted({*BASES, start}),
            start,
            format_func=lambda value: f"{value:,.0f}",
            key=f"positions-base-{key}" + ("" if start == 10000.0 else f"-{start:g}"),
            persist_state="session",
            help=paragraph("positions/base"),
        )
    )


def width(label: str, start: int, key: str) -> int:
    return int(
        st.select_slider(
            label,
            WIDTHS,
            start,
            key=f"positions-width-{key}",
            persist_state="session",
        )
    )


def length(key: str, start: int = 96) -> int:
    return st.slider(
        _("Positions"),
        8,
        256,
        start,
        step=8,
        key=f"positions-length-{key}",
        persist_state="session",
    )


def _trained() -> tuple[int, str] | None:
    """Return the trained length, the longest sequence, and a sentence on whose it is.

    It is the current run's or, without one, that of the configuration being edited; None where
    that is not valid.
    """
    run = shown_run.current_run()
    if run is not None:
        name = escape(run.meta.name)
        return sequence_len(run.experiment), _("Dotted: longest sequence of “{name}”.", name=name)
    try:
        edited = Experiment.parse(state.draft())
    except ConfigError:
        return None
    return sequence_len(edited), _("Dotted: longest sequence of the edited configuration.")


def view() -> None:
    first, second, third = st.columns(3)
    with first:
        d_model = width(_("d_model"), 64, "waves")
    with second:
        chosen_base = base("waves")
    with third:
        n = length("waves")
    table = tables.sinusoidal_table(n, d_model, chosen_base)
    left, right = st.columns(2)
    with left:
        _waves(table)
        _products(table)
    with right:
        show.figure(
            plots.matrix(table, _("dimension"), _("position"), state.theme(), limit=1.0),
            _("Fast waves (left) tell neighbours apart, slow ones start from end."),
            key="positions-matrix",
        )
        show.figure(
            plots.wavelengths(tables.wavelengths(d_model, chosen_base), n),
            _("Pairs far above the line barely move."),
            key="positions-wavelengths",
        )
    angle = rf"\frac{{pos}}{{{chosen_base:.0f}^{{\,2i/{d_model}}}}}"
    even, odd, words = st.columns([3, 3, 4], vertical_alignment="center")
    with even:
        show.formula(rf"PE_{{(pos,\,2i)}} = \sin{angle}")
    with odd:
        show.formula(rf"PE_{{(pos,\,2i+1)}} = \cos{angle}")
    with words:
        st.caption(paragraph("positions/formula", last=d_model // 2 - 1))
    position = st.slider(
        _("One position"), 0, len(table) - 1, min(7, len(table) - 1), key="positions-row"
    )
    show.figure(
        plots.row(table, position),
        _("The vector that this position adds to a token."),
        key="positions-row-figure",
    )
    show.code(tables.source_of("positions:sinusoidal"))


def _waves(table: tables.Array) -> None:
    n_pairs = table.shape[1] // 2
    pair = st.slider(
        _("Pair i"), 0, n_pairs - 1, min(4, n_pairs // 2), key=f"positions-pair-{n_pairs}"
    )
    caption = paragraph("positions/pair")
    trained, whose = _trained() or (None, "")
    if trained is not None and trained < len(table):
        caption += f" {whose}"
    show.figure(
        plots.waves(table, [pair], trained=trained),
        caption,
        key="positions-waves",
    )


def _products(table: tables.Array) -> None:
    n = len(table)
    starts = sorted({0, n // 2, n - 1})
    lines, offsets = {}, np.arange(1 - n, n)
    for start in starts:
        own, products = tables.products_by_offset(table, start)
        values = np.full(len(offsets), np.nan, np.float32)
        values[own + n - 1] = products
        lines[_("from position {n}", n=start)] = values
    show.figure(
        plots.lines_by_offset(offsets, lines, _("dot product")),
        _("The dot product depends only on the distance."),
        key="positions-products",
    )
