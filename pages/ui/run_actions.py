"""What a person does with runs: start, open, go on, train further, rename, delete, bring back.

Each either leads on or says in a sentence why it cannot.
"""

from __future__ import annotations

import contextlib

import streamlit as st

from pages.i18n import _
from pages.ui import page_table, runs_access, show, state, way_back
from tfm_core.config import Experiment
from tfm_core.presets import PRESETS
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunNotFound


def start_preset(name: str) -> None:
    """Train a preset in a new run and go where it can be watched."""
    preset = PRESETS[name]
    run = begin(preset.experiment, name=preset.label, preset=name)
    if run is not None:
        watch(run)


def begin(
    experiment: Experiment, *, name: str | None = None, preset: str | None = None, threads: int = 1
) -> Run | None:
    """Create a run on the chosen device and queue it; None, said in a sentence, if refused."""
    store = runs_access.store()
    try:
        _check_session()
        run = store.create(
            experiment, device=state.device(), threads=threads, name=name, preset=preset
        )
        try:
            runs_access.queue().submit(run)
        except ValueError:
            store.discard(run)
            raise
    except (ValueError, OSError) as error:
        show.problem(error)
        return None
    state.started_runs().append(run.id)
    return run


def _check_session() -> None:
    """Raise LimitReached where this session has as many runs in hand as one may have."""
    store = runs_access.store()
    active = 0
    for run_id in state.started_runs():
        with contextlib.suppress(RunNotFound):
            active += store.get(run_id).status.is_active
    runs_access.queue().limits.check_session(active)


def watch(run: Run) -> None:
    """Look at a run on the Train page, which leads back to this one."""
    back = way_back.from_here()
    state.set_current_run(run.id)
    st.switch_page(page_table.path_of("train"), query_params={"run": run.id, **back})


def resume(run: Run) -> None:
    """Go on with a run that ended early."""
    try:
        runs_access.queue().resume(run)
    except (ValueError, OSError) as error:
        show.problem(error)
        return
    watch(run)


def train_further(run: Run, steps: int, *, stays_low: bool = False) -> Run | None:
    """Train a copy of a run up to ``steps`` steps; None, said in a sentence, if refused.

    stays_low: the learning rate does not rise again.
    """
    try:
        _check_session()
        copy = runs_access.store().fork(run.id, steps=steps, stays_low=stays_low)
        try:
            runs_access.queue().resume(copy)
        except ValueError:
            runs_access.store().discard(copy)
            raise
    except (ValueError, OSError) as error:
        show.problem(error)
        return None
    state.started_runs().append(copy.id)
    return copy


def rename(run_id: str, name: str) -> None:
    """Give a run another name."""
    try:
        runs_access.store().rename(run_id, name)
    except (ValueError, OSError) as error:
        state.notify(_(error))


def delete(run: Run) -> None:
    """Put a run into the trash; the Runs page then offers to bring it back."""
    try:
        runs_access.store().delete(run.id)
    except (ValueError, OSError) as error:
        state.notify(_(error))
        return
    state.set_deleted_run((run.id, run.meta.name))


def undelete(run_id: str) -> None:
    """Bring a deleted run back."""
    state.set_deleted_run(None)
    try:
        runs_access.store().undelete(run_id)
    except (ValueError, OSError) as error:
        state.notify(_(error))
