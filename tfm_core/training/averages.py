"""An average of all weights over the steps, which often answers better than any of them.

Polyak & Juditsky 1992, "Acceleration of Stochastic Approximation by Averaging": steps of SGD walk
around the minimum, and their mean lies closer to it. Here the mean forgets exponentially, as in
Szegedy et al. 2016, section 8: ``average ← β average + (1 - β) weights``.

``torch.optim.swa_utils.AveragedModel`` makes the same average, but walks the model's modules anew
at every step: 3 to 5 % of a step of small models, where one fused pass over lists takes a tenth.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Generic, TypeVar

import torch
from torch import Tensor, nn

AnyModel = TypeVar("AnyModel", bound=nn.Module)


def decay_at(decay: float, n: int) -> float:
    """Return β of the ``n``-th update, from 1: it rises to ``decay``, so the start is soon gone.

    min(decay, (1 + n) / (10 + n)), as in TensorFlow's ``ExponentialMovingAverage``.
    """
    return min(decay, (1 + n) / (10 + n))


class AveragedWeights(Generic[AnyModel]):
    """A second model with the average of a first one's weights, on the same device.

    model: in eval mode, never trained. n_updates: steps that went into it.
    """

    def __init__(self, model: AnyModel, decay: float) -> None:
        """Begin with the weights as they are."""
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay, self.n_updates = decay, 0
        self._model = model
        self._mean, self._weights = _tensors(self.model.parameters()), _tensors(model.parameters())
        self._copies, self._buffers = _tensors(self.model.buffers()), _tensors(model.buffers())

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights as they are now; buffers, which nothing trains, are copied."""
        self.n_updates += 1
        share = 1 - decay_at(self.decay, self.n_updates)
        torch._foreach_lerp_(self._mean, self._weights, share)
        if self._buffers:
            torch._foreach_copy_(self._copies, self._buffers)

    def restore(self, weights: dict[str, Tensor] | None, n_updates: int) -> None:
        """Go on from the state of a checkpoint; without one, from the weights as they are now.

        Raises RuntimeError for weights of another model.
        """
        self.model.load_state_dict(self._model.state_dict() if weights is None else weights)
        self.n_updates = 0 if weights is None else n_updates


def _tensors(tensors: Iterable[Tensor]) -> list[Tensor]:
    return [tensor.detach() for tensor in tensors]
