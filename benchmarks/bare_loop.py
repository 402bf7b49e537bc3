"""The loop that one writes without an engine: batch, loss, gradient, clip, update. No metrics."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.choices.config import ImageTaskConfig
from tfm_core.data.image_data import ImageData, draw_moves, moved
from tfm_core.data.moving import to_device
from tfm_core.data.vocabulary import PAD
from tfm_core.training.loop import Trainer, seeds_of_step


class BareLoop:
    """Learns what a trainer would, with its data, model and optimiser, and nothing else."""

    def __init__(self, trainer: Trainer) -> None:
        """Take a trainer that has not started."""
        self.trainer = trainer
        self.step = 0

    def learn(self, *, until: int) -> None:
        """Go on to step ``until``."""
        trainer, config = self.trainer, self.trainer.experiment.training
        model, optimizer = trainer.model, trainer.optimizer
        model.train()
        while self.step < until:
            self.step += 1
            for group in optimizer.param_groups:
                group["lr"] = config.rate(self.step)
            loss = self._loss(trainer.batch_indices(self.step))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm or math.inf)
            optimizer.step()

    def measure(self, n_validations: int, *, is_last: bool) -> None:
        """Measure validation so many times, as often as the engine did, and at last test."""
        trainer = self.trainer
        trainer.model.eval()
        with torch.inference_mode():
            for _ in range(n_validations):
                trainer.objective.measure(trainer.model, "validation")
            if is_last:
                trainer.objective.measure(trainer.model, "test")

    def _loss(self, indices: Tensor) -> Tensor:
        trainer = self.trainer
        smoothing, data = trainer.experiment.trained.label_smoothing, trainer.data
        if isinstance(data, ImageData):
            task = trainer.experiment.task
            assert isinstance(task, ImageTaskConfig)
            images = data.normalise(data.train.images.index_select(0, indices))
            _dropout, drawn = seeds_of_step(trainer.experiment, self.step)
            generator = torch.Generator().manual_seed(drawn)
            most = {"shift": task.shift, "rotation": task.rotation, "scale": task.scale}
            moves = to_device(draw_moves(len(indices), generator=generator, **most), images.device)
            images = moved(images, moves, **most)
            logits = trainer.model(images)
            return F.cross_entropy(logits, data.train.labels[indices], label_smoothing=smoothing)
        src, tgt = _cut(data.train.src[indices]), _cut(data.train.tgt[indices])
        logits = trainer.model(src, tgt[:, :-1])
        return F.cross_entropy(
            logits.flatten(0, 1), tgt[:, 1:].flatten(), ignore_index=PAD, label_smoothing=smoothing
        )


def _cut(ids: Tensor) -> Tensor:
    """Return a batch without the columns that are padding everywhere."""
    return ids[:, : int((ids != PAD).sum(1).max())]
