"""The values that an address can hold: a choice by name, a number in a range, a flag, a text.

Each reads its text in a link and reports in a message what is invalid. Links hold names, not labels
(as Streamlit's ``bind`` would), so they open in every language.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Generic, TypeVar, cast

from pages.i18n import _
from tfm_core.runs.run import ID

T = TypeVar("T")

_MAX_QUOTED = 20  # characters of a link that a sentence repeats
_MAX_LISTED = 8  # names that a sentence lists


class InvalidValue(ValueError):
    """A link's value is invalid. rule: what it must be. nearest: the value to use instead."""

    def __init__(self, rule: str, nearest: object = None) -> None:
        super().__init__(rule)
        self.rule = rule
        self.nearest = nearest


@dataclass(frozen=True)
class Parameter(ABC, Generic[T]):
    """One value in an address.

    query: its name there. first: its default. key: of its widget, by default its name.
    always_in_url: the link has it even if it is the default.
    """

    query: str
    _: KW_ONLY
    first: T
    key: str = ""
    always_in_url: bool = False

    @abstractmethod
    def parse(self, text: str) -> T:
        """Return the value of a link's text. Raises InvalidValue."""

    def fits(self, state: object) -> bool:
        """Return whether a widget's state is valid for this parameter."""
        return isinstance(state, type(self.first))

    def text(self, value: T) -> str:
        """Return a value as it stands in the link."""
        return str(value)

    def words(self, value: T) -> str:
        """Return a value as messages show it."""
        return self.text(value)

    def state(self, value: T) -> object:
        return value

    def value(self, state: object) -> T:
        return cast(T, state)

    def in_url(self, value: T) -> bool:
        return self.always_in_url or value != self.first

    def follow(self, text: str, otherwise: T) -> tuple[T, str]:
        """Return the value to show, and a message if the link asks for something else."""
        try:
            return self.parse(text), ""
        except InvalidValue as error:
            used = otherwise if error.nearest is None else cast(T, error.nearest)
            problem = _(
                "{query} is “{text}” in the link, but must be {rule}; {used} is shown.",
                query=self.query,
                text=text[:_MAX_QUOTED],
                rule=error.rule,
                used=self.words(used),
            )
            return used, problem


def one_of(names: Collection[object]) -> str:
    listed = _listed(names)
    return listed if len(names) == 1 else _("one of {names}", names=listed)


def _listed(names: Iterable[object]) -> str:
    texts = [str(name) for name in names]
    return ", ".join(texts[:_MAX_LISTED]) + (", …" if len(texts) > _MAX_LISTED else "")


@dataclass(frozen=True)
class Choice(Parameter[str]):
    """One of some names; ``first`` is "" where nothing may be chosen.

    labels: name -> the words on the screen.
    """

    names: tuple[str, ...]
    labels: Mapping[str, str] = field(default_factory=dict)

    def parse(self, text: str) -> str:
        """Return the name."""
        if text not in (*self.names, self.first):
            raise InvalidValue(one_of(self.names))
        return text

    def fits(self, state: object) -> bool:
        return state in self.names or (state is None and not self.first)

    def words(self, value: str) -> str:
        return value or _("nothing")

    def state(self, value: str) -> object:
        return value or None

    def value(self, state: object) -> str:
        return str(state or "")


def named(
    query: str, labels: Mapping[str, str], *, first: str | None = None, **more: Any
) -> Choice:
    """Return a choice of names with labels; without one, the first of them is chosen."""
    names = tuple(labels)
    first = names[0] if first is None else first
    return Choice(query, first=first, names=names, labels=labels, **more)


@dataclass(frozen=True)
class Choices(Parameter[tuple[str, ...]]):
    """Some of the names, separated by commas.

    maximum: the most names allowed; None for all. is_sorted: keep them in the order of ``names``.
    """

    names: tuple[str, ...]
    maximum: int | None = None
    is_sorted: bool = False

    def parse(self, text: str) -> tuple[str, ...]:
        """Return the names, each once; all of them or, where one is unknown, none.

        Raises InvalidValue, which suggests the first names if there are too many.
        """
        chosen = dict.fromkeys(filter(None, text.split(",")))
        if any(name not in self.names for name in chosen):
            raise InvalidValue(_("some of {names}", names=_listed(self.names)))
        if self.maximum is not None and len(chosen) > self.maximum:
            rule = _("at most {n} of {names}", n=self.maximum, names=_listed(self.names))
            raise InvalidValue(rule, tuple(chosen)[: self.maximum])
        return self.value(chosen)

    def fits(self, state: object) -> bool:
        if not isinstance(state, list) or not all(name in self.names for name in state):
            return False
        return self.maximum is None or len(state) <= self.maximum

    def text(self, value: tuple[str, ...]) -> str:
        return ",".join(value)

    def words(self, value: tuple[str, ...]) -> str:
        return self.text(value) or _("nothing")

    def state(self, value: tuple[str, ...]) -> object:
        return list(value)

    def value(self, state: object) -> tuple[str, ...]:
        chosen = cast(list[str], state)
        return tuple(sorted(chosen, key=self.names.index) if self.is_sorted else chosen)


@dataclass(frozen=True)
class Number(Parameter[int]):
    """A whole number from ``low`` to ``high``. offset: added to the number in the link."""

    low: int
    high: int
    offset: int = 0

    def parse(self, text: str) -> int:
        """Return the number, clamped to the range."""
        low, high = self.low + self.offset, self.high + self.offset
        rule = _("from {low} to {high}", low=low, high=high)
        number = whole(text)
        if number is None:
            raise InvalidValue(rule)
        if not low <= number <= high:
            raise InvalidValue(rule, max(self.low, min(number - self.offset, self.high)))
        return number - self.offset

    def fits(self, state: object) -> bool:
        return isinstance(state, int) and self.low <= state <= self.high

    def text(self, value: int) -> str:
        return str(value + self.offset)


NEWEST = -1


@dataclass(frozen=True)
class SavedStep(Parameter[int]):
    """A saved step of a run, or NEWEST for the newest, whichever that is.

    steps: all saved steps, ascending; empty while they are unknown.
    """

    first: int = NEWEST
    steps: tuple[int, ...] = ()

    def parse(self, text: str) -> int:
        """Return the step. Raises InvalidValue with the nearest saved step."""
        number = NEWEST if text == "newest" else whole(text)
        if number == NEWEST:
            return NEWEST
        if number is None or number < 0:
            raise InvalidValue(_("“newest” or a step number"))
        if self.steps and number not in self.steps:
            raise InvalidValue(one_of(self.steps), self.nearest(number))
        return self.nearest(number) if self.steps else number

    def nearest(self, step: int) -> int:
        """Return the nearest saved step, NEWEST for the last."""
        if step == NEWEST:
            return NEWEST
        nearest = min(self.steps, key=lambda saved: abs(saved - step))
        return NEWEST if nearest == self.steps[-1] else nearest

    def fits(self, state: object) -> bool:
        return state == NEWEST or state in self.steps[:-1]

    def words(self, value: int) -> str:
        return _("the newest") if value == NEWEST else f"{value:,}"


def whole(text: str) -> int | None:
    """Return a whole number of at most nine digits, None for anything else."""
    match = re.fullmatch(r"(-?[0-9]{1,9})(\.0+)?", text)
    return int(match[1]) if match else None


@dataclass(frozen=True)
class Option(Parameter[float]):
    """One of a few numbers."""

    options: tuple[float, ...]

    def parse(self, text: str) -> float:
        is_number = re.fullmatch(r"-?[0-9]{1,9}(\.[0-9]{1,9})?", text)
        matches = [option for option in self.options if is_number and option == float(text)]
        if not matches:
            raise InvalidValue(one_of(self.options))
        return matches[0]

    def fits(self, state: object) -> bool:
        return state in self.options

    def text(self, value: float) -> str:
        return str(value).removesuffix(".0")


@dataclass(frozen=True)
class Flag(Parameter[bool]):
    """Yes or no."""

    def parse(self, text: str) -> bool:
        if text.lower() in ("true", "1", "yes", "on"):
            return True
        if text.lower() in ("false", "0", "no", "off"):
            return False
        raise InvalidValue(_("true or false"))

    def text(self, value: bool) -> str:
        return str(value).lower()


@dataclass(frozen=True)
class Text(Parameter[str]):
    """A typed text; one of more than ``most`` characters is left out of the link."""

    most: int

    def parse(self, text: str) -> str:
        if len(text) > self.most:
            raise InvalidValue(_("at most {n} characters", n=self.most), text[: self.most])
        return text

    def words(self, value: str) -> str:
        return f"“{value[:_MAX_QUOTED]} …”"

    def in_url(self, value: str) -> bool:
        return len(value) <= self.most and super().in_url(value)


@dataclass(frozen=True)
class Written(Parameter[T]):
    """A value with its own notation, such as a matrix.

    reader: raises InvalidValue.
    """

    reader: Callable[[str], T]
    writer: Callable[[T], str]

    def parse(self, text: str) -> T:
        return self.reader(text)

    def fits(self, state: object) -> bool:
        return state is not None or self.first is None

    def text(self, value: T) -> str:
        return self.writer(value)

    def words(self, value: T) -> str:
        return self.writer(value) or _("nothing")


@dataclass(frozen=True)
class RunIds(Choices):
    """Run ids, separated by commas; the page checks that they exist."""

    names: tuple[str, ...] = ()

    def parse(self, text: str) -> tuple[str, ...]:
        """Parse ids, each once. Raises InvalidValue."""
        ids = dict.fromkeys(text.split(","))
        valid = tuple(filter(ID.fullmatch, ids))[: self.maximum]
        if len(valid) < len(ids):
            rule = _("up to {most} run ids, separated by commas", most=self.maximum)
            raise InvalidValue(rule, valid)
        return valid

    def fits(self, state: object) -> bool:
        return isinstance(state, list) and all(isinstance(run_id, str) for run_id in state)

    def words(self, value: tuple[str, ...]) -> str:
        return self.text(value) or _("the default")
