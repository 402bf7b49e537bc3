"""Your own text for a language model: pasted, counted and saved as a data set.

Older settings and runs contain the text itself; such a draft can be trained as it is, or its text
becomes a data set.
"""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import state
from pages.ui.settings import controls, drafts, own_choice
from pages.ui.settings.drafts import Checked
from tfm_core.config.corpus_tasks import text_problem
from tfm_core.data.corpus.task import read_text
from tfm_core.data.own.tokens import learned_from_text

_PATH = "task.text"
_KEY = "corpus-text"


def area(checked: Checked) -> None:
    values = checked.draft.values
    if drafts.task_of(values) != "own-text" or drafts.get(values, "task.data"):
        return
    text_here, unit = drafts.get(values, _PATH), drafts.get(values, "task.unit")
    wrong = checked.at(_PATH)
    with st.container(border=True):
        st.header(_("Text"), anchor=False)
        st.caption(_counts(text_here or read_text(), unit, is_own=bool(text_here)))
        for sentence in wrong:
            controls.complaint(sentence)
        if text_here:
            st.caption(_("The configuration contains this text. As a data set it fits in links."))
            st.button(
                _("Use the built-in text"),
                key="corpus-text-forget",
                icon=":material/undo:",
                on_click=_forget,
            )
        with st.expander(
            _("Paste your own text"), expanded=bool(text_here), icon=":material/edit_note:"
        ):
            _paste(unit, text_here)


def _paste(unit: str, text_here: str) -> None:
    st.session_state.setdefault(_KEY, text_here or state.own_text())
    text = st.text_area(
        _("Training text"),
        key=_KEY,
        height=220,
        placeholder=read_text()[:400] + " …",
        on_change=lambda: state.set_own_text(st.session_state[_KEY]),
        persist_state="session",
    )
    problem = text_problem(text, unit) if text else None
    if problem is not None:
        controls.complaint(_(problem))
    elif text:
        st.caption(_counts(text, unit, is_own=True))
    st.button(
        _("Save as a data set and use it"),
        key="corpus-text-keep",
        icon=":material/save:",
        disabled=not text or problem is not None,
        help=_("It stays on this machine; see Own data."),
        on_click=_save,
    )


def _counts(text: str, unit: str, *, is_own: bool) -> str:
    tokens = learned_from_text(unit, text).cut_text(text)
    counts = {"n": f"{len(tokens):,}", "different": f"{len(set(tokens)):,}"}
    if is_own:
        return _("Your text: {n} tokens, {different} distinct.", **counts)
    return _("Alice in Wonderland, chapter 1: {n} tokens, {different} distinct.", **counts)


def _forget() -> None:
    values = state.draft()
    if drafts.task_of(values) == "own-text":
        state.set_draft(drafts.put(values, _PATH, ""), by=_PATH)


def _save() -> None:
    values = state.draft()
    if drafts.task_of(values) != "own-text":
        return
    text = str(st.session_state.get(_KEY, ""))
    try:
        own = own_choice.keep_text(text, str(drafts.get(values, "task.unit")))
        state.set_draft(own_choice.with_set(values, own), by="task.data")
    except (ValueError, OSError) as error:
        state.notify(_(error))
