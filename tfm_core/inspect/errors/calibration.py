"""Calibration: whether of the answers with 80 % confidence 80 % are right.

Guo et al. 2017, "On Calibration of Modern Neural Networks", section 2: the answers are shared out
into bins of equal width by their confidence, and the expected calibration error is the mean of
|share right - mean confidence| over the bins, weighted by how many answers are in each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tfm_core.inspect.practice.intervals import wilson

N_BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers with a confidence above ``low``, up to ``high``: n, and how many are right.

    confidence: their mean one. interval: of the share right, with 95 % confidence.
    """

    low: float
    high: float
    n: int
    n_right: int
    confidence: float
    interval: tuple[float, float]

    @property
    def accuracy(self) -> float:
        """Share of them that is right."""
        return self.n_right / self.n


@dataclass(frozen=True, slots=True)
class Calibration:
    """The bins that hold answers, and the expected calibration error, from 0 to 1."""

    bins: tuple[Bin, ...]
    error: float
    n_bins: int

    @property
    def confidence(self) -> float:
        """Mean confidence of all answers."""
        return sum(one.n * one.confidence for one in self.bins) / sum(one.n for one in self.bins)

    @property
    def accuracy(self) -> float:
        """Share of all answers that is right."""
        return sum(one.n_right for one in self.bins) / sum(one.n for one in self.bins)


def calibration(
    confidence: npt.NDArray[np.float32], is_right: npt.NDArray[np.bool_], n_bins: int = N_BINS
) -> Calibration:
    """Share M answers, at least one, out by their confidence; both (M,)."""
    place = np.clip(np.ceil(confidence.astype(np.float64) * n_bins) - 1, 0, n_bins - 1)
    bins = []
    for number in range(n_bins):
        inside = place == number
        n, n_right = int(inside.sum()), int(is_right[inside].sum())
        if n:
            mean = float(confidence[inside].mean(dtype=np.float64))
            low, high = number / n_bins, (number + 1) / n_bins
            bins.append(Bin(low, high, n, n_right, mean, wilson(n_right, n)))
    error = sum(one.n * abs(one.accuracy - one.confidence) for one in bins) / len(confidence)
    return Calibration(tuple(bins), error, n_bins)
