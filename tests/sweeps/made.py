"""Plans of tiny runs, and runs ended as a worker would end them, without one."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from tests.runs.waiting import tiny
from tfm_core.runs.queue import waiting_line
from tfm_core.runs.run import Run
from tfm_core.runs.status import State, write_status
from tfm_core.runs.store import RunStore
from tfm_core.sweeps.driver import Driver
from tfm_core.sweeps.plan import Plan
from tfm_core.sweeps.space import Choices, Range
from tfm_core.sweeps.store import Sweep, Trial, read_trials

RATES = Range("training.learning_rate", 0.0005, 0.05, is_log=True)
HEADS = Choices("model.n_heads", (1, 2, 3, 4))
"""Three heads do not divide the width of 8."""


def a_plan(**changes: Any) -> Plan:
    """A random search of two settings, five runs, one at once."""
    plan = Plan(
        "Rates and heads",
        tiny(),
        (RATES, HEADS),
        "2026-01-02T03:04:05+00:00",
        search="random",
        max_runs=5,
    )
    return dataclasses.replace(plan, **changes)


def trials_of(sweep: Sweep) -> list[Trial]:
    """The trials as a page reads them."""
    return read_trials(sweep)


def ended(
    store: RunStore, run: Run, *, loss: float = 0.5, state: State = "finished", reason: str = ""
) -> None:
    """End a run that waits: it measured this loss after each step."""
    waiting_line.leave(store.root, run.id)
    steps = run.experiment.training.steps
    lines: list[dict[str, Any]] = [{"event": "started", "step": 0}]
    for step in range(1, steps + 1):
        lines.append({"event": "step", "step": step, "loss": loss})
        measured = {"event": "measured", "split": "validation", "step": step, "loss": loss}
        lines.append({**measured, "accuracy": 0.5, "sequence_accuracy": 0.25})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (run.folder / "events.jsonl").write_text(text, encoding="utf-8")
    status = dataclasses.replace(
        run.status, state=state, step=steps, seconds=30.0, reason=reason or None
    )
    write_status(run.folder, status)


def waiting(store: RunStore) -> list[Run]:
    """The runs that wait, the first in the line first."""
    return [store.get(name) for name in waiting_line.ids(store.root)]


def driven(driver: Driver, store: RunStore, sweep: Sweep, figure: Any, most: int = 60) -> None:
    """Drive a sweep to its end; ``figure`` makes the loss of a run out of its experiment."""
    for _look in range(most):
        driver.step()
        if sweep.plan().state == "finished":
            return
        for run in waiting(store):
            ended(store, run, loss=figure(run.experiment))
    raise AssertionError(f"the sweep never ended: {trials_of(sweep)}, {driver.error_of(sweep.id)}")
