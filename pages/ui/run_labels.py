"""What a run is called and filed under: its name, group, tags and note, in one dialog."""

from __future__ import annotations

import streamlit as st

from pages.i18n import N_, _
from pages.ui import controls, run_actions
from pages.ui.run_dialog import RunDialog
from tfm_core.runs.record.labels import MAX_GROUP, MAX_NAME, MAX_NOTE, MAX_TAG, MAX_TAGS
from tfm_core.runs.run import Run

_REFUSED = "labels-refused"


def _body(run: Run) -> None:
    labels = run.labels
    name = st.text_input(_("Name"), value=run.meta.name, max_chars=MAX_NAME, key=f"name-{run.id}")
    group = st.text_input(
        _("Group"), value=labels.group or "", max_chars=MAX_GROUP, key=f"group-{run.id}"
    )
    tags = st.text_input(
        _("Tags"),
        value=", ".join(labels.tags),
        max_chars=MAX_TAGS * (MAX_TAG + 2),
        key=f"tags-{run.id}",
        placeholder=_("baseline, to repeat"),
        help=_("Separate tags with commas."),
    )
    note = st.text_area(
        _("Note"), value=labels.note, max_chars=MAX_NOTE, key=f"note-{run.id}", height=110
    )
    if st.button(
        _("Keep"), key=f"label-{run.id}", type="primary", icon=":material/check:", width="stretch"
    ):
        st.session_state.pop(_REFUSED, None)
        try:
            run_actions.name_and_label(run.id, name=name, group=group, tags=tags, note=note)
        except (ValueError, OSError) as error:
            st.session_state[_REFUSED] = _(error)
        else:
            DIALOG.leave()
            st.rerun()
    refused = st.session_state.get(_REFUSED)
    if refused:
        controls.complaint(refused)


DIALOG = RunDialog("labels", N_("Name and labels"), ":material/sell:", _body, forgets=(_REFUSED,))
