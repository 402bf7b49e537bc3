"""How pages show things: headers, figures, code, problems, empty places, numbers with units."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import plotly.graph_objects as go
import streamlit as st

from pages.components import live_figure as component
from pages.ui import state
from pages.ui.words import _, content
from tfm_core.plots.template import template


def header(name: str) -> None:
    """Show the title and the words of ``content/<language>/<name>.md``."""
    title, _newline, words = content(name).partition("\n")
    st.title(title.removeprefix("# ").strip(), anchor=False)
    if words.strip():
        st.markdown(words.strip())


def figure(fig: go.Figure, caption: str, key: str | None = None) -> None:
    """Show a figure that stands still, and one sentence on what to look for."""
    fig.update_layout(template=template(state.theme()))
    st.plotly_chart(fig, theme=None, key=key, config=component.CONFIG)
    st.caption(caption)


def live_figure(fig: go.Figure, caption: str, key: str) -> None:
    """Show a figure whose data moves; zoom, hover and hidden lines stay as they are."""
    component.live_figure(fig, key=key)
    st.caption(caption)


def code(obj: Callable[..., Any] | type) -> None:
    """Show the source of what was just used, behind a click."""
    with st.expander(_("The code"), icon=":material/code:"):
        st.code(inspect.getsource(obj), language="python")


def problem(sentence: str) -> None:
    """Show what is wrong, and what would be right."""
    st.error(sentence, icon=":material/error:")


def empty(sentence: str, button: str, page: str) -> None:
    """Show why there is nothing here, and the button that leads to where it can be made."""
    with st.container(border=True, horizontal_alignment="center", gap="medium"):
        st.markdown(sentence, width="content")
        if st.button(button, type="primary", key=f"empty-{page}"):
            st.switch_page(state.PAGES[page])


def duration(seconds: float) -> str:
    """Return seconds as a person says them: ``0.4 s``, ``42 s``, ``3 min 5 s``, ``2 h 10 min``."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def count(n: float) -> str:
    """Return a number with thousands apart, and short from a million on: ``72,394``, ``1.2 M``."""
    for limit, unit in ((1e9, "G"), (1e6, "M")):
        if abs(n) >= limit:
            return f"{n / limit:.3g} {unit}"
    return f"{n:,.0f}"


def size(n_bytes: float) -> str:
    """Return bytes with a unit of 1024: ``512 B``, ``3.4 KiB``, ``1.2 GiB``."""
    value = float(n_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" or value >= 100 else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def percent(share: float) -> str:
    """Return a share as per cent; 100 % is said only where nothing at all is missing."""
    if share < 1 and round(share * 100, 1) == 100:
        return "99.9 %"
    return f"{share * 100:.0f} %" if share in (0, 1) else f"{share * 100:.1f} %"
