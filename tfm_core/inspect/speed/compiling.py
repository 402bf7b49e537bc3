"""``torch.compile``: the model traced once, its small operations fused into generated code.

Ansel et al. 2024, "PyTorch 2". The first pass pays for tracing and compiling; every new shape of a
batch may pay again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn

from tfm_core.inspect.speed.bench import Bench, compare
from tfm_core.inspect.speed.cases import BenchmarkCase
from tfm_core.sentences import N_, StudentError
from tfm_core.training.compiling import why_no_compiler


@contextmanager
def using(bench: Bench, model: nn.Module) -> Iterator[None]:
    """Let the bench use another form of its model for a while."""
    before = bench.trainer.model
    bench.trainer.model = cast(Any, model)
    try:
        yield
    finally:
        bench.trainer.model = before


def eager_pass(bench: Bench) -> Tensor:
    """Run operation by operation, as Python says."""
    return bench.pass_()


def compiled_pass(bench: Bench, compiled: nn.Module) -> Tensor:
    """Run the code that ``torch.compile(model)`` generated."""
    with using(bench, compiled):
        return bench.pass_()


def cases(bench: Bench, backend: str = "inductor") -> Iterator[BenchmarkCase]:
    """Compile, say how long the first pass took, and compare the passes after it."""
    if backend == "inductor":
        why = why_no_compiler(bench.device.type)
        if why is not None:
            raise StudentError(why)
    reference = bench.results()
    bench.pass_()
    compiled = cast(nn.Module, torch.compile(bench.model, backend=backend))
    begin = time.perf_counter()
    compiled_pass(bench, compiled)
    if bench.device.type == "cuda":
        torch.cuda.synchronize()
    first = time.perf_counter() - begin
    with using(bench, compiled):
        equal = compare(reference, bench.results(), "compiled", relative=1e-3)
    yield BenchmarkCase(
        N_("forward and backward"),
        {"eager": lambda: eager_pass(bench), "compiled": lambda: compiled_pass(bench, compiled)},
        equal,
        facts={"first_seconds": first},
    )
