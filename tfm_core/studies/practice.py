"""Good practice: one guided run from its splits to a number on the test set, and two beside it.

The weights that count are those that ``TrainingConfig.tested`` names: with patience the best by
validation, else the last, averaged if training averages. torch is imported late.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from tfm_core.choices.config import Experiment
from tfm_core.choices.config.codec import default_sections
from tfm_core.inspect.answers import Answers, answers_of_model
from tfm_core.inspect.attention.trained import data_of, model_of
from tfm_core.inspect.conclusions import wilson
from tfm_core.inspect.questions import Question, choice_question
from tfm_core.probe.types import Floats
from tfm_core.runs.curves import Curves
from tfm_core.runs.run import Checkpoint, Run
from tfm_core.sentences import N_, percent
from tfm_core.studies.study import Arm, Study

if TYPE_CHECKING:
    from torch import Tensor


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
TOP_LOSS = 2.6
"""Where the axis of the loss ends: a little above ln(10), the loss of guessing."""
SPLITS = ("train", "validation", "test")
_WINDOW = 25  # batches whose mean stands for the training accuracy at a step


def gap(curves: Curves) -> float | None:
    """Return training minus validation accuracy at the last validation; None before two of them."""
    rows = curves.unseen
    if (rows["step"] > 0).sum() < 2:
        return None
    known = curves.steps["step"] <= rows["step"][-1]
    trained = np.nanmean(curves.steps["accuracy"][known][-_WINDOW:])
    return float(trained - rows["accuracy"][-1])


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


def counts(run: Run) -> Checkpoint:
    """Return which weights count."""
    return "best" if run.experiment.trained.keeps_best else "last"


def evaluate(run: Run, split: str) -> Answers:
    """Answer every picture of ``split``, "validation" or "test". Raises ValueError."""
    from tfm_core.data.image_data import ImageData
    from tfm_core.data.moving import data_as

    data = data_as(data_of(run.experiment), ImageData)
    if split == "test":
        data = replace(data, validation=data.test)
    return answers_of_model(run.experiment, data, model_of(run, counts(run)))


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

    model, _step = model_of(run, counts(run))
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
            N_("Training"): N_("Its loss also falls by memorising."),
            N_("Test"): N_("A split that you choose by can no longer test."),
        },
        N_("It exists for choosing."),
    )


def about_precision(n: int, share: float = 0.9) -> Question:
    """Ask how much narrower the interval of an accuracy gets with four times the examples."""
    one, four = (_width(round(share * size), size) for size in (n, 4 * n))
    ratio = one / four
    options = {1.0: N_("The same"), 2.0: N_("Half"), 4.0: N_("A quarter")}
    nearest = min(options, key=lambda option: abs(option - ratio))
    return choice_question(
        N_("With four times as many pictures, how wide is the interval?"),
        options[nearest],
        {
            options[1.0]: N_("More pictures leave less to chance."),
            options[2.0]: N_("With so few pictures, it shrinks at another rate."),
            options[4.0]: N_("It shrinks with the square root of their number."),
        },
        N_(
            "It shrinks from {one:.1f} to {four:.1f} points, by √4 = 2.",
            one=100 * one,
            four=100 * four,
        ),
    )


def about_weakest(by_class: pd.DataFrame) -> Question:
    """Ask which class is wrong most often; every class that is as bad is right.

    by_class: as ``shares_right`` returns it.
    """
    is_weakest = by_class["accuracy"] == by_class["accuracy"].min()
    first, *also = by_class[is_weakest].itertuples()
    why = {
        row.label: N_(
            "For {n}, {share} are right, but another class is worse.",
            n=row.label,
            share=percent(row.accuracy),
        )
        for row in by_class[~is_weakest].itertuples()
    }
    return Question(
        N_("Which class does it get wrong most often?"),
        first.label,
        N_(
            "{right} of {n} pictures of {name} are right.",
            right=first.n_right,
            n=first.n,
            name=first.label,
        ),
        tuple(by_class["label"]),
        why,
        also=tuple(row.label for row in also),
    )


def _width(right: int, n: int) -> float:
    low, high = wilson(right, n)
    return high - low
