"""The user's own text of a language model: pasted, counted, and kept with the configuration."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import controls, drafts, state
from pages.ui.drafts import Checked
from tfm_core.config.corpus_tasks import MOST_CHARACTERS, cut_text
from tfm_core.data.corpus.book import read_text

_PATH = "task.text"
_KEY = "corpus-text"


def area(checked: Checked) -> None:
    """Draw the text of the draft, folded, where its task reads one."""
    values = checked.draft.values
    if drafts.task_of(values) != "own-text" or drafts.get(values, "task.data"):
        return
    pasted, unit = drafts.get(values, _PATH), drafts.get(values, "task.unit")
    wrong = checked.at(_PATH)
    with st.container(border=True):
        st.header(_("Text"), anchor=False)
        st.caption(_counts(pasted or read_text(), unit, is_own=bool(pasted)))
        for sentence in wrong:
            controls.complaint(sentence)
        with st.expander(_("Paste your own"), expanded=bool(wrong), icon=":material/edit_note:"):
            st.session_state[_KEY] = pasted
            st.text_area(
                _("Text to learn from"),
                key=_KEY,
                height=220,
                placeholder=read_text()[:400] + " …",
                on_change=_take,
                help=_("Leave it empty to learn the text that comes with the app."),
            )
            st.caption(
                _(
                    "The text is saved with the run, so that it can be repeated, and anyone who "
                    "can open the run can read it. It is too long for a link: whoever follows one "
                    "gets the text that comes with the app."
                )
            )


def _counts(text: str, unit: str, *, is_own: bool) -> str:
    tokens = cut_text(text, unit)
    whose = _("Your text") if is_own else _("Alice in Wonderland, first chapter")
    kinds = {"words": _("words and signs"), "characters": _("characters")}[unit]
    return _("{whose}: {n} {kinds}, {different} different ones.").format(
        whose=whose, n=f"{len(tokens):,}", kinds=kinds, different=f"{len(set(tokens)):,}"
    )


def _take() -> None:
    text, values = st.session_state[_KEY], state.draft()
    if len(text) > MOST_CHARACTERS or drafts.task_of(values) != "own-text":
        return  # too long: the page says so, and forgets it
    state.set_own_text(text)
    state.set_draft(drafts.put(values, _PATH, text), by=_PATH)
