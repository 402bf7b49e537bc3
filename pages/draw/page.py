"""Draw a digit: what a trained model reads in it, where it looks, and since when it is right."""

from __future__ import annotations

import streamlit as st

from pages.draw.board import board
from pages.i18n import _
from pages.ui import fitting_run, offers, page_table, recorded, run_words, show, way_back
from pages.ui.typed import escape
from tfm_core.inspect.looks import reads_drawings
from tfm_core.runs.run import Run


def page() -> None:
    show.header("draw")
    run = fitting_run.found(reads_drawings)
    if run is None:
        offers.presets(_("No model here reads digits yet."), ["vit-digits"], key="draw-train")
        return
    _which(run)
    if run.has_checkpoint or run.weight_steps():
        board(run)
    elif run.status.is_active:
        st.info(_("No weights saved yet."), icon=":material/hourglass_empty:")
        st.button(_("Reload"), icon=":material/refresh:", key="draw-look-again")
    else:
        show.problem(_("This run ended without saving weights."))


def _which(run: Run) -> None:
    current = fitting_run.current()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        words = _("Read by **{name}**", name=escape(run.meta.name))
        st.markdown(f"{words} {run_words.badge(run.status)}", width="content")
        recorded.note(run, key="draw")
    if current is not None and current.id != run.id:
        _instead(current)


def _instead(current: Run) -> None:
    name = escape(current.meta.name)
    if current.experiment.task.describes_pictures:
        words = _("“{name}” describes pictures; use Pictures to words.")
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(words.format(name=name), width="content")
            st.page_link(
                page_table.path_of("captions"),
                label=_("Pictures to words"),
                icon=":material/image_search:",
                query_params={"run": current.id, **way_back.from_here()},
            )
        return
    words = _("“{name}” learned {task}, so another run reads here.")
    task = _(current.experiment.task.facts.label)
    st.caption(words.format(name=name, task=task))


page()
