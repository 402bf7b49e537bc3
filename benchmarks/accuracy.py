"""What the presets reach on examples they never saw, and how many CPU-seconds training takes.

Counted are the CPU-seconds of training itself, with its metrics and validation; left out are
making the data and the last measurement on the test split. Three seeds, the mean of them.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from benchmarks.report import Skipped, Table
from tfm_core.config import Experiment, ImageTaskConfig
from tfm_core.data.image_data import DataUnavailable, ImageSplit, load_images
from tfm_core.presets import PRESETS
from tfm_core.training.events import Measured, Step
from tfm_core.training.loop import Trainer, build, train
from tfm_core.training.objectives import MEASURE_BATCH

SEEDS = (0, 1, 2)
QUICK_STEPS = 5

Score = Callable[[Trainer, Measured], float]


@dataclass(frozen=True, slots=True)
class Goal:
    """An experiment, what counts as its score (0 to 1), and what it should reach in how long."""

    label: str
    experiment: Experiment
    scored_on: str
    score: Score
    at_least: float
    cpu_seconds: int
    needs_mnist: bool = False


def deeper() -> Experiment:
    """Return the preset for all of MNIST with four layers, more varied pictures, and more steps."""
    base = PRESETS["vit-mnist"].experiment
    return base.replace(
        model=base.model.model_dump() | {"n_layers": 4},
        task=base.task.model_dump() | {"shift": 1.0, "rotation": 8.0, "scale": 0.08},
        training=base.training.model_dump()
        | {"steps": 8000, "learning_rate": 0.002, "validate_every": 1000},
    )


def official_test(trainer: Trainer) -> float:
    """Return the share of the 10,000 official MNIST test pictures that the model tells right."""
    split = _official_split()
    right = 0
    trainer.model.eval()
    with torch.inference_mode():
        batches = zip(
            split.images.split(MEASURE_BATCH), split.labels.split(MEASURE_BATCH), strict=True
        )
        for images, labels in batches:
            answers = trainer.model(trainer.data.normalise(images)).argmax(-1)
            right += int((answers == labels).sum())
    return right / len(split.labels)


def _official_split() -> ImageSplit:
    return load_images(ImageTaskConfig(name="mnist"), seed=0).test


def _by_accuracy(trainer: Trainer, test: Measured) -> float:
    return test.accuracy


def _by_sequences(trainer: Trainer, test: Measured) -> float:
    assert test.sequence_accuracy is not None
    return test.sequence_accuracy


def _by_entropy(trainer: Trainer, test: Measured) -> float:
    """Return the lowest possible loss over that reached: 1 is a perfect model of the grammar."""
    bound = trainer.objective.loss_lower_bound()
    assert bound is not None
    return bound / test.loss


def _by_official_test(trainer: Trainer, test: Measured) -> float:
    return official_test(trainer)


def _by_bound(trainer: Trainer, test: Measured) -> float:
    """Return exp(bound - loss) on the validation words: 1 is perfect, 0.951 is 0.05 nats off."""
    bound = trainer.objective.loss_lower_bound()
    assert bound is not None
    trainer.model.eval()
    loss, _accuracy, _whole = trainer.objective.measure(trainer.model, "validation")
    return math.exp(bound - loss)


def goals() -> list[Goal]:
    """Return what is to be reached, the short ones first."""
    listed = [
        Goal(name, PRESETS[name].experiment, "whole sequences", _by_sequences, 0.99, seconds)
        for name, seconds in (
            ("dates", 15),
            ("reverse", 25),
            ("copy", 25),
            ("sort", 25),
            ("translate", 60),
        )
    ]
    adds, grammar = PRESETS["addition-3"].experiment, PRESETS["gpt-grammar"].experiment
    listed += [
        Goal("sentiment", PRESETS["sentiment"].experiment, "sentences", _by_accuracy, 0.97, 30),
        Goal(
            "masked-words",
            PRESETS["masked-words"].experiment,
            "hidden words, exp(bound - loss)",
            _by_bound,
            math.exp(-0.05),
            60,
        ),
        Goal(
            "span-corruption",
            PRESETS["span-corruption"].experiment,
            "hidden spans, exp(bound - loss)",
            _by_bound,
            math.exp(-0.06),
            60,
        ),
    ]
    listed += [
        Goal(name, PRESETS[name].experiment, "whole sequences", _by_sequences, 0.95, 120)
        for name in ("translate-additive", "translate-luong")
    ]
    digits, mnist = PRESETS["vit-digits"].experiment, PRESETS["vit-mnist"].experiment
    official = "official test set"
    return [
        *listed,
        Goal("addition-3", adds, "whole sequences", _by_sequences, 0.99, 120),
        Goal("gpt-grammar", grammar, "entropy / loss", _by_entropy, 0.98, 40),
        Goal("vit-digits", digits, official, _by_official_test, 0.975, 75, True),
        Goal("vit-mnist", mnist, official, _by_accuracy, 0.985, 60, True),
        Goal("vit-text", PRESETS["vit-text"].experiment, official, _by_accuracy, 0.88, 90, True),
        *_described(),
        Goal("vit-mnist, 4 layers", deeper(), official, _by_accuracy, 0.991, 300, True),
    ]


def _described() -> list[Goal]:
    """Return what is to be reached by models that describe pictures."""
    return [
        Goal(name, PRESETS[name].experiment, "whole captions", _by_sequences, 0.95, 180)
        for name in ("captions", "captions-korean")
    ]


def reach(goal: Goal, *, seed: int, steps: int | None = None) -> tuple[float, float]:
    """Train once; return the score and the CPU-seconds of training."""
    experiment = goal.experiment.replace(seed=seed)
    if steps is not None:
        fewer = experiment.training.model_dump() | {"steps": steps}
        experiment = experiment.replace(training=fewer)
    trainer = build(experiment)
    events = train(trainer)
    seconds, test = 0.0, None
    begin = time.process_time()
    for event in events:
        if isinstance(event, Step):  # the last one comes right before the test measurement
            seconds = time.process_time() - begin
        elif isinstance(event, Measured) and event.split == "test":
            test = event
    assert test is not None
    return goal.score(trainer, test), seconds


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Train every goal, or say why one is left out."""
    rows = []
    why = mnist_missing()
    for goal in goals():
        if goal.needs_mnist and why:
            yield Skipped(goal.label, why)
            continue
        seeds = SEEDS[:1] if quick else SEEDS
        reached = [reach(goal, seed=seed, steps=QUICK_STEPS if quick else None) for seed in seeds]
        rows.append(_row(goal, reached, quick=quick))
    yield Table(
        f"Accuracy, mean of {1 if quick else len(SEEDS)} seed{'s' * (not quick)} (worst to best)",
        ["", "steps", "parameters", "CPU-seconds", "reached", "on unseen", "target"],
        rows,
        [
            "CPU-seconds of training with metrics and validation, on one thread; without making",
            "the data and without the last measurement on the test split.",
        ],
    )


def mnist_missing() -> str | None:
    """Return why the official MNIST cannot be had, or None; nothing is downloaded unasked."""
    if not os.environ.get("TFM_DATA_DIR"):
        return "it needs the full MNIST; name the folder it lies in, or shall lie in: TFM_DATA_DIR."
    try:
        _official_split()
    except DataUnavailable as error:
        return str(error)
    return None


def _row(goal: Goal, reached: list[tuple[float, float]], *, quick: bool) -> list[str]:
    scores, seconds = ([pair[i] for pair in reached] for i in (0, 1))
    score, took = statistics.mean(scores), statistics.mean(seconds)
    is_met = score >= goal.at_least and took <= goal.cpu_seconds
    verdict = f"{QUICK_STEPS} steps don't tell" if quick else "met" if is_met else "missed"
    steps = QUICK_STEPS if quick else goal.experiment.training.steps
    return [
        goal.label,
        f"{steps:,}",
        f"{_n_parameters(goal.experiment):,}",
        f"{took:.1f} ({min(seconds):.1f} to {max(seconds):.1f})",
        f"{score:.2%} ({min(scores):.2%} to {max(scores):.2%})",
        goal.scored_on,
        f"≥ {goal.at_least:.1%} in {goal.cpu_seconds} s, {verdict}",
    ]


def _n_parameters(experiment: Experiment) -> int:
    from tfm_core.training.estimate import estimate

    return estimate(experiment).n_parameters
