"""What is learned: batches from data that lies on the device, the loss, and its measurement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from tfm_core.choices.config import OwnTextTaskConfig, TextTaskConfig
from tfm_core.data.moving import take_rows, to_device_together
from tfm_core.data.text_data import TextData, TextSplit
from tfm_core.data.vocabulary import PAD, SPECIALS
from tfm_core.layers.experts import load_balance, routing
from tfm_core.training.losses import cross_entropy, input_floor, labels_of, lowest_loss
from tfm_core.training.setup import to_floats

MEASURE_BATCH = 500
_CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True)
class StepMetrics:
    """Sums over one batch, still on the device.

    loss: mean cross-entropy, to be differentiated; n_correct of n_tokens: target tokens, or
    pictures, each of which counts as one; n_exact of n_examples: targets in which every token is
    correct, None for pictures. reported_loss: where it is not the one to differentiate. balance:
    how unequally tokens are spread over a layer's experts, on average, see ``load_balance``; None
    without experts.
    """

    loss: Tensor
    n_correct: Tensor
    n_tokens: Tensor | int
    n_exact: Tensor | None
    n_examples: int
    reported_loss: Tensor | None = None
    balance: Tensor | None = None

    @property
    def reported(self) -> Tensor:
        """The mean over n_tokens that is shown."""
        return self.loss if self.reported_loss is None else self.reported_loss


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as sampled on the CPU: examples, padded lengths and random augmentation.

    indices: (B,), always on the CPU. sizes: lengths and counts, as each objective needs them.
    tensors: the indices again, then what else was sampled; on the CPU until they are sent.
    """

    indices: Tensor
    sizes: tuple[int, ...]
    tensors: tuple[Tensor, ...]

    @property
    def rows(self) -> Tensor:
        """The indices where the batch is made."""
        return self.tensors[0]


class Objective(ABC):
    """One task as the loop sees it.

    A batch is sampled on the CPU and made where the data lies: so every device learns from the same
    batches, and those of many steps can be sent together.
    """

    n_train: int
    n_classes: int
    reads_per_epoch: float = 1.0  # how often an epoch reads each token or picture; overlaps count
    has_one_length: bool = False  # whether all batches are as long as the longest example

    def __init__(
        self,
        data: Any,
        config: Any,
        *,
        label_smoothing: float = 0.0,
        mistakes: tuple[str, ...] = (),
        balance_weight: float = 0.0,
    ) -> None:
        """Take data that lies on the device, and the settings of its task."""
        self.data, self.config = data, config
        self.balance_weight = balance_weight  # of a model's experts
        self.label_smoothing, self.mistakes = label_smoothing, mistakes
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Set ``n_train``, ``n_classes`` and what else follows from the data."""

    @abstractmethod
    def sample(self, indices: Tensor, generator: torch.Generator) -> Batch:
        """Draw a batch of the training examples ``indices`` (B,), which lie on the CPU."""

    def learn(self, model: nn.Module, batch: Batch) -> StepMetrics:
        """Return loss and counts of a batch whose tensors are on the model's device.

        Of a model with experts, their balance is part of the loss to differentiate alone.
        """
        with routing() as routed:
            metrics = self.learn_from(model, batch)
        if not routed:
            return metrics
        balances = torch.stack([load_balance(logits, top_k) for logits, top_k in routed])
        return replace(
            metrics,
            loss=metrics.loss + self.balance_weight * balances.sum(),
            reported_loss=metrics.reported,
            balance=balances.detach().mean(),
        )

    @abstractmethod
    def learn_from(self, model: nn.Module, batch: Batch) -> StepMetrics:
        """Return what the task alone says of a batch, see ``learn``."""

    def loss_and_metrics(
        self, model: nn.Module, indices: Tensor, generator: torch.Generator
    ) -> StepMetrics:
        """Draw a batch, send it to the model, and return its loss and counts."""
        device = next((parameter.device for parameter in model.parameters()), _CPU)
        return self.learn(model, send_batches([self.sample(indices, generator)], device)[0])

    def loss_lower_bound(self) -> float | None:
        """Return the lowest loss that the targets and the mistakes allow, None where unknown."""
        return input_floor(self.label_smoothing, self.n_classes, self.mistakes)

    @abstractmethod
    def measure(self, model: nn.Module, split: str) -> tuple[float, float, float | None]:
        """Return loss, accuracy and whole-sequence accuracy on "validation" or "test"."""


def send_batches(batches: Sequence[Batch], device: torch.device) -> list[Batch]:
    """Return batches with their tensors on a device, sent together."""
    if device.type == "cpu":
        return list(batches)
    sent = to_device_together([batch.tensors for batch in batches], device)
    return [replace(batch, tensors=tensors) for batch, tensors in zip(batches, sent, strict=True)]


class TextObjective(Objective):
    """Next-token prediction of the target given the source."""

    data: TextData
    config: TextTaskConfig | OwnTextTaskConfig

    def prepare(self) -> None:
        """See Objective."""
        self.n_train = len(self.data.train.src)
        is_label = self.config.facts.answer == "label"
        self.first_class = len(SPECIALS) if is_label else 0  # a label is never a special token
        self.n_classes = len(self.data.task.tgt_vocabulary) - self.first_class
        pad = self.data.task.src_vocabulary.specials.pad
        self._lengths = {  # on the CPU, so that cutting a batch needs no wait for the device
            name: ((split.src != pad).sum(1).cpu(), (split.tgt != PAD).sum(1).cpu())
            for name, split in self._splits().items()
        }

    def _splits(self) -> dict[str, TextSplit]:
        data = self.data
        return {"train": data.train, "validation": data.validation, "test": data.test}

    def _lengths_of(self, name: str, indices: Tensor) -> tuple[int, int]:
        """Return the lengths of the longest source and target of some examples."""
        src_lengths, tgt_lengths = self._lengths[name]
        return int(src_lengths[indices].max()), int(tgt_lengths[indices].max())

    def _metrics(self, model: nn.Module, src: Tensor, tgt: Tensor, smoothing: float) -> StepMetrics:
        logits, targets = model(src, tgt[:, :-1]), labels_of(tgt, self.mistakes)
        return token_metrics(
            logits, targets, smoothing, mistakes=self.mistakes, first_class=self.first_class
        )

    def sample(self, indices: Tensor, generator: torch.Generator) -> Batch:
        """See Objective; nothing is drawn at random, and all are as long as the longest."""
        train = self.data.train
        sizes = self._lengths_of("train", indices)
        if self.has_one_length:
            sizes = train.src.size(1), train.tgt.size(1)
        return Batch(indices, sizes, (indices,))

    def learn_from(self, model: nn.Module, batch: Batch) -> StepMetrics:
        """See Objective."""
        train, (src_len, tgt_len) = self.data.train, batch.sizes
        src = take_rows(train.src[:, :src_len], batch.rows, batch.indices)
        tgt = take_rows(train.tgt[:, :tgt_len], batch.rows, batch.indices)
        return self._metrics(model, src, tgt, self.label_smoothing)

    def loss_lower_bound(self) -> float | None:
        """Targets are functions of their sources, so only label smoothing keeps the loss up."""
        return lowest_loss(self.label_smoothing, self.n_classes, self.mistakes)

    def accuracy_upper_bound(self) -> float | None:
        """Return the highest accuracy that the targets allow; None where all can be right."""
        return None

    @torch.no_grad()
    def measure(self, model: nn.Module, split: str) -> tuple[float, float, float | None]:
        """See Objective; the loss is without label smoothing."""
        part = self._splits()[split]

        def metrics_of(rows: slice) -> StepMetrics:
            src_len, tgt_len = self._lengths_of(split, torch.arange(rows.start, rows.stop))
            return self._metrics(model, part.src[rows, :src_len], part.tgt[rows, :tgt_len], 0.0)

        return measure_tokens(len(part.src), metrics_of)


class OwnObjective(TextObjective):
    """The same for user data, whose targets need not follow from their sources."""

    loss_lower_bound = Objective.loss_lower_bound


def token_metrics(
    logits: Tensor,
    targets: Tensor,
    smoothing: float,
    *,
    mistakes: tuple[str, ...],
    first_class: int = 0,
) -> StepMetrics:
    """Measure predictions (B, T, vocabulary) of the tokens (B, T); padding does not count.

    mistakes: see ``losses.cross_entropy``. first_class: the tokens before it are never answers,
    and are left out of the loss.
    """
    loss = cross_entropy(
        logits[..., first_class:].flatten(0, 1),
        targets.flatten() - first_class,
        mistakes=mistakes,
        smoothing=smoothing,
        ignored=PAD - first_class,
    )
    real = targets != PAD
    is_correct = (logits.detach().argmax(-1) == targets) & real
    n_exact = (is_correct == real).all(1).sum()
    return StepMetrics(loss, is_correct.sum(), real.sum(), n_exact, len(targets))


def measure_tokens(
    total: int, metrics_of: Callable[[slice], StepMetrics], batch: int = MEASURE_BATCH
) -> tuple[float, float, float | None]:
    """Return loss, accuracy and whole-sequence accuracy over ``total`` examples, in batches.

    Whole-sequence accuracy is None where ``metrics_of`` counts none.
    """
    loss = n_correct = n_tokens = n_exact = 0.0
    counts_exact = False
    for first in range(0, total, batch):
        metrics = metrics_of(slice(first, min(total, first + batch)))
        counts_exact = metrics.n_exact is not None
        exact_now = 0.0 if metrics.n_exact is None else metrics.n_exact
        mean, correct, tokens, exact = to_floats(
            metrics.loss, metrics.n_correct, metrics.n_tokens, exact_now
        )
        loss += mean * tokens
        n_correct, n_tokens, n_exact = n_correct + correct, n_tokens + tokens, n_exact + exact
    return loss / n_tokens, n_correct / n_tokens, n_exact / total if counts_exact else None
