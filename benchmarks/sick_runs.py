"""Train what the doctor is tested on: ``python -m benchmarks.sick_runs FOLDER`` (some 15 minutes).

Short trainings that are well, and others made ill on purpose, with two seeds each. What their
curves say is written as one line a run into ``healthy.jsonl.gz`` and ``sick.jsonl.gz``: the loss
and the gradient's norm of each step, the loss on unseen examples, and the gradients by layer. The
tests read them from ``tests/inspect/symptoms/curves``.
"""

from __future__ import annotations

import gzip
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tfm_core.config import Experiment, to_query
from tfm_core.data.load import Data, load
from tfm_core.presets import PRESETS
from tfm_core.runs.process.execute import execute
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore
from tfm_core.training import trainer as trainers

_DIGITS = 4  # significant ones
_SEEDS = (1, 2)


@dataclass(frozen=True, slots=True)
class Case:
    """A training: its name, what it is, and whether its answers are dealt out at random."""

    name: str
    experiment: Experiment
    is_shuffled: bool = False


def healthy() -> Iterator[Case]:
    """Yield trainings that learn, most of them cut short."""
    yield Case(
        "translate", _of("translate", 1, {"n_validation": 500}, snapshots=6, validate_every=100)
    )
    yield Case("sort-at-once", _of("sort-at-once", 1, {}))
    yield Case("addition", _of("addition", 1, {}))
    names = "reverse dates copy sort numbers translate-luong vit-digits gpt-text"
    for name in names.split():
        yield Case(name, _of(name, 1, {}, steps=300))
    for seed in _SEEDS:
        yield Case(f"all warm-up {seed}", _of("translate", seed, {}, steps=300, warmup=1.0))


def sick() -> Iterator[Case]:
    """Yield trainings that are ill; the word before the colon is what the doctor should say."""
    for seed in _SEEDS:
        for name, preset, settings in _SICK:
            chosen = {section: settings.get(section, {}) for section in ("model", "task")}
            training = {k: v for k, v in settings.items() if k not in ("model", "task")}
            experiment = _of(preset, seed, **chosen, **training)
            yield Case(f"{name} {seed}", experiment, is_shuffled="shuffled" in name)


_SICK: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("diverged: translate lr 10", "translate", {"steps": 200, "learning_rate": 10.0}),
    ("diverged: vit lr 10", "vit-digits", {"steps": 120, "learning_rate": 10.0}),
    ("diverged: additive lr 3", "translate-additive", {"steps": 150, "learning_rate": 3.0}),
    (
        "diverged: sgd lr 10",
        "reverse",
        {"steps": 200, "learning_rate": 10.0, "optimizer": "sgd", "weight_decay": 0.05,
         "clip_norm": 0.0, "warmup": 0.0},
    ),
    ("at-chance: vit shuffled", "vit-digits", {"steps": 300}),
    ("at-chance: sentiment shuffled", "sentiment", {"steps": 300}),
    ("slow: translate lr 1e-7", "translate", {"steps": 250, "learning_rate": 1e-7}),
    ("slow: translate lr 1e-4", "translate", {"steps": 400, "learning_rate": 1e-4}),
    ("slow: grammar lr 1e-4", "gpt-grammar", {"steps": 300, "learning_rate": 1e-4}),
    ("overfits: translate", "translate", {"steps": 500, "task": {"n_train": 60}}),
    ("overfits: sentiment", "sentiment", {"steps": 400, "task": {"n_train": 60}}),
    ("overfits: sort", "sort", {"steps": 500, "task": {"n_train": 100}}),
    (
        "vanishing: sgd lr 1",
        "translate",
        {"steps": 150, "optimizer": "sgd", "learning_rate": 1.0, "clip_norm": 0.0,
         "weight_decay": 0.05},
    ),
)  # fmt: skip


def _of(
    preset: str,
    seed: int,
    task: dict[str, Any],
    model: dict[str, Any] | None = None,
    **training: Any,
) -> Experiment:
    base = PRESETS[preset].experiment
    task = {"n_validation": 100, **task}
    training = {"final_test": False, "snapshots": 4, "validate_every": 50, **training}
    return base.replace(
        seed=seed,
        model=base.model.replace(**(model or {})).model_dump(),
        task=base.task.replace(**task).model_dump(),
        training=base.training.replace(**training).model_dump(),
    )


def compact(name: str, run: Run) -> dict[str, Any]:
    """Return what a run's curves say, in few digits; ``failed`` is why it broke down."""
    curves, status = run.curves(), run.status
    keys = ("step", "start_loss", "floor", "chance", "total_steps")
    return {
        "name": name,
        "experiment": to_query(run.experiment),
        "failed": status.reason if status.state == "failed" else None,
        "started": {"event": "started", **{key: curves.started.get(key) for key in keys}},
        "step": curves.steps["step"].astype(int).tolist(),
        "loss": _short(curves.steps["loss"]),
        "grad_norm": _short(curves.steps["grad_norm"]),
        "measured": [
            [int(step), *_short([loss])]
            for step, loss in zip(curves.validation["step"], curves.validation["loss"], strict=True)
        ],
        "gradients": [
            [one.step, dict(zip(one.norms, _short(list(one.norms.values())), strict=True))]
            for one in curves.gradients
        ],
    }


def _short(values: Any) -> list[float | None]:
    return [float(f"{x:.{_DIGITS}g}") if np.isfinite(x) else None for x in values]


def write(path: Path, lines: list[dict[str, Any]]) -> None:
    """Write one line a run, the same bytes each time."""
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def _shuffled(data: Data, seed: int) -> Data:
    """Deal the answers of training and validation out at random."""
    generator = torch.Generator().manual_seed(seed)

    def dealt(split: Any) -> Any:
        name = "labels" if hasattr(split, "labels") else "tgt"
        values = getattr(split, name)
        order = torch.randperm(len(values), generator=generator)
        return replace(split, **{name: values[order]})

    changed: Any = data
    return replace(changed, train=dealt(changed.train), validation=dealt(changed.validation))


def main(folder: Path) -> None:
    """Train all of them and write both files."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind, cases in (("healthy", healthy()), ("sick", sick())):
        lines = []
        for case in cases:
            trainers.load = (  # type: ignore[attr-defined]
                lambda task, seed, progress: (
                    _shuffled(load(task, seed=seed), seed)
                    if case.is_shuffled  # noqa: B023
                    else load(task, seed=seed, progress=progress)
                )
            )
            with tempfile.TemporaryDirectory() as place:
                run = RunStore(Path(place), recorded=None).create(case.experiment)
                print(case.name, execute(run).state, flush=True)
                lines.append(compact(case.name, run))
        write(folder / f"{kind}.jsonl.gz", lines)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
