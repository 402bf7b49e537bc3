"""Translate: a trained model writes step by step, and you can intervene."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.translate import beside, choice, desk, given, how, weights
from pages.translate.link import BEAM, BESIDE
from pages.ui import show, state
from pages.ui.address import view_link
from pages.ui.fact_line import fact_line
from pages.ui.runs import run_words, runs_access, shown_run
from pages.ui.typed import escape
from tfm_core.inspect.writing.source import writes
from tfm_core.runs.run import Run

PRESETS = ("translate", "gpt-grammar", "captions")
_FIRST = "encoder-decoder"


def page() -> None:
    show.header("translate")
    run = _chosen()
    if run is not None:
        _write(run)


def _write(run: Run) -> None:
    problems = choice.receive(run)
    facts, choices = fact_line("translate")
    above = st.container()
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
    try:
        with row.container(width=280):
            step = weights.step_of(run)
        facts.caption(_facts(run, step))
        with above:
            source = given.source(run, step, choices)
        with row:
            method = how.method(source)
        for problem in problems:
            view_link.warn(problem)
        if method == BEAM:
            beside.search(source, run, row)
        elif method == BESIDE:
            beside.part(source, row)
        else:
            desk.part(source, run, row, method, choices)
    except ValueError as error:
        show.problem(error)
    with choices:
        shown_run.recorded_note(run, key="translate")
    choice.say()


def _facts(run: Run, step: int) -> str:
    training = _("is training") if run.status.is_active else ""
    return shown_run.facts_of(run, training, weights.words(run, step))


def _chosen() -> Run | None:
    """Return the run that writes; None, after offering a way on, if there is none."""
    run_id = state.current_run_id()
    current = None if run_id is None else runs_access.store().get(run_id)
    if current is None:
        able = shown_run.runs_with_weights(writes)
        if not able:
            shown_run.preset_buttons(_("No trained model here writes."), PRESETS, key="translate")
            return None
        first = next((run for run in able if run.experiment.model.family == _FIRST), able[0])
        state.show_unasked(first.id)
        return first
    if current.problem is not None or not writes(current.experiment):
        _cannot(current)
        return None
    if not current.has_checkpoint:
        shown_run.no_weights(current, key="translate")
        return None
    return current


def _cannot(current: Run) -> None:
    with st.container(border=True, gap="medium"):
        name, learns = escape(current.meta.name), escape(run_words.learns(current))
        st.markdown(_("“{name}” ({learns}) writes no text. These do:", name=name, learns=learns))
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
        shown_run.preset_buttons(_("No trained model here writes."), PRESETS, key="translate")


def _different(runs: list[Run]) -> list[Run]:
    """Return the first run of each family and task, a translator first."""
    by_kind: dict[tuple[str, str], Run] = {}
    for run in runs:
        by_kind.setdefault((run.experiment.model.family, run.experiment.task.kind), run)
    ordered = sorted(by_kind.values(), key=lambda run: run.experiment.model.family != _FIRST)
    return ordered[:4]


page()
