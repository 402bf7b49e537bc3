"""Batch size: examples a second, from one at a time to twice the configured batch.

Every operation has a fixed cost besides its arithmetic; a batch shares it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from tfm_core.inspect.speed.arms import Arm, Equality
from tfm_core.inspect.speed.bench import Bench

LARGEST = 512


def sizes(batch_size: int, n_train: int) -> list[int]:
    """Return 1, 2, 4, ... up to twice the configured batch, as far as there are examples."""
    top = min(2 * batch_size, LARGEST, n_train)
    return sorted({top, *(2**i for i in range(top.bit_length()) if 2**i < top)})


def one_batch(bench: Bench, indices: Tensor) -> Tensor:
    """Learn from all examples in one pass."""
    return bench.pass_(indices=indices)


def one_by_one(bench: Bench, indices: Tensor) -> Tensor:
    """Return the loss of the same examples, each in a pass of its own.

    The batch's loss is their mean, weighted by how many tokens each has.
    """
    total, counted = torch.zeros(()), 0.0
    for place in torch.split(indices, 1):
        generator = torch.Generator().manual_seed(0)
        scores = bench.trainer.objective.scores(bench.model, place, generator)
        total = total + scores.loss.detach().cpu() * float(scores.counted)
        counted += float(scores.counted)
    return total / counted


def arms(bench: Bench) -> Iterator[Arm]:
    """Check that a batch is the mean of its examples, then time every size."""
    smoothing = bench.experiment.training.label_smoothing
    for size in sizes(bench.trainer.batch_size, bench.trainer.objective.n_train):
        indices = bench.indices(size)
        few = indices[:8]
        together = float(bench.loss(few).detach())
        difference = abs(together - float(one_by_one(bench, few)))
        tolerance = 1e-4 * (1 + smoothing) * max(1.0, together)
        yield Arm(
            "forward and backward",
            {"batch": partial(one_batch, bench, indices)},
            (Equality(f"mean loss of {len(few)} examples", "batch", difference, tolerance),),
            x=float(len(indices)),
        )
