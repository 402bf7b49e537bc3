"""The batch of a step in a reader's words, the loss of each of its examples, and of one answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor

from tfm_core.inspect.tables import Column, Columns
from tfm_core.inspect.training_step.step import LossCall, forward, outputs_of, rows
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_
from tfm_core.training.loop import Trainer

LOSSES = Columns(
    {
        "example": Column(N_("example of the batch"), ","),
        "step": Column(N_("steps"), ","),
        "rate": Column(N_("learning rate"), ".2g"),
        "loss": Column(N_("loss (nats)"), ".4f", {"exponentformat": "e"}),
        "value": Column(N_("loss (nats)"), ".4f", {"exponentformat": "e"}),
        "input": Column(),
        "class": Column(N_("class"), axis={"type": "category"}),
        "chance": Column(N_("probability (softmax of logits)"), ".6f"),
        "logit": Column(N_("logit"), ".4f"),
        "nats": Column(N_("-log p"), ".4f"),
        "row": Column(N_("parameter, input to output")),
        "norm": Column(
            N_("gradient norm"),
            ".4g",
            {"rangemode": "tozero", "nticks": 5, "exponentformat": "e"},
        ),
        "name": Column(),
        "size": Column(N_("numbers"), ","),
        "number": Column(N_("singular values, largest first"), ","),
    }
)


def batch_rows(trainer: Trainer) -> pd.DataFrame:
    """Return the examples of the next step: number in the training set, input and target.

    Where the data are pictures, also each picture, uint8 (C, H, W).
    """
    indices = rows(trainer)
    inputs, targets = trainer.data.shown(indices)
    table = pd.DataFrame({"number": indices.tolist(), "input": inputs, "target": targets})
    pictures = trainer.data.train.pictures(indices)
    return table if pictures is None else table.assign(picture=list(pictures.numpy()))


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
        loss, call = forward(trainer)
    if call is None or not outputs:
        return None
    losses = F.cross_entropy(
        call.given.detach(),
        call.targets,
        reduction="none",
        ignore_index=call.ignore_index,
        label_smoothing=call.smoothing,
    )
    counts = call.targets != call.ignore_index
    owners = _owners(call.logits, outputs[-1])
    return BatchAnswers(float(loss.detach()), call, losses, counts, owners)


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


def one_answer(
    trainer: Trainer, answers: BatchAnswers, number: int, shown: int = 8
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return one answer from logits to its loss, by its row.

    A table of the likeliest classes and the right one: class, logit, chance, nats (-log p). Then,
    of the right one, its name as ``target``, logit, p, log_p and loss; log_sum, n_classes, and the
    share of smoothing; is_changed: a mistake made these logits of the model's, and the loss takes
    them for logits.
    """
    call = answers.call
    row = call.given.detach()[number].double()
    target = int(call.targets[number])
    log_sum = float(row.logsumexp(0))
    best = row.argsort(descending=True)[:shown].tolist()
    chosen = best if target in best else [*best[: shown - 1], target]
    log_p = row - log_sum
    picked = torch.tensor(chosen)
    names = trainer.data.names[getattr(trainer.objective, "first_class", 0) :]
    table = LOSSES.table(
        {
            "class": [names[number] for number in chosen],
            "logit": row[picked].float().numpy(),
            "chance": log_p[picked].exp().float().numpy(),
            "nats": -log_p[picked].float().numpy(),
        }
    )
    return table, {
        "target": names[target],
        "logit": float(row[target]),
        "p": float(log_p[target].exp()),
        "log_p": float(log_p[target]),
        "loss": -float(log_p[target]),
        "log_sum": log_sum,
        "n_classes": row.numel(),
        "smoothing": call.smoothing,
        "is_changed": call.given is not call.logits,
    }
