"""The pass of the user's model in batches of other sizes, and with less to keep for backward."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tfm_core.choices.variants.precisions import PRECISIONS, Precision
from tfm_core.inspect.speed.bench import Bench, compare, saved_bytes
from tfm_core.inspect.speed.report import BenchmarkCase, Equality
from tfm_core.layers.blocks import Block
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
    """Return the model's output for each example of a batch, one at a time."""
    count = len(inputs[0])
    return torch.cat([model(*(one[i : i + 1] for one in inputs)) for i in range(count)])


def batch_cases(bench: Bench) -> Iterator[BenchmarkCase]:
    """Check a batch against its examples one by one, then time every size."""
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
    with torch.no_grad():
        with bench.model.register_forward_pre_hook(lambda _model, inputs: seen.append(inputs)):
            bench.loss(few)
        together, alone = bench.model(*seen[0]), one_by_one(bench.model, seen[0])
    return compare(
        {f"output for {len(few)} examples": together},
        {f"output for {len(few)} examples": alone},
        "batch",
    )


LOSS_SCALE = 2.0**10


@contextmanager
def checkpointed(model: nn.Module) -> Iterator[None]:
    """Within the context, each Transformer block is recomputed in the backward pass."""
    blocks = [module for module in model.modules() if isinstance(module, Block)]
    for block in blocks:
        block.__dict__["forward"] = partial(checkpoint, block.forward, use_reentrant=False)
    try:
        yield
    finally:
        for block in blocks:
            del block.__dict__["forward"]


def plain_pass(bench: Bench) -> Tensor:
    """Keep every activation, in fp32."""
    return bench.pass_()


def autocast_pass(bench: Bench, dtype: torch.dtype, *, scales_loss: bool) -> Tensor:
    """Go forward under autocast; fp16 also scales the loss, lest small gradients become zero."""
    scale = LOSS_SCALE if scales_loss else 1.0
    bench.model.zero_grad(set_to_none=True)
    with torch.autocast(bench.device.type, dtype=dtype):
        loss = bench.loss()
    (scale * loss).backward()  # type: ignore[no-untyped-call]
    if scale != 1.0:
        gradients = [p.grad for p in bench.model.parameters() if p.grad is not None]
        torch._foreach_div_(gradients, scale)
    return loss.detach()


def checkpointing_cases(bench: Bench) -> Iterator[BenchmarkCase]:
    """Compare the pass with recomputed blocks (Chen et al. 2016) and in 16 bits.

    Micikevicius et al. 2018: bf16 has the range of fp32 and 8 bits of precision; fp16 has 11 bits
    and a small range, so its loss is scaled.
    """
    bf16, fp16 = PRECISIONS["bf16"], PRECISIONS["fp16"]

    @contextmanager
    def in_16_bits(precision: Precision) -> Iterator[None]:
        with torch.autocast(bench.device.type, dtype=_dtype(precision)):
            yield

    @contextmanager
    def both() -> Iterator[None]:
        with in_16_bits(bf16), checkpointed(bench.model):
            yield

    sides: dict[str, Callable[[], object]] = {
        "plain": partial(plain_pass, bench),
        "checkpointed": lambda: bench.pass_(lambda: checkpointed(bench.model)),
        "bf16": partial(autocast_pass, bench, _dtype(bf16), scales_loss=bf16.scales_loss),
        "fp16": partial(autocast_pass, bench, _dtype(fp16), scales_loss=fp16.scales_loss),
        "both": lambda: bench.pass_(both),
    }
    reference = bench.results()
    equal = [*compare(reference, bench.results(lambda: checkpointed(bench.model)), "checkpointed")]
    for side, precision, around in (
        ("bf16", bf16, partial(in_16_bits, bf16)),
        ("fp16", fp16, partial(in_16_bits, fp16)),
        ("both", bf16, both),
    ):
        equal += _rounded(reference, bench.results(around), side, precision)
    yield BenchmarkCase(
        N_("forward and backward"),
        sides,
        tuple(equal),
        n_bytes={name: saved_bytes(side) for name, side in sides.items()},
    )


def _rounded(
    reference: Mapping[str, Tensor], results: Mapping[str, Tensor], side: str, precision: Precision
) -> Iterator[Equality]:
    """Yield what 16 bits change of loss and output."""
    for what in ("loss", "output"):
        if what in reference:
            largest = float(reference[what].abs().max())
            difference = float((reference[what] - results[what]).abs().max())
            yield Equality(what, side, difference, precision.tolerance * largest)


def _dtype(precision: Precision) -> torch.dtype:
    assert precision.autocast is not None
    dtype: torch.dtype = getattr(torch, precision.autocast)
    return dtype
