"""The step of the weights that write; at first a half-trained one, whose candidates compete."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.translate.link import TEXT, WEIGHTS
from pages.ui.address import view_link
from pages.ui.runs import runs_access
from tfm_core.inspect.errors.answers import steps_of
from tfm_core.inspect.progress.weights import half_trained_step
from tfm_core.runs.run import Run


def step_of(run: Run) -> int:
    """Choose the step. A link with a text and no step is of the last. Raises ValueError."""
    steps = steps_of(run)
    if run.experiment.task.is_opened:
        view_link.forget([WEIGHTS])
        return steps[-1]
    is_chosen = WEIGHTS.key in st.session_state or WEIGHTS.query in view_link.query()
    if not is_chosen and view_link.opened(TEXT) is None and not run.status.is_active:
        st.session_state[WEIGHTS.key] = _half_trained(run, steps)
    return view_link.weights_step(WEIGHTS, steps)


def words(run: Run, step: int) -> str:
    """Return what there is to say of a step that is not the last, else ""."""
    steps = steps_of(run)
    if step == steps[-1]:
        return ""
    values = {"step": f"{step:,}", "last": f"{steps[-1]:,}"}
    if step == _half_trained(run, steps):
        return _("**half-trained**, step {step} of {last}", **values)
    return _("step {step} of {last}", **values)


def _half_trained(run: Run, steps: tuple[int, ...]) -> int:
    return half_trained_step(runs_access.curves(run), steps)
