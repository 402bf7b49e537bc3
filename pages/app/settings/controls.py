"""Controls: every setting of an experiment as a widget, generated from the config's fields.

The draft is the truth: a widget starts with its value, and a callback writes changes back. A page
reads the draft once in a run. When a preset, link, file or other family replaces the draft, the
widgets get new keys, so late values of the old ones are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import streamlit as st

from pages.app import show, state
from pages.app.address import view
from pages.app.lessons import open_lesson
from pages.app.navigation.terms import BY_SETTING
from pages.app.settings import drafts, fields
from pages.app.settings.drafts import CheckedDraft, Draft
from pages.app.settings.fields import KINDS, Setting, by_topic
from pages.app.typed import escape
from pages.i18n import _
from tfm_core.choices.config import TASK_FACTS

KEY = "setting:"
_MAX_IN_A_FIELD = 2**53  # beyond it a browser's numbers have gaps


def group(
    title: str, settings: Sequence[Setting], checked: CheckedDraft, *, help: str | None = None
) -> None:
    """Draw settings under a title, with problems below their controls.

    Advanced settings are folded, and drawn only when unfolded: most settings are advanced. One that
    changes nothing has no control, unless it has a problem.
    """
    changed = checked.draft.values
    shown = [one for one in settings if one.acts(changed) or checked.at(one.path)]
    advanced = [setting for setting in shown if setting.is_advanced]
    draw = partial(control, checked=checked)
    with st.container(border=True):
        st.header(title, anchor=False, help=help)
        grid([setting for setting in shown if not setting.is_advanced], draw)
        if not advanced:
            _lessons(shown)
            return
        # label and key do not depend on problems, so it stays open while you type
        key = f"advanced-{shown[0].section}"
        if any(setting.path in checked.concerned for setting in advanced):
            st.session_state[key] = True  # problems and warnings must not stay folded
        folded = st.expander(_("Advanced"), key=key, icon=":material/tune:", on_change="rerun")
        if folded.open:
            with folded:
                for topic, some in by_topic(advanced):
                    if topic:
                        st.markdown(f"**{_(topic)}**")
                    grid(some, draw)
                _lessons(shown)


def kinds(checked: CheckedDraft) -> None:
    """Draw the choice of the family and of the task, with what is wrong with the whole."""
    settings = fields.kinds(drafts.family_of(checked.draft.values))
    grid(list(settings.values()), partial(control, checked=checked))
    for sentence in checked.at(""):
        error_text(sentence)


def _lessons(settings: Sequence[Setting]) -> None:
    """Link to the pages that explain these settings."""
    terms = [BY_SETTING[setting.name] for setting in settings if setting.name in BY_SETTING]
    if not terms:
        return
    views = {term.page: dict(term.view) for term in reversed(terms)}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(_("Explained on"), width="content")
        for name in dict.fromkeys(term.page for term in terms):
            show.link(name, query=views[name])


def grid(settings: Sequence[Setting], draw: Callable[[Setting], None]) -> None:
    """Draw settings two in a row, on a phone one below another."""
    for start in range(0, len(settings), 2):
        for column, setting in zip(st.columns(2), settings[start : start + 2], strict=False):
            with column:
                draw(setting)


def key_of(path: str, draft: Draft) -> str:
    """Return the widget key of a setting in this edition of the draft."""
    count = {"model.family": 1, "task.name": 2}.get(path, len(draft.edition))
    edition = draft.edition[:count]
    return f"{KEY}{path}" + ("@" + "-".join(map(str, edition)) if any(edition) else "")


def control(setting: Setting, checked: CheckedDraft) -> None:
    """Draw one setting, locked where a lesson fixes it, and its problems below it."""
    key, value = key_of(setting.path, checked.draft), drafts.get(checked.draft.values, setting.path)
    shown: Any = st.session_state.setdefault(key, setting.parameter.state(value))
    if shown is not None and not setting.parameter.fits(shown):
        shown = None
    if shown is not None and setting.kind in ("int", "float"):
        number = int if setting.kind == "int" else float
        shown = number(shown) if abs(shown) < _MAX_IN_A_FIELD else None
    view.widget(
        setting.field,
        shown,
        key=key,
        lock=open_lesson.lock(setting.path),
        on_change=_take,
        args=(key, setting),
    )
    for name in (shown or ()) if setting.kind == "several" else ():
        st.caption(_((setting.choices or {})[name].help))
    _mark(setting, checked)
    for sentence in checked.at(setting.path):
        error_text(sentence)
    for item in checked.advice_at(setting.path):
        words = escape(_(item.sentence))
        st.caption(f":orange[:material/warning: {words}]" if item.is_warning else words)


def _mark(setting: Setting, checked: CheckedDraft) -> None:
    """Offer to reset a changed setting."""
    section, _dot, name = setting.path.rpartition(".")
    begun = checked.reference.get(section, {}) if section else checked.reference
    if name not in begun or begun[name] == drafts.get(checked.draft.values, setting.path):
        return
    words = _(
        "Reset {label} to {value}",
        label=_(setting.label),
        value=drafts.format_value(setting, begun[name]),
    )
    reset_button(escape(words), setting.path, checked, key=f"reset:{setting.path}")


def reset_button(label: str, path: str, checked: CheckedDraft, *, key: str) -> None:
    """Draw a button that resets one setting."""
    st.button(
        label,
        icon=":material/undo:",
        type="tertiary",
        key=key,
        on_click=_reset,
        args=(path, checked.draft.edition),
    )


def _reset(path: str, edition: tuple[int, int, int]) -> None:
    """Reset a setting, if the draft on the screen is still the button's."""
    draft = state.current_draft()
    if draft.edition != edition:
        return
    checked = drafts.check(draft)
    if path in drafts.changed(checked):
        values = drafts.with_reset(checked, path)
        state.set_draft(values, base=draft.begun)


def error_text(sentence: str) -> None:
    """Show a problem in small red text."""
    st.caption(f":red[:material/error: {escape(sentence)}]")


def _take(key: str, setting: Setting) -> None:
    """Put the chosen value into the draft, if this control is still on the screen."""
    draft = state.current_draft()
    if key != key_of(setting.path, draft):
        return
    parameter, chosen = setting.parameter, st.session_state.get(key)
    if chosen is None or not parameter.fits(chosen):  # also resets an emptied field
        st.session_state[key] = parameter.state(drafts.get(draft.values, setting.path))
        return
    value = parameter.value(chosen)
    if setting.kind == "float":
        value = float(f"{value:.9g}")  # 0.004 + 0.0005 is 0.0045, not 0.0045000000000000005
    choose(setting.path, value)


def choose(path: str, value: Any) -> None:
    """Put a value into the draft, with what depends on it, and into their controls."""
    draft = state.current_draft()
    values = drafts.chosen(draft.values, path, value)
    state.set_draft(values, by=path)
    old, new = drafts.task_of(draft.values), drafts.task_of(values)
    if path == "model.family" and old != new:
        words = _(
            "This family can't learn “{old}”, so the task is now “{task}”.",
            old=_(TASK_FACTS[old].label),
            task=_(TASK_FACTS[new].label),
        )
        st.toast(words, icon=":material/info:")
    if path in KINDS:  # the others have controls of their own now
        return
    for changed in drafts.differences(values, draft.values):
        value = drafts.get(values, changed)
        st.session_state[key_of(changed, draft)] = (
            list(value) if isinstance(value, tuple) else value
        )
