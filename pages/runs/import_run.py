"""Import a run: an exported zip becomes an ordinary run, a look file one that shows its maps."""

from __future__ import annotations

import io
from typing import Any

import streamlit as st

from pages.i18n import _
from pages.ui import state
from pages.ui.accounts import visitors
from pages.ui.files import file_drop
from pages.ui.navigation import page_table
from pages.ui.runs import run_actions, runs_access
from pages.ui.typed import MAX_MEGABYTES, escape

_IMPORTED, _LOOK = "bring-run", "safetensors"


def import_area() -> None:
    if visitors.why_not():
        return  # the page shows the reason
    file_drop.file_drop(
        _("Import a run"),
        _("Drop or choose an exported zip or a look file"),
        key="bring",
        kind=["zip", _LOOK],
        megabytes=MAX_MEGABYTES,
        help=_("No code runs. Larger ones: `python -m tfm_core import ZIP` and `open LOOK`."),
        take=_take,
    )
    _imported_row()


def _imported_row() -> None:
    run_id = st.session_state.get(_IMPORTED)
    if run_id is None:
        return
    try:
        run = runs_access.store().get(run_id)
    except ValueError:
        run = None
    if run is None or run.id == state.current_run_id():
        st.session_state.pop(_IMPORTED, None)
        return
    name = escape(run.meta.name)
    words = _("Imported “{name}”; its files are sound.", name=name)
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", border=True, key="bring-came"
    ):
        st.markdown(f":material/move_to_inbox: {words}", width="stretch")
        is_look = not (
            run.problem or run.experiment.task.has_model or run.experiment.task.is_foreign
        )
        st.page_link(
            page_table.path_of("attention" if is_look else "train"),
            label=_("Look into {name}", name=name) if is_look else _("Watch {name}", name=name),
            icon=":material/visibility:" if is_look else ":material/play_arrow:",
            query_params={"run": run.id},
            width="content",
        )


def _take(file: Any) -> None:
    """Import a file. Raises ValueError and OSError if that fails."""
    if file.name.lower().endswith(f".{_LOOK}"):
        st.session_state[_IMPORTED] = run_actions.open_look(file.name, file.getbuffer()).id
        return
    bar = st.progress(0.0, _("Reading the zip"))

    def show_progress(share: float, words: str) -> None:
        bar.progress(share, _(words))

    try:
        run = run_actions.import_run(io.BytesIO(file.getvalue()), show_progress)
    finally:
        bar.empty()
    st.session_state[_IMPORTED] = run.id
