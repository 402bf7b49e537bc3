"""How long something takes by itself, as if this machine were quiet and no slower than ours.

A limit in seconds of the clock on the wall would be a limit on the machine and on who else uses
it. So CPU-seconds of this process count where they are fewer, and a machine that is slow at a
piece of plain Python is granted as much more time for everything else.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable

REFERENCE_SECONDS = 0.0043
"""CPU-seconds of the piece on one quiet core of the machine that the limits were set on."""


def quickest(calls: Iterable[Callable[[], object]]) -> float:
    """Return the seconds of the quickest of some calls, as on the reference machine."""
    took = min(map(_seconds, calls))
    return took / max(1.0, min(_seconds(_piece) for _ in range(5)) / REFERENCE_SECONDS)


def _seconds(call: Callable[[], object]) -> float:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return min(time.perf_counter() - wall, time.process_time() - cpu)


def _piece() -> None:
    rows = [{"name": f"row {n}", "values": [n * k / 7 for k in range(20)]} for n in range(400)]
    json.loads(json.dumps(rows))
    sorted(rows, key=lambda row: -row["values"][-1])
