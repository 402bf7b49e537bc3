"""Runs as a worker would leave them, without one: a folder, its status and its events."""

import dataclasses
import json
import math
import time

from tfm_core.choices.config import Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.runs.process.identity import process_id
from tfm_core.runs.run import Run
from tfm_core.runs.status import State, write_status
from tfm_core.runs.store import RunStore


def made_run(
    store: RunStore,
    *,
    state: State = "finished",
    step: int = 97,
    name: str = "Backwards",
    experiment: Experiment | None = None,
    reason: str | None = None,
    owner: str | None = None,
) -> Run:
    """A run that did ``step`` steps: accuracy rises from 0.1, and is measured three times.

    A state that needs a worker gets the process of the test for it.
    """
    chosen = experiment or PRESETS["reverse"].experiment
    run = store.create(chosen, name=name, state=state, owner=owner)
    total = step if state == "finished" else chosen.training.steps
    status = dataclasses.replace(
        run.status, state=state, step=step, total_steps=total, seconds=61.0, reason=reason
    )
    if status.is_alive:
        mark = process_id()
        status = dataclasses.replace(
            status, pid=mark.pid, host=mark.host, created=mark.created, heartbeat=time.time()
        )
    write_status(run.folder, status)
    lines = [{"event": "started", "step": 0, "total_steps": total, "n_parameters": 72_394}]
    for k in range(1, step + 1):
        right = 1 - 0.9 * math.exp(-4 * k / step)
        lines.append({"event": "step", "step": k, "loss": 3 * (1 - right), "accuracy": right})
    for k in (step // 3, 2 * step // 3, step):
        right = 1 - 0.9 * math.exp(-4 * k / step)
        lines.append({"event": "measured", "step": k, "split": "validation", "accuracy": right})
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (run.folder / "events.jsonl").write_text(text, encoding="utf-8")
    return run


def with_worker(run: Run, state: State) -> Run:
    """Let the process of the test be the worker of a run, in a state that needs one."""
    mark = process_id()
    status = dataclasses.replace(
        run.status, state=state, pid=mark.pid, host=mark.host, created=mark.created
    )
    write_status(run.folder, dataclasses.replace(status, heartbeat=time.time()))
    return run


def damaged_run(store: RunStore) -> Run:
    """A run whose experiment is no JSON."""
    run = made_run(store, name="Broken")
    (run.folder / "experiment.json").write_text("{", encoding="utf-8")
    return Run(run.folder)


def with_checkpoint(run: Run) -> Run:
    """The same run with the file that says that it can be trained further."""
    folder = run.folder / "checkpoints" / "last"
    folder.mkdir(parents=True)
    (folder / "checkpoint.safetensors").touch()
    return run
