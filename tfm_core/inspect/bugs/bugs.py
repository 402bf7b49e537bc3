"""The mistakes that a twin may hide, each a change of the settings of a healthy run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tfm_core.choices.config import ConfigError, Experiment
from tfm_core.choices.mistakes import MISTAKES
from tfm_core.choices.presets import PRESETS
from tfm_core.sentences import N_, Paragraph

FASTER = 10
"""Times the right learning rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """A mistake in the code, of ``tfm_core.choices.mistakes``, or in the settings.

    level: 1 is obvious, 3 subtle. changes: ``section.field`` -> its wrong value. probe: the one
    that finds it. means: its effect.
    """

    name: str
    label: str
    level: int
    changes: Mapping[str, Any]
    probe: str
    means: str


def _in_code(name: str, level: int) -> Bug:
    """Return a mistake in the code, by its name in ``MISTAKES``."""
    mistake = MISTAKES[name]
    assert mistake.probe is not None
    return Bug(
        name=name,
        label=mistake.label,
        level=level,
        changes=mistake.settings,
        probe=mistake.probe,
        means=mistake.help,
    )


_BUGS = (
    _in_code("no-causal-mask", 1),
    _in_code("mask-transposed", 1),
    Bug(
        name="no-positions",
        label=N_("No positions"),
        level=1,
        changes={"model.position": "none"},
        probe="order",
        means=Paragraph("bugs/no-positions"),
    ),
    Bug(
        name="rate-too-high",
        label=N_("Learning rate ten times too high"),
        level=1,
        changes={"training.learning_rate": FASTER},  # times the right one
        probe="rate",
        means=N_("Each step was ten times too long."),
    ),
    _in_code("softmax-before-loss", 1),
    _in_code("argmax-before-loss", 1),
    _in_code("target-not-shifted", 1),
    _in_code("no-residuals", 2),
    Bug(
        name="no-norm",
        label=N_("No LayerNorm"),
        level=2,
        changes={"model.norm": "none"},
        probe="numbers",
        means=N_("Nothing kept the size of the vectors in range."),
    ),
    _in_code("no-scale", 2),
    Bug(
        name="one-head",
        label=N_("One head instead of several"),
        level=2,
        changes={"model.n_heads": 1},
        probe="attention",
        means=Paragraph("bugs/one-head"),
    ),
    Bug(
        name="no-warm-up",
        label=N_("No learning rate warm-up"),
        level=3,
        changes={"training.warmup": 0.0},
        probe="rate",
        means=Paragraph("bugs/no-warm-up"),
    ),
    _in_code("scaled-by-d-model", 3),
    _in_code("shared-norm", 3),
    _in_code("no-output-projection", 3),
    _in_code("sliced-heads", 3),
    _in_code("residual-from-normed", 3),
)
BUGS: dict[str, Bug] = {bug.name: bug for bug in _BUGS}


@cache
def basis() -> Experiment:
    """Return what a healthy run learns: to reverse letters, in some seconds, with two layers."""
    experiment = PRESETS["reverse"].experiment
    training = experiment.trained.replace(steps=400, snapshots=8, validate_every=50)
    model = experiment.model.model_dump() | {"n_encoder_layers": 2, "n_decoder_layers": 2}
    return experiment.replace(model=model, training=training.model_dump())


def with_bug(healthy: Experiment, bug: Bug) -> Experiment:
    """Return the settings of a twin with a mistake. Raises ConfigError where it has no place."""
    values = healthy.model_dump()
    for path, wrong in bug.changes.items():
        section, field = path.split(".")
        right = values[section][field]
        values[section][field] = right * wrong if field == "learning_rate" else wrong
    return Experiment.parse(values)


def bug_of(healthy: Experiment, twin: Experiment) -> Bug | None:
    """Return the mistake in which a twin differs from a healthy run; None where it is none."""
    for bug in _BUGS:
        try:
            if healthy != twin and with_bug(healthy, bug) == twin:
                return bug
        except (ConfigError, KeyError):  # the family has no such setting
            continue
    return None


def of_level(level: int) -> list[Bug]:
    """Return the mistakes of a level and of those below it."""
    return [bug for bug in _BUGS if bug.level <= level]
