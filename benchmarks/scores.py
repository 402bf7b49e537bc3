"""What counts as having learned: one number of a trained model on examples it never saw."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import torch

from benchmarks.goals import Score
from tfm_core.choices.config import ImageTaskConfig
from tfm_core.data.image_data import ImageData, ImageSplit, load_images
from tfm_core.studies.memorising import mislabelled
from tfm_core.training.events import Measured
from tfm_core.training.loop import Trainer
from tfm_core.training.objectives import MEASURE_BATCH
from tfm_core.training.trainer import objective_of


def official_test(trainer: Trainer) -> float:
    """Return the per cent of the 10,000 official MNIST test pictures that the model tells right."""
    split = official_split()
    assert isinstance(trainer.data, ImageData)
    right, model = 0, trainer.eval_model
    model.eval()
    with torch.inference_mode():
        batches = zip(
            split.images.split(MEASURE_BATCH), split.labels.split(MEASURE_BATCH), strict=True
        )
        for images, labels in batches:
            answers = model(trainer.data.normalise(images)).argmax(-1)
            right += int((answers == labels).sum())
    return 100 * right / len(split.labels)


def official_split() -> ImageSplit:
    """Return the official test set. Raises DataUnavailable."""
    return load_images(ImageTaskConfig(name="mnist"), seed=0).test


def _official(trainer: Trainer, test: Measured) -> float:
    """The preset for all of MNIST is tested on the official set anyway; others look at it now."""
    return (
        _right(trainer, test) if trainer.experiment.task.name == "mnist" else official_test(trainer)
    )


def _right(trainer: Trainer, test: Measured) -> float:
    return 100 * test.accuracy


def _whole(trainer: Trainer, test: Measured) -> float:
    assert test.sequence_accuracy is not None
    return 100 * test.sequence_accuracy


def _entropy(trainer: Trainer, test: Measured) -> float:
    """Return the lowest possible loss over that reached: 100 is a perfect model of the grammar."""
    bound = trainer.objective.loss_lower_bound()
    assert bound is not None
    return 100 * bound / test.loss


def _above_floor(trainer: Trainer, test: Measured) -> float:
    """Return by how many nats the loss on the test words is above the lowest for these words."""
    data, task = trainer.data, trainer.experiment.task
    training = trainer.experiment.trained
    of_test = objective_of(task)(
        replace(data, validation=data.test),  # an objective knows the floor of its validation words
        task,
        label_smoothing=training.label_smoothing,
        mistakes=training.mistakes,
    )
    bound = of_test.loss_lower_bound()
    assert bound is not None
    return test.loss - float(bound)


def _bits(trainer: Trainer, test: Measured) -> float:
    return test.loss / math.log(2)


def _memorised(trainer: Trainer, test: Measured) -> float:
    """Return the per cent of the mislabelled training pictures that get their wrong label."""
    (images, given, _true), model = mislabelled(trainer.experiment), trainer.eval_model
    assert isinstance(trainer.data, ImageData)
    model.eval()
    with torch.inference_mode():
        answers = model(trainer.data.normalise(torch.from_numpy(images))).argmax(-1)
    return 100 * float((answers.numpy() == given).mean())


SCORES: dict[Score, Callable[[Trainer, Measured], float]] = {
    "whole": _whole,
    "by heart": _whole,
    "right": _right,
    "official": _official,
    "entropy": _entropy,
    "above floor": _above_floor,
    "bits": _bits,
    "memorised": _memorised,
}
