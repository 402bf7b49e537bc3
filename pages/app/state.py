"""What a session remembers across pages: the current run, the draft, notices, the open dialog."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NoReturn
from urllib.parse import urlencode, urlsplit, urlunsplit

import streamlit as st

from pages import i18n
from pages.app.address import view
from pages.app.navigation import page_table
from pages.app.runs import runs_access
from pages.app.settings import drafts
from pages.app.settings.drafts import Draft, History, Values
from pages.components import addresses
from tfm_core import links, made_with
from tfm_core.choices.presets import PRESETS
from tfm_core.runs.store import RunNotFound

FIRST_PRESET = "vit-digits"

RUN_QUERY = "run"
"""What the address calls the current run."""

DEVICE, THREADS = "start-device", "start-threads"
"""The controls of the device, such as ``"cuda:0"``, and of the threads that new runs train with."""

_RUN = "current_run"
_UNASKED = "unasked_run"
_UNKNOWN = "unknown_run"
_DRAFT = "draft"
_HISTORY = "draft_history"
_FIRST = (-1, 0, 0)  # the edition before the first
_PAGE = "page"
_JUMPS = "jumps"
_NOTICES = "notices"
_SHOWN_NOTICES = "shown_notices"
_PASSING = "passing_notices"  # dropped at the next automatic rerun
_DELETED = "gone_runs"
_MENUS = "menus_closed"
_DIALOG = "open_dialog"
_PRESENTATIONS = "presentations"


def current_run_id() -> str | None:
    """Return the current run: the link's if it exists, else the last chosen."""
    linked = st.query_params.get(RUN_QUERY)
    if linked is not None and not is_default_run(linked) and _exists(linked):
        st.session_state[_RUN] = linked
    chosen = st.session_state.get(_RUN)
    if chosen is not None and not _exists(chosen):
        st.session_state[_RUN] = chosen = None
    return chosen


def linked_run_id() -> str | None:
    """Return the run that the address names; it may not exist."""
    return st.query_params.get(RUN_QUERY)


def unknown_run_in_link() -> str | None:
    """Return the run id of the link if no such run exists.

    It stays while the page is shown, although the page may name another run in the address.
    """
    linked = st.query_params.get(RUN_QUERY)
    if linked is not None and not is_default_run(linked):
        st.session_state[_UNKNOWN] = None if _exists(linked) else linked
    unknown: str | None = st.session_state.get(_UNKNOWN)
    return unknown


def set_current_run(run_id: str | None) -> None:
    """Make a run, or none, the current one, also in the address."""
    st.session_state[_RUN] = run_id
    _forget_default()
    name_run(run_id)


def show_default_run(run_id: str) -> None:
    """Name a run in the address that the page shows because none is chosen.

    So a copied link shows this run, too.
    """
    st.session_state[_UNASKED] = run_id
    name_run(run_id)


def is_default_run(run_id: str) -> bool:
    return st.session_state.get(_UNASKED) == run_id


def _forget_default() -> None:
    for key in (_UNASKED, _UNKNOWN):
        st.session_state.pop(key, None)


def name_run(run_id: str | None) -> None:
    """Name a run, or none, in the address."""
    view.put_query({RUN_QUERY: run_id})


def keep_in_link() -> None:
    """Name the language in the address, and the current run on pages that show it."""
    changes: dict[str, str | None] = {}
    if st.query_params.get(i18n.QUERY) not in i18n.languages():
        changes[i18n.QUERY] = i18n.in_link()
    chosen = current_run_id()
    if chosen is not None and shows_run() and RUN_QUERY not in st.query_params:
        changes[RUN_QUERY] = chosen
    view.put_query(changes)


def draft() -> Values:
    """Return the configuration being edited; it may be invalid.

    A new session starts with the first thing worth trying; the Train page reads its link.
    """
    return current_draft().values


def current_draft() -> Draft:
    """Return the draft with its edition. Read it once in a run of a page."""
    if _DRAFT not in st.session_state:
        set_draft(PRESETS[FIRST_PRESET].experiment.model_dump())
    draft: Draft = st.session_state[_DRAFT]
    return draft


def set_draft(
    values: Mapping[str, Any], *, by: str = "", base: Mapping[str, Any] | None = None
) -> None:
    """Replace the configuration being edited.

    by: the path of the control that changed it; "" to redraw all controls. base: what to compare
    it with; by default, a draft that is replaced as a whole is compared with itself.
    """
    old = st.session_state.get(_DRAFT)
    baseline = base or (old.baseline if by and old is not None else values)
    new = _put_draft(_copied(values), _copied(baseline), by)
    if old is not None and (old.values, old.baseline) != (new.values, new.baseline):
        st.session_state[_HISTORY] = history().changed(old)


def history() -> History:
    current: History = st.session_state.get(_HISTORY, History())
    return current


def move(*, back: bool) -> None:
    """Undo the last change of the configuration, or redo the one that was undone last, if any."""
    found = history().moved(current_draft(), back=back)
    if found is not None:
        draft, st.session_state[_HISTORY] = found
        _put_draft(draft.values, draft.baseline, "")


def _put_draft(values: Values, base: Values, by: str) -> Draft:
    whole, family, task = st.session_state[_DRAFT].edition if _DRAFT in st.session_state else _FIRST
    if not by:
        whole += 1
    family += by == "model.family"
    task += by == "task.name"
    new = Draft(values, (whole, family, task), base)
    st.session_state[_DRAFT] = new
    return new


def _copied(values: Mapping[str, Any]) -> Values:
    return {
        key: dict(value) if isinstance(value, Mapping) else value for key, value in values.items()
    }


def theme() -> Literal["light", "dark"]:
    return "dark" if st.context.theme.type == "dark" else "light"


def device() -> str:
    return str(st.session_state.get(DEVICE, "cpu"))


def threads() -> int:
    return int(st.session_state.get(THREADS) or 1) if device() == "cpu" else 1


def set_page(url_path: str) -> bool:
    """Remember which page is shown; ``""`` is Home. Return whether it is another."""
    is_other = st.session_state.get(_PAGE) != url_path
    if is_other:
        st.session_state.pop(_DELETED, None)
        close_dialog()
        _forget_default()
    st.session_state[_PAGE] = url_path
    addresses.keep_root(url_path)
    return is_other


def page() -> str:
    return str(st.session_state.get(_PAGE, ""))


def jump(name: str, view: Mapping[str, str]) -> NoReturn:
    """Open a page, perhaps the one in sight, with a view of it."""
    st.session_state[_JUMPS] = n_jumps() + 1
    st.switch_page(page_table.path_of(name), query_params=dict(view))
    raise AssertionError("switch_page ends the script")


def n_jumps() -> int:
    return int(st.session_state.get(_JUMPS, 0))


def menu_key(name: str) -> str:
    """Return the key of a menu whose buttons open dialogs; ``close_menus`` changes it."""
    return f"{name}-{st.session_state.get(_MENUS, 0)}"


def close_menus() -> None:
    """Close open menus, from a callback: they would cover a dialog."""
    st.session_state[_MENUS] = st.session_state.get(_MENUS, 0) + 1


def open_dialog(run_ids: Sequence[str]) -> None:
    """Open the dialog on the labels of runs at the next rerun."""
    st.session_state[_DIALOG] = tuple(run_ids)


def dialog_runs() -> tuple[str, ...]:
    """Return the runs that the dialog is open on, none where it is closed."""
    run_ids: tuple[str, ...] = st.session_state.get(_DIALOG, ())
    return run_ids


def close_dialog() -> None:
    st.session_state.pop(_DIALOG, None)


def remember_deleted(run_id: str) -> None:
    """Remember a run that was deleted on this page."""
    st.session_state.setdefault(_DELETED, []).append(run_id)


def deleted_runs() -> list[str]:
    return list(st.session_state.get(_DELETED, []))


def note_presentation() -> None:
    """Count a link that asks for presenter mode."""
    st.session_state[_PRESENTATIONS] = n_presentations() + 1


def n_presentations() -> int:
    """Return how many links have asked for presenter mode in this session."""
    return int(st.session_state.get(_PRESENTATIONS, 0))


def shows_run() -> bool:
    return page_table.at(page()).shows_run


def run_link(run_id: str) -> str:
    """Return the link to a run, on this page if it shows runs."""
    if not shows_run():
        return address("train", {"run": run_id})
    return address(page(), {**st.query_params.to_dict(), "run": run_id})


def run_query(name: str, run_id: str) -> dict[str, str]:
    """Return the query of a link that opens a page on a run."""
    page = page_table.PAGES[name]
    is_of_models = (page.chapter, page.place) == ("model", "look-inside")  # which show others, too
    return {RUN_QUERY: run_id} | ({"show": "run"} if is_of_models else {})


def page_link() -> str:
    return address(page(), st.query_params.to_dict())


def configuration_query(chosen: Draft) -> dict[str, str]:
    """Return the query of a link to a configuration, with this machine's versions."""
    made = made_with.made_here(device(), threads())
    return links.to_link(chosen.values, made=made, preset=drafts.preset_of(chosen))


def address(url_path: str, query: Mapping[str, str]) -> str:
    """Return the full URL of a page for the browser, in the session's language."""
    spoken = i18n.in_link()
    if spoken is not None:
        query = {i18n.QUERY: spoken, **query}
    here = urlsplit(st.context.url or "http://localhost:8501/")
    path = f"{addresses.root()}/{url_path}"
    return urlunsplit((here.scheme, here.netloc, path, urlencode(query), ""))


def notify(sentence: str, *, passes: bool = False) -> None:
    """Show a notice at the top of the next page.

    passes: it is true for now only, and disappears at the page's next automatic rerun.
    """
    st.session_state.setdefault(_NOTICES, []).append(sentence)
    if passes:
        st.session_state.setdefault(_PASSING, set()).add(sentence)


def pop_notices() -> list[str]:
    """Return the notices to show, once."""
    notices: list[str] = st.session_state.pop(_NOTICES, [])
    st.session_state[_SHOWN_NOTICES] = notices
    return notices


def rerun() -> NoReturn:
    """Rerun the page because something was computed, not because of the user.

    Notices stay: a page that became shorter under an open list would close it.
    """
    passed = st.session_state.pop(_PASSING, set())
    shown = [notice for notice in st.session_state.get(_SHOWN_NOTICES, []) if notice not in passed]
    unique = dict.fromkeys([*shown, *st.session_state.get(_NOTICES, [])])
    st.session_state[_NOTICES] = list(unique)
    st.rerun()


def _exists(run_id: str) -> bool:
    try:
        runs_access.open_run(run_id)
    except RunNotFound:
        return False
    return True


def body(draw: Callable[[], None], *, of: str = "") -> None:
    """Draw the body of a page as a fragment: pressing something in it does not redraw the frame.

    The frame shows the current run and links to the configuration, so a change of either reruns
    the whole page. of: which part of the page it is, where there are several.
    """
    before: tuple[object, ...] | None = None

    def part() -> None:
        nonlocal before
        with view.drawing(of):
            draw()
        now = current_run_id(), current_draft().edition
        if before not in (None, now):
            rerun()
        before = now

    st.fragment(part)()


def poll(is_pending: Callable[[], bool], draw: Callable[[bool], None], *, every: float) -> None:
    """Draw a part of a page again and again while something is pending, then the page anew.

    draw: gets whether it was pending when the page was drawn. every: seconds.
    """
    was_pending = is_pending()

    def part() -> None:
        if was_pending and not is_pending():
            rerun()  # once: redrawn, it no longer polls
        draw(was_pending)

    st.fragment(part, run_every=every if was_pending else None)()
