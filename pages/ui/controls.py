"""Controls: every setting of an experiment as a widget, generated from the config's fields.

The draft is the truth. Before a widget is drawn its state is set from the draft; when a person
changes it, a callback writes the draft. So presets, links, uploads and page changes just work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from pages.i18n import _
from pages.ui import drafts, state
from pages.ui.drafts import Checked
from pages.ui.fields import Setting
from pages.ui.typed import escape
from tfm_core.config import FAMILIES, TASK_FACTS, tasks_for
from tfm_core.config.advice import Advice
from tfm_core.config.base import Labelled

KEY = "setting:"
MAX_SEGMENTS, MAX_LETTERS = 3, 12  # what stands in a row of half a column


def group(
    title: str, settings: Sequence[Setting], checked: Checked, *, help: str | None = None
) -> None:
    """Draw settings under a title, the advanced ones folded; problems stand below their control."""
    with st.container(border=True):
        st.header(title, anchor=False, help=help)
        _grid([setting for setting in settings if not setting.is_advanced], checked)
        advanced = [setting for setting in settings if setting.is_advanced]
        if advanced:
            # one label and one key, whatever is wrong: the browser keeps it open while one types
            key = f"advanced-{settings[0].section}"
            if any(_is_to_be_seen(setting, checked) for setting in advanced):
                st.session_state[key] = True
            with st.expander(_("Advanced"), key=key, icon=":material/tune:", on_change="rerun"):
                _grid(advanced, checked)


def _is_to_be_seen(setting: Setting, checked: Checked) -> bool:
    """Say whether something at a setting must not stay folded away."""
    warnings = [said for said in checked.advice_at(setting.path) if said.is_warning]
    return bool(checked.at(setting.path) or warnings)


def _grid(settings: Sequence[Setting], checked: Checked) -> None:
    """Draw settings two in a row; on a phone they stand below each other."""
    for start in range(0, len(settings), 2):
        for column, setting in zip(st.columns(2), settings[start : start + 2], strict=False):
            with column:
                control(setting, checked)


def control(setting: Setting, checked: Checked) -> None:
    """Draw one setting and, below it, what is wrong with it."""
    key = KEY + setting.path
    st.session_state[key] = drafts.get(state.draft(), setting.path)
    shared: dict[str, Any] = {"key": key, "on_change": _take, "args": (setting.path, setting.kind)}
    if setting.kind == "choice":
        _choice(setting, shared)
    elif setting.kind == "bool":
        st.toggle(_(setting.label), help=_(setting.help), **shared)
    else:
        _number(setting, shared)
    for sentence in checked.at(setting.path):
        complaint(sentence)
    for said in checked.advice_at(setting.path):
        remark(said)


def complaint(sentence: str) -> None:
    """Say what is wrong, small, where it is wrong."""
    st.caption(f":red[:material/error: {escape(sentence)}]")


def remark(said: Advice) -> None:
    """Give advice, small, at its setting."""
    words = escape(_(said.sentence))
    st.caption(f":orange[:material/warning: {words}]" if said.is_warning else words)


def family() -> None:
    """Draw the choice of the model family."""
    chosen = drafts.family_of(state.draft())
    key = KEY + "model.family"
    st.session_state[key] = chosen
    st.segmented_control(
        _("Model family"),
        list(FAMILIES),
        format_func=lambda name: _(FAMILIES[name].label),
        required=True,
        wrap=True,
        key=key,
        help=variants(_("Which way the tokens go."), FAMILIES),
        on_change=_take_family,
    )
    st.caption(_(FAMILIES[chosen].help))


def task() -> None:
    """Draw the choice of the task, among those that the family can learn."""
    draft = state.draft()
    chosen = drafts.task_of(draft)
    key = KEY + "task.name"
    st.session_state[key] = chosen
    st.selectbox(
        _("Task"),
        tasks_for(drafts.family_of(draft)),
        format_func=lambda name: _(TASK_FACTS[name].label),
        key=key,
        help=_("What the model learns; the list holds what the chosen family can."),
        on_change=_take_task,
    )
    st.caption(
        _(TASK_FACTS[chosen].help),
        help=_("What “unseen” means here: {words}").format(words=_(TASK_FACTS[chosen].unseen)),
    )


def variants(text: str, choices: Mapping[str, Labelled]) -> str:
    """Return help with a line for each variant."""
    lines = [f"- **{_(choice.label)}**: {_(choice.help)}" for choice in choices.values()]
    return "\n".join([text, "", *lines])


def _choice(setting: Setting, shared: dict[str, Any]) -> None:
    choices = setting.choices or {}
    words: dict[str, Any] = {
        "label": _(setting.label),
        "options": list(choices),
        "format_func": lambda name: _(choices[name].label),
        "help": variants(_(setting.help), choices),
    }
    n_letters = sum(len(choice.label) for choice in choices.values())
    if len(choices) <= MAX_SEGMENTS and n_letters <= MAX_LETTERS:
        st.segmented_control(**words, required=True, wrap=True, **shared)
    else:
        st.selectbox(**words, **shared)


def _number(setting: Setting, shared: dict[str, Any]) -> None:
    number = int if setting.kind == "int" else float
    st.number_input(
        _(setting.label),
        min_value=None if setting.lowest is None else number(setting.lowest),
        max_value=None if setting.highest is None else number(setting.highest),
        step=number(setting.step or (1 if number is int else 0.01)),
        format="%d" if number is int else "%.6g",
        help=_(setting.help),
        **shared,
    )


def _take(path: str, kind: str) -> None:
    value = st.session_state[KEY + path]
    if value is None:
        return  # an emptied field: the draft keeps its value and the field shows it again
    if kind == "float":
        value = float(f"{value:.9g}")  # 0.004 + 0.0005 is 0.0045, not 0.0045000000000000005
    state.set_draft(drafts.chosen(state.draft(), path, value))


def _take_family() -> None:
    chosen = st.session_state[KEY + "model.family"]
    if chosen is None:
        return
    values, note = drafts.with_family(state.draft(), chosen)
    state.set_draft(_with_own_text(values))
    if note is not None:
        st.toast(note, icon=":material/info:")


def _take_task() -> None:
    values = drafts.with_task(state.draft(), st.session_state[KEY + "task.name"])
    state.set_draft(_with_own_text(values))


def _with_own_text(values: drafts.Values) -> drafts.Values:
    """Return the draft with the text that was pasted before, where its task reads one."""
    if drafts.task_of(values) != "own-text" or not state.own_text():
        return values
    return drafts.put(values, "task.text", state.own_text())
