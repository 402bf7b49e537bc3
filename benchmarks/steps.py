"""One training step, the same for every contender."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def training_step(
    model: nn.Module,
    inputs: tuple[Tensor, ...],
    targets: Tensor,
    *,
    ignore: int = -100,
    learning_rate: float = 1e-3,
) -> Callable[[], float]:
    """Return a function that learns once from one batch with fused AdamW and returns the loss.

    model(*inputs) gives (..., classes), targets (...) are class numbers; those that equal
    ``ignore`` don't count.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, fused=True)
    model.train()

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        logits = model(*inputs)
        loss = F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=ignore)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
