"""Whose example is looked at: one of the run's, or the user's own."""

from __future__ import annotations

import streamlit as st

from pages.attention import controls
from pages.attention import selection as chosen
from pages.attention.selection_link import Selection
from pages.i18n import _
from pages.ui import attended
from pages.ui.task_panels import example_name
from tfm_core.probe.types import Probe
from tfm_core.runs.run import Run


def source_picker(run: Run, probe: Probe, selection: Selection) -> None:
    """Choose between the run's examples and one's own, and which of the examples."""
    names = {"probe": _("Examples of the run"), "own": _("Your own")}
    left, right = st.columns([2, 3], vertical_alignment="bottom")
    with left:
        controls.segments(
            _("What the model looks at"),
            names,
            "own" if selection.example is None else "probe",
            "source",
            lambda source: _to_source(run, None if source == "own" else 0),
            _("The run's examples are not trained on and stay the same at every step."),
        )
    if selection.example is None:
        return
    key = "attention-example"
    st.session_state[key] = selection.example
    right.selectbox(
        _("Example"),
        range(len(probe.attended)),
        format_func=lambda index: example_name(run.experiment, probe.items[index], index + 1),
        key=key,
        on_change=lambda: _to_example(run, st.session_state[key]),
    )
    attended.say(run, probe)


def _to_source(run: Run, example: int | None) -> None:
    chosen.set_playing(None)
    chosen.choose(run.id, example=example)


def _to_example(run: Run, example: int) -> None:
    # While the page is drawn with one's own example, the browser still sends the value of the list
    # that is about to go; with whatever is typed meanwhile that would lead back to the examples.
    if not chosen.is_own():
        chosen.choose(run.id, example=example)
