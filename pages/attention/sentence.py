"""One's own sentence: typed, made of chips, drawn by chance, or mended to the nearest there is."""

from __future__ import annotations

import streamlit as st

from pages.attention import selection as chosen
from pages.attention.selection_link import MAX_TEXT, Selection
from pages.i18n import _
from pages.ui import sentence_field, typed
from pages.ui.typed import escape
from tfm_core.config import SequenceTaskConfig
from tfm_core.data.text import TextTask, text_task
from tfm_core.inspect.attention import own_example
from tfm_core.inspect.attention.example import Example
from tfm_core.probe.types import Probe
from tfm_core.runs.run import Run

_KEY, _TEXT, _READ = "attention", "attention-text", "attention-read"


def sentence(run: Run, probe: Probe, selection: Selection) -> Example:
    """Ask for a sentence and read it; what was read last stays while the new one cannot be."""
    first = str(probe.items[0]["src_text"])
    st.session_state.setdefault(_TEXT, selection.text or first)
    task = text_task(run.experiment.task_as(SequenceTaskConfig))

    def read(text: str) -> None:
        chosen.choose(run.id, text=text)

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        text = sentence_field.field(
            task,
            label=_("Your sentence"),
            help=_("Use the words of the task, then press Enter."),
            key=_KEY,
            on_read=read,
        )
    groups = sentence_field.by_class(task)
    if groups:
        sentence_field.chips(task, groups, key=_KEY, on_read=read)
    try:
        example = own_example.look_at_text(run, typed.within(text, MAX_TEXT))
    except ValueError as error:
        return _unread(run, task, text, error, first)
    st.session_state[_READ] = (run.id, text)
    sentence_field.mark_unknown(task, text)
    return example


def _unread(run: Run, task: TextTask, text: str, error: ValueError, first: str) -> Example:
    """Say why a text cannot be read and what comes nearest; show the last one that could be."""
    st.warning(escape(_(error)), icon=":material/spellcheck:")
    if len(text) <= MAX_TEXT:
        sentence_field.suggest(
            task, text, key=_KEY, on_read=lambda found: chosen.choose(run.id, text=found)
        )
    run_id, last = st.session_state.get(_READ, ("", ""))
    shown = last if run_id == run.id else first
    st.caption(_("Shown below: “{text}”", text=escape(shown)))
    return own_example.look_at_text(run, shown)
