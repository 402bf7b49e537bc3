"""Hidden words: masked language modelling (Devlin et al. 2019, section 3.1) and span corruption.

At each training step other words of a sentence are chosen, as many as the task hides. Of the chosen
words 80% become <mask>, 10% a random word and 10% stay as they are, so that the model cannot
trust what it sees; all chosen words count in what is learned from. What is reported, while training
and on unseen sentences, counts hidden words alone: the loss at <mask>, where the best is known.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property, partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.data.moving import to_device_together
from tfm_core.data.text.hidden_words import (
    MaskedWordsTask,
    SpanCorruptionTask,
    n_hidden,
    span_posterior,
    word_posterior,
)
from tfm_core.data.vocabulary import EOS, MASK, PAD, SPECIALS
from tfm_core.training.losses import cross_entropy, input_floor, predicts_others
from tfm_core.training.objectives import Batch, StepMetrics, TextObjective

HIDDEN, RANDOM = 0.8, 0.1
"""Shares of the chosen words that become <mask>, and a random word; the rest stays."""


class ReadObjective(TextObjective, ABC):
    """Hidden words of texts whose grammar is known, and so the best that can be done."""

    @property
    @abstractmethod
    def _bounds(self) -> tuple[float, float] | None:
        """The loss and the share right of a perfect reader of the validation set.

        None where too many words are hidden at once to work that out.
        """

    def loss_lower_bound(self) -> float | None:
        """Return the loss of a perfect reader on the validation set, None where it is not known.

        Of probabilities taken for logits, what they alone leave.
        """
        floor = input_floor(self.label_smoothing, self.n_classes, self.mistakes)
        if floor is not None or self._bounds is None or predicts_others(self.mistakes):
            return floor
        return self._bounds[0]

    def accuracy_upper_bound(self) -> float | None:
        """Return the share of what is hidden that a perfect reader gets right, in the mean."""
        if self._bounds is None or predicts_others(self.mistakes):
            return None
        return self._bounds[1]


class SpanObjective(ReadObjective):
    """Next-token prediction of hidden spans: several answers may be right, so bounds are known."""

    @cached_property
    def _bounds(self) -> tuple[float, float] | None:
        task = self.data.task
        assert isinstance(task, SpanCorruptionTask)
        nats = right = count = 0.0
        for pair in self.data.validation.pairs:
            try:
                chances = span_posterior(pair.src, task.percent, self.data.n_draws)
            except ValueError:
                return None
            nats -= math.log(chances[pair.tgt])
            right += likeliest_right(chances, pair.tgt)
            count += len(pair.tgt) + 1  # and <eos>
        return nats / count, right / count


def likeliest_right(chances: Mapping[tuple[str, ...], float], target: tuple[str, ...]) -> float:
    """Return how many tokens of the target, <eos> too, one may expect of the likeliest each time.

    chances: target -> probability. Each token is guessed with those before it given.
    """
    expected = 0.0
    remaining = dict(chances)
    for at in range(len(target) + 1):
        nexts: defaultdict[str, float] = defaultdict(float)
        for words, chance in remaining.items():
            nexts[words[at] if at < len(words) else SPECIALS[EOS]] += chance
        expected += max(nexts.values()) / sum(nexts.values())
        if at < len(target):
            remaining = {
                words: c for words, c in remaining.items() if words[at : at + 1] == (target[at],)
            }
    return expected


class MaskedObjective(ReadObjective):
    """Hidden words given the others. The splits hold sentences and, hidden in them, fixed words."""

    def prepare(self) -> None:
        """See Objective."""
        super().prepare()
        task, train = self.data.task, self.data.train
        assert isinstance(task, MaskedWordsTask)
        self.mask_id = task.src_vocabulary.id_of(MASK)
        counts = [n_hidden(n, task.percent) for n in range(1, train.src.size(1) + 1)]
        self._n_chosen = torch.tensor([0, *counts])  # by length
        self._sentences = train.tgt.cpu()  # what is drawn of them depends on no device

    def sample(self, indices: Tensor, generator: torch.Generator) -> Batch:
        """See Objective; ``generator`` draws which words are chosen and what is shown for them."""
        longest = self._lengths_of("train", indices)[1]
        words = self._sentences[indices, 1:longest]
        src, chosen = self.hide(words, generator)
        if self.has_one_length:
            missing = (0, self._sentences.size(1) - longest)
            words, src = (F.pad(ids, missing, value=PAD) for ids in (words, src))
            chosen = F.pad(chosen, missing)
        n_hidden, tensors = self._at(words, src, chosen)
        return Batch(indices, (n_hidden,), (indices, *tensors))

    def learn_from(self, model: nn.Module, batch: Batch) -> StepMetrics:
        """See Objective."""
        return self._answered(model, batch.sizes[0], batch.tensors[1:], self.label_smoothing)

    def hide(self, words: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return what is shown of sentences (B, T), and bool (B, T): the chosen words."""
        order = torch.rand(words.shape, generator=generator).masked_fill(words == PAD, 2.0)
        rank = order.argsort(1).argsort(1)
        chosen = rank < self._n_chosen[(words != PAD).sum(1)][:, None]
        fate = torch.rand(words.shape, generator=generator)
        others = torch.randint(len(SPECIALS), self.mask_id, words.shape, generator=generator)
        shown = words.masked_fill(chosen & (fate < HIDDEN), self.mask_id)
        is_random = chosen & (fate >= HIDDEN) & (fate < HIDDEN + RANDOM)
        return torch.where(is_random, others, shown), chosen

    def _metrics(self, model: nn.Module, src: Tensor, tgt: Tensor, smoothing: float) -> StepMetrics:
        host, device = src.cpu(), src.device
        n_hidden, tensors = self._at(tgt[:, 1:].cpu(), host, host == self.mask_id)
        return self._answered(model, n_hidden, to_device_together([tensors], device)[0], smoothing)

    def _at(self, words: Tensor, src: Tensor, chosen: Tensor) -> tuple[int, tuple[Tensor, ...]]:
        """Return how many words are hidden, and what ``_answered`` takes, all of it on the CPU,
        which knows without waiting how many words are chosen.

        words: as they are, src: as they are shown, chosen: bool, (B, T) each.
        """
        most = int(self._n_chosen[-1] if self.has_one_length else chosen.sum(1).max())
        positions = chosen.byte().argsort(dim=1, descending=True, stable=True)[:, :most]  # (B, R)
        chosen, targets = chosen.gather(1, positions), words.gather(1, positions)
        hidden = (src.gather(1, positions) == self.mask_id) & chosen
        which = chosen.flatten().nonzero().squeeze(1)
        wanted, seen = targets[chosen], hidden[chosen]
        return int(hidden.sum()), (src, words, positions, targets, hidden, which, wanted, seen)

    def _answered(
        self, model: nn.Module, n_tokens: int, tensors: tuple[Tensor, ...], smoothing: float
    ) -> StepMetrics:
        """Learn from the chosen words; report those of them that are hidden.

        tensors: of ``_at``, on the model's device.
        """
        src, words, positions, targets, hidden, which, wanted, seen = tensors
        logits = model(src, words, positions)  # (B, R, vocabulary)
        picked = logits.flatten(0, 1)[which]
        measure = partial(cross_entropy, mistakes=self.mistakes)
        loss = measure(picked, wanted, smoothing=smoothing)
        plain = measure(picked.detach(), wanted, reduction="none")
        is_correct = (logits.detach().argmax(-1) == targets) & hidden
        n_exact = (is_correct == hidden).all(1).sum()
        reported = (plain * seen).sum() / max(1, n_tokens)
        return StepMetrics(loss, is_correct.sum(), n_tokens, n_exact, len(src), reported)

    @cached_property
    def _bounds(self) -> tuple[float, float] | None:
        total = right = count = 0.0
        for pair in self.data.validation.pairs:
            try:
                posteriors = word_posterior(pair.src, self.data.n_draws)
            except ValueError:
                return None
            total -= sum(
                math.log(shares[pair.tgt[position]]) for position, shares in posteriors.items()
            )
            right += sum(max(shares.values()) for shares in posteriors.values())
            count += len(posteriors)
        return total / count, right / count
