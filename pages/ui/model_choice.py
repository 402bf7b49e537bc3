"""Which model the pages on the model show: the draft, the current run's, or one to scale.

The address bar says which: ``show=gpt2-xl``, ``show=run&run=...``, or the settings of the draft.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import streamlit as st

from pages.i18n import _
from pages.ui import controls, drafts, runs_access, state, url_config, view_link
from pages.ui.view_link import Choice
from tfm_core.config import Experiment, ModelConfig
from tfm_core.config.shape import Shape
from tfm_core.facts.architectures import ARCHITECTURES, Architecture, of_experiment
from tfm_core.presets import PRESETS
from tfm_core.runs.run import Run

DRAFT, RUN = "draft", "run"
_NAMES = (DRAFT, RUN, *ARCHITECTURES)
SHOW = Choice("show", names=_NAMES, first=DRAFT, key="model-choice")
VERSUS = Choice("versus", names=_NAMES, first="", key="model-compare")
_LAST = "model-last-valid"
_MIRRORED = "model-mirrored"
_RUN_SEEN = "model-run-seen"


@dataclass(frozen=True, slots=True)
class ModelView:
    """Which model a page shows; of the draft the address says the settings (``url_config``)."""

    show: str = view_link.linked(SHOW)


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
        st.session_state[SHOW.key] = RUN
    missing = _missing() if run is None else None
    first = DRAFT if run is None else RUN
    unknown = view_link.receive(replace(SHOW, names=tuple(names), first=first))
    picked = st.selectbox(
        _("Which model"),
        names,
        format_func=lambda name: _label(name, run),
        key=SHOW.key,
        persist_state="session",
        help=_(
            "The configuration that you edit, the current run's, or a published model at its "
            "real size: those are laid out without taking memory."
        ),
    )
    for problem in (missing or unknown, *problems):
        view_link.warn(problem)
    _say(picked, run)
    return _resolve(picked, run)


def _names(run: Run | None) -> list[str]:
    return [DRAFT, *([RUN] if run is not None else []), *ARCHITECTURES]


def _opens_run(run: Run | None) -> bool:
    """Whether a link was just opened that names a run and says no more."""
    seen = st.session_state.get(_RUN_SEEN)
    st.session_state[_RUN_SEEN] = run_id = None if run is None else run.id
    return (
        run_id is not None
        and run_id != seen
        and state.names_run()
        and not (SHOW.query in view_link.query() or url_config.settings_in(view_link.query()))
    )


def _read_draft() -> list[str]:
    """Take the configuration of a link that was just opened, and say what in it cannot be."""
    query = url_config.settings_in(view_link.query())
    if not query or query == st.session_state.get(_MIRRORED):
        return []
    values, sentences = url_config.read(query)
    state.set_draft(values)
    if SHOW.query not in view_link.query():
        st.session_state[SHOW.key] = DRAFT
    return sentences


def _say(picked: str, run: Run | None) -> None:
    """Keep the address bar in step, so that it opens this model for anybody."""
    view_link.say(SHOW, picked)
    if picked == DRAFT:
        url_config.mirror(state.draft())
    else:
        url_config.clear()
    st.session_state[_MIRRORED] = url_config.settings_in(view_link.query())
    if picked == RUN and run is not None:
        state.name_run(run.id)
    elif not state.shows_run():
        state.name_run(None)


def _resolve(name: str, run: Run | None) -> Chosen:
    if name in ARCHITECTURES:
        known = ARCHITECTURES[name]
        return Chosen(name, _(known.label), known.model, known.shape, known)
    is_run = name == RUN and run is not None
    experiment = run.experiment if is_run and run is not None else _draft()
    label = _label(name, run)
    one = of_experiment(experiment, label)
    return Chosen(name, label, one.model, one.shape, one, experiment, run if is_run else None)


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
    return _(ARCHITECTURES[name].label)


def _missing() -> str | None:
    """Return why a link that asks for a run's model cannot be followed; None if it does not."""
    if view_link.query().get(SHOW.query) != RUN:
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
    unknown = view_link.receive(replace(VERSUS, names=tuple(names)))
    picked = st.selectbox(
        _("Compare with"),
        names,
        format_func=lambda name: _label(name, run),
        key=VERSUS.key,
        placeholder=_("Nothing"),
        persist_state="session",
        help=_("Shows both side by side, and says in words what differs."),
    )
    view_link.warn(unknown)
    view_link.say(VERSUS, picked or "")
    return None if picked is None else _resolve(picked, run)
