"""An experiment that teaches: runs with one seed and data set that differ in one setting."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tfm_core.choices.config import Experiment
from tfm_core.choices.config.codec import default_sections
from tfm_core.choices.mistakes import MISTAKES
from tfm_core.inspect.experiments.result import Result
from tfm_core.inspect.experiments.trial import Arm, Trial
from tfm_core.inspect.questions import Question
from tfm_core.sentences import N_, Paragraph, Sentence, StudentError

ExperimentTheme = Literal["order", "attention", "residuals", "training", "styles"]
THEMES: Mapping[ExperimentTheme, str] = {
    "order": N_("Order and masks"),
    "attention": N_("Attention"),
    "residuals": N_("Residuals and norms"),
    "training": N_("Training"),
    "styles": N_("Block styles"),
}

FindingKind = Literal[
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
"""How an arm compares with the right way.

worse, better: fewer or more right; slower, faster: as many, later or sooner; diverged: its loss was
no number, and saved: that of the right way was; fooled: right only given the true tokens so far;
unsure: as many right, with less confidence; rougher: as many, after far larger gradients;
unordered: nearly all tokens right, in another order.
"""


@dataclass(frozen=True, slots=True)
class ArmFinding:
    """What a run showed beside another: a kind, and a sentence with the numbers."""

    kind: FindingKind
    sentence: Sentence


Compare = Callable[[Result, Result], ArmFinding]
"""Compares the second result with the first."""


def mistaken(arm: str, name: str) -> Arm:
    """Return the arm that makes a mistake, by its name in MISTAKES."""
    mistake = MISTAKES[name]
    return Arm(arm, mistake.short, mistake.settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration(Trial):
    """Runs that differ in one thing, be it the style of their blocks.

    expected: the findings that confirm the expectation. compare: makes the finding. step: of the
    walk. writes_freely, looks_sharply: whether to measure ``written`` and ``sharpness``.
    counts_loss: whether seeds are compared by their loss, not by what is right.
    """

    expected: frozenset[FindingKind]
    compare: Compare
    step: str = ""
    writes_freely: bool = False
    looks_sharply: bool = False
    counts_loss: bool = False

    @property
    def expects(self) -> str:
        """What to expect, and why."""
        return Paragraph(f"experiments/{self.name}")

    @property
    def is_of_model(self) -> bool:
        """Return whether the models differ, not only their training."""
        return any(path.startswith("model.") for arm in self.arms for path in arm.changes)


class Demonstrations(dict[str, Demonstration]):
    """The experiments by name; an unknown name raises an error that lists them."""

    def __missing__(self, name: str) -> Demonstration:
        """Raise StudentError."""
        raise StudentError(
            "There is no experiment “{name}”; there are {known}.", name=name, known=", ".join(self)
        )


def small(
    family: str,
    task: str,
    *,
    model: Mapping[str, Any] | None = None,
    task_settings: Mapping[str, Any] | None = None,
    training: Mapping[str, Any],
) -> Experiment:
    """Return an experiment that is quick, small and validated often."""
    values = default_sections(family, task)
    values["model"] |= dict(model or {})
    values["task"] |= dict(task_settings or {})
    values["training"] = {"validate_every": 25, "snapshots": 4, **training}
    return Experiment.parse(values)


OUTCOMES: dict[FindingKind, str] = {
    "better": N_("It gets more right."),
    "faster": N_("It gets as many right, but sooner."),
    "same": N_("No visible difference."),
    "slower": N_("It gets as many right, but later."),
    "worse": N_("It gets fewer right."),
    "diverged": N_("Its loss becomes infinite or NaN."),
    "saved": N_("It trains, and the first diverges."),
    "fooled": N_("Its curves look perfect, but it fails when it generates."),
    "unordered": N_("It writes the right tokens in the wrong order."),
    "unsure": N_("It gets as many right, but less confidently."),
    "rougher": N_("It gets as many right, but with much larger gradients."),
}


def question(demonstration: Demonstration) -> Question:
    """Return the question to ask before the result; every expected outcome is a right answer."""
    first, second = demonstration.arms[0], demonstration.arms[-1]
    right = [words for kind, words in OUTCOMES.items() if kind in demonstration.expected]
    return Question(
        Paragraph("experiments/question", first=first.label, second=second.label),
        right[0],
        demonstration.expects,
        tuple(OUTCOMES.values()),
        also=tuple(right[1:]),
    )
