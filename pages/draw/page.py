"""Draw a digit: what a trained model reads, where it looks, and since when it is right."""

from __future__ import annotations

import streamlit as st

from pages.draw.board import board
from pages.i18n import _
from pages.ui import show
from pages.ui.fact_line import fact_line
from pages.ui.navigation import page_table
from pages.ui.runs import run_actions, run_words, shown_run
from pages.ui.typed import escape
from tfm_core.inspect.progress.pictures import reads_drawings
from tfm_core.runs.run import Run


def page() -> None:
    show.header("draw")
    run = shown_run.fitting_run(reads_drawings)
    if run is None:
        shown_run.preset_buttons(
            _("No model here reads digits yet."), ["vit-digits"], key="draw-train"
        )
        return
    _which(run)
    if run.has_checkpoint or run.weight_steps():
        board(run)
    else:
        shown_run.no_weights(run, key="draw")


def _which(run: Run) -> None:
    """Say which run reads, and why it is not the current one."""
    current = shown_run.current_run()
    words = _("Read by **{name}**", name=escape(run.meta.name))
    if run.meta.recorded:
        facts, choices = fact_line("draw")
        facts.caption(f"{shown_run.origin_badge(run)} {words}")
        with choices:
            shown_run.recorded_note(run, key="draw")
    else:
        st.caption(f"{words} {run_words.badge(run.status)}")
    if current is None or current.id == run.id:
        return
    name = escape(current.meta.name)
    if not current.experiment.task.describes_pictures:
        task = _(current.experiment.task.facts.label)
        st.caption(_("“{name}” learned {task}; another run reads here.", name=name, task=task))
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(_("“{name}” describes pictures.", name=name), width="content")
        st.page_link(
            page_table.path_of("captions"),
            label=_("Open Pictures to words"),
            icon=":material/image_search:",
            query_params={"run": current.id, **run_actions.way_back()},
        )


page()
