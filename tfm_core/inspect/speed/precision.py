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

TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
TOLERANCES = {"bf16": 0.1, "fp16": 0.02}
"""Largest share of the largest output by which rounding may move one, over a few layers."""
LOSS_SCALE = 2.0**10


def fp32_pass(bench: Bench) -> Tensor:
    """Compute in single precision."""
    return bench.pass_()


def autocast_pass(bench: Bench, dtype: torch.dtype) -> Tensor:
    """Go forward under autocast; fp16 also scales the loss, lest small gradients become zero."""
    scale = LOSS_SCALE if dtype == torch.float16 else 1.0
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
    sides: dict[str, Callable[[], object]] = {"fp32": partial(fp32_pass, bench)}
    sides |= {name: partial(autocast_pass, bench, dtype) for name, dtype in TYPES.items()}
    reference = bench.results()
    equal = []
    for name, dtype in TYPES.items():
        around = partial(torch.autocast, bench.device.type, dtype=dtype)
        found = bench.results(around)
        for what in ("loss", "output"):
            if what in reference:
                largest = float(reference[what].abs().max())
                difference = float((reference[what] - found[what]).abs().max())
                equal.append(Equality(what, name, difference, TOLERANCES[name] * largest))
    yield BenchmarkCase(
        "forward and backward",
        sides,
        tuple(equal),
        n_bytes={name: saved_bytes(side) for name, side in sides.items()},
    )
