"""The conditions of a measurement: one thread, no denormals, and what machine it was."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import torch


def prepare() -> None:
    """Set what a worker sets: one thread, denormal numbers flushed; and a fixed seed."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    torch.manual_seed(0)


def describe() -> str:
    """Return one line on the machine and its load at this moment."""
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return (
        f"{_processor()}, {os.cpu_count()} cores{load}; Python {platform.python_version()}, "
        f"torch {torch.__version__}, {torch.get_num_threads()} thread"
    )


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    if facts.exists():
        for line in facts.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
