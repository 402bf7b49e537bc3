"""Batch size: examples a second, from one at a time to twice the configured batch.

Every operation has a fixed cost besides its arithmetic; a batch shares it out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn

from tfm_core.inspect.speed.bench import Bench, compare
from tfm_core.inspect.speed.cases import BenchmarkCase, Equality
from tfm_core.sentences import N_

LARGEST = 512


def sizes(batch_size: int, n_train: int) -> list[int]:
    """Return 1, 2, 4, ... up to twice the configured batch, as far as there are examples."""
    top = min(2 * batch_size, LARGEST, n_train)
    return sorted({top, *(2**i for i in range(top.bit_length()) if 2**i < top)})


def one_batch(bench: Bench, indices: Tensor) -> Tensor:
    """Learn from all examples in one pass."""
    return bench.pass_(indices=indices)


def one_by_one(model: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
    """Return the model's output for each example of a batch, run by itself."""
    count = len(inputs[0])
    return torch.cat([model(*(one[i : i + 1] for one in inputs)) for i in range(count)])


def cases(bench: Bench) -> Iterator[BenchmarkCase]:
    """Check that a batch gives what its examples give by themselves, then time every size."""
    for size in sizes(bench.trainer.batch_size, bench.trainer.objective.n_train):
        indices = bench.indices(size)
        yield BenchmarkCase(
            N_("forward and backward"),
            {"batch": partial(one_batch, bench, indices)},
            _checked(bench, indices[:8]),
            x=float(len(indices)),
        )


def _checked(bench: Bench, few: Tensor) -> tuple[Equality, ...]:
    seen: list[tuple[Tensor, ...]] = []
    handle = bench.model.register_forward_pre_hook(lambda _model, inputs: seen.append(inputs))
    try:
        with torch.no_grad():
            bench.loss(few)
    finally:
        handle.remove()
    with torch.no_grad():
        together, alone = bench.model(*seen[0]), one_by_one(bench.model, seen[0])
    return compare(
        {f"output for {len(few)} examples": together},
        {f"output for {len(few)} examples": alone},
        "batch",
    )
