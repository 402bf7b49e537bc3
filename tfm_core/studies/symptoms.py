"""The training doctor: what is wrong with a run as it is, the gravest first, and what would help.

A cure is an arm of the sick run. It changes little, so that the new run shows what helped, and it
continues from the last healthy checkpoint, if there is one.

What the loss says, with its thresholds, is in ``runs.outcome``; here is what rates,
gradients and heads say besides. Comments give what was measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tfm_core.choices.config import ConfigError, Experiment, built
from tfm_core.choices.config.base import Config
from tfm_core.choices.config.training import default_weight_decay
from tfm_core.choices.variants.training import OPTIMISERS
from tfm_core.facts.learning_rate import calmer_rate, usual_rate
from tfm_core.inspect.attention.heads import dead_modules
from tfm_core.inspect.differences import change_text
from tfm_core.probe.labels import kind_of, layer_of
from tfm_core.runs.curves import Curves, GradientNorms
from tfm_core.runs.outcome import (
    MIN_PROGRESS,
    LossProgress,
    at_chance,
    diverged,
    loss_progress,
    outcome_of,
    overfit,
    running_median,
)
from tfm_core.runs.run import Run
from tfm_core.runs.status import Status
from tfm_core.sentences import N_, Paragraph, Sentence, joined, listed
from tfm_core.studies.study import Arm, Begins, changed

SymptomKind = Literal[
    "diverged", "at-chance", "slow", "stuck", "exploding", "vanishing", "dead-heads", "overfits"
]
DeadHeads = tuple[int, tuple[str, ...]]
"""Since which step, and which modules; see ``heads.dead_modules``."""
Checkpoints = Mapping[Literal["best", "last"], int | None]
"""The steps of the checkpoints with the lowest validation loss, and of the newest."""


@dataclass(frozen=True, slots=True)
class Symptom:
    """Something wrong with a run since a step, in a sentence, with the likeliest cure first."""

    kind: SymptomKind
    step: int
    sentence: str
    cures: tuple[Arm, ...] = ()


def of_run(run: Run, curves: Curves, steps: Sequence[int]) -> tuple[Symptom, ...] | None:
    """Return what is wrong with a run now, see ``symptoms``. steps: of its snapshots."""
    since = waits_until(run.experiment)
    dead = dead_modules(run, [step for step in steps if step >= since])
    kept: Checkpoints = {
        "best": run.step_of_checkpoint("best"),
        "last": run.step_of_checkpoint("last"),
    }
    return symptoms(run.experiment, run.status, curves, kept, dead)


def symptoms(
    experiment: Experiment,
    status: Status,
    curves: Curves,
    kept: Checkpoints,
    dead: DeadHeads | None = None,
) -> tuple[Symptom, ...] | None:
    """Return what is wrong with a training so far; None if it is too early to judge."""
    way = loss_progress(curves)
    if way is None:
        return None
    found = tuple(_seen(experiment, status, curves, way, dead))
    if not found and (outcome := outcome_of(status, curves)) is not None:
        found = (Symptom(outcome.kind, outcome.step, outcome.sentence),)
    if experiment.training is None:
        return found
    return tuple(replace(one, cures=cures(one.kind, experiment, one.step, kept)) for one in found)


def waits_until(experiment: Experiment) -> int:
    """Return the step from which a training should be better than guessing."""
    training = experiment.training
    n_warmup = 0 if training is None else round(training.warmup * training.steps)
    return max(PATIENCE, n_warmup + AFTER_WARMUP)


def _seen(
    experiment: Experiment,
    status: Status,
    curves: Curves,
    way: LossProgress,
    dead: DeadHeads | None,
) -> Iterator[Symptom]:
    lost = diverged(status, curves, way)
    if lost is not None:
        yield Symptom(lost.kind, lost.step, lost.sentence)
        return
    step = int(way.steps[-1]) if len(way.steps) else 0
    is_over = status.state == "finished"
    is_late = step >= waits_until(experiment) or is_over
    unseen = np.asarray(curves.validation["loss"], np.float64)
    unseen = unseen[np.isfinite(unseen)]
    # it never came MIN of the way, on its batches or on unseen examples
    has_begun = not len(way.shares) or float(way.shares.max()) >= MIN_PROGRESS
    has_begun = has_begun or (len(unseen) > 0 and way.share(float(unseen.min())) >= MIN_PROGRESS)
    is_at_chance = is_late and not has_begun
    rated = None if experiment.training is None else _of_rate(experiment, way, step)
    if is_late and rated is not None:
        yield rated
    elif is_at_chance:
        yield Symptom("at-chance", 0, at_chance(way).sentence)
    yield from filter(None, (_exploding(curves), _vanishing(curves)))
    if dead is not None and is_late and not is_at_chance:
        named = [
            N_(
                "{kind}, layer {layer}",
                kind=kind_of(experiment, name).label,
                layer=layer_of(name) + 1,
            )
            for name in dead[1]
        ]
        words = Paragraph("symptoms/dead-heads", modules=listed(named))
        yield Symptom("dead-heads", dead[0], words)
    if (rise := overfit(curves)) is not None:
        yield Symptom("overfits", rise["step"], Paragraph("symptoms/overfits", **rise))


def _of_rate(experiment: Experiment, way: LossProgress, step: int) -> Symptom | None:
    """Return the symptom of a learning rate far from the usual one."""
    rate, usual = experiment.trained.learning_rate, usual_rate(experiment)
    share, fall = float(way.shares[-1]) if len(way.shares) else 0.0, 0.0
    half = len(way.steps) // 2
    steps, losses = way.steps[half:].astype(np.float64), way.losses[half:]
    if len(steps) >= _MIN and steps[-1] != steps[0]:  # in 100 steps, by a line through them
        fall = -100 * float(np.polyfit(steps - steps[0], losses, 1)[0])
    values = {"share": f"{max(0, int(100 * share + 1e-6))}%", "rate": rate, "usual": usual}
    if rate <= usual / TIMES and share < HALF:
        words = Paragraph("symptoms/slow", fall=max(0.0, fall), **values)
        return Symptom("slow", step, words)
    is_still = fall < STILL * way.length
    if rate >= usual * TIMES and share < MAX and is_still:
        words = Paragraph("symptoms/stuck", loss=float(way.running[-1]), **values)
        return Symptom("stuck", step, words)
    return None


def _part(name: str) -> str:
    """Return a part of a model in words: ``decoder.layers.0`` is decoder layer 1."""
    stack, _dot, layer = name.partition(".layers.")
    if layer.isdecimal():
        return N_("{stack} layer {n}", stack=stack, n=int(layer) + 1)
    return name.replace("_", " ").replace(".", " ")


PATIENCE = 150
"""Steps after which a training that learns has left guessing; and AFTER_WARMUP behind the warm-up.

Healthy: a share of MIN at step 18 to 105. Ill: never."""
AFTER_WARMUP = 50

TIMES = 5.0
"""Times above or below the usual one from which a learning rate is to blame."""
HALF = 0.5
"""Share of the way below which a training with too low a rate is called slow."""
MAX = 0.9
"""Share of the way below which a still training with too high a rate is called stuck."""
STILL = 0.03
"""Share of the way in 100 steps that is no progress."""

_MIN = 5  # batches before their median is looked at


LONG = 25.0
"""A gradient as long as this, in the median of ten steps, explodes.

Healthy: 9.5 at most (14.9 for a single batch). Ill: 82 and more."""

FAINT = 1e-3
"""Share of the longest part's gradient below which a block of the model gets next to none.

Healthy: 0.14 and more. Ill: 0.00016 and less."""

_LEARNED = 1e-2  # a whole gradient that is shorter has nothing left to learn
_REPORTS = 2  # in a row


def _exploding(curves: Curves) -> Symptom | None:
    """Say how the gradient explodes, and which part has most of it, where that is known."""
    norms = np.asarray(curves.steps["grad_norm"], np.float64)
    steps = curves.steps["step"]
    is_known = np.isfinite(norms)
    norms, steps = norms[is_known], steps[is_known]
    running = running_median(norms)
    if len(running) < _MIN or running[-1] < LONG:
        return None
    calm = np.flatnonzero(running < LONG)
    since = int(steps[int(calm[-1]) + 1]) if len(calm) else int(steps[0])
    words: Sentence = Paragraph("symptoms/exploding", step=since, length=float(running[-1]))
    measured = [one for one in curves.gradients if one.step >= since and one.norms]
    if measured:
        part, length = max(measured[-1].norms.items(), key=lambda item: item[1])
        largest = N_("The largest is that of {part}, {own:,.0f}.", part=_part(part), own=length)
        words = joined(words, largest)
    return Symptom("exploding", since, words)


def _vanishing(curves: Curves) -> Symptom | None:
    """Say which blocks get next to no gradient; None where all get some, or all is learned."""
    faint = [_faint(one) for one in curves.gradients]
    if len(faint) < _REPORTS or not all(faint[-_REPORTS:]):
        return None
    since = len(faint) - 1
    while since > 0 and faint[since - 1]:
        since -= 1
    newest, norms, step = faint[-1], curves.gradients[-1].norms, curves.gradients[since].step
    words = Paragraph(
        "symptoms/vanishing",
        step=step,
        parts=listed(map(_part, newest)),
        share=max(newest.values()),
        longest=_part(max(norms, key=norms.__getitem__)),
    )
    return Symptom("vanishing", step, words)


def _faint(measured: GradientNorms) -> dict[str, float]:
    """Return the blocks with next to no gradient, with their share of the longest part's."""
    longest = max(measured.norms.values(), default=0.0)
    if not _LEARNED <= longest < float("inf"):
        return {}
    shares = {part: norm / longest for part, norm in measured.norms.items() if ".layers." in part}
    return {part: share for part, share in shares.items() if share < FAINT}


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


def cures(
    kind: SymptomKind, experiment: Experiment, since: int, kept: Checkpoints
) -> tuple[Arm, ...]:
    """Return what would help a run, the likeliest first. since: when the symptom began."""
    begins: Begins = "beginning"
    best = kept["best"]
    if kind in ("diverged", "exploding", "stuck") and best is not None and best < since:
        begins = "best"
    if kind == "slow" and kept["last"] is not None:
        begins = "last"
    found: list[Arm] = []
    for where, changes in _changes(kind, experiment, begins):
        made = _cure(kind, experiment, changes, where, kept)
        if made is not None and all(one.label != made.label for one in found):
            found.append(made)
    return tuple(found)


def _changes(
    kind: SymptomKind, experiment: Experiment, begins: Begins
) -> Iterator[tuple[Begins, dict[str, Any]]]:
    training, usual = experiment.trained, usual_rate(experiment)
    if kind == "overfits":
        yield from _against_overfitting(experiment)
        return
    if kind == "slow":
        yield begins, {"training.learning_rate": usual}
        return
    if mistakes := _mistakes(experiment):
        yield "beginning", mistakes
    if kind in ("diverged", "exploding", "stuck"):
        clip = {} if training.clip_norm else {"training.clip_norm": _CLIP}
        if training.learning_rate > 2 * usual or kind != "exploding":
            yield begins, {"training.learning_rate": calmer_rate(experiment), **clip}
        if clip:
            yield begins, clip
    else:
        yield from _against_stalling(experiment, usual)
    if training.warmup < _WARM and training.learning_rate < TIMES * usual:
        rate = training.learning_rate / 4
        yield "beginning", {"training.learning_rate": rate, "training.warmup": _WARM}


def _against_overfitting(experiment: Experiment) -> Iterator[tuple[Begins, dict[str, Any]]]:
    n_train = getattr(experiment.task, "n_train", None)
    if isinstance(n_train, int):
        yield "beginning", {"task.n_train": _MORE * n_train}
    if getattr(experiment.task, "label_noise", 0.0):
        yield "beginning", {"task.label_noise": 0.0}
    yield "best", {"model.dropout": min(0.5, built(experiment.model).dropout + _DROPOUT)}
    if not experiment.trained.patience:
        yield "beginning", {"training.patience": _PATIENCE}


def _against_stalling(
    experiment: Experiment, usual: float
) -> Iterator[tuple[Begins, dict[str, Any]]]:
    training = experiment.trained
    optimiser = OPTIMISERS[training.optimizer]
    if optimiser.decay_is_coupled and training.weight_decay > optimiser.decay:
        yield "beginning", {"training.weight_decay": default_weight_decay(training.optimizer)}
    if not usual / TIMES < training.learning_rate < usual * TIMES:
        yield "beginning", {"training.learning_rate": usual}
    if getattr(experiment.model, "norm_first", True) is False:
        yield "beginning", {"model.norm_first": True}


def _mistakes(experiment: Experiment) -> dict[str, Any]:
    """Return the settings that are mistakes, with their right values; several norms are right."""
    right: dict[str, Any] = {}
    for section, names in _AS_USUAL.items():
        config: Config = getattr(experiment, section)
        for name, field in type(config).model_fields.items():
            value = getattr(config, name)
            if name in names and (value == "none" if name == "norm" else value != field.default):
                right[f"{section}.{name}"] = field.default
    return right


def _cure(
    kind: SymptomKind,
    experiment: Experiment,
    changes: dict[str, Any],
    begins: Begins,
    kept: Checkpoints,
) -> Arm | None:
    """Return a cure; None if its settings are invalid or change nothing."""
    step = 0 if begins == "beginning" else kept[begins] or 0
    try:
        what = change_text(experiment, changed(experiment, changes))
        if step and begins == "last":  # its own steps may be over: as many again
            changes |= {"training.steps": step + experiment.trained.steps}
            changed(experiment, changes)
    except ConfigError:
        return None
    if not what:
        return None
    if not step:
        return Arm(kind, N_("Start again: {what}", what=what), changes)
    label = N_("Continue from step {step:,}: {what}", step=step, what=what)
    return Arm(kind, label, changes, begins, step)
