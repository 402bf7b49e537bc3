"""Session state of the attention page, mirrored in the link.

This module owns the keys of ``st.session_state`` that remember it when the page is left.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import streamlit as st

from pages.attention.selection_link import (
    HEAD,
    LAYER,
    NAMES,
    Offer,
    Selection,
    resolve,
    to_query,
)
from pages.ui import state
from pages.ui.address import view_link

_KEY = "attention"
_PLACE = (LAYER.query, HEAD.query)  # another run has another head to open on
_PLAYING = "attention-playing"


@dataclass(frozen=True, slots=True)
class _Stored:
    """The last selection, its problems, and the link at that time."""

    run_id: str
    selection: Selection
    problems: tuple[str, ...] = ()
    link: Mapping[str, str] = field(default_factory=dict)


def current(run_id: str, offer: Offer) -> tuple[Selection, tuple[str, ...]]:
    """Return what to show of a run, and what in the link could not be followed, in sentences."""
    link = _linked()
    stored: _Stored | None = st.session_state.get(_KEY)
    problems: tuple[str, ...] = ()
    if stored is not None and stored.run_id != run_id and link in ({}, stored.link):
        fresh = dataclasses.replace(  # the link belongs to another run
            stored.selection, example=0, step=None, text="", versus="", own="", tokens=None
        )
        query = to_query(fresh)
        selection = resolve({name: query[name] for name in query if name not in _PLACE}, offer)[0]
    elif stored is not None and link in ({}, stored.link):
        selection, problems = resolve(to_query(stored.selection), offer)[0], stored.problems
    else:  # a link was opened, or the browser went back
        selection, problems = resolve(link, offer)
    _keep(run_id, selection, problems, say=bool(link) and not _is_playing())
    return selection, problems


def choose(run_id: str, **changes: Any) -> None:
    """Change what is shown of a run, in the link too."""
    stored: _Stored = st.session_state[_KEY]
    selection = dataclasses.replace(stored.selection, **changes)
    _keep(run_id, selection, say=not _is_playing())


def is_own() -> bool:
    """Return whether the user's own example is shown."""
    stored: _Stored | None = st.session_state.get(_KEY)
    return stored is not None and stored.selection.example is None


def playing_since() -> float | None:
    """Return when the last snapshot was shown while the training plays, or None."""
    return st.session_state.get(_PLAYING)


def set_playing(moment: float | None) -> None:
    """Play the training, or stop. The link does not change while it plays: each change is an
    entry in the browser's history.
    """
    if moment is None:
        st.session_state.pop(_PLAYING, None)
    else:
        st.session_state[_PLAYING] = moment


def _is_playing() -> bool:
    return playing_since() is not None


def _linked() -> dict[str, str]:
    return {name: text for name, text in view_link.query().items() if name in NAMES}


def _keep(run_id: str, selection: Selection, problems: tuple[str, ...] = (), *, say: bool) -> None:
    link = _linked()
    wanted = to_query(selection)
    if say and link != wanted:
        view_link.put({state.RUN_QUERY: run_id, **dict.fromkeys(NAMES), **wanted})
        link = wanted
    st.session_state[_KEY] = _Stored(run_id, selection, problems, link)
