"""Gradient checkpointing: forget a block's inside, and compute it again on the way back.

Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost": of each block only the input is
kept, for about a third more arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from torch import nn
from torch.utils.checkpoint import checkpoint

from tfm_core.inspect.speed.bench import Bench, compare
from tfm_core.inspect.speed.cases import BenchmarkCase, NotHere
from tfm_core.inspect.speed.saved import saved_bytes
from tfm_core.layers.blocks import Block
from tfm_core.sentences import N_


@contextmanager
def checkpointed(model: nn.Module) -> Iterator[None]:
    """Within the context, every Transformer block forgets its inside until the backward pass."""
    blocks = [module for module in model.modules() if isinstance(module, Block)]
    for block in blocks:
        block.__dict__["forward"] = partial(checkpoint, block.forward, use_reentrant=False)
    try:
        yield
    finally:
        for block in blocks:
            del block.__dict__["forward"]


def plain_pass(bench: Bench) -> object:
    """Keep everything that the backward pass needs."""
    return bench.pass_()


def checkpointed_pass(bench: Bench) -> object:
    """Keep the input of each block; the backward pass computes its inside a second time."""
    return bench.pass_(lambda: checkpointed(bench.model))


def cases(bench: Bench) -> Iterator[BenchmarkCase]:
    """Compare the whole pass."""
    blocks = [module for module in bench.model.modules() if isinstance(module, Block)]
    if not blocks:
        raise NotHere(
            "This model has no stack of Transformer blocks whose inside could be forgotten."
        )
    reference = bench.results()
    sides = {
        "plain": lambda: plain_pass(bench),
        "checkpointed": lambda: checkpointed_pass(bench),
    }
    yield BenchmarkCase(
        N_("forward and backward"),
        sides,
        compare(
            reference,
            bench.results(lambda: checkpointed(bench.model)),
            "checkpointed",
        ),
        n_bytes={name: saved_bytes(side) for name, side in sides.items()},
        facts={"blocks": float(len(blocks))},
    )
