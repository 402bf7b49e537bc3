"""One pass of the user's model in different ways: threads, batch sizes, devices, precisions, ..."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tfm_core.inspect.speed.bench import Bench, compare, saved_bytes
from tfm_core.inspect.speed.report import BenchmarkCase, Equality
from tfm_core.layers.blocks import Block
from tfm_core.sentences import N_
from tfm_core.training.devices import thread_choices
from tfm_core.variants.precisions import FP32, PRECISIONS, Precision


def pass_with(bench: Bench, threads: int) -> Tensor:
    """Compute with so many threads."""
    torch.set_num_threads(threads)
    return bench.pass_()


def thread_cases(bench: Bench) -> Iterator[BenchmarkCase]:
    """Compare the pass with each number of threads; they meet after each operation."""
    counts = thread_choices()
    reference = bench.results()
    equal: list[Equality] = []
    for count in counts[1:]:
        torch.set_num_threads(count)
        equal += compare(reference, bench.results(), str(count))
    torch.set_num_threads(1)
    yield BenchmarkCase(
        N_("forward and backward"),
        {str(count): partial(pass_with, bench, count) for count in counts},
        tuple(equal),
    )


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


def crossover(cpu: Mapping[float, float], gpu: Mapping[float, float]) -> float | None:
    """Return the smallest size from which on the GPU's seconds are always fewer, None if never."""
    smallest = None
    for size in sorted(cpu, reverse=True):
        if gpu[size] >= cpu[size]:
            break
        smallest = size
    return smallest


def gpu_cases(bench: Bench) -> Iterator[BenchmarkCase]:
    """Compare the pass on CPU and GPU at every batch size; GPU operations have overhead."""
    cpu = Bench.of(bench.experiment, "cpu")
    cpu.model.load_state_dict(bench.model.state_dict())
    for size in sizes(bench.trainer.batch_size, bench.trainer.objective.n_train):
        indices = bench.indices(size)
        yield BenchmarkCase(
            N_("forward and backward"),
            {"cpu": partial(one_batch, cpu, indices), "gpu": partial(one_batch, bench, indices)},
            compare(
                {"loss": cpu.loss(indices).detach()[None]},
                {"loss": bench.loss(indices).detach()[None]},
                "gpu",
                relative=1e-3,
            ),
            x=float(len(indices)),
        )


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


def precision_cases(bench: Bench) -> Iterator[BenchmarkCase]:
    """Compare the pass in fp32, bf16 and fp16 (Micikevicius et al. 2018).

    bf16 has the range of fp32 and 8 bits of precision; fp16 has 11 bits and a small range, so its
    loss is scaled.
    """
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


def plain_pass(bench: Bench) -> object:
    """Keep every activation."""
    return bench.pass_()


def checkpointed_pass(bench: Bench) -> object:
    """Keep the input of each block; the backward pass recomputes the rest."""
    return bench.pass_(lambda: checkpointed(bench.model))


def checkpointing_cases(bench: Bench) -> Iterator[BenchmarkCase]:
    """Compare the pass with and without checkpointing (Chen et al. 2016)."""
    blocks = [module for module in bench.model.modules() if isinstance(module, Block)]
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
    """Run one operation at a time."""
    return bench.pass_()


def compiled_pass(bench: Bench, compiled: nn.Module) -> Tensor:
    """Run the code that ``torch.compile(model)`` generated."""
    with using(bench, compiled):
        return bench.pass_()


def compile_cases(bench: Bench, backend: str = "inductor") -> Iterator[BenchmarkCase]:
    """Compile, time the first pass, and compare later ones (Ansel et al. 2024, "PyTorch 2")."""
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
