"""The visitor of a session: which runs are listed, and what the visitor may do with them."""

from __future__ import annotations

import contextlib
from functools import partial

import streamlit as st

from pages.i18n import _
from pages.ui import state
from pages.ui.accounts import cookies, login_setup
from pages.ui.address import view_link
from pages.ui.runs import runs_access
from pages.ui.typed import escape
from tfm_core.runs import auth, settings
from tfm_core.runs.auth import Visitor, hashed, is_token, new_token
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound

_MAX_KEY = 200
_TOKEN = "visitor_token"
_HAS_SHOWN_KEY = "has_shown_key"


def visitor() -> Visitor:
    config = settings.read()
    if login_setup.read() is None:
        return Visitor(browser(), is_host=_is_host(), is_public=config.public)
    person = auth.person(st.user.to_dict())
    return auth.visitor(person, config, browser=browser(), is_host=_is_host())


def browser() -> str:
    """Return the owner id of this browser."""
    return hashed(_token())


def why_not() -> str:
    """Return why this visitor may not start or change anything, or ""."""
    return _(visitor().only_watches)


def listed(*, with_suspects: bool = False) -> list[Run]:
    """Return the runs to list: the visitor's, others' if allowed, and recorded ones.

    Each kind is newest first, except the recorded. with_suspects: include suspects, of which only
    name and state may be shown.
    """
    who, runs = visitor(), runs_access.store().list()
    trained = [run for run in runs if not run.meta.recorded]
    trained = [run for run in trained if with_suspects or not runs_access.is_hidden(run)]
    own = [run for run in trained if who.began(run)]
    others = [run for run in trained if not who.began(run)] if _sees_all(who) else []
    return [*own, *others, *(run for run in runs if run.meta.recorded)]


def lists(run: Run) -> bool:
    """Return whether a run is listed."""
    who = visitor()
    return run.meta.recorded or who.began(run) or _sees_all(who)


def _sees_all(who: Visitor) -> bool:
    return settings.read().open or who.is_host


def at_hand() -> list[Run]:
    """Return the runs to choose from: the listed ones, and those that a link opened."""
    runs = listed()
    ids = {run.id for run in runs}
    opened = [run for run in _opened() if run.id not in ids]
    n_trained = sum(not run.meta.recorded for run in runs)
    return [*runs[:n_trained], *opened, *runs[n_trained:]]


def with_lessons() -> list[Run]:
    """Return the runs to choose from, then the recorded runs of lessons."""
    return [*at_hand(), *runs_access.store().lessons()]


def watches(run: Run) -> bool:
    """Return whether the visitor may only watch a run, because it is another's."""
    return not run.meta.recorded and not visitor().may_change(run)


def watchers_words(run: Run, *, is_active: bool) -> str:
    """Return why the visitor may only watch a run, and what to do instead."""
    who, name = visitor(), run.meta.owner_name
    if who.only_watches:
        return _(who.only_watches)
    if name is not None:
        if is_active:
            return escape(
                _("This run belongs to {name}. Start your own, or copy it when it ends.", name=name)
            )
        return escape(_("This run belongs to {name}. Train a copy to change it.", name=name))
    if is_active:
        return _("This run belongs to another visitor. Start your own, or copy it when it ends.")
    return _("This run belongs to another visitor. Train a copy to change it.")


def badge(run: Run) -> str:
    """Return a Markdown badge of a run's owner, or ""."""
    who, name = visitor(), run.meta.owner_name
    if not who.is_public or run.meta.recorded:
        return ""
    if name is not None:
        words = _("{name} (you)", name=name) if who.began(run) else name
        colour = "blue" if who.began(run) else "gray"
        return f":{colour}-badge[:material/person: {escape(words)}]"
    if who.began(run) or login_setup.read() is not None:
        return ""
    return f":gray-badge[:material/group: {_('Another visitor’s')}]"


def has_key() -> bool:
    """Return whether the server has a host key."""
    config = settings.read()
    return (config.public or login_setup.read() is not None) and config.host_key is not None


def show_key(text: str) -> bool:
    """Make the session the host's if the key is right; return whether it is."""
    if cookies.is_key(text):
        st.session_state[_HAS_SHOWN_KEY] = True
        return True
    return False


def key_field(label: str, *, key: str) -> None:
    """Draw the field that takes the host key."""
    st.text_input(
        label,
        type="password",
        key=key,
        max_chars=_MAX_KEY,
        autocomplete="off",
        on_change=partial(_take_key, key),
    )


def _take_key(field: str) -> None:
    shown, st.session_state[field] = st.session_state[field], ""
    if shown and not show_key(shown.strip()):
        state.notify(_("Wrong key."))


def _opened() -> list[Run]:
    """Return the current run and the one that the address compares it with."""
    other = view_link.query().get("versus", "").removeprefix("run:")
    ids = dict.fromkeys([state.current_run_id(), other])
    runs = []
    for run_id in filter(None, ids):
        with contextlib.suppress(RunNotFound):
            runs.append(runs_access.open_run(run_id))
    return runs


def _token() -> str:
    """Return the browser's token; where it takes no cookies, one that lasts as long as the session.

    Stored in the session, which outlives its connection.
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
