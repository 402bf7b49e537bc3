"""How pages show things: headers, figures, code, problems, empty places, numbers with units."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import plotly.graph_objects as go
import streamlit as st

from pages.components import live_figure as component
from pages.i18n import _, content
from pages.ui import page_table
from pages.ui.typed import escape
from tfm_core import sentences
from tfm_core.inspect.syntax import source
from tfm_core.sentences import in_bytes


@dataclass(frozen=True, slots=True)
class PageWords:
    """The words of a page: its title, one line on what it is for, and the rest, in Markdown."""

    title: str
    intro: str
    more: str


def words(name: str) -> PageWords:
    """Return the words of ``content/<language>/<name>.md``: a title and paragraphs."""
    title, _newline, text = content(name.replace("-", "_")).partition("\n")
    intro, _gap, more = text.strip().partition("\n\n")
    return PageWords(title.removeprefix("# ").strip(), " ".join(intro.split()), more.strip())


def header(name: str) -> None:
    """Show the title of a page and its line; the rest of its words are behind the mark of help."""
    said = words(name)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="page-title"):
        st.title(said.title, anchor=False, help=said.more or None, width="content")
        if said.intro:
            st.caption(said.intro, width="stretch")


def figure(fig: go.Figure, caption: str, key: str | None = None) -> None:
    """Show a figure, and one sentence on what to look for.

    ``st.plotly_chart`` would keep the colours of the theme it was drawn for until the next run of
    the script, so every figure goes through the component, which follows the theme by itself.
    """
    live_figure(fig, caption, key)


def live_figure(fig: go.Figure, caption: str, key: str | None) -> None:
    """Show a figure whose data moves; zoom, hover and hidden lines stay as they are."""
    component.live_figure(fig, key=key, name=caption)
    st.caption(caption)


def facts(rows: Sequence[Sequence[str]], columns: Sequence[str]) -> None:
    """Show a small table of words, in Markdown; on a phone its cells break, and none is hidden.

    Its first column names the rows.
    """
    import pandas as pd  # takes half a second, and Home shows no table

    frame = pd.DataFrame(rows, columns=list(columns))
    st.table(frame.set_index(columns[0]))


def code(used: Callable[..., Any] | type | str) -> None:
    """Show the source of what was just used, or that source, behind a click."""
    with st.expander(_("The code"), icon=":material/code:"):
        st.code(used if isinstance(used, str) else source(used), language="python")


def formula(latex: str) -> None:
    """Show a formula with room above it: the page would cut the top of a fraction off."""
    st.latex(rf"\vphantom{{\bigg(}}{latex}" if r"\frac" in latex else latex)


def problem(what: str | BaseException) -> None:
    """Show what is wrong, and what would be right; nothing in it is markup."""
    text = escape(_(what)).encode("utf-8", "backslashreplace").decode("utf-8")  # lone surrogates
    st.error(text, icon=":material/error:")


def empty(sentence: str, button: str, page: str) -> None:
    """Show why there is nothing here, and the button that leads to where it can be made."""
    with st.container(border=True, horizontal_alignment="center", gap="medium"):
        st.markdown(sentence, width="content")
        if st.button(button, type="primary", key=f"empty-{page}"):
            st.switch_page(page_table.path_of(page))


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


def about(seconds: float) -> str:
    """Return an estimated time as a round number: ``about 45 s``, ``about 2.5 min``."""
    return _("about {time}", time=rounded(seconds))


def rounded(seconds: float) -> str:
    """Return a time as a round number and its unit; a longer time never reads shorter."""
    found = (
        (limit, unit, unit_seconds, step)
        for limit, unit, unit_seconds, step in _ROUND
        if seconds <= limit
    )
    limit, unit, unit_seconds, step = next(found)
    n = min(step * max(1, round(seconds / unit_seconds / step)), limit / unit_seconds)
    return f"{n:g} {unit}"


_ROUND = (  # up to so many seconds, in a unit of so many, in steps of so many units
    (10, "s", 1, 1),
    (30, "s", 1, 2),
    (60, "s", 1, 5),
    (600, "min", 60, 0.5),
    (3600, "min", 60, 5),
    (36_000, "h", 3600, 0.5),
    (math.inf, "h", 3600, 1),
)


def count(n: float) -> str:
    """Return a number with thousands apart, and short from a million on: ``72,394``, ``1.2 M``."""
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(n) >= limit:
            return f"{n / limit:.3g} {unit}"
    return f"{n:,.0f}"


def size(n_bytes: float) -> str:
    """Return bytes with a unit of 1024: ``512 B``, ``3.4 KiB``, ``1.2 GiB``."""
    return in_bytes(n_bytes)


def device(name: str) -> str:
    """Return a device as it stands on a page: ``CPU``, ``cuda:0``, ``MPS``."""
    return name if name.startswith("cuda") else name.upper()


def percent(share: float) -> str:
    """Return a share in per cent, as the core writes it, see ``sentences.percent``."""
    return sentences.percent(share)


def clock(moment: float) -> str:
    """Return a time (Unix) to come on the reader's clock: ``14:30``, ``14:30 tomorrow``, a date."""
    zone = _zone()
    then, now = datetime.fromtimestamp(moment, zone), datetime.now(zone)
    if then.date() == now.date():
        return f"{then:%H:%M}"
    if then.date() == (now + timedelta(days=1)).date():
        return _("{time} tomorrow", time=f"{then:%H:%M}")
    return f"{then:%Y-%m-%d %H:%M}"


def _zone() -> tzinfo | None:
    """Return the time zone of the reader's browser, or else of this machine."""
    try:
        name = st.context.timezone
        return ZoneInfo(name) if name else None
    except (KeyError, OSError, ValueError):  # one that this machine does not know
        return None


def ago(created: str) -> str:
    """Return how long ago a time of ISO 8601 was, such as ``3 min ago``; a date after two days."""
    then = datetime.fromisoformat(created)
    seconds = (datetime.now(UTC) - then.astimezone(UTC)).total_seconds()
    if seconds < 60:
        return _("just now")
    if seconds < 3600:
        return _("{n} min ago", n=int(seconds // 60))
    if seconds < 2 * 86400:
        return _("{n} h ago", n=int(seconds // 3600))
    return f"{then:%Y-%m-%d}"
