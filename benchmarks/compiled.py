"""A training step with torch.compile beside the same step without, in turns in one process.

Both go on training, each on its own copy of the model, from the same weights and batches. What
compiling took is beside it, with and without what an earlier compilation left in PyTorch's cache.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator

import torch

from benchmarks.report import Skipped, Table
from benchmarks.timing import measure, milliseconds, ratio
from tfm_core.config import Experiment
from tfm_core.presets import PRESETS
from tfm_core.training.compiling import compile_model, why_no_compiler
from tfm_core.training.loop import Trainer, build, update

PRESET_NAMES = ("translate", "vit-digits")
TITLE = "A training step with torch.compile"


def stepping(trainer: Trainer) -> Callable[[], None]:
    """Return what makes a trainer learn from its next batch."""

    def step() -> None:
        update(trainer)
        trainer.step += 1

    return step


def compiled(experiment: Experiment) -> tuple[Trainer, float]:
    """Return a trainer whose model is compiled, and how many seconds that took."""
    torch.compiler.reset()
    trainer = build(experiment)
    found = compile_model(trainer)
    assert found.seconds is not None, found.reason
    return trainer, found.seconds


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Compile presets, and train them in turns with the same ones uncompiled."""
    why = why_no_compiler("cpu")
    if why is not None:
        yield Skipped(TITLE, why)
        return
    rows = []
    for name in PRESET_NAMES[: 1 if quick else None]:
        experiment = PRESETS[name].experiment
        with tempfile.TemporaryDirectory() as folder:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder
            _trainer, first = compiled(experiment)
            trainer, again = compiled(experiment)
        sides = {"compiled": stepping(trainer), "eager": stepping(build(experiment))}
        taken = measure(sides, rounds=3 if quick else 12, repeats=5 if quick else 20)
        rows.append(
            [
                name,
                milliseconds(taken["eager"]).show(" ms", 2),
                milliseconds(taken["compiled"]).show(" ms", 2),
                ratio(taken["eager"], taken["compiled"]).show("x", 2),
                f"{first:.0f} s",
                f"{again:.0f} s",
            ]
        )
    columns = ["", "eager", "compiled", "times as fast", "compiling took", "and again"]
    yield Table(TITLE, columns, rows, ["On one thread of the CPU."])
