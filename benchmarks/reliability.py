"""Every attack of ``benchmarks/attacks`` in turn: what was tried, what held and what fell.

An attack is a module with ``tables(*, quick)``; it draws what it does from a seed and says the seed
and its counts in the notes of its tables. One alone: ``python -m benchmarks NAME``.
docs/security.md says which promise each of them tests.
"""

from __future__ import annotations

import importlib
import traceback
from collections.abc import Iterator

from benchmarks.report import Skipped, Table

ATTACKS: tuple[str, ...] = (
    # processes are killed, stopped and doubled
    "kills",
    "power",
    "clocks",
    "servers",
    # files, links and uploads are not what they should be
    "folders",
    "links",
    "uploads",
    # the disk is full, read-only or forbidden
    "disks",
    # more is asked for than there is
    "memory",
    # many visitors, and restless ones
    "sessions",
    "visits",
    "clicks",
)
"""Names of modules of ``benchmarks/attacks``."""


def tables(*, quick: bool) -> Iterator[Table | Skipped]:
    """Run every attack, also where one before it broke down. Raises RuntimeError then, at the end.

    What fell under an attack stands in its table; an attack that cannot be carried out is an error.
    """
    broken = []
    for name in ATTACKS:
        try:
            yield from importlib.import_module(module(name)).tables(quick=quick)
        except Exception:  # the others are worth their figures
            broken.append(name)
            yield Skipped(name, f"it broke down:\n\n```\n{traceback.format_exc()}```")
    if broken:
        raise RuntimeError(f"These attacks broke down: {', '.join(broken)}.")


def module(name: str) -> str:
    """Return the module of an attack."""
    return f"benchmarks.attacks.{name}"
