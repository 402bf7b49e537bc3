"""Wrong labels over a training: which a model ignores, and which it has learned by heart.

After Zhang et al. 2016, "Understanding deep learning requires rethinking generalization" (arXiv
1611.03530), and Nakkiran et al. 2019, "Deep double descent" (arXiv 1912.02292). What a model says
of a mislabelled picture tells the two apart: its true class, or the label that it was given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfm_core.choices.config import Experiment, ImageTaskConfig
from tfm_core.choices.presets import PRESETS
from tfm_core.inspect.attention.trained import cached_by_folder, data_of, model_at
from tfm_core.inspect.curves import figures
from tfm_core.runs.curves import Curves
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph
from tfm_core.studies.phenomenon import Example, Levels, Phenomenon, since
from tfm_core.studies.study import Arm, Study, changed

Integers = npt.NDArray[np.int64]
MEMORISED = 0.5
"""Share of the wrong labels that a model gives once it has memorised them."""
_BATCHES = 20
"""Batches whose mean accuracy counts: one batch alone is noisy."""
RISE = 0.02
"""How much an error has to rise and fall again to be called a second descent."""
_LABELS = 16  # of pictures


def _of_labels(experiment: Experiment) -> Levels:
    """Return what is right of the training labels by guessing, and by knowing only true ones."""
    task = experiment.task_as(ImageTaskConfig)
    return {N_("guessing"): 1 / len(task.class_names), N_("true labels only"): 1 - task.label_noise}


def _labels(experiment: Experiment) -> Example:
    """Return the labels of a few training pictures; the wrong ones stand before the true ones."""
    names = experiment.task.class_names
    first = (kind[:_LABELS].tolist() for kind in labels(experiment))
    return tuple(
        (names[given] if given == true else f"{names[given]} ({names[true]})", given != true)
        for given, true in zip(*first, strict=True)
    )


MEMORISING = Phenomenon(
    name="memorising",
    title=N_("Wrong labels"),
    base=PRESETS["memorising"].experiment,
    arms=(
        Arm("noisy", N_("wrong labels")),
        Arm("clean", N_("right labels"), {"task.label_noise": 0.0}),
    ),
    metrics=("accuracy", "validation-accuracy"),
    right=N_("rises, then falls"),
    wrong={
        N_("rises to the end"): Paragraph("discover/memorising-rises"),
        N_("stays at chance"): Paragraph("discover/memorising-chance"),
    },
    paper="Zhang et al. 2016, Nakkiran et al. 2019",
    address="https://arxiv.org/abs/1912.02292",
    levels=_of_labels,
    example=_labels,
)
WIDTHS = (8, 12, 16, 24, 32, 64, 96)
"""Of the models that are trained for double descent; one of them is that of the preset."""
BY_WIDTH = Study(
    name="double-descent",
    title=N_("Double descent"),
    base=MEMORISING.base,
    arms=tuple(
        Arm(
            str(width),
            N_("d_model {width}", width=width),
            {"model.d_model": width, "model.d_ff": 2 * width},
        )
        for width in WIDTHS
    ),
)


def labels(experiment: Experiment) -> tuple[Integers, Integers]:
    """Return the given and the true label (N,) of each training picture."""
    noisy: Any = data_of(experiment)
    truth: Any = data_of(changed(experiment, {"task.label_noise": 0.0}))
    return noisy.train.labels.numpy(), truth.train.labels.numpy()


def mislabelled(experiment: Experiment) -> tuple[npt.NDArray[np.uint8], Integers, Integers]:
    """Return the training pictures whose label is wrong; none without label noise.

    Images (M, C, height, width), and their given and true labels (M,).
    """
    given, true = labels(experiment)
    wrong = given != true
    data: Any = data_of(experiment)
    return data.train.images.numpy()[wrong], given[wrong], true[wrong]


def answers(run: Run, of: Run | None = None) -> tuple[pd.DataFrame, Integers]:
    """Return what the kept weights of a run say of its mislabelled pictures.

    A table with a row for each step: given, the share of pictures that get the wrong label that
    they were given; true, the share that get their true class. And the answers (S, M).
    of: another run with the same pictures, whose wrong labels count.
    """
    source = of or run
    _images, given, true = mislabelled(source.experiment)
    steps, found = [], [np.zeros((0, len(given)), np.int64)]
    for step in run.weight_steps() if len(given) else ():
        try:
            found.append(_answers(run, step, source.folder)[None])
            steps.append(step)
        except ValueError:  # deleted meanwhile, or damaged
            continue
    said = np.concatenate(found)
    n = max(1, len(given))
    shares = {name: (said == kind).sum(1) / n for name, kind in (("given", given), ("true", true))}
    return pd.DataFrame({"step": steps, **shares}), said


@cached_by_folder
def _answers(run: Run, step: int, source: Path) -> Integers:
    import torch

    model: Any = model_at(run, step)
    experiment = Run(source).experiment
    data: Any = data_of(experiment)
    images, _given, _true = mislabelled(experiment)
    with torch.inference_mode():
        found: Integers = model(data.normalise(torch.from_numpy(images))).argmax(-1).numpy()
    return found


def memorised(table: pd.DataFrame) -> int | None:
    """Return the step from which on a model has memorised its wrong labels, None where never.

    The rule: from then on, to the last step, it gives more than MEMORISED of the mislabelled
    pictures the wrong label that they came with. table: of ``answers``.
    """
    return since(table["step"].to_numpy(float), table["given"].to_numpy() > MEMORISED)


def rises(curves: Iterable[Curves]) -> pd.DataFrame:
    """Return the best and the last ``figures`` of validation, of those that have measured it."""
    columns = ["best_accuracy", "best_accuracy_step", "accuracy", "best_loss", "loss"]
    return pd.DataFrame(map(figures, curves), columns=columns, dtype=float).dropna()


def correction(run: Run) -> Arm | None:
    """Return the training of as many more steps, on right labels; None without a checkpoint."""
    done, training = run.checkpoint_step, run.experiment.trained
    if done is None:
        return None
    longer = training.further(done + training.steps)
    changes = {
        "task.label_noise": 0.0,
        "training.steps": longer.steps,
        "training.batch_warmup": longer.batch_warmup,
    }
    return Arm("corrected", N_("Correct the labels and continue"), changes, "last", done)


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

    The rule: the mean accuracy of _BATCHES batches is above 1 - noise / 2, where it was 1 - noise
    for a model that had memorised all. None where it never is.
    """
    steps, right = curves.steps["step"], curves.steps["accuracy"].astype(np.float64)
    after = steps > since
    steps, right = steps[after], right[after]
    if len(right) < _BATCHES:
        return None
    means = np.convolve(right, np.ones(_BATCHES) / _BATCHES, "valid")
    above = np.flatnonzero(means > 1 - noise / 2)
    return int(steps[above[0] + _BATCHES - 1]) - since if len(above) else None


def by_width(curves: Iterable[tuple[int, Curves]]) -> pd.DataFrame:
    """Return what runs reached that have ended, as means of each width.

    width; n runs; error: of validation, at the end, with its sd (0 of one run); fitted: accuracy on
    training.
    """
    rows = []
    for width, one in curves:
        accuracy, steps = figures(one)["accuracy"], one.steps["accuracy"][-_BATCHES:]
        if accuracy is not None and len(steps) and one.finished:
            rows.append((width, 1 - accuracy, float(steps.mean())))
    ended = pd.DataFrame(rows, columns=["width", "error", "fitted"]).groupby("width")
    return (
        ended.agg(
            n=("error", "size"),
            error=("error", "mean"),
            sd=("error", "std"),
            fitted=("fitted", "mean"),
        )
        .fillna(0.0)
        .reset_index()
    )


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
