"""Draw a digit: what a trained model reads in it, where it looks, and since when it is right."""

from __future__ import annotations

import streamlit as st

from pages.draw.board import board
from pages.i18n import _
from pages.ui import page_table, run_actions, run_words, show, shown_run
from pages.ui.typed import escape
from tfm_core.inspect.progress.pictures import reads_drawings
from tfm_core.runs.run import Run


def page() -> None:
    """Show the board for the current run where that reads drawings, else for one that does."""
    show.header("draw")
    run = shown_run.fitting_run(reads_drawings)
    if run is None:
        shown_run.preset_buttons(
            _("No model here reads digits yet. Train one first."),
            ["vit-digits"],
            key="draw-train",
        )
        return
    _which(run)
    if run.has_checkpoint or run.weight_steps():
        board(run)
    elif run.status.is_active:
        st.info(
            _("It has not saved its weights yet; look again in a moment."),
            icon=":material/hourglass_empty:",
        )
        st.button(_("Look again"), icon=":material/refresh:", key="draw-look-again")
    else:
        show.problem(_("This run ended before it saved its weights, so it cannot read digits."))


def _which(run: Run) -> None:
    """Say which run reads, and why where it is not the current one."""
    current = shown_run.current_run()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        words = _("Read by **{name}**", name=escape(run.meta.name))
        st.markdown(f"{words} {run_words.badge(run.status)}", width="content")
        shown_run.recorded_note(run, key="draw")
    if current is not None and current.id != run.id:
        _instead(current)


def _instead(current: Run) -> None:
    """Say why the current run does not read here, and where it does."""
    name = escape(current.meta.name)
    if current.experiment.task.describes_pictures:
        words = _("“{name}” describes pictures of several digits; use Pictures to words.")
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.caption(words.format(name=name), width="content")
            st.page_link(
                page_table.path_of("captions"),
                label=_("Pictures to words"),
                icon=":material/image_search:",
                query_params={"run": current.id, **run_actions._way_back()},
            )
        return
    words = _("“{name}” learned {task} and cannot read drawings; this run can.")
    task = _(current.experiment.task.facts.label)
    st.caption(words.format(name=name, task=task))


page()
