"""The conditions of a measurement: one thread, no denormals, and what machine it was."""

from __future__ import annotations

import os
import platform
import subprocess
from functools import cache
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
        f"{processor()}{load}; Python {platform.python_version()}, "
        f"torch {torch.__version__}, {torch.get_num_threads()} thread"
    )


def processor() -> str:
    """Return the processor's name and its number of cores."""
    return f"{_named()}, {os.cpu_count()} cores"


@cache
def commit() -> str:
    """Return the commit that is measured, with a + where files differ from it."""
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
