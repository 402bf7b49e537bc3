"""A run of maps alone on a page that needs its model: why there is nothing."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import show, state
from pages.ui.navigation import page_table
from pages.ui.navigation.page_table import PageFacts
from pages.ui.runs import runs_access
from tfm_core.runs.run import Run
from tfm_core.sentences import Paragraph


def is_foreign(run: Run) -> bool:
    """Return whether a run is of somebody else's training loop."""
    return run.problem is None and run.experiment.task.is_foreign


def run_without_model(page: PageFacts) -> Run | None:
    """Return the current run where a page needs its model and there is none, else None."""
    run_id = state.current_run_id()
    if run_id is None or not page.needs_model:
        return None
    run = runs_access.store().get(run_id)
    return run if run.problem is None and not run.experiment.task.has_model else None


def turn_away(page: PageFacts, run: Run) -> None:
    """Say why a page shows nothing of a run, and where to go."""
    show.header(page.name)
    why = Paragraph("pretrained/foreign") if is_foreign(run) else Paragraph("pretrained/look")
    st.info(_(why), icon=":material/info:")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for name in ("train", "attention"):
            facts = page_table.PAGES[name]
            st.page_link(
                facts.path,
                label=_(facts.title),
                icon=facts.icon,
                query_params=state.run_query(name, run.id),
                width="content",
            )
        if st.button(_("Show another model"), icon=":material/swap_horiz:", key="foreign-other"):
            state.set_current_run(None)
            st.rerun()
