"""How fast this machine is, and how much memory it has.

Its speed is said beside that of the machine on which the presets' times were measured: a short
piece of the arithmetic that tiny models are made of (small matrix products and element-wise work),
timed with numpy, so that a page can ask without loading torch. A training has one thread, and so
has the piece: each of its products is too small for a library to share it out among the cores.
"""

from __future__ import annotations

import contextlib
import threading
import time
from functools import lru_cache
from pathlib import Path

import numpy as np
import psutil

REFERENCE_SECONDS = 0.0037
"""What the piece took on one quiet core of the machine that the presets were measured on."""

_MEASURING = threading.Lock()
"""Who asks meanwhile waits for the answer."""


def slowness() -> float:
    """Return how many times as long as there things take here; measured once, in about 0.1 s.

    Only the processor time of this thread counts: pages that are drawn meanwhile are no slowness.
    """
    with _MEASURING:
        return _measured()


@lru_cache(maxsize=1)
def _measured() -> float:
    pieces = sorted(_piece() for _ in range(11))
    return pieces[2] / REFERENCE_SECONDS  # a quiet moment, though not the luckiest


def memory(*, swap: bool = False) -> int:
    """Return the bytes that this process may use: the machine's, or less where it is confined.

    By its container (cgroup) or by ulimit. swap: count what can be moved to the disk, too.
    """
    found = [int(psutil.virtual_memory().total) + swap * int(psutil.swap_memory().total)]
    for name in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with contextlib.suppress(OSError, ValueError):
            found.append(int(Path(name).read_text()))
    with contextlib.suppress(ImportError):  # Windows has no such limits
        import resource

        for kind in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
            most = resource.getrlimit(kind)[0]
            if most != resource.RLIM_INFINITY:
                found.append(most)
    return min(found)


def _piece() -> float:
    generator = np.random.default_rng(0)
    tokens = generator.standard_normal((32, 64, 64), np.float32)
    matrix = generator.standard_normal((64, 64), np.float32)
    begin = time.thread_time()
    for _ in range(4):
        hidden = np.maximum(tokens @ matrix, 0.0)
        out = hidden @ matrix
        np.exp(out - out.max(-1, keepdims=True)).sum(-1)
    return time.thread_time() - begin
