"""Which model describes: the current run, else the newest that can, else a button."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui.accounts import visitors
from pages.ui.fact_line import fact_line
from pages.ui.navigation import page_table
from pages.ui.runs import run_actions, run_words, shown_run
from pages.ui.typed import escape
from tfm_core.config import CaptionTaskConfig
from tfm_core.runs.run import Run
from tfm_core.variants.languages import LANGUAGES

_TRAINED = {"english": "captions", "korean": "captions-korean"}  # the preset of each language


def pick() -> Run | None:
    runs = shown_run.runs_with_weights(lambda experiment: experiment.task.describes_pictures)
    if not runs:
        _none()
        return None
    facts, choices = fact_line("captions")
    with choices:
        picked = shown_run.choose_run(
            _("Model"),
            runs,
            key="captions-run",
            describe=lambda run: f"{run_words.name(run)} · {_learned(run)}",
            about=_("Runs with saved weights."),
        )
        _other_language(runs)
        shown_run.recorded_note(picked, key="captions")
    step = _("step {step}", step=f"{picked.status.step:,}")
    facts.caption(shown_run.facts_of(picked, _learned(picked), step))
    return picked


def _learned(run: Run) -> str:
    task = run.experiment.task_as(CaptionTaskConfig)
    language = _(LANGUAGES[task.language].label)
    return _("{language}, {n} digits", language=language, n=task.n_digits)


def _other_language(runs: list[Run]) -> None:
    spoken = {run.experiment.task_as(CaptionTaskConfig).language for run in runs}
    for language, preset in _TRAINED.items():
        if language not in spoken:
            st.button(
                _("Train one in {language}", language=_(LANGUAGES[language].label)),
                key=f"captions-train-{language}",
                icon=":material/play_arrow:",
                on_click=run_actions.start_preset,
                args=(preset,),
            )


def _none() -> None:
    for run in visitors.at_hand():
        if run.problem is None and run.experiment.task.describes_pictures and run.status.is_active:
            words = _("“{name}” has not saved weights yet.", name=escape(run.meta.name))
            st.info(words, icon=":material/hourglass_empty:")
            st.page_link(
                page_table.path_of("train"),
                label=_("Watch"),
                query_params={"run": run.id, **run_actions.way_back()},
            )
            return
    shown_run.preset_buttons(
        _("No model here describes pictures yet."),
        list(_TRAINED.values()),
        key="captions-start",
    )
