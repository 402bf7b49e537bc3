"""The batch of a step in a reader's words, the loss of each of its examples, and of one answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from tfm_core.data.caption_words import join
from tfm_core.data.captions import CaptionData
from tfm_core.data.image_data import ImageData
from tfm_core.data.load import data_as
from tfm_core.data.text_data import TextData
from tfm_core.inspect.training_step.step import LossCall, forward, outputs_of, rows
from tfm_core.sentences import N_
from tfm_core.training.loop import Trainer

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class BatchRows:
    """The examples of a batch: their indices in the training set, and what they are.

    pictures: uint8 (B, C, H, W) where the data are pictures.
    """

    indices: list[int]
    inputs: list[str]
    targets: list[str]
    pictures: npt.NDArray[np.uint8] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class BatchAnswer:
    """One answer from logits to its loss, the best classes first and the right one among them.

    names, logits, probabilities, losses: one entry a class shown; losses are -log p in nats.
    is_changed: a mistake made these logits of the model's, and the loss takes them for logits.
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
    is_changed: bool


def batch_rows(trainer: Trainer) -> BatchRows:
    """Return the examples of the next step."""
    read = trainer.experiment.task.by_data(
        pairs=text_rows, stream=text_rows, pictures=image_rows, captions=caption_rows
    )
    return read(trainer, rows(trainer))


def text_rows(trainer: Trainer, indices: Tensor) -> BatchRows:
    """Return texts: sources and targets."""
    data = data_as(trainer.data, TextData)
    if data.windows is not None:  # they overlap, and are cut out of the text where they are needed
        decoded = [
            data.task.tgt_vocabulary.decode(row) for row in data.windows.rows(indices).tolist()
        ]
        return BatchRows(
            indices.tolist(), ["" for _ in decoded], [data.task.join_tgt(row) for row in decoded]
        )
    pairs = [data.train.pairs[n] for n in indices.tolist()]
    return BatchRows(
        indices.tolist(),
        [data.task.join_src(pair.src) for pair in pairs],
        [data.task.join_tgt(pair.tgt) for pair in pairs],
    )


def image_rows(trainer: Trainer, indices: Tensor) -> BatchRows:
    """Return pictures and their classes."""
    data, numbers = data_as(trainer.data, ImageData), indices.tolist()
    names = [data.facts.class_names[label] for label in data.train.labels[indices].tolist()]
    pictures = data.train.images[indices].numpy()
    return BatchRows(numbers, [N_("picture {n:,}", n=n) for n in numbers], names, pictures)


def caption_rows(trainer: Trainer, indices: Tensor) -> BatchRows:
    """Return pictures and their captions."""
    data, numbers = data_as(trainer.data, CaptionData), indices.tolist()
    captions = [join(data.train.captions[n].words, data.config) for n in numbers]
    pictures = data.train.pictures(indices).numpy()
    return BatchRows(numbers, [N_("picture {n:,}", n=n) for n in numbers], captions, pictures)


def class_name(trainer: Trainer, number: int) -> str:
    """Return what a class of the output is called."""
    name = trainer.experiment.task.by_data(
        pairs=token_name, stream=token_name, pictures=image_class, captions=caption_word
    )
    return name(trainer, number)


def token_name(trainer: Trainer, number: int) -> str:
    """Return the token that a class of a text model's output is."""
    first = getattr(trainer.objective, "first_class", 0)
    return str(data_as(trainer.data, TextData).task.tgt_vocabulary.token(first + number))


def image_class(trainer: Trainer, number: int) -> str:
    """Return the name of a class of pictures."""
    return data_as(trainer.data, ImageData).facts.class_names[number]


def caption_word(trainer: Trainer, number: int) -> str:
    """Return the word of a caption that a class of the output is."""
    return str(data_as(trainer.data, CaptionData).vocabulary.token(number))


@dataclass(frozen=True, slots=True, eq=False)
class BatchAnswers:
    """All answers of a batch, one row of the loss's logits each.

    losses: (N,), nats; counts: bool (N,), those that are not padding; owners: (N,), whose they are.
    """

    loss: float
    call: LossCall
    losses: Tensor
    counts: Tensor
    owners: Tensor

    def of(self, example: int) -> list[int]:
        """Return the rows of an example's answers that count."""
        rows: list[int] = ((self.owners == example) & self.counts).nonzero().flatten().tolist()
        return rows


def answers(trainer: Trainer) -> BatchAnswers | None:
    """Run the next batch forward; None where its loss is no cross-entropy of the model's output."""
    with outputs_of(trainer.model) as outputs:
        passed = forward(trainer)
    if passed.call is None or not outputs:
        return None
    losses = F.cross_entropy(
        passed.call.given.detach(),
        passed.call.targets,
        reduction="none",
        ignore_index=passed.call.ignore_index,
        label_smoothing=passed.call.smoothing,
    )
    counts = passed.call.targets != passed.call.ignore_index
    owners = _owners(passed.call.logits, outputs[-1])
    return BatchAnswers(float(passed.loss.detach()), passed.call, losses, counts, owners)


def _owners(logits: Tensor, output: Tensor) -> Tensor:
    """Return for each row of the logits the example that it was taken from, -1 if none.

    Autograd knows: every row sends its number back, and it arrives where the row came from.
    """
    numbers = torch.arange(1, len(logits) + 1, dtype=logits.dtype)
    (arrived,) = torch.autograd.grad((logits[:, 0] * numbers).sum(), output)
    owners = torch.full((len(logits),), -1)
    for example, row in enumerate(arrived.flatten(1)):
        there = row[row != 0].long() - 1
        owners[there] = example
    return owners


def example_losses(answers: BatchAnswers, n_examples: int) -> Floats:
    """Return (B,): the mean loss of each example's answers that count, 0 without any."""
    counted = answers.counts & (answers.owners >= 0)
    owners = answers.owners[counted]
    sums = torch.zeros(n_examples).index_add(0, owners, answers.losses[counted].float())
    mean: Floats = (sums / owners.bincount(minlength=n_examples).clamp(min=1)).numpy()
    return mean


def one_answer(trainer: Trainer, answers: BatchAnswers, number: int, shown: int = 8) -> BatchAnswer:
    """Return the numbers of one answer, by its row."""
    call = answers.call
    row = call.given.detach()[number].double()
    target = int(call.targets[number])
    log_sum = float(row.logsumexp(0))
    best = row.argsort(descending=True)[:shown].tolist()
    chosen = best if target in best else [*best[: shown - 1], target]
    log_p = row - log_sum
    picked = torch.tensor(chosen)
    return BatchAnswer(
        [class_name(trainer, number) for number in chosen],
        row[picked].float().numpy(),
        log_p[picked].float().numpy(),
        log_p[picked].exp().float().numpy(),
        class_name(trainer, target),
        -float(log_p[target]),
        log_sum,
        row.numel(),
        call.smoothing,
        call.given is not call.logits,
    )
