"""How many examples each step learns from: the batch size, or half of it in the first steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import Experiment, TrainingConfig

Steps = TypeVar("Steps", int, npt.NDArray[np.float64])
"""Steps done: a number of them, or many, (n,)."""


@dataclass(frozen=True, slots=True)
class Batches:
    """The batches of a training: ``size`` examples each, but half as many in the first ones.

    n_halved: those first ones; an even number, so that they are whole batches cut in two.
    """

    size: int
    n_halved: int = 0

    @classmethod
    def of(cls, training: TrainingConfig, n_train: int) -> Batches:
        """Return the batches of a training with so many examples: none is larger than all."""
        size = min(training.batch_size, n_train)
        return cls(size, training.n_halved if size > 1 else 0)

    @classmethod
    def of_experiment(cls, experiment: Experiment) -> Batches:
        """Return the batches of an experiment; of a person's own data there are enough."""
        task, training = experiment.task, experiment.trained
        n_train: int = getattr(task, "n_train", training.batch_size)
        return cls.of(training, task.n_training or n_train)

    @property
    def half(self) -> int:
        """Examples in half a batch."""
        return max(1, self.size // 2)

    def size_of(self, step: int) -> int:
        """Return how many examples a step learns from; steps count from 1."""
        return self.half if step <= self.n_halved else self.size

    def examples(self, steps: Steps) -> Steps:
        """Return how many examples so many steps have learned from, those read again included."""
        return self.size * steps - (self.size - self.half) * _least(steps, self.n_halved)

    def whole(self, steps: Steps) -> Steps | float:
        """Return how many whole batches so many steps have read."""
        return steps - _least(steps, self.n_halved) / 2


def _least(steps: Steps, most: int) -> Steps:
    if isinstance(steps, int):
        return min(steps, most)
    return np.minimum(steps, most)
