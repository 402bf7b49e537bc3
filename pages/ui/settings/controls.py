"""Controls: every setting of an experiment as a widget, generated from the config's fields.

The draft is the truth: a widget starts with its value, and a callback writes changes back. A page
reads the draft once in a run. When a preset, link, file or other family replaces the draft, the
widgets get new keys, so late values of the old ones are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from pages.i18n import _
from pages.ui import state
from pages.ui.lessons import open_lesson
from pages.ui.navigation import page_table
from pages.ui.navigation.terms import BY_SETTING
from pages.ui.settings import drafts
from pages.ui.settings.drafts import CheckedDraft, Draft
from pages.ui.settings.fields import Setting, by_topic
from pages.ui.typed import escape
from tfm_core.config import FAMILIES, TASK_FACTS, tasks_for
from tfm_core.config.advice import Advice
from tfm_core.config.base import Labelled

KEY = "setting:"
_MAX_IN_A_FIELD = 2**53  # beyond it a browser's numbers have gaps
MAX_SEGMENTS, MAX_LETTERS = 3, 12  # what stands in a row of half a column


def group(
    title: str, settings: Sequence[Setting], checked: CheckedDraft, *, help: str | None = None
) -> None:
    """Draw settings under a title, with problems below their controls.

    Advanced settings are folded, and drawn only when unfolded: most settings are advanced. One that
    changes nothing has no control, unless it has a problem.
    """
    settings = [
        setting
        for setting in settings
        if setting.acts(checked.draft.values) or checked.at(setting.path)
    ]
    with st.container(border=True):
        st.header(title, anchor=False, help=help)
        _grid([setting for setting in settings if not setting.is_advanced], checked)
        advanced = [setting for setting in settings if setting.is_advanced]
        if not advanced:
            _lessons(settings)
        else:
            # label and key do not depend on problems, so it stays open while you type
            key = f"advanced-{settings[0].section}"
            for setting in advanced:  # problems and warnings must not stay folded
                advice = checked.advice_at(setting.path)
                if checked.at(setting.path) or any(item.is_warning for item in advice):
                    st.session_state[key] = True
            folded = st.expander(_("Advanced"), key=key, icon=":material/tune:", on_change="rerun")
            if folded.open:
                with folded:
                    for topic, some in by_topic(advanced):
                        if topic:
                            st.markdown(f"**{_(topic)}**")
                        _grid(some, checked)
                    _lessons(settings)


def _lessons(settings: Sequence[Setting]) -> None:
    """Link to the pages that explain these settings."""
    terms = [BY_SETTING[setting.name] for setting in settings if setting.name in BY_SETTING]
    if not terms:
        return
    views = {term.page: dict(term.view) for term in reversed(terms)}
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(_("Explained on:"), width="content")
        for name in dict.fromkeys(term.page for term in terms):
            page = page_table.PAGES[name]
            st.page_link(
                page.path,
                label=_(page.title),
                icon=page.icon,
                width="content",
                query_params=views[name],
            )


def _grid(settings: Sequence[Setting], checked: CheckedDraft) -> None:
    """Draw settings two in a row, on a phone one below another."""
    for start in range(0, len(settings), 2):
        for column, setting in zip(st.columns(2), settings[start : start + 2], strict=False):
            with column:
                control(setting, checked)


def key_of(path: str, draft: Draft) -> str:
    """Return the widget key of a setting in this edition of the draft."""
    count = {"model.family": 1, "task.name": 2}.get(path, len(draft.edition))
    edition = draft.edition[:count]
    return f"{KEY}{path}" + ("@" + "-".join(map(str, edition)) if any(edition) else "")


def control(setting: Setting, checked: CheckedDraft) -> None:
    """Draw one setting, and its problems below it."""
    key = key_of(setting.path, checked.draft)
    _begin(key, drafts.get(checked.draft.values, setting.path))
    shared: dict[str, Any] = {"key": key, "on_change": _take, "args": (key, setting)}
    if lock := open_lesson.lock(setting.path):
        setting = replace(setting, help=lock)
        shared["disabled"] = True
    widget(setting, shared)
    _mark(setting, checked)
    for sentence in checked.at(setting.path):
        complaint(sentence)
    for item in checked.advice_at(setting.path):
        remark(item)


def widget(setting: Setting, shared: dict[str, Any]) -> None:
    """Draw only the widget of a setting. shared: its key and callback.

    The value is passed as the default, too: the browser may miss the first drawing of a page, and
    takes only the default of a later one.
    """
    value = st.session_state.get(shared["key"])
    if setting.kind == "choice":
        _choice(setting, value, shared)
    elif setting.kind == "several":
        _several(setting, value, shared)
    elif setting.kind == "bool":
        st.toggle(_(setting.label), value=value is True, help=_(setting.help), **shared)
    else:
        _number(setting, value, shared)


def _mark(setting: Setting, checked: CheckedDraft) -> None:
    """Offer to reset a changed setting."""
    section, _dot, name = setting.path.rpartition(".")
    begun = checked.reference.get(section, {}) if section else checked.reference
    if name not in begun or begun[name] == drafts.get(checked.draft.values, setting.path):
        return
    words = _(
        "{label}: back to {value}",
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


def _begin(key: str, value: Any) -> None:
    """Give a new widget its first value."""
    if key not in st.session_state:
        st.session_state[key] = _as_widget(value)


def _as_widget(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def complaint(sentence: str) -> None:
    """Show a problem in small red text."""
    st.caption(f":red[:material/error: {escape(sentence)}]")


def remark(item: Advice) -> None:
    """Show advice in small text."""
    words = escape(_(item.sentence))
    st.caption(f":orange[:material/warning: {words}]" if item.is_warning else words)


def family(draft: Draft) -> None:
    chosen = drafts.family_of(draft.values)
    key = key_of("model.family", draft)
    _begin(key, chosen)
    names = list(FAMILIES)
    st.selectbox(
        _("Model family"),
        names,
        index=names.index(chosen),
        format_func=lambda name: _(FAMILIES[name].label),
        key=key,
        disabled=bool(open_lesson.lock("model.family")),
        help=variants(_("How tokens flow through the model."), FAMILIES),
        on_change=_take_family,
        args=(key,),
    )


def task(draft: Draft) -> None:
    chosen = drafts.task_of(draft.values)
    key = key_of("task.name", draft)
    _begin(key, chosen)
    tasks = tasks_for(drafts.family_of(draft.values))
    st.selectbox(
        _("Task"),
        tasks,
        index=tasks.index(chosen) if chosen in tasks else 0,
        format_func=lambda name: _(TASK_FACTS[name].label),
        key=key,
        disabled=bool(open_lesson.lock("task.name")),
        help=_("What this family can learn."),
        on_change=_take_task,
        args=(key,),
    )


def variants(text: str, choices: Mapping[str, Labelled]) -> str:
    lines = [f"- **{_(choice.label)}**: {_(choice.help)}" for choice in choices.values()]
    return "\n".join([text, "", *lines])


def _choice(setting: Setting, value: Any, shared: dict[str, Any]) -> None:
    choices = setting.choices or {}
    names = list(choices)
    words: dict[str, Any] = {
        "label": _(setting.label),
        "options": names,
        "format_func": lambda name: _(choices[name].label),
        "help": variants(_(setting.help), choices),
    }
    n_letters = sum(len(choice.label) for choice in choices.values())
    if len(choices) <= MAX_SEGMENTS and n_letters <= MAX_LETTERS:
        default = value if value in choices else None
        st.segmented_control(**words, default=default, required=True, wrap=True, **shared)
    else:
        st.selectbox(**words, index=names.index(value) if value in choices else 0, **shared)


def _several(setting: Setting, value: Any, shared: dict[str, Any]) -> None:
    choices = setting.choices or {}
    chosen = [name for name in choices if name in (value or ())]
    st.multiselect(
        _(setting.label),
        list(choices),
        default=chosen,
        format_func=lambda name: _(choices[name].label),
        placeholder=_("none"),
        help=variants(_(setting.help), choices),
        **shared,
    )
    for name in chosen:
        st.caption(_(choices[name].help))


def _number(setting: Setting, value: Any, shared: dict[str, Any]) -> None:
    """Draw a number without limits: the configuration reports what is wrong."""
    number = int if setting.kind == "int" else float
    st.number_input(
        _(setting.label),
        value=number(value) if _is_of(setting, value) and abs(value) < _MAX_IN_A_FIELD else None,
        step=number(setting.step or (1 if number is int else 0.01)),
        format="%d" if number is int else "%.6g",
        help=_(setting.help),
        **shared,
    )


def _take(key: str, setting: Setting) -> None:
    """Put the chosen value into the draft, if this control is still on the screen."""
    draft = state.current_draft()
    if key != key_of(setting.path, draft):
        return
    value, old = st.session_state.get(key), drafts.get(draft.values, setting.path)
    if setting.kind == "float" and value is not None:
        value = float(f"{value:.9g}")  # 0.004 + 0.0005 is 0.0045, not 0.0045000000000000005
    if not _is_of(setting, value):
        st.session_state[key] = _as_widget(old)  # also resets an emptied field
        return
    choose(setting.path, drafts.fitting(setting, value) if setting.kind == "several" else value)


def choose(path: str, value: Any) -> None:
    """Put a value into the draft, with what depends on it, and into their controls."""
    draft = state.current_draft()
    values = drafts.chosen(draft.values, path, value)
    state.set_draft(values, by=path)
    for changed in drafts.differences(values, draft.values):
        st.session_state[key_of(changed, draft)] = _as_widget(drafts.get(values, changed))


def _is_of(setting: Setting, value: Any) -> bool:
    """Return whether the control of a setting can hold a value."""
    if setting.kind == "choice":
        return value in (setting.choices or {})
    if setting.kind == "several":
        return isinstance(value, list | tuple) and set(value) <= set(setting.choices or {})
    if setting.kind == "bool":
        return isinstance(value, bool)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _take_family(key: str) -> None:
    draft, chosen = state.current_draft(), st.session_state.get(key)
    if key != key_of("model.family", draft) or chosen not in FAMILIES:
        return
    values, note = drafts.with_family(draft.values, str(chosen))
    state.set_draft(values, by="model.family")
    if note is not None:
        st.toast(note, icon=":material/info:")


def _take_task(key: str) -> None:
    draft, chosen = state.current_draft(), st.session_state.get(key)
    if key != key_of("task.name", draft):
        return
    if chosen not in tasks_for(drafts.family_of(draft.values)):
        return  # a label, or a task of the family that was there before
    state.set_draft(drafts.with_task(draft.values, str(chosen)), by="task.name")
