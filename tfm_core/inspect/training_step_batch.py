"""The batch of a step in a reader's words, the loss of each of its examples, and of one answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from tfm_core.data.image_data import ImageData
from tfm_core.data.text_data import TextData
from tfm_core.inspect.training_step import Forward, LossCall, rows
from tfm_core.training.loop import Trainer

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The examples of a batch: their places in the training set, and what they are.

    pictures: uint8 (B, C, H, W) where the data are pictures.
    """

    places: list[int]
    inputs: list[str]
    targets: list[str]
    pictures: npt.NDArray[np.uint8] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """One answer from logits to its loss, the best classes first and the right one among them.

    names, logits, probabilities, losses: one entry a class shown; losses are -log p in nats.
    """

    names: list[str]
    logits: Floats
    log_probabilities: Floats
    probabilities: Floats
    target: str
    loss: float
    log_sum: float
    n_classes: int
    smoothing: float


def batch_rows(trainer: Trainer) -> Rows:
    """Return the examples of the next step."""
    places, data = rows(trainer), trainer.data
    if isinstance(data, ImageData):
        labels = data.train.labels[places].tolist()
        names = [data.facts.class_names[label] for label in labels]
        pictures = data.train.images[places].numpy()
        return Rows(places.tolist(), [f"picture {n:,}" for n in places.tolist()], names, pictures)
    if isinstance(data, TextData):
        pairs = [data.train.pairs[place] for place in places.tolist()]
        return Rows(
            places.tolist(),
            [data.task.join_src(pair.src) for pair in pairs],
            [data.task.join_tgt(pair.tgt) for pair in pairs],
        )
    numbers = places.tolist()
    return Rows(numbers, [f"example {n:,}" for n in numbers], ["" for _ in numbers])


def class_name(trainer: Trainer, number: int) -> str:
    """Return what a class of the output is called."""
    data = trainer.data
    if isinstance(data, ImageData):
        return data.facts.class_names[number]
    vocabulary = getattr(getattr(data, "task", None), "tgt_vocabulary", None)
    return str(number) if vocabulary is None else str(vocabulary.token(number))


def grid(call: LossCall, n_examples: int) -> tuple[Tensor, Tensor]:
    """Return the losses (B, T) of all answers, and which of them count (bool).

    T is 1 where an example has one answer. Raises ValueError where answers don't belong to
    examples one by one.
    """
    count = call.targets.numel()
    if n_examples == 0 or count % n_examples:
        raise ValueError("The answers of this model don't belong to its examples one by one.")
    losses = F.cross_entropy(
        call.logits.detach(),
        call.targets,
        reduction="none",
        ignore_index=call.ignore_index,
        label_smoothing=call.smoothing,
    )
    counts = call.targets != call.ignore_index
    return losses.view(n_examples, -1), counts.view(n_examples, -1)


def example_losses(found: Forward) -> Floats:
    """Return (B,): the mean loss of each example's answers that count."""
    assert found.call is not None
    losses, counts = grid(found.call, found.scores.examples)
    mean: Floats = ((losses * counts).sum(1) / counts.sum(1).clamp(min=1)).numpy()
    return mean


def one_answer(
    trainer: Trainer, found: Forward, example: int, place: int, shown: int = 8
) -> Answer:
    """Return the numbers of one answer: ``place`` counts among an example's, from 0."""
    call = found.call
    assert call is not None
    per = call.targets.numel() // found.scores.examples
    row = call.logits.detach()[example * per + place].double()
    target = int(call.targets[example * per + place])
    log_sum = float(row.logsumexp(0))
    best = row.argsort(descending=True)[:shown].tolist()
    chosen = best if target in best else [*best[: shown - 1], target]
    log_p = row - log_sum
    picked = torch.tensor(chosen)
    return Answer(
        [class_name(trainer, number) for number in chosen],
        row[picked].float().numpy(),
        log_p[picked].float().numpy(),
        log_p[picked].exp().float().numpy(),
        class_name(trainer, target),
        -float(log_p[target]),
        log_sum,
        row.numel(),
        call.smoothing,
    )
