"""A step through the whole engine against a bare PyTorch loop over the same model and data.

Both take turns of 25 steps in one process: the engine writes a run's folder with events, metrics,
snapshots and checkpoints; the bare loop takes the same batches and updates. Their weights must be
equal at the end, so both did the same work.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch

from benchmarks.bare_loop import BareLoop
from benchmarks.goals import goal_cell
from benchmarks.report import Figure, Table
from benchmarks.timing import Clock, TimeRange
from tfm_core.choices.config import Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.runs.process.execute import execute
from tfm_core.runs.store import RunStore
from tfm_core.training import checkpoints
from tfm_core.training.events import Event, Finished, Measured, Started, Step
from tfm_core.training.loop import build

TURN = 25
PRESET_NAMES = ("vit-digits", "translate")


@dataclass
class Turns:
    """Seconds of each turn of the engine, of the bare loop, and of the latter's measurements."""

    engine: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    measured: list[float] = field(default_factory=list)

    def overhead(self, *, with_measurement: bool) -> float:
        """Return by how many per cent the engine takes longer in total."""
        below = sum(self.bare) + (sum(self.measured) if with_measurement else 0.0)
        return 100 * (sum(self.engine) / below - 1)

    def spread(self) -> TimeRange:
        """Return the per cent of each turn, measurements on both sides."""
        turns = zip(self.engine, self.bare, self.measured, strict=True)
        return TimeRange.of([100 * (engine / (bare + more) - 1) for engine, bare, more in turns])


class Pairing:
    """Listens to the engine and, after every turn of it, has the bare loop do the same steps."""

    def __init__(self, bare: BareLoop, clocks: dict[str, Clock]) -> None:
        """Time with every clock of ``clocks``."""
        self.bare, self.clocks = bare, clocks
        self.turns = {name: Turns() for name in clocks}
        self._begun: dict[str, float] = {}
        self._n_validations = 0

    def __call__(self, event: Event) -> None:
        """Note an event, and switch at the end of a turn."""
        if isinstance(event, Started):
            self._begin()
        if isinstance(event, Measured) and event.split == "validation":
            self._n_validations += 1
        is_last = isinstance(event, Finished)
        if is_last or (
            isinstance(event, Step) and event.step % TURN == 0 and not self._is_end(event)
        ):
            self._note("engine", self._begun)
            self._follow(event.step, is_last)
            self._begin()

    def _is_end(self, event: Step) -> bool:
        return event.step == self.bare.trainer.experiment.trained.steps

    def _follow(self, step: int, is_last: bool) -> None:
        begun = self._now()
        self.bare.learn(until=step)
        self._note("bare", begun)
        begun = self._now()
        self.bare.measure(self._n_validations, is_last=is_last)
        self._n_validations = 0
        self._note("measured", begun)

    def _now(self) -> dict[str, float]:
        return {name: clock() for name, clock in self.clocks.items()}

    def _begin(self) -> None:
        self._begun = self._now()

    def _note(self, kind: str, begun: dict[str, float]) -> None:
        for name, now in self._now().items():
            getattr(self.turns[name], kind).append(now - begun[name])


def run_pair(experiment: Experiment, folder: Path, clocks: dict[str, Clock]) -> dict[str, Turns]:
    """Train an experiment on both sides in turns; check that the weights agree."""
    bare = BareLoop(build(experiment))
    pairing = Pairing(bare, clocks)
    run = RunStore(folder, recorded=None).create(experiment)
    status = execute(run, listener=pairing)
    assert status.state == "finished", status.reason
    model, _ = checkpoints.load_model(experiment, run.folder / "checkpoints" / "last")
    for mine, theirs in zip(model.parameters(), bare.trainer.model.parameters(), strict=True):
        assert torch.equal(mine, theirs), "the bare loop did other work"
    return pairing.turns


def shortened(experiment: Experiment, steps: int) -> Experiment:
    """Return an experiment of fewer steps, with as many fewer snapshots and measurements."""
    training = experiment.training
    share = steps / training.steps
    fewer = {"steps": steps, "snapshots": max(2, round(share * training.snapshots))}
    return experiment.replace(training=training.model_dump() | fewer)


def tables(*, quick: bool) -> Iterator[Table]:
    """Train both presets, in turns with the bare loop."""
    clocks: dict[str, Callable[[], float]] = {
        "CPU": time.process_time,
        "wall clock": time.perf_counter,
    }
    rows, reached = [], {}
    for name in PRESET_NAMES:
        experiment = PRESETS[name].experiment
        if quick:
            experiment = shortened(experiment, 200)
        with tempfile.TemporaryDirectory() as folder:
            pairs = run_pair(experiment, Path(folder), clocks)
        for clock, turns in pairs.items():
            total = turns.overhead(with_measurement=True)
            goal = f"engine: {name}"
            if clock == "CPU":
                reached[goal] = Figure(total)
            rows.append(
                [
                    f"{name}, {clock}",
                    f"{1000 * sum(turns.bare) / experiment.trained.steps:.2f}",
                    f"{total:+.1f} %",
                    turns.spread().show(" %", 1),
                    f"{turns.overhead(with_measurement=False):+.1f} %",
                    goal_cell(goal, total) if clock == "CPU" else "",
                ]
            )
    columns = [
        "",
        "bare ms a step",
        "engine takes longer by",
        "median turn",
        "beside a loop that never measures",
        "target",
    ]
    yield Table(
        f"Whole runs through the engine, in turns of {TURN} steps with a bare loop",
        columns,
        rows,
        [
            "The bare loop measures the same unseen examples at the same steps; it writes nothing.",
            "Losses and weights are equal bit for bit.",
        ],
        reached,
    )
