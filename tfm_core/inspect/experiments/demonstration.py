"""An experiment that teaches: runs from one seed on one data set that differ in one thing.

What to expect is said beforehand, and what came of it is said from the runs' own numbers
(``conclusion``). Torch-free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from tfm_core.config import Experiment
from tfm_core.config.codec import default_sections
from tfm_core.inspect.experiments.result import Result
from tfm_core.mistakes import MISTAKES
from tfm_core.sentences import N_, Sentence, StudentError

ThemeName = Literal["order", "attention", "residuals", "training"]
THEMES: Mapping[ThemeName, str] = {
    "order": N_("Order and masks"),
    "attention": N_("Attention"),
    "residuals": N_("Residuals and norms"),
    "training": N_("Training"),
}

Kind = Literal[
    "worse",
    "better",
    "slower",
    "faster",
    "same",
    "diverged",
    "saved",
    "fooled",
    "unsure",
    "rougher",
    "unordered",
]
"""How an arm came out beside the right way.

worse, better: it answers fewer or more; slower, faster: as many, but later or sooner; diverged: it
ended without a number, and saved: the right way did; fooled: it answers only while the truth is
laid before it; unsure: it answers as many, with less confidence; rougher: as many, after far
larger gradients; unordered: it writes nearly all of the right tokens, in another order.
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one run showed beside another: in one word, and in a sentence with the numbers."""

    kind: Kind
    sentence: Sentence


Compare = Callable[[Result, Result], Finding]
"""Says how the second result came out beside the first."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One of the runs. label: as sentences call it; changes: dotted path -> value."""

    name: str
    label: str
    changes: Mapping[str, Any] = field(default_factory=dict)


def mistaken(arm: str, name: str) -> Arm:
    """Return the arm that makes a mistake, by its name in MISTAKES."""
    mistake = MISTAKES[name]
    return Arm(arm, mistake.short, mistake.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """Runs that differ in one thing, with what to expect of them.

    base: what all of them do. arms: the right way first. expects: what to expect, with its reason.
    expected: the kinds of findings that it amounts to. metrics:
    of ``compare.curves.METRICS``, drawn one below the other. compare: says what came of it. step:
    of the walk, where the difference is made. writes_freely, looks_sharply: what is measured of the
    trained models beside the curves (see ``Result``).
    """

    name: str
    theme: ThemeName
    title: str
    expects: str
    expected: frozenset[Kind]
    base: Experiment
    arms: tuple[Arm, ...]
    compare: Compare
    metrics: tuple[str, ...] = ("loss", "validation-accuracy")
    step: str = ""
    writes_freely: bool = False
    looks_sharply: bool = False

    def experiment(self, arm: Arm) -> Experiment:
        """Return what an arm trains."""
        return changed(self.base, arm.changes)

    @property
    def is_of_model(self) -> bool:
        """Whether the models differ, and not how they are trained alone."""
        return any(path.startswith("model.") for arm in self.arms for path in arm.changes)

    def arm(self, name: str) -> Arm:
        """Return an arm by its name. Raises KeyError for none."""
        return {arm.name: arm for arm in self.arms}[name]


class Demonstrations(dict[str, Demonstration]):
    """The experiments by name; an unknown name says which there are."""

    def __missing__(self, name: str) -> Demonstration:
        """Raise StudentError."""
        raise StudentError(
            "There is no experiment “{name}”; there are {known}.", name=name, known=", ".join(self)
        )


def changed(base: Experiment, changes: Mapping[str, Any]) -> Experiment:
    """Return an experiment with settings at dotted paths, ``model.n_heads``, changed."""
    return _changed(base, tuple(changes.items()))


@lru_cache(maxsize=128)  # a page asks for each of them whenever it is drawn
def _changed(base: Experiment, changes: tuple[tuple[str, Any], ...]) -> Experiment:
    values = base.model_dump()
    for path, value in changes:
        section, _dot, name = path.partition(".")
        values[section][name] = value
    return Experiment.parse(values)


def small(
    family: str,
    task: str,
    *,
    model: Mapping[str, Any] | None = None,
    task_settings: Mapping[str, Any] | None = None,
    training: Mapping[str, Any],
) -> Experiment:
    """Return an experiment that is over soon, measured often and kept small."""
    values = default_sections(family, task)
    values["model"] |= dict(model or {})
    values["task"] |= dict(task_settings or {})
    values["training"] = {"validate_every": 25, "snapshots": 4, **training}
    return Experiment.parse(values)


def by_theme(known: Mapping[str, Demonstration]) -> dict[ThemeName, Sequence[Demonstration]]:
    """Return the experiments of each theme, in their order."""
    return {theme: [one for one in known.values() if one.theme == theme] for theme in THEMES}
