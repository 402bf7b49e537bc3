"""The plan of a sweep: its ``sweep.json``, which the app may change any time, and its metric.

The metric is that of the last weights, or with patience of the best by validation.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from tfm_core.choices.config import ConfigError, Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.reading import Unreadable, is_line, is_number, is_whole, object_of
from tfm_core.runs.curves import Curves
from tfm_core.runs.labels import MAX_NAME
from tfm_core.runs.run import LESSON_ID
from tfm_core.sentences import N_, StudentError
from tfm_core.stored import (
    Device,
    Moment,
    Stored,
    WrongValue,
    line,
    matching,
    number,
    one_of,
    text,
    whole,
)
from tfm_core.sweeps import space
from tfm_core.sweeps.space import MAX_POINTS, Choices, Dimension, Range, Space, n_points

State = Literal["active", "stopping", "stopped", "finished"]
"""The requested state of a sweep: ``stopping`` until none of its runs trains."""

MAX_RUNS, MAX_MINUTES, MAX_AT_ONCE = 1_000, 7 * 24 * 60, 16


@dataclass(frozen=True, slots=True)
class Objective:
    """A figure of the validation: its column, its label, and which direction is better."""

    name: str
    label: str
    is_maximized: bool

    @property
    def direction(self) -> Literal["minimize", "maximize"]:
        """Return the direction as Optuna calls it."""
        return "maximize" if self.is_maximized else "minimize"

    def said(self, value: float) -> str:
        """Return a figure in words: a share as per cent, a loss with four digits."""
        return f"{100 * value:.1f}%" if self.is_maximized else f"{value:.4g}"


OBJECTIVES: dict[str, Objective] = {
    objective.name: objective
    for objective in (
        Objective("loss", N_("validation loss"), is_maximized=False),
        Objective("accuracy", N_("validation accuracy"), is_maximized=True),
        Objective("sequence_accuracy", N_("sequence accuracy"), is_maximized=True),
    )
}


def objectives_of(experiment: Experiment) -> list[Objective]:
    """Return the objectives that a task measures."""
    has_sequences = experiment.task.facts.answer in ("sequence", "blanks")
    return [
        objective
        for objective in OBJECTIVES.values()
        if has_sequences or objective.name != "sequence_accuracy"
    ]


class Search(NamedTuple):
    """A way to search in words."""

    label: str
    help: str


SEARCHES = {
    "grid": Search(N_("Grid"), N_("Tries every grid point in order.")),
    "random": Search(N_("Random"), N_("Tries random values (Bergstra & Bengio 2012).")),
    "tpe": Search(N_("TPE"), N_("Learns where good runs are likely (Bergstra et al. 2011).")),
}


FILE = "sweep.json"
_MAX_BYTES = 4 * 2**20
_VERSION = 3
_FAR = 1e15  # no number of a setting is as large


class SweepDamaged(StudentError):
    """A file of a sweep is missing, or is not what it should be."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a sweep tries, how it searches, and how far it goes.

    max_runs, max_minutes: the budget; the minutes are those that its runs trained, all together.
    owner, owner_name, lesson: as of a run. reason: why it ended, in a sentence.
    """

    name: Annotated[str, line(MAX_NAME)]
    base: Experiment
    space: Space
    created: Moment
    objective: Annotated[str, one_of(OBJECTIVES)] = "loss"
    search: Annotated[str, one_of(SEARCHES)] = "tpe"
    max_runs: Annotated[int, whole(1, MAX_RUNS)] | None = 20
    max_minutes: Annotated[float, number(0, MAX_MINUTES)] | None = None
    at_once: Annotated[int, whole(1, MAX_AT_ONCE)] = 1
    device: Device = "cpu"
    threads: Annotated[int, whole(1, 1024)] = 1
    seed: Annotated[int, whole(0, 2**31 - 1)] = 0
    owner: Annotated[str, line(64)] | None = None
    owner_name: Annotated[str, line(MAX_NAME)] | None = None
    lesson: Annotated[str, matching(LESSON_ID)] | None = None
    state: State = "active"
    reason: Annotated[str, text(10_000)] | None = None

    @property
    def looks_for(self) -> Objective:
        """The figure that counts."""
        return OBJECTIVES[self.objective]

    @property
    def most_runs(self) -> int:
        """How many runs it may have, at most."""
        return MAX_RUNS if self.max_runs is None else self.max_runs

    def check(self) -> None:
        """Raise StudentError, in a sentence, where this cannot be swept."""
        if not is_line(self.name, MAX_NAME):
            raise StudentError("Give the sweep a name of at most {most} characters.", most=MAX_NAME)
        space.check(self.base, self.space)
        if self.search not in SEARCHES:
            raise StudentError(
                "There is no sampler {name}. Choose one of {known}.",
                name=self.search,
                known=", ".join(SEARCHES),
            )
        if self.search == "grid" and (n := n_points(self.space)) > MAX_POINTS:
            raise StudentError(
                "The grid has {n:,} points; the limit is {most:,}. Take fewer values.",
                n=n,
                most=MAX_POINTS,
            )
        objectives = [objective.name for objective in objectives_of(self.base)]
        if self.objective not in objectives:
            raise StudentError(
                "{task} does not measure {name}. Choose one of {known}.",
                task=self.base.task.facts.label,
                name=self.objective,
                known=", ".join(objectives),
            )
        if self.max_runs is None and self.max_minutes is None:
            raise StudentError("Give the sweep a budget of runs or minutes.")
        if self.max_runs is not None and not is_whole(self.max_runs, 1, MAX_RUNS):
            raise StudentError(
                "The budget of {n} runs is invalid; use 1 to {most:,}.",
                n=self.max_runs,
                most=MAX_RUNS,
            )
        if self.max_minutes is not None and not (
            is_number(self.max_minutes, 0, MAX_MINUTES) and self.max_minutes > 0
        ):
            raise StudentError(
                "The budget of {n} minutes is invalid; use up to {most:,}.",
                n=self.max_minutes,
                most=MAX_MINUTES,
            )
        if not is_whole(self.at_once, 1, MAX_AT_ONCE):
            raise StudentError(
                "The number of runs at once is {n}; use 1 to {most}.",
                n=self.at_once,
                most=MAX_AT_ONCE,
            )

    def values(self) -> dict[str, Any]:
        """Return the plan as plain values, for JSON."""
        whole = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {
            "version": _VERSION,
            **whole,
            "base": json.loads(self.base.model_dump_json()),
            "space": [dataclasses.asdict(dimension) for dimension in self.space],
        }


def space_of(values: object) -> Space:
    """Return the space that plain values say. Raises SweepDamaged."""
    if not isinstance(values, list) or len(values) > space.MAX_SETTINGS:
        raise SweepDamaged("its settings aren't a list")
    return tuple(_dimension(dimension) for dimension in values)


def read(folder: Path) -> Plan:
    """Return the plan of a sweep's folder. Raises SweepDamaged, in a sentence."""
    try:
        values = object_of(folder / FILE, most=_MAX_BYTES)
    except FileNotFoundError:
        raise SweepDamaged(
            "{file} is missing in the folder {name}.", file=FILE, name=folder.name
        ) from None
    except Unreadable as error:
        raise _damaged(folder, error.sentence) from None
    try:
        return of_values(values)
    except (SweepDamaged, ConfigError) as error:
        raise _damaged(folder, error.sentence) from None


def of_values(values: Mapping[str, Any]) -> Plan:
    """Return the plan that plain values say. Raises SweepDamaged and ConfigError."""
    if values.get("version") != _VERSION:
        raise SweepDamaged("another version of the app wrote it")
    try:
        plan = _STORED.read({**values, "base": Experiment(), "space": ()})
    except WrongValue as error:
        if error.is_missing:
            raise SweepDamaged("“{name}” is missing", name=error.name) from None
        raise SweepDamaged("its value of “{name}” is invalid", name=error.name) from None
    base, space = Experiment.parse(values.get("base")), space_of(values.get("space"))
    return dataclasses.replace(plan, base=base, space=space)


_STORED = Stored(Plan, FILE)


def _dimension(values: object) -> Dimension:
    if not isinstance(values, dict) or not is_line(values.get("path"), 100):
        raise SweepDamaged("it has no setting to vary")
    path = values["path"]
    if "values" in values:
        listed = values["values"]
        if not isinstance(listed, list) or not all(_is_value(value) for value in listed):
            raise SweepDamaged("the values of “{name}” are invalid", name=path)
        return Choices(path, tuple(listed))
    low, high = values.get("low"), values.get("high")
    is_log, is_whole_ = values.get("is_log", False), values.get("is_whole", False)
    step, points = values.get("step", 1), values.get("points", 4)
    if not (
        is_number(low, -_FAR, _FAR)
        and is_number(high, -_FAR, _FAR)
        and low < high
        and isinstance(is_log, bool)
        and isinstance(is_whole_, bool)
        and not (is_log and low <= 0)
        and is_whole(step, 1, 10**9)
        and is_whole(points, 2, space.MAX_VALUES)
    ):
        raise SweepDamaged("the range of “{name}” is invalid", name=path)
    return Range(path, low, high, is_log, is_whole_, step, points)


def _is_value(value: object) -> bool:
    if isinstance(value, str):
        return is_line(value, 200)
    return isinstance(value, bool) or is_number(value, -_FAR, _FAR)


def _damaged(folder: Path, what: str) -> SweepDamaged:
    return SweepDamaged(
        "The sweep {name} is damaged: {file} isn't a plan ({what}).",
        name=folder.name,
        file=FILE,
        what=what,
    )


def objective_value(objective: Objective, curves: Curves, experiment: Experiment) -> float | None:
    """Return the figure of a training that is over, None where it was never measured."""
    series = curves.unseen
    if experiment.trained.keeps_best:
        row = curves.best_validation()
        found = None if row is None else float(series[objective.name][row])
    else:
        found = series.last(objective.name)
        if series.last("step") == 0:
            found = None
    return found if found is not None and math.isfinite(found) else None


EXAMPLE_PRESET = "copy"
EXAMPLE_STEPS = 300
"""Half of the preset's: a good rate has learned it then, and a poor one hardly anything."""


def example_plan(owner: str | None = None) -> Plan:
    """Return the plan: four learning rates with a warm-up and without one, on copying."""
    preset = PRESETS[EXAMPLE_PRESET]
    base = preset.experiment
    return Plan(
        name="Rate and warm-up",
        base=base.replace(training=base.trained.replace(steps=EXAMPLE_STEPS).model_dump()),
        space=(
            Range("training.learning_rate", 0.0003, 0.03, is_log=True, points=4),
            Choices("training.warmup", (0.0, 0.1)),
        ),
        created=now(),
        search="grid",
        max_runs=8,
        owner=owner,
    )


def proposed_plan(base: Experiment, name: str) -> Plan:
    """Return a plan for another experiment: TPE over learning rate and warm-up."""
    rate = base.trained.learning_rate
    return Plan(
        name=name[:MAX_NAME].strip() or "Sweep",
        base=base,
        space=(
            Range("training.learning_rate", rate / 10, min(10 * rate, 10.0), is_log=True),
            Range("training.warmup", 0.0, 0.3),
        ),
        created=now(),
        search="tpe",
        max_runs=16,
    )


def now() -> str:
    """Return the time as a plan stores it."""
    return datetime.now(UTC).isoformat(timespec="microseconds")
