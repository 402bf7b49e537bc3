"""In-context regression: the error of each prediction by how many examples came before it.

After Garg et al. 2022, "What can Transformers learn in-context?" (arXiv 2208.01066), Figure 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core import byte_cache
from tfm_core.config import CorpusTaskConfig, Experiment
from tfm_core.data.corpus.in_context import GENERATORS, TENTHS, likelihoods, rounded
from tfm_core.data.corpus.load import validation_sequences
from tfm_core.inspect.attention.trained import checkpoint_mark
from tfm_core.inspect.discover.carry import ids_of, model_of_run
from tfm_core.runs.run import Run

Floats = npt.NDArray[np.floating[Any]]
N_LINES = 400


@dataclass(frozen=True, slots=True)
class Errors:
    """Mean squared errors of y, (K,) each, after 0 to K - 1 examples.

    model: of the mean of its distribution. bayes: of the mean given the examples, which is the
    least there can be. least_squares: of the line through 0 that fits them best; 0 without any.
    zero: of always 0.
    """

    model: Floats
    bayes: Floats
    least_squares: Floats
    zero: Floats


def is_lines(experiment: Experiment) -> bool:
    """Whether a model learns lines in context."""
    return experiment.task.name == "lines"


def errors_of(run: Run) -> Errors:
    """Return the errors of the last weights on unseen lines. Raises ValueError."""
    return _errors(str(run.folder), checkpoint_mark(run))


def known(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return what Bayes' rule and least squares predict for each y of lines, (N, K) each."""
    slopes = np.array([[rounded(tenths, int(one)) for tenths in TENTHS] for one in x.ravel()])
    means = slopes.reshape(*x.shape, -1)  # (N, K, slopes), as noise has mean 0
    pairs = zip(x.ravel(), y.ravel(), strict=True)
    likely = np.array([likelihoods(int(a), int(b)) for a, b in pairs]).reshape(means.shape)
    weights = np.cumprod(np.concatenate([np.ones_like(likely[:, :1]), likely[:, :-1]], 1), 1)
    bayes: Floats = (weights * means).sum(-1) / weights.sum(-1)
    before = np.cumsum(x * y, 1) - x * y, np.cumsum(x * x, 1) - x * x
    fitted: Floats = x * before[0] / np.maximum(before[1], 1)
    return bayes, fitted


@byte_cache.cached
def _errors(folder: str, mark: int) -> Errors:
    import torch

    run = Run(Path(folder))
    task = run.experiment.task_as(CorpusTaskConfig)
    drawn = validation_sequences(task, run.experiment.seed, n=N_LINES)
    rows, n = ids_of(run, drawn), len(drawn[0]) // 2
    numbers = np.array([list(map(int, tokens[: 2 * n])) for tokens in drawn], float)
    x, y = numbers[:, ::2], numbers[:, 1::2]
    names = GENERATORS[task.name].alphabet
    ids = ids_of(run, [names])[0, 1:]
    with torch.inference_mode():
        logits = model_of_run(run)(rows[:, :0], rows[:, :-1])[:, 1::2][:, :n, ids]
    predicted = logits.double().softmax(-1).numpy() @ np.array(list(map(int, names)), float)
    bayes, fitted = known(x, y)
    found = (((guess - y) ** 2).mean(0) for guess in (predicted, bayes, fitted, np.zeros_like(y)))
    return Errors(*found)
