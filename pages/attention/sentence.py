"""One's own sentence: typed, made of chips, drawn by chance, or mended to the nearest there is."""

from __future__ import annotations

import random

import streamlit as st

from pages.attention import selection as chosen
from pages.attention.selection_link import MAX_TEXT, Selection
from pages.components.word_chips import word_chips
from pages.i18n import _
from pages.ui import typed
from pages.ui.typed import escape
from tfm_core.config import SequenceTaskConfig
from tfm_core.data.text import TextTask, text_task
from tfm_core.data.text.nearest import Suggestion, is_of_words, nearest_sentence
from tfm_core.data.vocabulary import MASK
from tfm_core.inspect.attention import own_example
from tfm_core.inspect.attention.example import Example
from tfm_core.inspect.text.word_classes import CLASSES, class_of
from tfm_core.probe.types import Probe
from tfm_core.runs.run import Run

_TEXT, _READ = "attention-text", "attention-read"
MOST_CHIPS = 120


def sentence(run: Run, probe: Probe, selection: Selection) -> Example:
    """Ask for a sentence and read it; what was read last stays while the new one cannot be."""
    first = str(probe.items[0]["src_text"])
    st.session_state.setdefault(_TEXT, selection.text or first)
    task = text_task(run.experiment.task_as(SequenceTaskConfig))
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        text = st.text_input(
            _("Your sentence"),
            key=_TEXT,
            on_change=lambda: chosen.choose(run.id, text=st.session_state[_TEXT]),
            help=_("In the words of the task; press Enter to let the model read it."),
        )
        st.button(
            _("Surprise me"),
            icon=":material/casino:",
            key="attention-surprise",
            on_click=lambda: _read(run, _drawn(task)),
        )
        st.button(
            _("Clear"),
            key="attention-clear",
            on_click=lambda: st.session_state.update({_TEXT: ""}),
        )
    _chips(run, task)
    try:
        example = own_example.look_at_text(run, typed.within(text, MAX_TEXT))
    except ValueError as error:
        return _unread(run, task, text or "", error, first)
    st.session_state[_READ] = (run.id, text)
    return example


def _unread(run: Run, task: TextTask, text: str, error: ValueError, first: str) -> Example:
    """Say why a text cannot be read and what comes nearest; show the last one that could be."""
    st.warning(escape(_(error)), icon=":material/spellcheck:")
    if len(text) <= MAX_TEXT:
        suggestion = nearest_sentence(task, text)
        if suggestion is not None:
            _suggest(run, suggestion)
    run_id, last = st.session_state.get(_READ, ("", ""))
    shown = last if run_id == run.id else first
    st.caption(_("Shown below: “{text}”").format(text=escape(shown)))
    return own_example.look_at_text(run, shown)


def _suggest(run: Run, suggestion: Suggestion) -> None:
    """Offer the nearest sentence with one press, and say what it changes."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            _("Read “{text}”").format(text=escape(suggestion.text)),
            type="primary",
            icon=":material/auto_fix_high:",
            key="attention-nearest",
            on_click=lambda: _read(run, suggestion.text),
        )
        changes = []
        for change in suggestion.changes:
            was, now = escape(change.typed), escape(change.now)
            if not change.typed:
                changes.append(f"+ {now}")
            elif not change.now:
                changes.append(f"~~{was}~~")
            else:
                changes.append(f"{was} → {now}")
        st.caption(" · ".join(changes))


def _chips(run: Run, task: TextTask) -> None:
    """Show the words that the model knows, by their kind."""
    tokens = [token for token in task.src_vocabulary.tokens if not token.isspace()]
    if len(tokens) > MOST_CHIPS:
        return
    groups: dict[str, list[str]] = {}
    for token in tokens:
        groups.setdefault(class_of(task.name, token), []).append(token)
    ordered = {_(name): groups[name] for name in CLASSES if name in groups}
    if len(ordered) == 1:
        ordered = {"": tokens}
    glue = " " if is_of_words(task) or MASK in tokens else ""
    word_chips(
        ordered,
        field=_TEXT,
        glue=glue,
        on_pick=lambda word: _add(run, word, glue),
        key="attention-chips",
    )


def _add(run: Run, word: str, glue: str) -> None:
    """Put a word behind the text; what becomes of it is read."""
    before = str(st.session_state.get(_TEXT) or "").rstrip(" .")
    _read(run, f"{before}{glue}{word}" if before else word)


def _read(run: Run, text: str) -> None:
    st.session_state[_TEXT] = text
    chosen.choose(run.id, text=text)


def _drawn(task: TextTask) -> str:
    """Return a text that the task's generator draws."""
    pair = task.sample(random.Random())
    return task.join_src(pair.src) if pair.src else task.join_tgt(pair.tgt)
