"""Threads: the same pass shared out among 1, 2, ... cores.

Threads split one operation at a time and meet again after it, so small matrices gain little, and on
a busy machine each meeting waits for the slowest.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor

from tfm_core.inspect.speed.bench import Bench, compare
from tfm_core.inspect.speed.cases import BenchmarkCase, Equality, NotHere
from tfm_core.sentences import N_
from tfm_core.training.devices import thread_choices


def pass_with(bench: Bench, threads: int) -> Tensor:
    """Compute with so many threads."""
    torch.set_num_threads(threads)
    return bench.pass_()


def cases(bench: Bench) -> Iterator[BenchmarkCase]:
    """Compare the whole pass with every number of threads worth trying, one first."""
    if bench.device.type != "cpu":
        raise NotHere("Threads share out work on the CPU; on a GPU its own cores do that.")
    counts = thread_choices()
    if len(counts) == 1:
        raise NotHere("This process may use one core only, so there is nothing to share out.")
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
