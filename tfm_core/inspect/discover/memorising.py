"""Wrong labels over a training: which a model ignores, and which it has learned by heart.

After Zhang et al. 2016, "Understanding deep learning requires rethinking generalization" (arXiv
1611.03530), and Nakkiran et al. 2019, "Deep double descent" (arXiv 1912.02292). What a model says
of a mislabelled picture tells the two apart: its true class, or the label that it was given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core import byte_cache
from tfm_core.config import Experiment, ImageTaskConfig
from tfm_core.inspect.attention.trained import data_of
from tfm_core.inspect.compare.curves import figures
from tfm_core.inspect.discover.transitions import since
from tfm_core.inspect.progress.pictures import model_at
from tfm_core.inspect.symptoms.cures import Cure
from tfm_core.runs.curves import Curves
from tfm_core.runs.run import Run
from tfm_core.sentences import N_

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.floating[Any]]
MEMORISED = 0.5
"""Share of the wrong labels that a model gives once it has memorised them."""
BATCHES = 20
"""Batches whose mean accuracy counts: one batch alone is noisy."""
RISE = 0.02
"""How much an error has to rise and fall again to be called a second descent."""


@dataclass(frozen=True, slots=True, eq=False)
class Mislabelled:
    """M training pictures with a wrong label: images (M, C, height, width) uint8, labels (M,)."""

    images: npt.NDArray[np.uint8]
    given: Integers
    true: Integers


def mislabelled(experiment: Experiment) -> Mislabelled:
    """Return the training pictures whose label is wrong; none without label noise."""
    task = experiment.task_as(ImageTaskConfig)
    clean = experiment.replace(task=task.replace(label_noise=0.0).model_dump())
    noisy: Any = data_of(experiment)
    truth: Any = data_of(clean)
    given, true = noisy.train.labels.numpy(), truth.train.labels.numpy()
    wrong = given != true
    return Mislabelled(noisy.train.images.numpy()[wrong], given[wrong], true[wrong])


def given_labels(experiment: Experiment, n: int) -> list[tuple[int, int]]:
    """Return the given and the true label of the first ``n`` training pictures."""
    task = experiment.task_as(ImageTaskConfig)
    clean = experiment.replace(task=task.replace(label_noise=0.0).model_dump())
    noisy: Any = data_of(experiment)
    truth: Any = data_of(clean)
    pairs = zip(noisy.train.labels[:n].tolist(), truth.train.labels[:n].tolist(), strict=True)
    return list(pairs)


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """What a model says of mislabelled pictures at each kept step: steps (S,), answers (S, M)."""

    steps: Integers
    answers: Integers
    of: Mislabelled

    @property
    def given(self) -> Floats:
        """The share (S,) that gets the wrong label that it was given."""
        return _shares(self.answers, self.of.given)

    @property
    def true(self) -> Floats:
        """The share (S,) that gets its true class."""
        return _shares(self.answers, self.of.true)


def _shares(answers: Integers, labels: Integers) -> Floats:
    found: Floats = (answers == labels).mean(1) if answers.size else np.zeros(len(answers))
    return found


def answers(run: Run, of: Run | None = None) -> Answers:
    """Return what the kept weights of a run say of its mislabelled pictures.

    of: another run with the same pictures, whose wrong labels count.
    """
    source, known = str((of or run).folder), mislabelled((of or run).experiment)
    steps, found = [], []
    for step in run.weight_steps() if len(known.given) else ():
        try:
            found.append(_answers(str(run.folder), step, source))
            steps.append(step)
        except ValueError:  # deleted meanwhile, or damaged
            continue
    empty = np.zeros((0, len(known.given)), np.int64)
    return Answers(np.array(steps, np.int64), np.stack(found) if found else empty, known)


@byte_cache.cached
def _answers(folder: str, step: int, source: str) -> Integers:
    import torch

    model: Any = model_at(Run(Path(folder)), step)
    experiment = Run(Path(source)).experiment
    data: Any = data_of(experiment)
    with torch.inference_mode():
        pictures = data.normalise(torch.from_numpy(mislabelled(experiment).images))
        found: Integers = model(pictures).argmax(-1).numpy()
    return found


def memorised(steps: Sequence[int] | Integers, given: Sequence[float] | Floats) -> int | None:
    """Return the step from which on a model has memorised its wrong labels, None where never.

    The rule: from then on, to the last step, it gives more than MEMORISED of the mislabelled
    pictures the wrong label that they came with.
    """
    return since(np.asarray(steps, float), np.asarray(given) > MEMORISED)


@dataclass(frozen=True, slots=True)
class Rise:
    """What validation measured at its best, and at the end: accuracy, its step, and loss."""

    best: float
    best_step: int
    last: float
    lowest_loss: float
    last_loss: float


def rise(curves: Curves) -> Rise | None:
    """Return how far validation got, and what is left of it; None before the first measurement."""
    found = figures(curves)
    best, step, last = found.best_accuracy, found.best_accuracy_step, found.accuracy
    low, loss = found.best_loss, found.loss
    if best is None or step is None or last is None or low is None or loss is None:
        return None
    return Rise(best, step, last, low, loss)


def correction(run: Run) -> Cure | None:
    """Return the training of as many more steps, on right labels; None without a checkpoint."""
    done = run.checkpoint_step
    if done is None:
        return None
    old = run.experiment
    task = old.task_as(ImageTaskConfig).replace(label_noise=0.0)
    training = old.training.further(done + old.training.steps)
    experiment = old.replace(task=task.model_dump(), training=training.model_dump())
    return Cure(N_("Correct the labels, train on"), experiment, "last", done)


def corrected(run: Run, runs: Iterable[Run]) -> Run | None:
    """Return the first of some runs that goes on from a run with right labels, if any does."""
    for one in runs:
        if one.problem is None and one.meta.parent == run.id and one.meta.cured_from:
            task = one.experiment.task
            if isinstance(task, ImageTaskConfig) and not task.label_noise:
                return one
    return None


def forgotten(curves: Curves, since: int, noise: float) -> int | None:
    """Return after how many steps on right labels half of the wrong ones are forgotten.

    The rule: the mean accuracy of BATCHES batches is above 1 - noise / 2, where it was 1 - noise
    for a model that had memorised all. None where it never is.
    """
    steps, right = curves.steps["step"], curves.steps["accuracy"].astype(np.float64)
    after = steps > since
    steps, right = steps[after], right[after]
    if len(right) < BATCHES:
        return None
    means = np.convolve(right, np.ones(BATCHES) / BATCHES, "valid")
    above = np.flatnonzero(means > 1 - noise / 2)
    return int(steps[above[0] + BATCHES - 1]) - since if len(above) else None


@dataclass(frozen=True, slots=True)
class AtWidth:
    """Runs of one width, as means at the end: validation error, its sd, training accuracy."""

    width: int
    n: int
    error: float
    sd: float
    fitted: float


def at_width(width: int, curves: Iterable[Curves]) -> AtWidth | None:
    """Return what runs of a width reached; None where none has ended."""
    errors, fitted = [], []
    for one in curves:
        accuracy, steps = figures(one).accuracy, one.steps["accuracy"][-BATCHES:]
        if accuracy is not None and len(steps) and one.finished:
            errors.append(1 - accuracy)
            fitted.append(float(steps.mean()))
    if not errors:
        return None
    sd = float(np.std(errors, ddof=1)) if len(errors) > 1 else 0.0
    return AtWidth(width, len(errors), float(np.mean(errors)), sd, float(np.mean(fitted)))


def second_descent(errors: Sequence[float]) -> tuple[int, int, int] | None:
    """Return where errors, by width, are lowest at first, then highest, then low again, or None.

    The rule: an error is at least RISE above one at a smaller width, and above one at a larger.
    """
    best: tuple[float, tuple[int, int, int]] | None = None
    for peak in range(1, len(errors) - 1):
        first = int(np.argmin(errors[:peak]))
        second = peak + 1 + int(np.argmin(errors[peak + 1 :]))
        height = errors[peak] - max(errors[first], errors[second])
        if height >= RISE and (best is None or height > best[0]):
            best = height, (first, peak, second)
    return None if best is None else best[1]
