"""The beginning of the Build page: the model's size and its settings."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import controls, drafts, model_choice, show, state
from pages.ui.fields import settings_of
from pages.ui.model_choice import Chosen
from tfm_core.config.shape import CaptionShape, ImageShape
from tfm_core.facts.compute import macs

_EDITOR = "build-editor"


def facts(chosen: Chosen) -> None:
    """Show the size of the model in a few numbers."""
    from tfm_core.facts.parameter_table import parameter_table

    known = chosen.architecture
    total = parameter_table(chosen.model, chosen.shape).total
    work = sum(
        macs(chosen.model, chosen.shape, src_len=known.src_len, tgt_len=known.tgt_len).values()
    )
    words = _(
        "**{n}** parameters · **{macs}** multiply-accumulates for {example}",
        n=f"{total:,}",
        macs=show.count(work),
        example=_example(chosen),
    )
    if known.n_parameters == total and known.source:
        words += _(
            " · :green[:material/check: the published count], {source}", source=_(known.source)
        )
    elif known.source:
        words += f" · {_(known.source)}"
    st.markdown(words)
    if known.note:
        st.caption(_(known.note))


def _example(chosen: Chosen) -> str:
    """Say what one example is: so many tokens, or a picture."""
    known, shape = chosen.architecture, chosen.shape
    if isinstance(shape, ImageShape):
        return _("one picture")
    if isinstance(shape, CaptionShape):
        return _("one picture and its {tgt} tokens", tgt=known.tgt_len)
    if not shape.has_source:
        return _("one example of {tgt} tokens", tgt=known.tgt_len)
    if shape.is_label or shape.head in ("pooler", "states"):
        return _("one example of {src} tokens", src=known.src_len)
    return _("one example of {src} + {tgt} tokens", src=known.src_len, tgt=known.tgt_len)


def editor(chosen: Chosen) -> None:
    """Draw the architecture's settings; what does not fit together stands beside its control."""
    draft = state.current_draft()
    checked = drafts.check(draft)
    if checked.experiment is None:  # what does not fit must not stay folded away
        st.session_state[_EDITOR] = True
    folded = st.expander(
        _("Change the model"), icon=":material/tune:", key=_EDITOR, on_change="rerun"
    )
    if not folded.open:  # it is as much to draw as all the rest of the page
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
