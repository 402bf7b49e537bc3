"""How long a training will take on this machine now.

``facts.compute.seconds`` gives the relative time of configurations. The speed of this machine comes
from runs that finished here: the newest of the same family, task and precision, else of the family,
else any. Without such runs, a short measurement of the processor is used. On a CPU the CPU-seconds
of runs count, which other work hardly changes; the current load is measured when the forecast is
made (``machine.slowdown``).
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tfm_core.choices.config import Experiment
from tfm_core.facts import compute
from tfm_core.reading import Unreadable, open_plain
from tfm_core.runs.curves import record_of
from tfm_core.runs.process.identity import this_host
from tfm_core.runs.run import Run

BUSY = 1.3
"""From this slowdown on a machine is called busy."""
_MIN_SECONDS = 1.0  # of a training that says something about the machine
_NEWEST = 5  # runs that count
_ENOUGH = 3  # runs that need no measurement of the processor beside them
_TAIL_BYTES = 65_536  # of the events, in which a step is found


@dataclass(frozen=True, slots=True)
class Forecast:
    """Seconds that a training will take. learned: from runs that finished here.

    slowdown: how many times as long as on the same machine without other work.
    """

    seconds: float
    slowdown: float = 1.0
    learned: bool = False

    @property
    def is_busy(self) -> bool:
        """Whether other work makes it take noticeably longer."""
        return self.slowdown >= BUSY

    def at(self, slowdown: float) -> Forecast:
        """Return the forecast for another load of the machine."""
        return Forecast(self.seconds * slowdown / self.slowdown, slowdown, self.learned)

    def times(self, n: float) -> Forecast:
        """Return the forecast of so many trainings like this one, one after the other."""
        return Forecast(n * self.seconds, self.slowdown, self.learned)


@dataclass(frozen=True, slots=True)
class Finished:
    """A training that is over. ratio: its seconds beside those of ``facts.compute.seconds``."""

    experiment: Experiment
    device: str
    threads: int
    created: str
    ratio: float


def finished(run: Run) -> Finished | None:
    """Return the measured speed of a run; None if it did not finish, or not on this machine.

    Runs of other programs do not count: the shape of their model is unknown.
    """
    status, meta = run.status, run.meta
    if status.state != "finished" or run.problem is not None:
        return None
    is_own = not meta.recorded and meta.parent is None and status.host == this_host()
    is_own = is_own and run.experiment.training is not None
    is_own = is_own and meta.begun_on is None  # else its seconds are of two devices
    if not is_own or status.seconds < _MIN_SECONDS or not status.step:
        return None
    seconds = status.seconds
    if status.device == "cpu":
        cpu_seconds = _cpu_seconds(run)
        seconds = cpu_seconds / meta.threads if cpu_seconds else seconds
    ratio = seconds / compute.seconds(run.experiment, status.step)
    return Finished(run.experiment, status.device, meta.threads, meta.created, ratio)


def expected(
    experiment: Experiment,
    runs: Sequence[Finished],
    *,
    slowness: float,
    slowdown: float = 1.0,
    device: str = "cpu",
    threads: int = 1,
    measured: float | None = None,
) -> Forecast | None:
    """Return how long a training will take, or None if nothing is known of this device yet.

    slowness: see ``machine``; it stands for the CPU where no run has finished. slowdown: how many
    times as long as on an idle machine a CPU takes now. measured: seconds that were worked out on
    the device, which stand for any other.
    """
    usual = compute.seconds(experiment)
    ratios = _ratios(experiment, [r for r in runs if r.device == device], threads)
    prior = slowness if device == "cpu" else measured and measured / usual
    if not ratios and not prior:
        return None
    learned = bool(ratios)
    if prior and len(ratios) < _ENOUGH:  # a single run may have met a busy hour
        ratios = [*ratios, math.sqrt(prior * statistics.median(ratios or [prior]))]
    slowdown = slowdown if device == "cpu" else 1.0
    return Forecast(statistics.median(ratios) * usual * slowdown, slowdown, learned)


def in_sequence(forecasts: Sequence[Forecast]) -> Forecast:
    """Return how long trainings take one after the other; ``forecasts`` must not be empty."""
    return Forecast(
        sum(forecast.seconds for forecast in forecasts),
        max(forecast.slowdown for forecast in forecasts),
        all(forecast.learned for forecast in forecasts),
    )


def _cpu_seconds(run: Run) -> float | None:
    """Return the CPU-seconds of a run by its last step that says them; None where none does."""
    try:
        with os.fdopen(open_plain(run.folder / "events.jsonl"), "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = file.read().splitlines()
    except (OSError, Unreadable):
        return None
    for line in reversed(lines):
        record = record_of(line) if b'"cpu_seconds"' in line else None  # the first may be cut
        if record and record.get("cpu_seconds"):
            return float(record["cpu_seconds"])
    return None


def _ratios(experiment: Experiment, runs: Sequence[Finished], threads: int) -> list[float]:
    """Return the ratios of the newest runs that are most like it.

    Sizes count for nothing, so that two configurations that differ in those ask the same runs.
    """
    runs = [run for run in runs if run.threads == threads] or runs
    newest = sorted(runs, key=lambda run: run.created, reverse=True)
    kinds = (_kind(experiment), _kind(experiment)[:2], ())
    for kind in kinds:
        found = [run.ratio for run in newest if _kind(run.experiment)[: len(kind)] == kind]
        if found:
            return found[:_NEWEST]
    return []


def _kind(experiment: Experiment) -> tuple[object, ...]:
    arithmetic = experiment.trained.precision, experiment.trained.compile
    return experiment.model.family, arithmetic, experiment.task.name
