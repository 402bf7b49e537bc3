"""A round: a healthy run and its twin, what probes say of both, a guess, and the code."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any

from tfm_core.choices.config import Experiment
from tfm_core.choices.mistakes import MISTAKES
from tfm_core.data.tasks import data_shape
from tfm_core.inspect.bugs.bugs import Bug, bug_of, with_bug
from tfm_core.inspect.bugs.probes import PROBES, Measurement, ProbedModel, differs, ratio
from tfm_core.inspect.source.file import source_code
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph, joined

ComparedMeasurement = tuple[str, str, str, bool]
"""What was measured, of the healthy model, of its twin, and whether these differ."""


@dataclass(frozen=True, slots=True)
class Twins:
    """A healthy run and its twin, from the same seed and data."""

    healthy: Run
    twin: Run

    @property
    def bug(self) -> Bug | None:
        """The mistake of the twin."""
        return bug_of(self.healthy.experiment, self.twin.experiment)


def measure_pair(pair: Twins, name: str) -> tuple[ComparedMeasurement, ...]:
    """Measure both models with a probe. Raises StudentError without a checkpoint."""
    probe = PROBES[name]
    healthy, twin = (
        probe.measure(ProbedModel(run.experiment, run)) for run in (pair.healthy, pair.twin)
    )
    return tuple(
        (one.label, format_value(one), format_value(other), differs(one.value, other.value))
        for one, other in paired(healthy, twin)
    )


def paired(
    one: tuple[Measurement, ...], other: tuple[Measurement, ...]
) -> list[tuple[Measurement, Measurement]]:
    """Return what was measured of both by its label; a part that one of them lacks has 0."""
    known, others = ({row.label: row for row in rows} for rows in (one, other))
    return [
        (
            known.get(label, Measurement(label, 0.0)),
            others.get(label, Measurement(label, 0.0)),
        )
        for label in dict.fromkeys([*known, *others])
    ]


def hint(pair: Twins, guess: Bug, used: Collection[str] = ()) -> str:
    """Say what a wrong guess would measure and the twin does not, both before any training.

    The twin's mistake is not named. used: probes asked already, which are the last choice.
    """
    supposed = ProbedModel(with_bug(pair.healthy.experiment, guess))
    found = ProbedModel(pair.twin.experiment)
    names = [guess.probe, *(name for name in PROBES if name != guess.probe)]
    for name in sorted(names, key=lambda name: name in used):  # stable: unused ones first
        expected, measured = PROBES[name].measure(supposed), PROBES[name].measure(found)
        apart = [
            (one, other)
            for one, other in paired(expected, measured)
            if differs(one.value, other.value)
        ]
        if apart:
            one, other = max(apart, key=lambda pair: ratio(pair[0].value, pair[1].value))
            values: dict[str, Any] = {
                "label": one.label,
                "expected": format_value(one),
                "measured": format_value(other),
            }
            question = PROBES[name].question
            ask = (
                N_("Look again at “{question}”.", question=question)
                if name in used
                else N_("Ask “{question}”.", question=question)
            )
            return joined(ask, Paragraph("bugs/hint", **values))
    return Paragraph("bugs/no-probe")


def format_value(row: Measurement) -> str:
    """Return a measurement as it is shown."""
    if row.is_share:
        return f"{100 * row.value:.1f}%"
    if row.value >= 1000 or (row.value >= 1 and row.value == int(row.value)):
        return f"{row.value:,.0f}"
    return f"{row.value:.3g}"


def difference(pair: Twins) -> str:
    """Return what differs between the generated code of both, as a unified diff."""
    right, wrong = (_code(run.experiment).splitlines() for run in (pair.healthy, pair.twin))
    lines = unified_diff(right, wrong, "healthy.py", "twin.py", n=3, lineterm="")
    return "\n".join(lines)


def _code(experiment: Experiment) -> str:
    """Return the generated file of the model, and its training settings."""
    training = experiment.trained
    mistakes = [MISTAKES[name] for name in training.mistakes]
    given = next((one.loss_code for one in mistakes if one.loss_code), "logits")
    labels = next((one.labels_code for one in mistakes if one.labels_code), "tgt[:, 1:]")
    return "\n".join(
        [
            source_code(experiment.model, data_shape(experiment)),
            "# training",
            f"learning_rate = {training.learning_rate:g}",
            f"warm_up_steps = {round(training.warmup * training.steps)}",
            f"targets = {labels}",
            f"loss = F.cross_entropy({given}.flatten(0, 1), targets.flatten(), ignore_index=PAD)",
        ]
    )
