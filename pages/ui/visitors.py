"""Who sits before the browser: whose runs are listed, and what may be done with them."""

from __future__ import annotations

import contextlib

import streamlit as st

from pages.i18n import _
from pages.ui import cookies, runs_access, state, view_link
from tfm_core.runs import settings
from tfm_core.runs.owners import Visitor, hashed, is_token, new_token
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound

MAX_KEY = 200
_TOKEN = "visitor_token"
_HAS_SHOWN_KEY = "has_shown_key"


def visitor() -> Visitor:
    """Return who acts in this session."""
    return Visitor(hashed(_token()), is_host=_is_host(), is_public=settings.read().public)


def listed() -> list[Run]:
    """Return the runs to show: one's own, others' where the host lets, and the recorded ones.

    Each kind is newest first, but for the recorded.
    """
    who, runs = visitor(), runs_access.store().list()
    kept = [run for run in runs if not run.meta.recorded]
    own = [run for run in kept if who.began(run)]
    others = [run for run in kept if not who.began(run)] if _sees_all(who) else []
    return [*own, *others, *(run for run in runs if run.meta.recorded)]


def lists(run: Run) -> bool:
    """Return whether a run is one of those to show."""
    who = visitor()
    return run.meta.recorded or who.began(run) or _sees_all(who)


def _sees_all(who: Visitor) -> bool:
    return settings.read().open or who.is_host


def at_hand() -> list[Run]:
    """Return the runs to choose from: those listed, and what a link has opened beside them."""
    runs = listed()
    known = {run.id for run in runs}
    opened = [run for run in _opened() if run.id not in known]
    n_kept = sum(not run.meta.recorded for run in runs)
    return [*runs[:n_kept], *opened, *runs[n_kept:]]


def watches(run: Run) -> bool:
    """Return whether one may look at a run and no more, because it is another visitor's."""
    return not run.meta.recorded and not visitor().may_change(run)


def badge(run: Run) -> str:
    """Return a badge in markdown for another visitor's run, where runs have owners."""
    who = visitor()
    if not who.is_public or run.meta.recorded or who.began(run):
        return ""
    return f":gray-badge[:material/group: {_('Another visitor’s')}]"


def has_key() -> bool:
    """Return whether the server has a key by which the host is known."""
    said = settings.read()
    return said.public and said.host_key is not None


def show_key(text: str) -> bool:
    """Become the host for this session, where the key is right; return whether it is."""
    if cookies.is_key(text):
        st.session_state[_HAS_SHOWN_KEY] = True
        return True
    return False


def _opened() -> list[Run]:
    """Return the current run and the one that it is compared with, as the address says."""
    other = view_link.query().get("versus", "").removeprefix("run:")
    ids = dict.fromkeys([state.current_run_id(), other])
    runs = []
    for run_id in filter(None, ids):
        with contextlib.suppress(RunNotFound):
            runs.append(runs_access.store().get(run_id))
    return runs


def _token() -> str:
    """Return the browser's token; where it takes no cookies, one that lasts as long as the session.

    It is kept: a session outlives its connection.
    """
    if _TOKEN not in st.session_state:
        sent = _cookie(cookies.VISITOR)
        st.session_state[_TOKEN] = sent if is_token(sent) else new_token()
    return str(st.session_state[_TOKEN])


def _is_host() -> bool:
    if st.session_state.get(_HAS_SHOWN_KEY):
        return True
    return cookies.is_host(_cookie(cookies.HOST), _token())


def _cookie(name: str) -> str:
    sent = st.context.cookies.get(name)
    return sent if isinstance(sent, str) else ""  # no browser is there in a test of a page
