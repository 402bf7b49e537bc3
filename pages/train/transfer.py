"""An experiment as a JSON file: down to the reader's machine, and up again."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import controls, state
from pages.ui.drafts import Checked
from pages.ui.typed import escape
from tfm_core.config import ConfigError, from_json, to_json

_FILE = "transfer-file"
_PROBLEMS = "transfer-problems"
_MAX_MEGABYTES = 1


def row(checked: Checked) -> None:
    problems = st.session_state.get(_PROBLEMS, [])
    with st.expander(_("Experiment file"), icon=":material/data_object:", expanded=bool(problems)):
        experiment = checked.experiment
        st.download_button(
            _("Download experiment"),
            "" if experiment is None else to_json(experiment),
            file_name="experiment.json",
            mime="application/json",
            icon=":material/download:",
            disabled=experiment is None,
            on_click="ignore",
            help=_("All settings as JSON, also for the command line."),
        )
        st.file_uploader(
            _("Upload experiment"),
            type="json",
            key=_FILE,
            max_upload_size=_MAX_MEGABYTES,
            on_change=_take,
            help=_("Replaces all settings above."),
        )
        for sentence in problems:
            controls.complaint(sentence)


def _take() -> None:
    file = st.session_state.get(_FILE)
    st.session_state[_PROBLEMS] = []
    if file is None:
        return
    try:
        experiment = from_json(file.getvalue())
    except ConfigError as error:
        sentences = [_(sentence) for sentence in error.sentences]
        why = _("{name} was not loaded:", name=file.name)
        st.session_state[_PROBLEMS] = [why, *sentences]
        return
    state.set_draft(experiment.model_dump())
    words = _("Experiment loaded from {name}.", name=escape(file.name))
    st.toast(words, icon=":material/upload_file:")
