"""Symptoms and their cures: other settings, and the checkpoint to continue from.

A cure changes little, so that the new run shows what helped. It continues from the last healthy
checkpoint, if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tfm_core.choices.config import ConfigError, Experiment, built
from tfm_core.choices.config.base import Config
from tfm_core.choices.config.training import default_weight_decay
from tfm_core.choices.variants.optimisers import OPTIMISERS
from tfm_core.facts.learning_rate import calmer_rate, usual_rate
from tfm_core.inspect.compare.names import change
from tfm_core.inspect.symptoms.in_curves import TIMES
from tfm_core.sentences import N_

SymptomKind = Literal[
    "diverged", "at-chance", "slow", "stuck", "exploding", "vanishing", "dead-heads", "overfits"
]
Begins = Literal["beginning", "best", "last"]
"""Where a cure begins: anew, or at the best or the last checkpoint."""


@dataclass(frozen=True, slots=True)
class Cure:
    """An experiment that would do better. label: of the button; step: it continues from, or 0."""

    label: str
    experiment: Experiment
    begins: Begins = "beginning"
    step: int = 0


@dataclass(frozen=True, slots=True)
class Symptom:
    """Something wrong with a run since a step, in a sentence, with the likeliest cure first."""

    kind: SymptomKind
    step: int
    sentence: str
    cures: tuple[Cure, ...] = ()


_MORE = 10  # times the examples
_DROPOUT = 0.2
_CLIP = 1.0
_WARM = 0.2
_PATIENCE = 3

_AS_USUAL: Mapping[str, tuple[str, ...]] = {
    "model": ("mistakes", "norm"),
    "training": ("mistakes",),
}
"""Settings some of whose values are mistakes; their defaults are right."""


Checkpoints = Mapping[Literal["best", "last"], int | None]
"""The steps of the checkpoints with the lowest validation loss, and of the newest."""
SettingChanges = Mapping[str, Mapping[str, Any]]


def cures(
    kind: SymptomKind, experiment: Experiment, since: int, kept: Checkpoints
) -> tuple[Cure, ...]:
    """Return what would help a run, the likeliest first. since: when the symptom began."""
    begins: Begins = "beginning"
    best = kept["best"]
    if kind in ("diverged", "exploding", "stuck") and best is not None and best < since:
        begins = "best"
    if kind == "slow" and kept["last"] is not None:
        begins = "last"
    found: list[Cure] = []
    for where, changes in _changes(kind, experiment, begins):
        made = _cure(experiment, changes, where, kept)
        if made is not None and all(one.label != made.label for one in found):
            found.append(made)
    return tuple(found)


def _changes(
    kind: SymptomKind, experiment: Experiment, begins: Begins
) -> Iterator[tuple[Begins, SettingChanges]]:
    training, usual = experiment.trained, usual_rate(experiment)
    if kind == "overfits":
        yield from _against_overfitting(experiment)
        return
    if kind == "slow":
        yield begins, {"training": {"learning_rate": usual}}
        return
    if mistakes := _mistakes(experiment):
        yield "beginning", mistakes
    if kind in ("diverged", "exploding", "stuck"):
        clip = {} if training.clip_norm else {"clip_norm": _CLIP}
        if training.learning_rate > 2 * usual or kind != "exploding":
            yield begins, {"training": {"learning_rate": calmer_rate(experiment), **clip}}
        if clip:
            yield begins, {"training": clip}
    else:
        yield from _against_stalling(experiment, usual)
    if training.warmup < _WARM and training.learning_rate < TIMES * usual:
        warm = {"learning_rate": training.learning_rate / 4, "warmup": _WARM}
        yield "beginning", {"training": warm}


def _against_overfitting(experiment: Experiment) -> Iterator[tuple[Begins, SettingChanges]]:
    n_train = getattr(experiment.task, "n_train", None)
    if isinstance(n_train, int):
        yield "beginning", {"task": {"n_train": _MORE * n_train}}
    if getattr(experiment.task, "label_noise", 0.0):
        yield "beginning", {"task": {"label_noise": 0.0}}
    yield "best", {"model": {"dropout": min(0.5, built(experiment.model).dropout + _DROPOUT)}}
    if not experiment.trained.patience:
        yield "beginning", {"training": {"patience": _PATIENCE}}


def _against_stalling(
    experiment: Experiment, usual: float
) -> Iterator[tuple[Begins, SettingChanges]]:
    training = experiment.trained
    optimiser = OPTIMISERS[training.optimizer]
    if optimiser.decay_is_coupled and training.weight_decay > optimiser.decay:
        yield "beginning", {"training": {"weight_decay": default_weight_decay(training.optimizer)}}
    if not usual / TIMES < training.learning_rate < usual * TIMES:
        yield "beginning", {"training": {"learning_rate": usual}}
    if getattr(experiment.model, "norm_first", True) is False:
        yield "beginning", {"model": {"norm_first": True}}


def _mistakes(experiment: Experiment) -> dict[str, dict[str, Any]]:
    """Return the settings that are mistakes, with their right values; several norms are right."""
    right: dict[str, dict[str, Any]] = {}
    for section, names in _AS_USUAL.items():
        config: Config = getattr(experiment, section)
        for name, field in type(config).model_fields.items():
            value = getattr(config, name)
            if name in names and (value == "none" if name == "norm" else value != field.default):
                right.setdefault(section, {})[name] = field.default
    return right


def _cure(
    experiment: Experiment, changes: SettingChanges, begins: Begins, kept: Checkpoints
) -> Cure | None:
    """Return a cure; None if its settings are invalid or change nothing."""
    step = 0 if begins == "beginning" else kept[begins]
    if not step:
        begins, step = "beginning", 0
    values = {name: dict(changed) for name, changed in changes.items()}
    try:
        cured = _changed(experiment, values)
        if begins == "last":  # its own steps may be over: as many again
            steps = {"steps": step + experiment.trained.steps}
            cured = _changed(cured, {"training": steps})
    except ConfigError:
        return None
    what = change(experiment, _changed(cured, {"training": {"steps": experiment.trained.steps}}))
    if not what:
        return None
    if begins == "beginning":
        return Cure(N_("Start again: {what}", what=what), cured)
    return Cure(
        N_("Continue from step {step:,}: {what}", step=step, what=what), cured, begins, step
    )


def _changed(experiment: Experiment, changes: SettingChanges) -> Experiment:
    sections = {
        name: getattr(experiment, name).replace(**changed).model_dump()
        for name, changed in changes.items()
    }
    return experiment.replace(**sections)
