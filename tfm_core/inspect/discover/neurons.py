"""Neurons of a feed-forward layer on a clock: each fires in one frequency of a and b.

After Nanda et al. 2023 (arXiv 2301.05217), section 4: what a neuron does is a function of both
numbers, and nearly all of it is waves of one frequency.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tfm_core import byte_cache
from tfm_core.config import TextTaskConfig
from tfm_core.data.vocabulary import SPECIALS
from tfm_core.inspect.attention.trained import checkpoint_mark
from tfm_core.inspect.discover.clock import Floats, model_of_sums
from tfm_core.runs.run import Run


@dataclass(frozen=True, slots=True, eq=False)
class Neurons:
    """Of each neuron (N,): its frequency, from 1, and 0 where it never changes.

    strength: the share of its variance, over all a and b, in waves of that frequency. angle: where
    it is strongest on the clock of a + b, in radians: of a sum s, the clock shows 2 pi k s / n.
    """

    frequency: npt.NDArray[np.int64]
    strength: Floats
    angle: Floats

    def of(self, frequency: int) -> npt.NDArray[np.bool_]:
        """Return which neurons have a frequency, (N,)."""
        chosen: npt.NDArray[np.bool_] = self.frequency == frequency
        return chosen


def on_clock(activations: Floats) -> Neurons:
    """Return the frequencies of activations (n, n, N) for all a and b; n is odd."""
    n = len(activations)
    waves = np.fft.fft2(activations.astype(np.float64), axes=(0, 1))
    power = np.abs(waves) ** 2
    power[0, 0] = 0.0  # the mean
    total = power.sum((0, 1))
    every = range(1, n // 2 + 1)
    # all waves of k a and k b: of a alone, of b alone, of a + b and of a - b
    of_each = np.array([power[np.ix_([0, k, -k], [0, k, -k])].sum((0, 1)) for k in every])
    best = of_each.argmax(0)
    neurons = np.arange(activations.shape[-1])
    is_there = total > 1e-12 * n**4
    frequency = np.where(is_there, best + 1, 0)
    strength = np.where(is_there, of_each[best, neurons] / np.where(is_there, total, 1.0), 0.0)
    angle = -np.angle(waves[frequency, frequency, neurons]) % (2 * np.pi)
    return Neurons(frequency, strength, angle)


def neurons_of(run: Run) -> Neurons:
    """Return the neurons of a run's last weights. Raises ValueError, in a sentence."""
    return _neurons(str(run.folder), checkpoint_mark(run))


@byte_cache.cached
def _neurons(folder: str, mark: int) -> Neurons:
    import torch

    from tfm_core.probe.capture import capture

    run = Run(Path(folder))
    model, _step = model_of_sums(run)
    n = run.experiment.task_as(TextTaskConfig).size
    numbers = torch.arange(len(SPECIALS), len(SPECIALS) + n)
    parts = []
    for rows in torch.split(torch.cartesian_prod(numbers, numbers), 2000):
        with torch.inference_mode(), capture(model, only={"hidden"}) as cache:
            model(rows, rows[:, :1])
        *_, hidden = cache.of("hidden").values()  # of the last layer
        parts.append(hidden[:, 0])  # the token that answers
    return on_clock(torch.cat(parts).double().numpy().reshape(n, n, -1))
