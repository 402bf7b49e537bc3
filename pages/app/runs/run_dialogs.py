"""Dialogs about one run: its name and labels, and a repeat with a change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import streamlit as st

from pages.app import show, state
from pages.app.runs import comparison, run_actions, runs_access
from pages.app.settings import controls, drafts
from pages.app.settings.drafts import Draft
from pages.app.settings.fields import Setting, settings_by_path
from pages.app.typed import escape
from pages.i18n import N_, _
from tfm_core.choices.config import Experiment
from tfm_core.inspect.compare.names import change
from tfm_core.runs.record.labels import MAX_GROUP, MAX_NAME, MAX_NOTE, MAX_TAG, MAX_TAGS
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound


@dataclass(frozen=True, slots=True)
class RunDialog:
    """key: its name in the session. title and icon: at its top.

    body: draws what is in it. forgets: what else of the session goes when it is closed.
    """

    key: str
    title: str
    icon: str
    body: Callable[[Run], None]
    width: Literal["small", "medium", "large"] = "small"
    forgets: tuple[str, ...] = ()

    def ask(self, run_id: str) -> None:
        """Open it at the next rerun, in place of any other dialog."""
        self._forget()
        state.open_dialog(self.key, run_id)
        state.close_menus()

    def draw(self) -> None:
        """Draw it if it is open. Call it once per page, outside of fragments that tick."""
        run_id = state.dialog_run(self.key)
        if run_id is None:
            return
        try:
            run = runs_access.store().get(run_id)
        except RunNotFound:
            self.leave()
            return
        if run.problem is None:
            opened = st.dialog(
                _(self.title), width=self.width, icon=self.icon, on_dismiss=self.leave
            )
            opened(self.body)(run)

    def leave(self) -> None:
        if state.dialog_run(self.key) is not None:
            state.close_dialog()
        self._forget()

    def _forget(self) -> None:
        for key in self.forgets:
            st.session_state.pop(key, None)


_REFUSED = "labels-refused"


def _labels_body(run: Run) -> None:
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
        help=_("Separate with commas."),
    )
    note = st.text_area(
        _("Note"), value=labels.note, max_chars=MAX_NOTE, key=f"note-{run.id}", height=110
    )
    if st.button(
        _("Save"), key=f"label-{run.id}", type="primary", icon=":material/check:", width="stretch"
    ):
        st.session_state.pop(_REFUSED, None)
        try:
            run_actions.name_and_label(run.id, name=name, group=group, tags=tags, note=note)
        except (ValueError, OSError) as error:
            st.session_state[_REFUSED] = _(error)
        else:
            LABELS_DIALOG.leave()
            st.rerun()
    refused = st.session_state.get(_REFUSED)
    if refused:
        controls.complaint(refused)


LABELS_DIALOG = RunDialog(
    "labels", N_("Name and labels"), ":material/sell:", _labels_body, forgets=(_REFUSED,)
)


def _twin_body(run: Run) -> None:
    values = begun = run.experiment.model_dump()
    settings = settings_by_path(run.experiment.model.family, run.experiment.task.name)
    chosen = _chosen_settings(run, settings)
    keys = {path: f"twin-{run.id}-{path}" for path in chosen}
    for path, key in keys.items():
        st.session_state.setdefault(key, drafts.get(values, path))
        value = st.session_state[key]
        if value is not None:  # an emptied field leaves what the run has
            values = drafts.chosen(values, path, value)
    checked = drafts.check(Draft(values))
    for path, key in keys.items():
        controls.widget(settings[path], key)
        st.caption(
            _(
                "“{name}” has {value}.",
                name=escape(run.meta.name),
                value=escape(drafts.format_value(settings[path], drafts.get(begun, path))),
            )
        )
        for sentence in checked.at(path):
            controls.complaint(sentence)
    for problem in checked.problems:
        if problem.field not in keys:
            controls.complaint(_(problem.sentence))
    _start_twin(run, checked.experiment)


def _chosen_settings(run: Run, settings: Mapping[str, Setting]) -> list[str]:
    """Return the settings to change, in order; draw the choice of more."""
    stored_key = f"twin-settings-{run.id}"
    chosen = [path for path in st.session_state.get(stored_key, []) if path in settings]
    key = f"twin-what-{run.id}"

    def add() -> None:
        path = st.session_state[key]
        if path in settings and path not in chosen:
            st.session_state[stored_key] = [*chosen, path]
        st.session_state[key] = None

    def label(path: str) -> str:
        """Return the label of a setting, with its path if the label is not unique."""
        own = _(settings[path].label)
        is_alone = sum(_(setting.label) == own for setting in settings.values()) == 1
        return own if is_alone else f"{own} ({path})"

    st.selectbox(
        _("Settings to change from “{name}”", name=escape(run.meta.name)),
        [path for path in settings if path not in chosen],
        format_func=label,
        index=None,
        key=key,
        on_change=add,
        placeholder=_("Choose or type a setting"),
    )
    return chosen


def _start_twin(run: Run, experiment: Experiment | None) -> None:
    """Show what differs, and the button that trains it."""
    what = "" if experiment is None else change(run.experiment, experiment)
    if what:
        st.markdown(_("Train a copy with **{what}** and compare.", what=escape(_(what))))
    elif experiment is not None:
        st.caption(_("Nothing differs yet: the curve would be the same."))
    if not st.button(
        _("Train the copy"),
        type="primary",
        icon=":material/play_arrow:",
        disabled=not what,
        key=f"twin-start-{run.id}",
    ):
        return
    assert experiment is not None
    twin = replace(comparison.start_like(run), experiment=experiment)
    try:
        begun = comparison.start_all([twin], group=run.labels.group)
    except (ValueError, OSError) as error:
        show.problem(error)
        return
    TWIN_DIALOG.leave()
    comparison.open_comparison([run.id, *(twin_run.id for twin_run in begun)])


TWIN_DIALOG = RunDialog(
    "twin", N_("Repeat with a change"), ":material/alt_route:", _twin_body, width="medium"
)
