"""“Repeat with a change”: train a copy of a run with one or more changed settings."""

from __future__ import annotations

from typing import Any

import streamlit as st

from pages.i18n import N_, _
from pages.ui import controls, drafts, show, starts
from pages.ui.fields import Setting, settings_of
from pages.ui.run_actions import Start
from pages.ui.run_dialog import RunDialog
from pages.ui.typed import escape
from tfm_core.config import ConfigError, Experiment, Problem
from tfm_core.config.codec import problems_of
from tfm_core.inspect.compare.names import change
from tfm_core.runs.run import Run


def _body(run: Run) -> None:
    values: dict[str, Any] = run.experiment.model_dump()
    settings = _settings(values)
    chosen = _chosen(run, settings)
    keys = {path: f"twin-{run.id}-{path}" for path in chosen}
    for path, key in keys.items():
        st.session_state.setdefault(key, drafts.get(values, path))
        value = st.session_state[key]
        if value is not None:  # an emptied field leaves what the run has
            values = drafts.chosen(values, path, value)
    experiment, problems = _checked(values)
    for path, key in keys.items():
        controls.widget(settings[path], {"key": key})
        st.caption(_("“{name}” has {value}.",
            name=escape(run.meta.name),
            value=escape(_said(settings[path], drafts.get(run.experiment.model_dump(), path))),
        ))  # fmt: skip
        for problem in problems:
            if problem.field == path:
                controls.complaint(_(problem.sentence))
    for problem in problems:
        if problem.field not in keys:
            controls.complaint(_(problem.sentence))
    _start(run, experiment)


def _chosen(run: Run, settings: dict[str, Setting]) -> list[str]:
    """Return the settings to change, in the order in which they were chosen, and offer more."""
    kept = f"twin-settings-{run.id}"
    chosen = [path for path in st.session_state.get(kept, []) if path in settings]
    key = f"twin-what-{run.id}"

    def add() -> None:
        path = st.session_state[key]
        if path in settings and path not in chosen:
            st.session_state[kept] = [*chosen, path]
        st.session_state[key] = None

    st.selectbox(
        _("Settings to change from “{name}”", name=escape(run.meta.name)),
        [path for path in settings if path not in chosen],
        format_func=lambda path: _label(settings, path),
        index=None,
        key=key,
        on_change=add,
        placeholder=_("Choose a setting or type its name"),
    )
    return chosen


def _start(run: Run, experiment: Experiment | None) -> None:
    """Say what differs, and draw the button that trains it."""
    what = "" if experiment is None else change(run.experiment, experiment)
    if what:
        words = _("A copy with {what}. Both runs are then compared.")
        st.markdown(words.format(what=f"**{escape(_(what))}**"))
    elif experiment is not None:
        st.caption(
            _(
                "Nothing differs yet, and the same settings and seed give the same curve. "
                "Choose what to change above."
            )
        )
    if not st.button(
        _("Train the twin"),
        type="primary",
        icon=":material/play_arrow:",
        disabled=not what,
        key=f"twin-start-{run.id}",
    ):
        return
    assert experiment is not None
    like = starts.of_run(run)
    twin = Start(experiment, like.device, like.name, like.preset, like.threads)
    try:
        begun = starts.begin([twin], group=run.labels.group)
    except (ValueError, OSError) as error:
        show.problem(error)
        return
    DIALOG.leave()
    starts.compare([run.id, *(one.id for one in begun)])


def _settings(values: drafts.Values) -> dict[str, Setting]:
    found = settings_of(drafts.family_of(values), drafts.task_of(values))
    return {setting.path: setting for setting in found}


def _label(settings: dict[str, Setting], path: str) -> str:
    """Return the label of a setting; one that stands twice is told apart by its name."""
    own = settings[path]
    is_alone = sum(one.label == own.label for one in settings.values()) == 1
    return str(_(own.label)) if is_alone else f"{_(own.label)} ({path})"


def _said(setting: Setting, value: Any) -> str:
    if setting.choices is not None:
        return drafts.said(setting, value)
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _checked(values: drafts.Values) -> tuple[Experiment | None, tuple[Problem, ...]]:
    try:
        return Experiment.parse(values), ()
    except ConfigError:
        return None, problems_of(values)


DIALOG = RunDialog(
    "twin", N_("Repeat with a change"), ":material/alt_route:", _body, width="medium"
)
