"""Which model the pages on the model show: the draft, the current run's, or one to scale."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from pages.ui import controls, drafts, runs_access, state
from pages.ui.words import _
from tfm_core.architectures import ARCHITECTURES, Architecture, of_experiment
from tfm_core.config import Experiment, ModelConfig
from tfm_core.config.shape import Shape
from tfm_core.presets import PRESETS
from tfm_core.runs.run import Run

DRAFT, RUN = "draft", "run"
_KEY = "model-choice"
_OTHER = "model-compare"
_LAST = "model-last-valid"


@dataclass(frozen=True, slots=True)
class Chosen:
    """A model to show; ``experiment`` for the draft and a run, ``run`` for a run only."""

    name: str
    label: str
    model: ModelConfig
    shape: Shape
    architecture: Architecture
    experiment: Experiment | None = None
    run: Run | None = None


def chosen(key: str = _KEY, *, label: str | None = None, first: str = DRAFT) -> Chosen:
    """Draw the choice and return the model; problems of the draft stand below it.

    While the draft does not fit together, the last one that did is shown. Another ``key`` is
    another choice (to compare with); the usual one is the same on every page.
    """
    run = _current_run()
    names = [DRAFT, *([RUN] if run is not None else []), *ARCHITECTURES]
    if st.session_state.get(key) not in names:
        st.session_state[key] = RUN if run is not None and first == DRAFT else first
        if st.session_state[key] not in names:
            st.session_state[key] = DRAFT
    picked = st.selectbox(
        label or _("Which model"),
        names,
        format_func=lambda name: _label(name, run),
        key=key,
        persist_state="session",
        help=_(
            "The configuration that you edit, the current run's, or a published model at its "
            "real size: those are laid out without taking memory."
        ),
    )
    return _resolve(picked, run)


def _resolve(name: str, run: Run | None) -> Chosen:
    if name in ARCHITECTURES:
        known = ARCHITECTURES[name]
        return Chosen(name, known.label, known.model, known.shape, known)
    is_run = name == RUN and run is not None
    experiment = run.experiment if is_run and run is not None else _draft()
    label = _label(name, run)
    found = of_experiment(experiment, label)
    return Chosen(name, label, found.model, found.shape, found, experiment, run if is_run else None)


def _draft() -> Experiment:
    checked = drafts.check(state.draft())
    if checked.experiment is not None:
        st.session_state[_LAST] = checked.experiment
        return checked.experiment
    for problem in checked.problems:
        controls.complaint(problem.sentence)
    st.caption(_("Until that is mended, the last configuration that fitted is shown."))
    fallback = PRESETS[state.FIRST_PRESET].experiment
    return st.session_state.get(_LAST, fallback)


def _label(name: str, run: Run | None) -> str:
    if name == DRAFT:
        return _("The configuration being edited")
    if name == RUN:
        return _("The run “{name}”").format(name=run.meta.name if run else "")
    return ARCHITECTURES[name].label


def _current_run() -> Run | None:
    run_id = state.current_run_id()
    if run_id is None:
        return None
    run = runs_access.store().get(run_id)
    return None if run.problem else run


def other() -> Chosen | None:
    """Draw the choice of a model to compare with; None while nothing is compared."""
    run = _current_run()
    names = [DRAFT, *([RUN] if run is not None else []), *ARCHITECTURES]
    if st.session_state.get(_OTHER) not in names:
        st.session_state[_OTHER] = None
    picked = st.selectbox(
        _("Compare with"),
        names,
        format_func=lambda name: _label(name, run),
        key=_OTHER,
        placeholder=_("Nothing"),
        persist_state="session",
        help=_("Shows both side by side, and says in words what differs."),
    )
    return None if picked is None else _resolve(picked, run)
