"""What a sweep varies: settings of an experiment by their paths, each with a range or values.

Only the configuration itself decides whether a combination is valid.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import create_model
from pydantic.fields import FieldInfo

from tfm_core.choices.config import MODEL_CONFIGS, Config, ConfigError, Experiment, Problem
from tfm_core.choices.config.base import plain
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.config.training import with_optimizer
from tfm_core.sentences import N_, StudentError

Value = str | int | float | bool

MAX_SETTINGS = 12
"""Settings that one sweep may vary; with more, no budget tells which of them mattered."""

MAX_VALUES = 64
"""Values of one setting, and points of a range in a grid."""

MAX_POINTS = 10_000
"""Points of a grid."""

FIXED = ("task.name", "task.kind", "task.text")
"""Settings that no sweep varies: figures of two tasks say nothing of each other."""

_DRAWN = 60  # combinations that are drawn to see how many of them can be


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from ``low`` to ``high``, both included.

    is_log: each factor of ten gets the same share. step: between whole numbers. points: how many
    of them a grid takes.
    """

    path: str
    low: float
    high: float
    is_log: bool = False
    is_whole: bool = False
    step: int = 1
    points: int = 4

    def grid(self) -> tuple[Value, ...]:
        """Return ``points`` numbers from low to high, evenly apart on its scale, rounded."""
        n = max(2, self.points)
        low, high = (math.log(self.low), math.log(self.high)) if self.is_log else (0.0, 0.0)
        found: dict[Value, None] = {}
        for k in range(n):
            share = k / (n - 1)
            if self.is_log:
                number = math.exp(low + share * (high - low))
            else:
                number = self.low + share * (self.high - self.low)
            found[self._rounded(number)] = None
        return tuple(found)

    def draw(self, chance: random.Random) -> Value:
        """Return a number of the range."""
        if self.is_log:
            drawn = math.exp(chance.uniform(math.log(self.low), math.log(self.high)))
        else:
            drawn = chance.uniform(self.low, self.high)
        if self.is_whole:
            return self._rounded(drawn)
        return float(min(max(drawn, self.low), self.high))

    def holds(self, value: Value) -> bool:
        """Return whether a value is a number of the range."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        if not self.low <= value <= self.high:
            return False
        is_on_step = self.is_log or (value - self.low) % self.step == 0
        return not self.is_whole or (float(value).is_integer() and is_on_step)

    def _rounded(self, number: float) -> Value:
        if not self.is_whole:
            return float(min(max(float(f"{number:.3g}"), self.low), self.high))
        step = 1 if self.is_log else self.step
        steps = round((number - self.low) / step)
        last = math.floor((self.high - self.low) / step)
        return int(self.low + step * min(max(steps, 0), last))


@dataclass(frozen=True, slots=True)
class Choices:
    """Some values: names of variants, yes and no, or numbers."""

    path: str
    values: tuple[Value, ...]

    def grid(self) -> tuple[Value, ...]:
        """Return the values."""
        return self.values

    def draw(self, chance: random.Random) -> Value:
        """Return one of the values."""
        return chance.choice(self.values)

    def holds(self, value: Value) -> bool:
        """Return whether it is one of the values."""
        return any(value == known and type(value) is type(known) for known in self.values)


Dimension = Range | Choices
Space = tuple[Dimension, ...]


def with_values(base: Experiment, values: Mapping[str, Value]) -> Experiment:
    """Return an experiment with some settings changed. Raises ConfigError where it cannot be.

    Another family begins with its own defaults; another optimiser, see ``with_optimizer``.
    """
    whole = base.model_dump()
    family = values.get("model.family", base.model.family)
    if family != base.model.family:
        whole["model"] = _moved(base, str(family))
    if "training.optimizer" in values:
        whole["training"] = with_optimizer(whole["training"], values["training.optimizer"])
    for path, value in values.items():
        section, _dot, name = path.rpartition(".")
        target = whole.get(section) if section else whole
        if field_of(base, path, family=str(family)) is None or not isinstance(target, dict):
            sentence = N_("There is no setting {key}.", key=path)
            raise ConfigError([Problem(path, sentence)])
        target[name] = value
    return Experiment.parse(whole)


def value_of(experiment: Experiment, path: str) -> Value | None:
    """Return what an experiment has at a path, None where it has no such setting."""
    section, _dot, name = path.rpartition(".")
    holder = getattr(experiment, section, None) if section else experiment
    found = getattr(holder, name, None)
    if isinstance(found, tuple):
        return ",".join(found)
    return found if isinstance(found, str | int | float) else None


def field_of(base: Experiment, path: str, *, family: str | None = None) -> FieldInfo | None:
    """Return the field of a setting, None where the experiment has no such setting."""
    config = _config_of(base, path, family=family)
    return None if config is None else config.model_fields.get(path.rpartition(".")[2])


def label_of(base: Experiment, path: str) -> str:
    """Return what a setting is called on the screen."""
    if path == "model.family":
        return N_("Family")
    info = field_of(base, path)
    return path if info is None or not info.title else info.title


def words(base: Experiment, values: Mapping[str, Value]) -> str:
    """Return settings in a line: ``Learning rate 0.004, Warm-up 0``."""
    return ", ".join(f"{label_of(base, path)} {shown(value)}" for path, value in values.items())


def shown(value: Value) -> str:
    """Return a value for a line of text, with at most three significant digits."""
    if isinstance(value, bool):
        return N_("yes") if value else N_("no")
    if isinstance(value, float):
        return plain(float(f"{value:.3g}"))
    if value == "":
        return N_("none")  # of several that could be
    return f"{value:,}" if isinstance(value, int) else value


def grid(space: Space) -> Iterator[dict[str, Value]]:
    """Yield every point of the grid, the last setting varying fastest."""
    for point in itertools.product(*(dimension.grid() for dimension in space)):
        yield {dimension.path: value for dimension, value in zip(space, point, strict=True)}


def n_points(space: Space) -> int:
    """Return how many points the grid has."""
    return math.prod(len(dimension.grid()) for dimension in space)


def point_in(
    base: Experiment, space: Space, values: Mapping[str, Value]
) -> dict[str, Value] | None:
    """Return the point of a space for values of another space, or None.

    What varies no longer must be as the base has it; what varies anew had the base's value.
    """
    paths = [dimension.path for dimension in space]
    for path, value in values.items():
        if path not in paths and value_of(base, path) != value:
            return None
    found: dict[str, Value] = {}
    for dimension in space:
        there = values.get(dimension.path, value_of(base, dimension.path))
        if there is None or not dimension.holds(there):
            return None
        found[dimension.path] = there
    return found


def check(base: Experiment, space: Space) -> None:
    """Raise StudentError, in a sentence, where a space cannot be swept."""
    if not space:
        raise StudentError("Choose at least one setting to vary.")
    if len(space) > MAX_SETTINGS:
        raise StudentError(
            "{n} settings vary; the limit is {most}.", n=len(space), most=MAX_SETTINGS
        )
    paths = [dimension.path for dimension in space]
    for path in paths:
        if paths.count(path) > 1:
            raise StudentError("{label} varies twice.", label=label_of(base, path))
    for dimension in space:
        path = dimension.path
        info = field_of(base, path)
        extra = None if info is None else info.json_schema_extra
        is_of_data_set = isinstance(extra, dict) and bool(extra.get("carried"))
        if path in FIXED or is_of_data_set:
            raise StudentError("The task can't vary: metrics of two tasks aren't comparable.")
        if info is None or (path.count(".") != 1 and path != "seed"):
            raise StudentError("There is no setting {path} to vary.", path=path)
        if isinstance(dimension, Range):
            _check_range(base, dimension)
        else:
            _check_choices(base, dimension)
    possible = share(base, space)
    if not possible.n:
        raise StudentError(
            "None of {drawn} random combinations is valid: {why}",
            drawn=possible.drawn,
            why=possible.why,
        )


@dataclass(frozen=True, slots=True)
class Share:
    """Of ``drawn`` combinations ``n`` can be; why: what the first of the others lacks, or ""."""

    n: int
    drawn: int
    why: str = ""


def share(base: Experiment, space: Space) -> Share:
    """Return how many of some combinations can be; of all of them, where a grid has but a few."""
    if all(isinstance(dimension, Choices) for dimension in space) and n_points(space) <= _DRAWN:
        points: Sequence[dict[str, Value]] = list(grid(space))
    else:
        chance = random.Random(0)
        points = [
            {dimension.path: dimension.draw(chance) for dimension in space} for _ in range(_DRAWN)
        ]
    n, why = 0, ""
    for point in points:
        try:
            with_values(base, point)
        except ConfigError as error:
            why = why or error.sentence
        else:
            n += 1
    return Share(n, len(points), why)


def some(base: Experiment, space: Space, n: int) -> list[Experiment]:
    """Return some of the experiments that a space makes: at most n, always the same."""
    chance = random.Random(0)
    found = []
    for _attempt in range(4 * n):
        point = {dimension.path: dimension.draw(chance) for dimension in space}
        try:
            found.append(with_values(base, point))
        except ConfigError:
            continue
        if len(found) == n:
            break
    return found


def _check_range(base: Experiment, range_: Range) -> None:
    label, kind = label_of(base, range_.path), kind_of(base, range_.path)
    if kind not in ("int", "float"):
        raise StudentError("{label} isn't a number. Choose values.", label=label)
    if (kind == "int") != range_.is_whole:
        if kind == "int":
            raise StudentError("{label} takes whole numbers.", label=label)
        raise StudentError("{label} takes decimal numbers.", label=label)
    if not (math.isfinite(range_.low) and math.isfinite(range_.high)) or range_.low >= range_.high:
        raise StudentError(
            "{label}: {high} must be larger than {low}.",
            label=label,
            low=plain(range_.low) if math.isfinite(range_.low) else str(range_.low),
            high=plain(range_.high) if math.isfinite(range_.high) else str(range_.high),
        )
    if range_.is_log and range_.low <= 0:
        raise StudentError(
            "{label} starts at {low}; a logarithmic range starts above 0.",
            label=label,
            low=plain(range_.low),
        )
    if range_.is_whole and not (float(range_.low).is_integer() and float(range_.high).is_integer()):
        raise StudentError("{label} takes whole numbers.", label=label)
    if range_.step < 1 or not 2 <= range_.points <= MAX_VALUES:
        raise StudentError(
            "{label} takes steps of 1 or more and 2 to {most} grid points.",
            label=label,
            most=MAX_VALUES,
        )
    for number in (range_.low, range_.high):
        _check_value(base, range_.path, int(number) if range_.is_whole else number)


def _check_choices(base: Experiment, choices: Choices) -> None:
    label = label_of(base, choices.path)
    if not 2 <= len(choices.values) <= MAX_VALUES:
        raise StudentError(
            "{label} has {n} values; give 2 to {most}.",
            label=label,
            n=len(choices.values),
            most=MAX_VALUES,
        )
    kinds = {"int": int, "float": float, "bool": bool}
    kind = kinds.get(kind_of(base, choices.path), str)
    if len(set(choices.values)) < len(choices.values):
        raise StudentError("{label} has the same value twice.", label=label)
    for value in choices.values:
        if type(value) is not kind:
            raise StudentError(
                "{label} cannot be {value}.",
                label=label,
                value="“”" if value == "" else shown(value),
            )
        _check_value(base, choices.path, value)


def _check_value(base: Experiment, path: str, value: Value) -> None:
    """Raise ConfigError where a setting cannot have a value, whatever the others are."""
    if path == "model.family":
        if value not in base.task.facts.families:
            families = ", ".join(base.task.facts.families)
            raise StudentError(
                "The family {value} cannot learn this task; {families} can.",
                value=value,
                families=families,
            )
        return
    config = _config_of(base, path)
    assert config is not None
    name = path.rpartition(".")[2]
    _alone(config, name).parse({name: value})


def kind_of(base: Experiment, path: str) -> str:
    """Return what a setting holds: ``int``, ``float``, ``bool``, or ``choice`` of some names."""
    info = field_of(base, path)
    kinds: dict[Any, str] = {int: "int", float: "float", bool: "bool"}
    return "choice" if info is None else kinds.get(info.annotation, "choice")


def _config_of(base: Experiment, path: str, *, family: str | None = None) -> type[Config] | None:
    section = path.rpartition(".")[0]
    if section == "model" and family in MODEL_CONFIGS:
        return MODEL_CONFIGS[family]
    found = {"": base, "model": base.model, "task": base.task, "training": base.trained}
    return type(found[section]) if section in found else None


@cache
def _alone(config: type[Config], name: str) -> type[Config]:
    """Return a config of one field alone, which knows no rule between fields."""
    info = config.model_fields[name]
    fields: dict[str, Any] = {name: (info.annotation, info)}
    return create_model("Alone", __base__=Config, **fields)


def _moved(base: Experiment, family: str) -> dict[str, Any]:
    """Return the defaults of another family, with what was changed by hand over them."""
    if family not in MODEL_CONFIGS:
        raise ConfigError(
            [Problem("model.family", N_("There is no family {family}.", family=family))]
        )
    old = default_sections(base.model.family, base.task.name)["model"]
    new: dict[str, Any] = default_sections(family, base.task.name)["model"]
    kept = {
        name: value
        for name, value in base.model.model_dump().items()
        if name in new and name != "family" and value != old[name]
    }
    return {**new, **kept}
