"""Learning to describe pictures: the next word of a caption, given the picture and those before."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tfm_core.choices.config import CaptionTaskConfig
from tfm_core.data.captions import CaptionData, CaptionSplit, SceneChanges
from tfm_core.training.losses import labels_of
from tfm_core.training.objectives import (
    Batch,
    Objective,
    StepMetrics,
    measure_tokens,
    token_metrics,
)

_MEASURED_AT_ONCE = 125  # what is computed of more pictures does not fit a processor's cache


class CaptionObjective(Objective):
    """Next-word prediction; training pictures are composed anew, with digits a little changed."""

    data: CaptionData
    config: CaptionTaskConfig

    def prepare(self) -> None:
        """See Objective."""
        self.n_train = len(self.data.train)
        self.n_classes = len(self.data.vocabulary)

    def sample(self, indices: Tensor, generator: torch.Generator) -> Batch:
        """See Objective; ``generator`` draws how each digit is changed."""
        size = (5, len(indices), self.data.train.chosen.size(1))
        changes = torch.rand(size, generator=generator) * 2 - 1
        return Batch(indices, (), (indices, changes))

    def learn_from(self, model: nn.Module, batch: Batch) -> StepMetrics:
        """See Objective."""
        rows, sampled = batch.tensors
        changes = self._changes(sampled)
        return self._metrics(model, self.data.train, rows, self.label_smoothing, changes)

    def _changes(self, sampled: Tensor) -> SceneChanges:
        """Return how digits are changed, given (5, B, n) from -1 to 1."""
        config = self.config
        turn, grow, lean, right, down = sampled
        return SceneChanges(
            angle=turn * config.rotation,
            zoom=1 + grow * config.scale,
            slant=lean * config.slant,
            right=right * config.shift,
            down=down * config.shift,
        )

    def _metrics(
        self,
        model: nn.Module,
        split: CaptionSplit,
        rows: Tensor | slice,
        smoothing: float,
        changes: SceneChanges | None = None,
    ) -> StepMetrics:
        images = self.data.normalise(split.pictures(rows, changes))
        tgt = split.tgt[rows]
        logits = model(images, tgt[:, :-1])
        return token_metrics(
            logits, labels_of(tgt, self.mistakes), smoothing, mistakes=self.mistakes
        )

    @torch.no_grad()
    def measure(self, model: nn.Module, split: str) -> tuple[float, float, float | None]:
        """See Objective; the pictures are the same every time, and the loss is not smoothed."""
        part = self.data.validation if split == "validation" else self.data.test
        return measure_tokens(
            len(part), lambda rows: self._metrics(model, part, rows, 0.0), _MEASURED_AT_ONCE
        )
