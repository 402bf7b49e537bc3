"""Timing: the machine, paired rounds, and one training step for every contender.

Contenders are warmed up, then timed in rounds there and back (A B B A), in CPU-seconds, which leave
out what other processes take. The app's page on speed times in the same way.
"""

from __future__ import annotations

import os
import platform
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.inspect.speed import measure as timed
from tfm_core.inspect.speed.measure import Clock
from tfm_core.inspect.speed.report import TimeRange, ratio

__all__ = [
    "Clock",
    "TimeRange",
    "commit",
    "describe",
    "measure",
    "milliseconds",
    "prepare",
    "processor",
    "ratio",
    "training_step",
]


def prepare() -> None:
    """Set what a worker sets: one thread, denormal numbers flushed; and a fixed seed."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(0)


def describe() -> str:
    """Return one line on the machine and its load at this moment."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return (
        f"{processor()}{load}; Python {platform.python_version()}, "
        f"torch {torch.__version__}, {torch.get_num_threads()} thread"
    )


def processor() -> str:
    """Return the processor's name and its number of cores."""
    return f"{_named()}, {os.cpu_count()} cores"


@cache
def commit() -> str:
    """Return the measured commit, with a + if files differ from it."""
    ours = Path(__file__).resolve().parent
    try:
        asked = [
            subprocess.run(
                ["git", "-C", str(ours), *words], capture_output=True, text=True, check=True
            ).stdout.strip()
            for words in (
                ("rev-parse", "--short", "HEAD"),
                ("status", "--porcelain", "--untracked-files=no"),
            )
        ]
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    changed = [line for line in asked[1].splitlines() if not line.endswith("RESULTS.md")]
    return asked[0] + "+" * bool(changed)


def _named() -> str:
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def measure(
    contenders: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    warmup: int = 2,
    repeats: int | Mapping[str, int] = 1,
    clock: Clock = time.process_time,
) -> dict[str, list[float]]:
    """Return for each contender its seconds per call, one number a round.

    repeats: calls in a turn, one number for all or one for each.
    """
    counts = {name: repeats if isinstance(repeats, int) else repeats[name] for name in contenders}
    for contender in contenders.values():
        for _ in range(warmup):
            contender()
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for found in timed.rounds(contenders, counts, count=rounds, clock=clock):
        for name, seconds in found.items():
            taken[name].append(seconds)
    return taken


def milliseconds(seconds: Sequence[float]) -> TimeRange:
    """Return a spread of seconds in milliseconds."""
    return TimeRange.of([1000 * value for value in seconds])


def training_step(
    model: nn.Module,
    inputs: tuple[Tensor, ...],
    targets: Tensor,
    *,
    ignore: int = -100,
    learning_rate: float = 1e-3,
) -> Callable[[], float]:
    """Return a function that learns once from one batch with fused AdamW and returns the loss.

    model(*inputs) gives (..., classes), targets (...) are class numbers; those that equal
    ``ignore`` don't count.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate, fused=True)
    model.train()

    def step() -> float:
        optimizer.zero_grad(set_to_none=True)
        logits = model(*inputs)
        loss = F.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=ignore)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
