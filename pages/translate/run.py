"""Which model writes: the current run where it does, else the first that can."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import run_words, runs_access, shown_run, state
from pages.ui.typed import escape
from tfm_core.inspect.writing.source import writes
from tfm_core.runs.run import Run

PRESETS = ("translate", "gpt-grammar", "captions")
_FIRST = "encoder-decoder"


def chosen() -> Run | None:
    """Return the run that writes; None, with a way on, where the current one cannot."""
    run_id = state.current_run_id()
    current = None if run_id is None else runs_access.store().get(run_id)
    if current is None:
        able = shown_run.runs_with_weights(writes)
        if not able:
            shown_run.preset_buttons(
                _("There is no trained model here that writes."), PRESETS, key="translate"
            )
            return None
        first = next((run for run in able if run.experiment.model.family == _FIRST), able[0])
        state.show_unasked(first.id)
        return first
    if current.problem is not None or not writes(current.experiment):
        _cannot(current)
        return None
    if not current.has_checkpoint:
        _not_yet(current)
        return None
    return current


def note(run: Run) -> None:
    """Say which model writes, and of a recorded one what that is."""
    if run.meta.recorded:
        shown_run.recorded_note(run, key="translate")
    elif run.status.is_active:
        words = _("“{name}” is training; it writes with the weights that it saved last.")
        st.caption(words.format(name=escape(run.meta.name)))


def _cannot(current: Run) -> None:
    """Say that the current run does not write, and offer those that do."""
    with st.container(border=True, gap="medium"):
        words = _("“{name}” ({learns}) gives one answer and writes no text. These write:")
        st.markdown(
            words.format(name=escape(current.meta.name), learns=escape(run_words.learns(current)))
        )
        with st.container(horizontal=True, gap="small"):
            for number, run in enumerate(_different(shown_run.runs_with_weights(writes))):
                st.button(
                    f"{escape(run.meta.name)} · {escape(run_words.learns(run))}",
                    type="secondary" if number else "primary",
                    key=f"translate-open-{run.id}",
                    on_click=state.set_current_run,
                    args=(run.id,),
                )
    if not shown_run.runs_with_weights(writes):
        shown_run.preset_buttons(
            _("There is no trained model here that writes."), PRESETS, key="translate"
        )


def _different(runs: list[Run], most: int = 4) -> list[Run]:
    """Return the first run of each kind of model and task, a translator first."""
    found: dict[tuple[str, str], Run] = {}
    for run in runs:
        found.setdefault((run.experiment.model.family, run.experiment.task.kind), run)
    ordered = sorted(found.values(), key=lambda run: run.experiment.model.family != _FIRST)
    return ordered[:most]


def _not_yet(current: Run) -> None:
    with st.container(border=True, gap="medium"):
        if not current.status.is_active:
            words = _("“{name}” ended before it saved its weights, so it cannot write.")
            st.markdown(words.format(name=escape(current.meta.name)))
            return
        words = _("“{name}” is training and has not saved its weights yet; it will in a moment.")
        st.info(words.format(name=escape(current.meta.name)), icon=":material/hourglass_empty:")
        st.button(_("Look again"), icon=":material/refresh:", key="translate-look-again")
