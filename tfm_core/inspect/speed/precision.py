"""Autocast: matrix products in 16 bits, the rest and the weights in 32.

Micikevicius et al. 2018, "Mixed Precision Training". bf16 has the range of fp32 and 8 bits of
precision; fp16 has 11 bits and a small range, so its loss is scaled up and the gradients down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor

from tfm_core.inspect.speed.bench import Bench
from tfm_core.inspect.speed.cases import BenchmarkCase, Equality
from tfm_core.inspect.speed.saved import saved_bytes
from tfm_core.sentences import N_
from tfm_core.variants.precisions import FP32, PRECISIONS, Precision

AUTOCAST = [each for each in PRECISIONS.values() if each.autocast is not None]
LOSS_SCALE = 2.0**10


def fp32_pass(bench: Bench) -> Tensor:
    """Compute in single precision."""
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


def cases(bench: Bench) -> Iterator[BenchmarkCase]:
    """Compare the whole pass in three precisions."""
    sides: dict[str, Callable[[], object]] = {FP32.name: partial(fp32_pass, bench)}
    sides |= {
        each.name: partial(autocast_pass, bench, _dtype(each), scales_loss=each.scales_loss)
        for each in AUTOCAST
    }
    reference = bench.results()
    equal = []
    for precision in AUTOCAST:
        around = partial(torch.autocast, bench.device.type, dtype=_dtype(precision))
        results = bench.results(around)
        for what in ("loss", "output"):
            if what in reference:
                largest = float(reference[what].abs().max())
                difference = float((reference[what] - results[what]).abs().max())
                equal.append(
                    Equality(what, precision.name, difference, precision.tolerance * largest)
                )
    yield BenchmarkCase(
        N_("forward and backward"),
        sides,
        tuple(equal),
        n_bytes={name: saved_bytes(side) for name, side in sides.items()},
    )


def _dtype(precision: Precision) -> torch.dtype:
    assert precision.autocast is not None
    dtype: torch.dtype = getattr(torch, precision.autocast)
    return dtype
