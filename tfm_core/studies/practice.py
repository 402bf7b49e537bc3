"""Good practice: one guided run from its splits to a number on the test set, and two beside it.

The weights that count are those that ``TrainingConfig.tested`` names: with patience the best by
validation, else the last, averaged if training averages. torch is imported late.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfm_core.choices.config import Experiment
from tfm_core.choices.config.codec import default_sections
from tfm_core.inspect.attention.trained import data_of
from tfm_core.inspect.compare.conclusions import shares_right, wilson
from tfm_core.inspect.questions import Question, choice_question
from tfm_core.probe.types import Floats
from tfm_core.reading import is_plain
from tfm_core.runs.curves import Curves
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError, percent
from tfm_core.studies.study import Arm, Study

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.models.build import Model

PATIENCE = 6
AUGMENTATION = {"shift": 2.0, "rotation": 10.0, "scale": 0.1}
_BASE = default_sections("vit", "mnist-5000")
_BASE["task"] |= dict.fromkeys(AUGMENTATION, 0.0)
_BASE["training"] |= {  # a constant, low rate without weight decay, so that overfitting shows
    "steps": 1200,
    "batch_size": 128,
    "learning_rate": 0.001,
    "weight_decay": 0.0,
    "schedule": "constant",
    "validate_every": 50,
    "snapshots": 12,
    "patience": 0,
    "final_test": False,  # the lesson opens the test set once, at its end
}
STUDY = Study(
    name="practice",
    title=N_("Practice"),
    base=Experiment.parse(_BASE),
    arms=(
        Arm("plain", N_("No augmentation")),
        Arm("early", N_("No augmentation, stopped early"), {"training.patience": PATIENCE}),
        Arm(
            "augmented",
            N_("With augmentation"),
            {f"task.{name}": value for name, value in AUGMENTATION.items()},
        ),
    ),
)
SECONDS = {"plain": 24, "early": 15, "augmented": 25}
"""CPU-seconds of training on one thread of a plain 2-core machine."""
MIN_WAIT = 3
"""Validations after the best from which a rise is not noise."""
TOP_LOSS = 2.6
"""Where the axis of the loss ends: a little above ln(10), the loss of guessing."""
SPLITS = ("train", "validation", "test")
_WINDOW = 25  # batches whose mean stands for the training loss at a step


def overfitting(curves: Curves) -> dict[str, Any] | None:
    """Return where the validation loss turned, None before two validations after step 0.

    step, validation_best, train_best: at its minimum; last_step, validation_last, train_last: at
    the last validation; gap: training minus validation accuracy there; waited: validations since
    the minimum; has_begun: validation got worse for a while, and training went on better.
    """
    best = curves.best_validation()
    rows = curves.unseen
    if best is None or not len(curves.steps) or (rows["step"] > 0).sum() < 2:
        return None
    step, last = int(rows["step"][best]), int(rows["step"][-1])

    def trained_to(column: str, step: int) -> float:
        known = curves.steps["step"] <= step
        return float(np.nanmean(curves.steps[column][known][-_WINDOW:]))

    found: dict[str, Any] = {
        "step": step,
        "last_step": last,
        "validation_best": float(rows["loss"][best]),
        "validation_last": float(rows["loss"][-1]),
        "train_best": trained_to("loss", step),
        "train_last": trained_to("loss", last),
        "gap": trained_to("accuracy", last) - float(rows["accuracy"][-1]),
        "waited": len(rows) - 1 - best,
    }
    is_worse = found["validation_last"] > found["validation_best"]
    is_better = found["train_last"] < found["train_best"]
    return found | {"has_begun": found["waited"] >= MIN_WAIT and is_worse and is_better}


def best_of(runs: Mapping[str, tuple[Run, Curves]]) -> tuple[str, int, float] | None:
    """Return arm, step and loss of the lowest validation loss of all runs, or None."""
    candidates: list[tuple[float, str, int]] = []
    for arm, (run, curves) in runs.items():
        rows, at = curves.unseen, curves.best_validation()
        if at is None:
            continue
        if not run.experiment.trained.keeps_best:
            at = len(rows) - 1
        candidates.append((float(rows["loss"][at]), arm, int(rows["step"][at])))
    if not candidates:
        return None
    loss, arm, step = min(candidates)
    return arm, step, loss


def splits_of(experiment: Experiment) -> tuple[pd.DataFrame, int]:
    """Count the pictures of each class (columns) in each split, and those in two splits.

    Raises ValueError.
    """
    names = experiment.task.class_names
    data = data_of(experiment)
    parts: dict[str, Any] = {name: getattr(data, name) for name in SPLITS}
    counts = [np.bincount(part.labels.numpy(), minlength=len(names)) for part in parts.values()]
    prints = [{image.numpy().tobytes() for image in part.images} for part in parts.values()]
    shared = len((prints[0] & prints[1]) | (prints[0] & prints[2]) | (prints[1] & prints[2]))
    return pd.DataFrame(counts, index=SPLITS, columns=names), shared


_BATCH = 250


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Answers on N pictures. labels and predicted: int (N,); probabilities: float32 (N, classes).

    images: uint8 (N, C, height, width). loss: mean cross-entropy in nats.
    """

    step: int
    split: str
    labels: npt.NDArray[np.int64]
    probabilities: npt.NDArray[np.float32]
    images: npt.NDArray[np.uint8]
    loss: float
    class_names: tuple[str, ...]

    @property
    def predicted(self) -> npt.NDArray[np.int64]:
        """The likeliest class of each picture, (N,)."""
        return np.asarray(self.probabilities.argmax(1), np.int64)

    @property
    def n_right(self) -> int:
        """Number of pictures classified correctly."""
        return int((self.predicted == self.labels).sum())

    @property
    def accuracy(self) -> float:
        """Share of pictures classified correctly."""
        return self.n_right / len(self.labels)

    @property
    def interval(self) -> tuple[float, float]:
        """Return the 95% confidence interval of the accuracy."""
        return wilson(self.n_right, len(self.labels))

    def confusion(self) -> npt.NDArray[np.int64]:
        """Return counts (classes, classes): the true class down, the predicted one across."""
        n = len(self.class_names)
        return np.bincount(self.labels * n + self.predicted, minlength=n * n).reshape(n, n)

    def by_class(self) -> pd.DataFrame:
        """Return the accuracy of each class, as ``shares_right``."""
        counts = self.confusion()
        right, n = counts.diagonal().tolist(), counts.sum(1).tolist()
        return shares_right(zip(self.class_names, right, n, strict=True))

    def wrong(self, most: int) -> npt.NDArray[np.intp]:
        """Return the misclassified pictures, the surest first."""
        indices = np.flatnonzero(self.predicted != self.labels)
        sure = self.probabilities[indices].max(1)
        return indices[np.argsort(-sure, kind="stable")][:most]


def has_weights(run: Run) -> bool:
    """Return whether the run has kept the weights that count."""
    return is_plain(_file(run))


def weights_mark(run: Run) -> int:
    """Return a cache key that changes with the weights. Raises StudentError without any."""
    try:
        return _file(run).stat().st_mtime_ns
    except OSError:
        raise StudentError("This run has saved no weights yet.") from None


def counting_model(run: Run) -> tuple[Model, int]:
    """Return the model with the weights that count, and their step. Raises ValueError."""
    import torch

    from tfm_core.training.checkpoints import load_model

    weights_mark(run)
    torch.set_num_threads(1)
    return load_model(run.experiment, _file(run).parent)


def _file(run: Run) -> Path:
    name = "best" if run.experiment.trained.keeps_best else "last"
    return run.folder / "checkpoints" / name / "checkpoint.safetensors"


def evaluate(run: Run, split: str) -> Evaluation:
    """Answer every picture of ``split``, "validation" or "test". Raises ValueError."""
    import torch
    import torch.nn.functional as F

    from tfm_core.data.image_data import ImageData, ImageSplit
    from tfm_core.data.moving import data_as

    model, step = counting_model(run)
    data = data_as(data_of(run.experiment), ImageData)
    part: ImageSplit = getattr(data, split)
    with torch.inference_mode():
        logits = torch.cat(
            [
                model(data.normalise(part.images[first : first + _BATCH])).float()
                for first in range(0, len(part), _BATCH)
            ]
        )
    return Evaluation(
        step,
        split,
        part.labels.numpy(),
        logits.softmax(-1).numpy(),
        part.images.numpy(),
        float(F.cross_entropy(logits, part.labels)),
        data.facts.class_names,
    )


N_PICTURES = 16
_WRONG_PREFIX = "module."  # what wrapping a model for several GPUs puts before each name


def save_weights(weights: dict[str, Tensor]) -> bytes:
    """Return weights as a safetensors file: names, shapes and numbers, and no code to run."""
    from safetensors.torch import save

    # clones: tied weights share memory, which the format does not allow
    return save({name: value.clone().contiguous() for name, value in weights.items()})


def load_weights(model: Any, content: bytes) -> None:
    """Load a file's weights; every name must fit. Raises RuntimeError with the names if not."""
    from safetensors.torch import load

    model.load_state_dict(load(content), strict=True)
    model.eval()  # dropout off: a model in training mode answers at random


def round_trip(run: Run) -> tuple[bytes, int, int, dict[str, Floats]]:
    """Save the weights of a run, load them into a fresh model, and compare. Raises ValueError.

    The file, its tensors, those that were ignored, and the logits of N pictures, (N, classes) each:
    trained; fresh: untrained, from another seed; loaded: from the file; misnamed: loaded with
    strict=False and wrong names.
    """
    import torch

    from tfm_core.training.setup import new_model

    model, _step = counting_model(run)
    weights = model.state_dict()
    content = save_weights(weights)
    data: Any = data_of(run.experiment)
    pictures = data.normalise(data.validation.images[:N_PICTURES])
    other = run.experiment.replace(seed=run.experiment.seed + 1)
    loaded, careless = new_model(other).eval(), new_model(other).eval()
    with torch.inference_mode():
        logits = {"trained": model(pictures).numpy(), "fresh": loaded(pictures).numpy()}
        load_weights(loaded, content)
        wrong_names = {f"{_WRONG_PREFIX}{name}": value for name, value in weights.items()}
        ignored = careless.load_state_dict(wrong_names, strict=False).unexpected_keys
        logits |= {"loaded": loaded(pictures).numpy(), "misnamed": careless(pictures).numpy()}
    return content, len(weights), len(ignored), logits


def about_choosing() -> Question:
    """Ask which split may decide when to stop."""
    return choice_question(
        N_("Which split decides when to stop?"),
        N_("Validation"),
        {
            N_("Training"): N_("Its loss falls by memorising too."),
            N_("Test"): N_("It can no longer test what it chose."),
        },
        N_("Choosing is what it is for."),
    )


def about_precision(n: int, share: float = 0.9) -> Question:
    """Ask how much narrower the interval of an accuracy gets with four times the examples."""
    one, four = (_width(round(share * size), size) for size in (n, 4 * n))
    ratio = one / four
    options = {1.0: N_("As wide"), 2.0: N_("Half as wide"), 4.0: N_("A quarter as wide")}
    nearest = min(options, key=lambda option: abs(option - ratio))
    return choice_question(
        N_("With four times as many pictures, how wide is the interval?"),
        options[nearest],
        {
            options[1.0]: N_("More pictures leave less to chance."),
            options[2.0]: N_("With so few pictures it shrinks at another rate."),
            options[4.0]: N_("It shrinks with the square root of their number."),
        },
        N_("From {one:.1f} to {four:.1f} points: √4 = 2.", one=100 * one, four=100 * four),
    )


def about_weakest(evaluated: Evaluation) -> Question:
    """Ask which class is wrong most often; every class that is as bad is right."""
    counts = evaluated.confusion()
    share = counts.diagonal() / np.maximum(counts.sum(1), 1)
    weakest = [int(index) for index in np.flatnonzero(share == share.min())]
    names = evaluated.class_names
    first = weakest[0]
    why = {
        name: N_("{n}: {share} right. Another is worse.", n=name, share=percent(float(share[i])))
        for i, name in enumerate(names)
        if i not in weakest
    }
    return Question(
        N_("Which class does it get wrong most often?"),
        names[first],
        N_(
            "{right} of {n} pictures of {name} are right.",
            right=int(counts[first, first]),
            n=int(counts[first].sum()),
            name=names[first],
        ),
        tuple(names),
        why,
        also=tuple(names[index] for index in weakest[1:]),
    )


def _width(right: int, n: int) -> float:
    low, high = wilson(right, n)
    return high - low
