"""Every stress test of ``benchmarks/stress`` in turn: what was tried, what held and what broke.

A stress test is a module with ``tables(*, quick)``; the notes of its tables have its seed and its
counts. One alone: ``python -m benchmarks NAME``. docs/security.md says which promise each tests.
"""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Iterator

from benchmarks.report import Skipped, Table

STRESS_TESTS: tuple[str, ...] = (
    # processes are killed, suspended and doubled
    "kills",
    "power",
    "clocks",
    "servers",
    # files, links and uploads are not what they should be
    "fuzz",
    # the disk is full, read-only or forbidden
    "disks",
    # the largest runs, many visitors, and restless ones
    "memory",
    "sessions",
    "visits",
    "clicks",
)
"""Names of modules of ``benchmarks/stress``."""


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Run every stress test, also after one that crashed. Raises RuntimeError then, at the end."""
    crashed = []
    for name in STRESS_TESTS:
        try:
            yield from importlib.import_module(module(name)).tables(quick=quick)
        except Exception:  # the others are worth their figures
            crashed.append(name)
            yield Skipped(name, f"it crashed:\n\n```\n{traceback.format_exc()}```")
    if crashed:
        raise RuntimeError(f"These stress tests crashed: {', '.join(crashed)}.")


def module(name: str) -> str:
    """Return the module of a stress test."""
    return f"benchmarks.stress.{name}"
