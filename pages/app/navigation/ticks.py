"""Ticks of the pages that a visitor has worked through, and the map of the path with them.

Only the browser keeps ticks, in a cookie. A page is done once its questions are answered or, if it
has none, once the reader changed what it shows.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import streamlit as st

from pages.app import state
from pages.app.address import view
from pages.app.navigation import page_table
from pages.app.navigation.page_table import CHAPTERS, PAGES, WAY, PageFacts
from pages.components import addresses
from pages.components.effects import keep_cookie
from pages.i18n import _

COOKIE = "tfm_ticks"
_MARKS = "ticks"
_RESETS = "tick-resets"
_KEPT = "ticks-kept"
_SHOWN = "ticks-shown"
_ACT = "act"
_MARKING = ("own-data", "sweeps")
"""Pages that mark their main act themselves: it is more than a change of what they show."""
_MARK = re.compile(r"[a-z0-9-]{1,40}")


def mark(what: str = _ACT) -> None:
    """Mark a question, or the main act, of the page in sight as done."""
    page = PAGES.get(state.page())
    if page is not None and page.chapter and not is_done(page):
        marks().setdefault(page.name, set()).add(what)


def mark_change() -> None:
    """Mark the main act of a page without questions if the reader changed what it shows."""
    page = PAGES.get(state.page())
    if page and not page.questions and page.name not in _MARKING and view.is_changed():
        mark()


def is_done(page: PageFacts) -> bool:
    """Return whether a page of the path is done."""
    return len(_of(page)) >= _needed(page)


def answered(page: PageFacts) -> int:
    """Return how many of a page's questions are answered."""
    return min(page.questions, len(_of(page)))


def done() -> int:
    """Return how many pages of the path are done."""
    return sum(map(is_done, WAY))


def reset() -> None:
    """Forget everything, also in the browser."""
    st.session_state[_MARKS] = {}
    st.session_state[_RESETS] = st.session_state.get(_RESETS, 0) + 1


def marks() -> dict[str, set[str]]:
    """Return what was done, by page: what the browser's cookie says, and what came since."""
    if _MARKS not in st.session_state:
        st.session_state[_MARKS] = read(st.context.cookies.get(COOKIE))
    found: dict[str, set[str]] = st.session_state[_MARKS]
    return found


def keep() -> None:
    """Have the browser keep what was done; where a fragment changes it, too."""
    st.fragment(_keep, key=_KEPT)()


def shown(page: PageFacts, draw: Callable[[PageFacts], None]) -> None:
    """Show how much of a page is done; where a fragment changes that, too."""
    with st.container(width="content", key="page-done"):
        st.fragment(draw, key=_SHOWN)(page)


def newly_done() -> tuple[str, ...]:
    """Return, once, the fragments that keep and show what was done since they were drawn."""
    if _KEPT not in st.session_state:
        return ()
    mark_change()
    before, st.session_state[_KEPT] = st.session_state[_KEPT], written(marks())
    return (_KEPT, _SHOWN) if before != st.session_state[_KEPT] else ()


def _keep() -> None:
    st.session_state[_KEPT] = text = written(marks())
    keep_cookie(
        COOKIE,
        text,
        path=addresses.root() or "/",
        resets=st.session_state.get(_RESETS, 0),
        key="tick-cookie",
    )


def read(text: object) -> dict[str, set[str]]:
    """Return what a cookie says was done; what it cannot say is left out."""
    found: dict[str, set[str]] = {}
    for part in text.split("/") if isinstance(text, str) and len(text) <= 4000 else ():
        name, *words = part.split(":")
        page = PAGES.get(page_table.current_address(name, {})[0])
        if page is not None and page.chapter:
            if page.name != name:  # of several pages, the act of one is not that of all
                mark = page_table.OLD_ADDRESSES[name].mark
                words = [mark] if mark and words else [word for word in words if word != _ACT]
            before = found.setdefault(page.name, set())
            some = dict.fromkeys(word for word in words if _MARK.fullmatch(word))
            before.update(list(some)[: _needed(page) - len(before)])
    return found


def written(found: dict[str, set[str]]) -> str:
    """Return what was done as the text of a cookie."""
    return "/".join(":".join([name, *sorted(some)]) for name, some in sorted(found.items()) if some)


def _of(page: PageFacts) -> set[str]:
    return marks().get(page.name, set())


def _needed(page: PageFacts) -> int:
    return max(1, page.questions)


def draw_map() -> None:
    st.header(_("What you can learn"), anchor=False)
    if n := done():
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(_("{n} of {all} done", n=n, all=len(WAY)), width="content")
            st.button(_("Reset"), key="reset-ticks", type="tertiary", on_click=reset)
    with st.container(key="page-map"):
        for number, (column, (chapter, title)) in enumerate(
            zip(st.columns(len(CHAPTERS)), CHAPTERS.items(), strict=True), start=1
        ):
            with column, st.container(gap="xsmall"):
                st.subheader(f"{number} · {_(title)}", anchor=False)
                for page in WAY:
                    if page.chapter == chapter:
                        goal = _("{goal} · {n}\u00a0min", goal=_(page.goal), n=page.minutes)
                        tick = "✓ " if is_done(page) else ""
                        label = f"**{tick}{_(page.title)}** {goal}"  # one element is faster
                        st.page_link(page.path, label=label)
