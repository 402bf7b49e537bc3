"""Bring a run: a zip that was taken along becomes an ordinary run here."""

from __future__ import annotations

import io
from typing import Any

import streamlit as st

from pages.i18n import _
from pages.ui import controls, page_table, run_actions, runs_access, state
from pages.ui.typed import escape

MOST_MEGABYTES = 20
"""Of a zip that is dropped here; the command line takes larger ones."""

_ROUND, _SAID, _CAME = "bring-round", "bring-said", "bring-run"


def part() -> None:
    """Draw where a zip is dropped, folded, and say what became of the last one."""
    refused = st.session_state.get(_SAID)
    number = st.session_state.get(_ROUND, 0)
    with st.expander(
        _("Bring a run"),
        icon=":material/upload_file:",
        expanded=bool(refused),
        key=f"bring-{number}",  # a new one after each zip: closed, unless it was refused
    ):
        file = st.file_uploader(
            _("A zip from “Take along”: drop it here, or choose it"),
            type="zip",
            key=f"bring-file-{number}",
            max_upload_size=MOST_MEGABYTES,
            help=_(
                "Every file in it is checked before it is used, and nothing in it is run. A larger "
                "zip is brought with `python -m tfm_core import FILE`."
            ),
        )
        if refused:
            controls.complaint(refused)
        if file is not None:
            _take(file)
            st.session_state[_ROUND] = number + 1  # an empty place for the next one
            st.rerun()
    _came()


def _came() -> None:
    """Lead to the run that was brought last, until it is opened or deleted."""
    run_id = st.session_state.get(_CAME)
    if run_id is None:
        return
    try:
        run = runs_access.store().get(run_id)
    except ValueError:
        run = None
    if run is None or run.id == state.current_run_id():
        st.session_state.pop(_CAME, None)
        return
    words = _("“{name}” was brought: its files were checked, and it is one of your runs now.")
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", border=True, key="bring-came"
    ):
        said = words.format(name=escape(run.meta.name))
        st.markdown(f":material/move_to_inbox: {said}", width="stretch")
        st.page_link(
            page_table.path_of("train"),
            label=_("Watch {name}").format(name=escape(run.meta.name)),
            icon=":material/play_arrow:",
            query_params={"run": run.id},
            width="content",
        )


def _take(file: Any) -> None:
    """Make a run of a zip and lead to it; or remember, in a sentence, why that cannot be."""
    st.session_state.pop(_SAID, None)
    bar = st.progress(0.0, _("Looking into the zip"))

    def hear(share: float, words: str) -> None:
        bar.progress(share, _(words))

    try:
        run = run_actions.bring(io.BytesIO(file.getvalue()), hear)
    except (ValueError, OSError) as error:
        why = _("{name} was not brought: {why}")
        st.session_state[_SAID] = why.format(name=file.name, why=_(error))
        return
    finally:
        bar.empty()
    st.session_state[_CAME] = run.id
