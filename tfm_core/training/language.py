"""The objective of a language model: at every position, predict the next token of the text.

Each position of a window is one example, all learned from in one pass, because the causal mask
keeps every one of them from seeing what it has to predict (Radford et al. 2018, section 3.1).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tfm_core.choices.config import CorpusTaskConfig
from tfm_core.data.moving import take_rows, to_device
from tfm_core.data.text.english_sentences import entropy_per_token
from tfm_core.data.text.in_context import GENERATORS
from tfm_core.data.text_data import TextData
from tfm_core.training.losses import cross_entropy, labels_of, predicts_others
from tfm_core.training.objectives import (
    MEASURE_BATCH,
    Batch,
    Objective,
    StepMetrics,
    measure_tokens,
)

_TOKENS_AT_ONCE = 20_000  # of a measurement
_LOGITS_AT_ONCE = 50_000_000  # 200 MB


class LanguageObjective(Objective):
    """Next-token prediction without a source."""

    data: TextData
    config: CorpusTaskConfig

    def prepare(self) -> None:
        """See Objective."""
        data = self.data
        self.n_train = len(data.train) if data.windows is None else len(data.windows)
        windows = data.windows
        self.reads_per_epoch = (
            1.0 if windows is None else len(windows) * windows.length / len(windows.ids)
        )
        self.n_classes = len(data.task.tgt_vocabulary)
        self._pad = data.task.tgt_vocabulary.specials.pad
        self._lengths = (data.train.tgt != self._pad).sum(1).cpu()

    def sample(self, indices: Tensor, generator: torch.Generator) -> Batch:
        """See Objective; ``indices`` are sentences, or the starts of windows of the text."""
        longest = self.data.train.tgt.size(1)
        if self.data.windows is None and not self.has_one_length:
            longest = int(self._lengths[indices].max())
        return Batch(indices, (longest,), (indices,))

    def learn_from(self, model: nn.Module, batch: Batch) -> StepMetrics:
        """See Objective."""
        windows, device = self.data.windows, batch.rows.device
        counted = self.data.train.counted
        if counted is not None:
            counted = take_rows(counted, batch.rows, batch.indices)
        if windows is None:
            rows = take_rows(self.data.train.tgt[:, : batch.sizes[0]], batch.rows, batch.indices)
        elif windows.ids.device == device:
            rows = windows.rows(batch.rows)
        else:
            rows = to_device(windows.rows(batch.indices), device)
        return self._metrics(model, rows, counted, self.label_smoothing)

    def _metrics(
        self, model: nn.Module, rows: Tensor, counted: Tensor | None, smoothing: float
    ) -> StepMetrics:
        """rows: (B, T + 1) ids from <bos> on; every token behind it is predicted.

        counted: (B, T), which of those predictions count; None for all.
        """
        targets = labels_of(rows, self.mistakes)
        if counted is not None:
            targets = targets.masked_fill(~counted, self._pad)
        logits = model(rows[:, :0], rows[:, :-1])  # (B, T, vocabulary)
        loss = cross_entropy(
            logits.flatten(0, 1),
            targets.flatten(),
            mistakes=self.mistakes,
            smoothing=smoothing,
            ignored=self._pad,
        )
        real = targets != self._pad
        n_correct = ((logits.detach().argmax(-1) == targets) & real).sum()
        return StepMetrics(loss, n_correct, real.sum(), None, len(rows))

    def loss_lower_bound(self) -> float | None:
        """Return what the best predictions of drawn texts lose; of a text that is unknown.

        With label smoothing the bound is another, which is not computed.
        """
        floor = super().loss_lower_bound()
        name = self.config.name
        if floor is not None or name == "own-text" or self.label_smoothing:
            return floor
        if predicts_others(self.mistakes):
            return 0.0
        if name in GENERATORS:
            return GENERATORS[name].floor(self._validated())
        return entropy_per_token(self.config.unit)

    def _validated(self) -> list[tuple[str, ...]]:
        """Return the validation sequences with their last tokens."""
        vocabulary = self.data.task.tgt_vocabulary
        rows = self.data.validation.tgt[:, 1:].tolist()
        return [tuple(map(vocabulary.token, row)) for row in rows]

    @torch.no_grad()
    def measure(self, model: nn.Module, split: str) -> tuple[float, float, float | None]:
        """See Objective; a text is never exactly right: sequence accuracy is None."""
        chosen = {"validation": self.data.validation, "test": self.data.test}[split]
        rows, counted = chosen.tgt, chosen.counted
        n_tokens = min(_TOKENS_AT_ONCE, _LOGITS_AT_ONCE // self.n_classes)
        at_once = max(1, min(MEASURE_BATCH, n_tokens // rows.size(1)))
        return measure_tokens(
            len(rows),
            lambda part: self._metrics(
                model, rows[part], None if counted is None else counted[part], 0.0
            ),
            at_once,
        )
