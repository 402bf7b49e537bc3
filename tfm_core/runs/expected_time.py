"""How long a training will take on this machine: what finished here says, or else its speed.

``facts.training_time`` says how much longer one configuration takes than another. How fast this
machine is beside that, runs that finished here teach: the newest of the same family, task and
precision, else of the family, else any. Before there are some, a short measurement of the processor
stands in. The answer is a range, since whatever else the machine does takes its share.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from tfm_core.config import Experiment
from tfm_core.facts import training_time
from tfm_core.runs.process import this_host
from tfm_core.runs.run import Run

_FEWEST_SECONDS = 1.0  # of a training that says something about the machine
_NEWEST = 5  # runs that are asked
_ENOUGH = 3  # runs that need no measurement of the processor beside them
_UNMEASURED = (0.8, 1.9)  # how far off the range goes, down and up, where no run has finished
_LEARNED = ((0.85, 1.2), (0.75, 1.35), (0.65, 1.6))  # the same, by how like the runs are


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Seconds that a training will take, from low to high; learned: from runs that finished."""

    low: float
    high: float
    learned: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """A training that is over. ratio: its seconds beside those of ``facts.training_time``."""

    experiment: Experiment
    device: str
    threads: int
    created: str
    ratio: float


def finished(run: Run) -> Finished | None:
    """Return what a run teaches; None for one that did not finish, or not on this machine."""
    status, meta = run.status, run.meta
    if status.state != "finished" or run.problem is not None:
        return None
    is_own = not meta.recorded and meta.parent is None and status.host == this_host()
    is_own = is_own and meta.begun_on is None  # else its seconds are of two devices
    if not is_own or status.seconds < _FEWEST_SECONDS or not status.step:
        return None
    ratio = status.seconds / training_time.seconds(run.experiment, status.step)
    return Finished(run.experiment, status.device, meta.threads, meta.created, ratio)


def expected(
    experiment: Experiment,
    runs: Sequence[Finished],
    *,
    slowness: float,
    device: str = "cpu",
    threads: int = 1,
    measured: float | None = None,
) -> TimeRange | None:
    """Return how long a training will take, or None: nothing is known of this device yet.

    slowness: see ``machine``; it stands for the CPU where no run has finished. measured: seconds
    that were worked out on the device, which stand for any other.
    """
    usual = training_time.seconds(experiment)
    level, ratios = _ratios(experiment, [r for r in runs if r.device == device], threads)
    prior = slowness if device == "cpu" else measured and measured / usual
    if not ratios:
        if not prior:
            return None
        down, up = _UNMEASURED
        return TimeRange(down * prior * usual, up * prior * usual)
    if prior and len(ratios) < _ENOUGH:  # a single run may have met a busy hour
        ratios = [*ratios, math.sqrt(prior * statistics.median(ratios))]
    if len(ratios) > _ENOUGH:
        ratios = sorted(ratios)[1:-1]
    down, up = _LEARNED[level]
    return TimeRange(down * min(ratios) * usual, up * max(ratios) * usual, learned=True)


def _ratios(
    experiment: Experiment, runs: Sequence[Finished], threads: int
) -> tuple[int, list[float]]:
    """Return the ratios of the newest runs that are most like it, and how like they are (0..2).

    Sizes count for nothing, so that two configurations that differ in those ask the same runs.
    """
    runs = [run for run in runs if run.threads == threads] or runs
    newest = sorted(runs, key=lambda run: run.created, reverse=True)
    kinds = (_kind(experiment), _kind(experiment)[:2], ())
    for level, kind in enumerate(kinds):
        found = [run.ratio for run in newest if _kind(run.experiment)[: len(kind)] == kind]
        if found:
            return level, found[:_NEWEST]
    return len(kinds), []


def _kind(experiment: Experiment) -> tuple[object, ...]:
    arithmetic = experiment.training.precision, experiment.training.compile
    return experiment.model.family, arithmetic, experiment.task.name
