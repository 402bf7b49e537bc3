"""Length: one block of the user's model on ever longer sequences, attention both ways.

Every token looks at every other, so scores grow with the square of the length; everything else in
a block grows with the length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from functools import partial

import torch
from torch import Tensor

from tfm_core.inspect.speed.bench import Around, Bench, compare
from tfm_core.inspect.speed.cases import BenchmarkCase, NotHere
from tfm_core.inspect.speed.explicit import written_out
from tfm_core.inspect.speed.saved import saved_bytes
from tfm_core.layers.blocks import Block
from tfm_core.sentences import N_

LENGTHS = (16, 32, 64, 128, 256, 512, 1024)
MAX_BYTES = 512 * 2**20
"""Where the maps of explicit attention would need more, the curve ends."""


def lengths(n_heads: int) -> list[int]:
    """Return the lengths whose attention maps, kept twice in fp32, fit."""
    return [n for n in LENGTHS if 8 * n_heads * n * n <= MAX_BYTES]


def block_pass(block: Block, x: Tensor, memory: Tensor | None, around: Around) -> Tensor:
    """Run one block forward and backward on (1, T, d_model)."""
    block.zero_grad(set_to_none=True)
    x.grad = None
    with around():
        out: Tensor = block(x, memory=memory)
    out.square().mean().backward()  # type: ignore[no-untyped-call]
    return out.detach()


def cases(bench: Bench) -> Iterator[BenchmarkCase]:
    """Compare one block at every length."""
    block = next((one for one in bench.model.modules() if isinstance(one, Block)), None)
    if block is None:
        raise NotHere("This model has no Transformer block; its cost grows with the length alone.")
    width = block.self_attention.d_model
    for length in lengths(block.self_attention.n_heads):
        generator = torch.Generator().manual_seed(length)
        x = torch.randn(1, length, width, generator=generator).to(bench.device).requires_grad_()
        memory = None if block.cross_attention is None else x.detach().flip(1)
        yield _case(block, x, memory)


def _case(block: Block, x: Tensor, memory: Tensor | None) -> BenchmarkCase:
    ways: dict[str, Around] = {"explicit": written_out, "fused": nullcontext}
    sides: dict[str, Callable[[], Tensor]] = {
        name: partial(block_pass, block, x, memory, way) for name, way in ways.items()
    }

    def results(name: str) -> dict[str, Tensor]:
        out = sides[name]()
        assert x.grad is not None
        return {"output": out, "gradient": x.grad.clone()}

    return BenchmarkCase(
        N_("one block, forward and backward"),
        sides,
        compare(results("explicit"), results("fused"), "fused"),
        x=float(x.size(1)),
        n_bytes={name: saved_bytes(side) for name, side in sides.items()},
    )
