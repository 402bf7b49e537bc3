"""How pages show things: headers, figures, code, errors, empty places, numbers with units."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.app import state
from pages.app.navigation import page_table, ticks
from pages.app.navigation.terms import marked
from pages.app.typed import escape
from pages.components import live_figure as component
from pages.i18n import N_, _, content
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


def header(name: str, *, is_article: bool = False, of: str = "") -> DeltaGenerator:
    """Show the pages of the place, this one as the title, and the next page of the path.

    The goal of a page on the path, its minutes and its text are the help; an article shows its
    text itself. of: what the page shows, if that has its own words. Returns a place in the row
    for what else the page offers.
    """
    texts, page, after = words(of or name), page_table.PAGES[name], page_table.after(name)
    goal = _("{goal} · {n}\u00a0min", goal=_(page.goal), n=page.minutes) if page.goal else ""
    text = () if is_article else (texts.intro, texts.more)
    help = "\n\n".join(filter(None, (goal, *text)))
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="page-title"):
        for other in page_table.beside(name):
            if other is page:
                st.title(texts.title, anchor=False, help=help, width="content")
            else:
                label = _(other.tab or other.title)
                st.page_link(other.path, label=label, query_params=with_run(other))
        more = st.container(horizontal=True, width="content", key="page-offers")
        ticks.shown(page, _done)
        if after is not None:
            with st.container(width="content", key="page-next"):
                place = st.empty()
            _NEXT.set((place, after))
            lead_on()
    if page.has_head:
        _HEAD.set(st.container(key="head", gap=None))
    return more


def head_place() -> DeltaGenerator | None:
    """Return where the page in sight has its head, if it has one."""
    return _HEAD.get()


def with_run(page: page_table.PageFacts) -> dict[str, str]:
    """Return the query that opens a page on the current run, if it shows one."""
    run_id = state.current_run_id()
    return state.run_query(page.name, run_id) if page.shows_run and run_id is not None else {}


_NEXT: ContextVar[tuple[DeltaGenerator, page_table.PageFacts] | None] = ContextVar(
    "_NEXT", default=None
)
_HEAD: ContextVar[DeltaGenerator | None] = ContextVar("_HEAD", default=None)


def begin() -> None:
    """Forget the header of the page before; called before a page is drawn."""
    _NEXT.set(None)
    _HEAD.set(None)


def _done(page: page_table.PageFacts) -> None:
    n = ticks.answered(page)
    if ticks.is_done(page):
        st.caption(f":green[:material/check_circle: {_('done')}]", width="content")
    elif n:
        st.caption(_("{n} of {all} answered", n=n, all=page.questions), width="content")


def lead_on() -> None:
    """Draw the link to the next page of the path; it takes the current run along.

    The chapter on the whole model goes on with the run in sight, even one that nobody chose: so
    that is known, the link is drawn again behind the page.
    """
    drawn = _NEXT.get()
    if drawn is None:
        return
    place, page = drawn
    is_whole = page.chapter == "model"
    run_id = state.current_run_id() if page.shows_run or is_whole else None
    linked = state.linked_run_id()
    if run_id is None and is_whole and linked is not None and state.is_default_run(linked):
        run_id = linked
    place.page_link(
        page.path,
        label=_("Next **{title}**", title=_(page.title)),
        icon=":material/arrow_forward:",
        icon_position="right",
        width="content",
        query_params={} if run_id is None else state.run_query(page.name, run_id),
    )


def fact_line(key: str) -> tuple[DeltaGenerator, DeltaGenerator]:
    """Draw a line above a page's subject: what is shown, and behind "Change" the choices of it.

    Returns the place of the facts, and the popover. Draw the choices first: the facts name what was
    chosen. key: begins the keys of both.
    """
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key=f"{key}-facts"
    ):
        facts = st.container(width="stretch")
        choices = st.popover(_("Change"), icon=":material/tune:", key=f"{key}-change")
    return facts, choices


def joined(*facts: str) -> str:
    """Return the facts that are there as one line of Markdown."""
    return " · ".join(filter(None, facts))


def figure(fig: go.Figure, caption: str, key: str | None = None) -> None:
    """Show a figure and a caption on what to look for; zoom, hover and hidden lines stay.

    ``st.plotly_chart`` keeps the colours of the old theme until the next rerun; the component
    follows the theme in the browser.
    """
    component.live_figure(fig, key=key, name=caption)
    st.caption(marked(caption))


def beside(*figures: tuple[go.Figure, str, str]) -> None:
    """Show figures side by side, each with its caption and its key."""
    for column, (fig, caption, key) in zip(st.columns(len(figures)), figures, strict=True):
        with column:
            figure(fig, caption, key)


def prose(text: str) -> None:
    """Show Markdown whose terms explain themselves."""
    st.markdown(marked(text))


def facts(rows: Sequence[Sequence[str]], columns: Sequence[str]) -> None:
    """Show a small table of Markdown, whose cells wrap on a phone.

    Its first column names the rows.
    """
    import pandas as pd  # takes half a second, and Home shows no table

    frame = pd.DataFrame(rows, columns=list(columns))
    st.table(frame.set_index(columns[0]))


def code(used: Callable[..., Any] | type | str) -> None:
    """Show the source of an object, or a source text, folded."""
    with st.expander(_("The code"), icon=":material/code:"):
        st.code(used if isinstance(used, str) else source(used), language="python")


def right_or_wrong(*, is_right: bool) -> str:
    """Return a badge in Markdown."""
    if is_right:
        return f":green-badge[:material/check: {_('right')}]"
    return f":orange-badge[:material/close: {_('wrong')}]"


def formula(latex: str) -> None:
    """Show a formula with room above it: Streamlit cuts off the top of a fraction."""
    st.latex(rf"\vphantom{{\bigg(}}{latex}" if r"\frac" in latex else latex)


def problem(what: str | BaseException) -> None:
    """Show an error message, escaped."""
    text = escape(_(what)).encode("utf-8", "backslashreplace").decode("utf-8")  # lone surrogates
    st.error(text, icon=":material/error:")


def empty(sentence: str, button: str, page: str) -> None:
    """Show why there is nothing here, and a button that leads on."""
    with st.container(border=True, horizontal_alignment="center", gap="medium"):
        st.markdown(sentence, width="content")
        if st.button(button, type="primary", key=f"empty-{page}"):
            st.switch_page(page_table.path_of(page))


def link(
    page: str, label: str = "", query: Mapping[str, str] | None = None, *, icon: str = ""
) -> None:
    """Draw a link to a page, with the page's title and icon unless others are given."""
    facts = page_table.PAGES[page]
    st.page_link(
        facts.path,
        label=label or _(facts.title),
        icon=icon or facts.icon,
        query_params=query,
        width="content",
    )


def duration(seconds: float) -> str:
    """Return a time as text: ``0.4 s``, ``42 s``, ``3 min 5 s``, ``2 h 10 min``."""
    if seconds < 9.95:
        return _("{n} s", n=f"{seconds:.1f}")
    whole = round(seconds)
    if whole < 60:
        return _("{n} s", n=whole)
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return _("{min} min {s} s", min=minutes, s=rest) if rest else _("{n} min", n=minutes)
    hours, minutes = divmod(minutes, 60)
    return _("{h} h {min} min", h=hours, min=minutes) if minutes else _("{n} h", n=hours)


def about(seconds: float) -> str:
    """Return an estimated time as a round number: ``about 45 s``, ``about 2.5 min``."""
    return _("about {time}", time=rounded(seconds))


def rounded(seconds: float) -> str:
    """Return a time as a round number and its unit; a longer time never reads shorter."""
    limit, unit, unit_seconds, step = next(row for row in _ROUND if seconds <= row[0])
    n = min(step * max(1, round(seconds / unit_seconds / step)), limit / unit_seconds)
    return _(unit, n=f"{n:g}")


_SECONDS, _MINUTES, _HOURS = N_("{n} s"), N_("{n} min"), N_("{n} h")
_ROUND = (  # up to so many seconds, in a unit of so many, in steps of so many units
    (10, _SECONDS, 1, 1),
    (30, _SECONDS, 1, 2),
    (60, _SECONDS, 1, 5),
    (600, _MINUTES, 60, 0.5),
    (3600, _MINUTES, 60, 5),
    (36_000, _HOURS, 3600, 0.5),
    (math.inf, _HOURS, 3600, 1),
)


def count(n: float) -> str:
    """Return a number with separators, from a million on with a unit: ``72,394``, ``1.2 M``."""
    if n < 1e6:
        return f"{n:,.0f}"
    units = re.finditer(r"(1e\d+)([^|]*)\|", _("1e12 T|1e9 G|1e6 M|"))
    found = next(unit for unit in units if n >= float(unit[1]))
    share = n / float(found[1])
    return f"{share:,.0f}{found[2]}" if share >= 1000 else f"{share:.3g}{found[2]}"


size, percent = in_bytes, sentences.percent


def device(name: str) -> str:
    """Return a device as pages show it: ``CPU``, ``cuda:0``, ``MPS``."""
    return name if name.startswith("cuda") else name.upper()


def clock(moment: float) -> str:
    """Return a future Unix time on the reader's clock: ``14:30``, ``14:30 tomorrow``, a date."""
    zone = _zone()
    then, now = datetime.fromtimestamp(moment, zone), datetime.now(zone)
    if then.date() == now.date():
        return f"{then:%H:%M}"
    if then.date() == (now + timedelta(days=1)).date():
        return _("{time} tomorrow", time=f"{then:%H:%M}")
    return f"{then:%Y-%m-%d %H:%M}"


def _zone() -> tzinfo | None:
    """Return the browser's time zone, else this machine's."""
    try:
        name = st.context.timezone
        return ZoneInfo(name) if name else None
    except (KeyError, OSError, ValueError):  # one that this machine does not know
        return None


def ago(created: str) -> str:
    """Return how long ago an ISO 8601 time was, such as ``3 min ago``; a date after two days."""
    then = datetime.fromisoformat(created)
    seconds = (datetime.now(UTC) - then.astimezone(UTC)).total_seconds()
    if seconds < 60:
        return _("just now")
    if seconds < 3600:
        return _("{n} min ago", n=int(seconds // 60))
    if seconds < 2 * 86400:
        return _("{n} h ago", n=int(seconds // 3600))
    return f"{then:%Y-%m-%d}"
