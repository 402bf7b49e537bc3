"""Build: the diagram, equations and code of exactly one model."""

from __future__ import annotations

import streamlit as st

from pages.architecture import diagram, model_file
from pages.architecture.table import example_size, published
from pages.i18n import _
from pages.ui import show, state
from pages.ui.address import view_link
from pages.ui.settings import controls, drafts, model_choice, names_choice
from pages.ui.settings.fields import settings_of
from pages.ui.settings.model_choice import Chosen
from pages.ui.typed import escape
from tfm_core.facts.compute import macs

_EDITOR = "build-editor"


def facts(chosen: Chosen) -> None:
    from tfm_core.facts.parameter_table import parameter_table

    architecture = chosen.architecture
    total = parameter_table(chosen.model, chosen.shape).total
    work = macs(
        chosen.model, chosen.shape, src_len=architecture.src_len, tgt_len=architecture.tgt_len
    )
    size = _(
        "**{label}** · **{n}** parameters · {example}: **{macs}** multiply-accumulates",
        label=escape(chosen.label),
        n=f"{total:,}",
        macs=show.count(sum(work.values())),
        example=example_size(chosen),
    )
    published(architecture, size, total)


def editor(chosen: Chosen) -> None:
    """Draw the architecture's settings, with each problem beside its control."""
    draft = state.current_draft()
    checked = drafts.check(draft)
    if checked.experiment is None:  # show the problems
        st.session_state[_EDITOR] = True
    folded = st.expander(
        _("Change the model"), icon=":material/tune:", key=_EDITOR, on_change="rerun"
    )
    if not folded.open:  # costs as much as the rest of the page
        return
    with folded:
        first, second = st.columns([3, 2])
        with first:
            controls.family(draft)
        with second:
            controls.task(draft)
        for sentence in (*checked.at("task.name"), *checked.at("model.family"), *checked.at("")):
            controls.complaint(sentence)
        settings = settings_of(drafts.family_of(draft.values), drafts.task_of(draft.values))
        controls.group(_("Architecture"), [s for s in settings if s.section == "model"], checked)
        if chosen.by_task is not None:
            model_choice.sizes_editor(chosen.by_task, chosen.problem)


show.header("build")
chosen, place, choices = model_choice.line("build", is_edited=True)
with choices, view_link.warnings_in(place):
    scheme = names_choice.choice()
with place:
    facts(chosen)
if chosen.name == model_choice.DRAFT:
    editor(chosen)
diagram.view(chosen, scheme)
model_file.structure(chosen, scheme)
model_file.view(chosen, scheme)
