"""Whose example is looked at: one of the run's, one that went wrong, or the user's own."""

from __future__ import annotations

import streamlit as st

from pages.attention import controls
from pages.attention import selection as chosen
from pages.attention.selection_link import MISTAKES, OWN, Selection
from pages.components.thumbnails import Thumbnail, thumbnails
from pages.i18n import _
from pages.ui.task_panels import example_name
from tfm_core.probe.types import Probe
from tfm_core.runs.run import Run
from tfm_core.variants.tasks import TASK_KINDS


def source_picker(run: Run, selection: Selection) -> None:
    """Choose between the run's examples, those that went wrong, and one's own."""
    names = {"probe": _("Examples"), MISTAKES: _("Mistakes"), OWN: _("Your own")}
    if TASK_KINDS[run.experiment.task.kind].mistakes is None:
        del names[MISTAKES]  # a text may go on in many ways
    controls.segments(
        _("What the model looks at"),
        names,
        selection.source,
        "source",
        lambda source: _to_source(run, source),
        _("Examples and mistakes are unseen in training."),
        label_visibility="collapsed",
    )


def example_picker(run: Run, probe: Probe, selection: Selection) -> None:
    """Choose one of the run's examples: a picture by itself, a text by its words."""
    if selection.example is None:
        return
    if probe.images is not None:
        pictures = [
            Thumbnail(image, example_name(run.experiment, item, number))
            for number, (image, item) in enumerate(
                zip(probe.images, probe.attended, strict=False), 1
            )
        ]
        thumbnails(
            pictures,
            chosen=selection.example,
            label=_("Example"),
            on_pick=lambda example: _to_example(run, example),
            key="attention-pictures",
        )
        return
    key = "attention-example"
    st.session_state[key] = selection.example
    st.selectbox(
        _("Example"),
        range(len(probe.attended)),
        format_func=lambda index: example_name(run.experiment, probe.items[index], index + 1),
        key=key,
        on_change=lambda: _to_example(run, st.session_state[key]),
        label_visibility="collapsed",
        width=320,
    )


def _to_source(run: Run, source: str) -> None:
    chosen.set_playing(None)
    example = 0 if source == "probe" else None
    chosen.choose(run.id, example=example, own=MISTAKES if source == MISTAKES else "")


def _to_example(run: Run, example: int) -> None:
    # While the page is drawn with one's own example, the browser still sends the value of the list
    # that is about to go; with whatever is typed meanwhile that would lead back to the examples.
    if not chosen.is_own():
        chosen.choose(run.id, example=example)
