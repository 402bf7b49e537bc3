"""CPU against GPU: the same pass at growing batch sizes, until the GPU is worth its overhead.

Starting an operation on a GPU costs microseconds whatever its size, so small models wait for
launches; from some size on its thousands of cores win.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from tfm_core.inspect.speed.batches import one_batch, sizes
from tfm_core.inspect.speed.bench import Bench, compare
from tfm_core.inspect.speed.cases import BenchmarkCase, NotHere
from tfm_core.sentences import N_


def crossover(cpu: Mapping[float, float], gpu: Mapping[float, float]) -> float | None:
    """Return the smallest size from which on the GPU's seconds are always fewer, None if never."""
    smallest = None
    for size in sorted(cpu, reverse=True):
        if gpu[size] >= cpu[size]:
            break
        smallest = size
    return smallest


def cases(bench: Bench) -> Iterator[BenchmarkCase]:
    """Compare the whole pass on both, at every batch size."""
    if bench.device.type == "cpu":
        raise NotHere(
            "The device chosen is the CPU; with a GPU chosen on the Train page this compares both."
        )
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
