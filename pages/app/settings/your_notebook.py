"""Your notebook: give the sizes of a model, or a call with them, and look at it."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.app import show, state
from pages.app.address import view_link
from pages.app.address.parameters import Text
from pages.app.navigation import page_table
from pages.app.typed import escape
from pages.i18n import N_, _, ngettext, paragraph
from tfm_core.choices.config import tasks_for
from tfm_core.choices.config.codec import default_sections
from tfm_core.facts.architectures import Architecture
from tfm_core.inspect.notebook.model import YourModel, your_model
from tfm_core.inspect.notebook.sizes import MAX_CHARACTERS

NAME = "notebook"
LABEL = N_("Your notebook")
_EXAMPLE = "Encoder(3, 16, 4, 2)"
TEXT = Text("notebook", first=_EXAMPLE, key="notebook-text", most=1_500)
"""The pasted text; the link has the sizes that were read from it."""
_LAST = "notebook-last-valid"
_LISTED = 40


def field() -> None:
    """Draw the field for the text."""
    view_link.warn(view_link.receive(TEXT))
    st.text_area(
        _("Sizes or a call"),
        key=TEXT.key,
        persist_state="session",
        height=120,
        max_chars=MAX_CHARACTERS,
        help=paragraph("architecture/your-notebook"),
    )


def model() -> Architecture:
    """Return the model of the text; of the last one that could be read."""
    text = str(st.session_state[TEXT.key])
    try:
        found = your_model(text)
    except ValueError as error:
        show.problem(error)
        text = str(st.session_state.get(_LAST, _EXAMPLE))
        st.caption(_("Showing the last one that could be read."))
        found = your_model(text)
    st.session_state[_LAST] = text
    view_link.say(TEXT, TEXT.first if text == _EXAMPLE else found.sizes)
    _report(found)
    return found.architecture


def _report(found: YourModel) -> None:
    with st.container(horizontal=True, vertical_alignment="center", key="notebook-report"):
        n = found.n_lines - len(found.unread)
        st.markdown(ngettext("{n} line read.", "{n} lines read.", n, n=n), width="content")
        if st.button(_("Train one like it"), icon=":material/model_training:", type="tertiary"):
            state.set_draft(_draft(found.architecture))
            st.switch_page(page_table.path_of("train"))
    for sentence in found.assumed:
        st.caption(f":orange[{escape(_(sentence))}]")
    n = len(found.unread)
    if n:
        label = ngettext("{n} line was not understood", "{n} lines were not understood", n, n=n)
        with st.expander(label, icon=":material/help:"):
            rows = [(str(number), text, _(why)) for number, text, why in found.unread[:_LISTED]]
            show.facts(rows, [_("line"), _("text"), _("why")])


def _draft(known: Architecture) -> dict[str, Any]:
    """Return an experiment with this model, on the first task that its family learns."""
    family = known.model.family
    values = default_sections(family, tasks_for(family)[0])
    return {**values, "model": known.model.model_dump()}
