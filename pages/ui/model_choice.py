"""Which model the pages on the model show: the draft, the current run's, or one to scale.

The address bar says which: ``show=gpt2-xl``, ``show=run&run=...``, or the settings of the draft.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from pages.i18n import _
from pages.ui import controls, drafts, runs_access, state, url_choice, url_config
from tfm_core.config import Experiment, ModelConfig
from tfm_core.config.shape import Shape
from tfm_core.facts.architectures import ARCHITECTURES, Architecture, of_experiment
from tfm_core.presets import PRESETS
from tfm_core.runs.run import Run

DRAFT, RUN = "draft", "run"
_KEY = "model-choice"
_OTHER = "model-compare"
_LAST = "model-last-valid"
_MIRRORED = "model-mirrored"
_RUN_SEEN = "model-run-seen"
_SHOW, _VERSUS = "show", "versus"  # in the link


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


def chosen() -> Chosen:
    """Draw the choice and return the model; problems of the draft stand below it.

    The choice is the same on every page, and the link holds it. While the draft does not fit
    together, the last one that did is shown.
    """
    problems = _read_draft()
    run = _current_run()
    names = _names(run)
    if _opens_run(run):
        st.session_state[_KEY] = RUN
    missing = _missing() if run is None else None
    unknown = url_choice.read(_KEY, _SHOW, names, RUN if run is not None else DRAFT)
    picked = st.selectbox(
        _("Which model"),
        names,
        format_func=lambda name: _label(name, run),
        key=_KEY,
        persist_state="session",
        help=_(
            "The configuration that you edit, the current run's, or a published model at its "
            "real size: those are laid out without taking memory."
        ),
    )
    for problem in (unknown if missing is None else missing, *problems):
        url_choice.warn(problem)
    _say(picked, run)
    return _resolve(picked, run)


def _names(run: Run | None) -> list[str]:
    return [DRAFT, *([RUN] if run is not None else []), *ARCHITECTURES]


def _opens_run(run: Run | None) -> bool:
    """Whether a link was just opened that names a run and says no more."""
    seen = st.session_state.get(_RUN_SEEN)
    st.session_state[_RUN_SEEN] = found = None if run is None else run.id
    return (
        found is not None
        and found != seen
        and "run" in st.query_params
        and not (_SHOW in st.query_params or url_config.settings_in(st.query_params.to_dict()))
    )


def _read_draft() -> list[str]:
    """Take the configuration of a link that was just opened, and say what in it cannot be."""
    query = url_config.settings_in(st.query_params.to_dict())
    if not query or query == st.session_state.get(_MIRRORED):
        return []
    values, sentences = url_config.read(query)
    state.set_draft(values)
    if _SHOW not in st.query_params:
        st.session_state[_KEY] = DRAFT
    return [controls.plain(sentence) for sentence in sentences]


def _say(picked: str, run: Run | None) -> None:
    """Keep the address bar in step, so that it opens this model for anybody."""
    url_choice.say(_KEY, _SHOW, None if picked == DRAFT else picked)
    if picked == DRAFT:
        url_config.mirror(state.draft())
    else:
        url_config.clear()
    st.session_state[_MIRRORED] = url_config.settings_in(st.query_params.to_dict())
    if picked == RUN and run is not None:
        st.query_params["run"] = run.id
    elif not state.shows_run():
        st.query_params.pop("run", None)


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
        controls.complaint(_(problem.sentence))
    st.caption(_("Until that is mended, the last configuration that fitted is shown."))
    last: Experiment = st.session_state.get(_LAST, PRESETS[state.FIRST_PRESET].experiment)
    return last


def _label(name: str, run: Run | None) -> str:
    if name == DRAFT:
        return _("The configuration being edited")
    if name == RUN:
        return _("The run “{name}”").format(name=run.meta.name if run else "")
    return ARCHITECTURES[name].label


def _missing() -> str | None:
    """Return why a link that asks for a run's model cannot be followed; None if it does not."""
    if st.query_params.get(_SHOW) != RUN:
        return None
    run_id = state.current_run_id()
    why = _("The link names no run that is here.")
    if run_id is not None:
        why = runs_access.store().get(run_id).problem or why
    return _("{why} The configuration being edited is shown instead.").format(why=why)


def _current_run() -> Run | None:
    run_id = state.current_run_id()
    if run_id is None:
        return None
    run = runs_access.store().get(run_id)
    return None if run.problem else run


def other() -> Chosen | None:
    """Draw the choice of a model to compare with; None while nothing is compared."""
    run = _current_run()
    names = _names(run)
    unknown = url_choice.read(_OTHER, _VERSUS, names, None)
    picked = st.selectbox(
        _("Compare with"),
        names,
        format_func=lambda name: _label(name, run),
        key=_OTHER,
        placeholder=_("Nothing"),
        persist_state="session",
        help=_("Shows both side by side, and says in words what differs."),
    )
    url_choice.warn(unknown)
    url_choice.say(_OTHER, _VERSUS, picked)
    return None if picked is None else _resolve(picked, run)
