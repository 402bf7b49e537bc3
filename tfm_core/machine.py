"""How fast this machine is, how busy it is, and how much memory it has.

Its speed is relative to the machine on which the presets' times were measured: a short piece of the
arithmetic of tiny models (small matrix products and element-wise work), timed with numpy, so that
a page can measure it without torch. Like a training it uses one thread: its products are too small
for a library to split among cores.

How busy it is changes from minute to minute: ``slowdown`` times the same piece for a moment and
reads the load of the last minute; an answer is reused for a few seconds.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import threading
import time
from functools import lru_cache
from pathlib import Path

import numpy as np
import psutil

WORKER_NICENESS = 5
"""How far a worker stands back for the app (see nice(1)): pages stay quick on a busy machine."""

REFERENCE_SECONDS = 0.0037
"""What the piece took on one quiet core of the machine that the presets were measured on."""

_MEASURING = threading.Lock()
"""Held during a measurement: other callers wait for its result."""

_SAMPLE_SECONDS = 0.15
_MIN_SHARE = 0.05
"""A sample is too short to tell smaller shares from each other."""
_FRESH_SECONDS = 5.0
"""A measured slowdown is measured again after so long, in the background."""
_STALE_SECONDS = 60.0
"""An older one is not used any more: the caller waits for a new one."""


def slowness() -> float:
    """Return this machine's time relative to the reference machine's; measured once, in 0.1 s.

    Only the processor time of this thread counts, not that of pages that are drawn meanwhile.
    """
    with _MEASURING:
        return _measured()


@lru_cache(maxsize=1)
def _measured() -> float:
    pieces = sorted(_piece() for _ in range(11))
    return pieces[2] / REFERENCE_SECONDS  # a quiet moment, though not the luckiest


def slowdown(threads: int = 1, niceness: int = 0) -> float:
    """Return how many times as long a process takes now as on an idle machine, at least 1.

    threads: how many of its threads compute at once. niceness: see nice(1); other work takes a
    larger part of the time of a process that is nicer.
    """
    return _slowdowns(threads, niceness).get()


def combined_slowdown(share: float, load: float, cores: int) -> float:
    """Return the slowdown that a share of a core and an average load say together, at least 1.

    share: of its time that a thread computes now; load: processes that ran or waited to in the last
    minute, on average. A training takes about a minute, so that neither is enough: the answer is
    the geometric mean of what each would say.
    """
    now = 1 / min(1.0, max(share, _MIN_SHARE))
    lately = max(1.0, (load + 1) / cores)
    return math.sqrt(now * lately)


class _Slowdown:
    """The slowdown of so many threads, measured again when it has become old."""

    def __init__(self, threads: int, niceness: int) -> None:
        self._threads, self._niceness = threads, niceness
        self._lock = threading.Lock()
        self._refreshing = threading.Event()
        self._found, self._measured_at = 1.0, -math.inf

    def get(self) -> float:
        age = time.monotonic() - self._measured_at
        if age > _STALE_SECONDS:
            with self._lock:
                if time.monotonic() - self._measured_at > _STALE_SECONDS:
                    self._measure()
        elif age > _FRESH_SECONDS and not self._refreshing.is_set():
            self._refreshing.set()
            threading.Thread(target=self._refresh, name="load", daemon=True).start()
        return self._found

    def _refresh(self) -> None:
        try:
            self._measure()
        finally:
            self._refreshing.clear()

    def _measure(self) -> None:
        shares = [1.0] * self._threads

        def sample(number: int) -> None:
            shares[number] = _share(self._niceness)

        samplers = [
            threading.Thread(target=sample, args=(number,), name="load", daemon=True)
            for number in range(self._threads)
        ]
        for sampler in samplers:
            sampler.start()
        for sampler in samplers:
            sampler.join()
        cores = psutil.cpu_count() or 1
        load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
        self._found = combined_slowdown(min(shares), load, cores)
        self._measured_at = time.monotonic()


@lru_cache
def _slowdowns(threads: int, niceness: int) -> _Slowdown:
    return _Slowdown(threads, niceness)


def _share(niceness: int) -> float:
    """Return the share of its time in which this thread computes. Sets its niceness for good."""
    if sys.platform == "linux":  # elsewhere threads have no niceness of their own
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), niceness)
    begin, computed = time.perf_counter(), time.thread_time()
    while time.perf_counter() - begin < _SAMPLE_SECONDS:
        _piece()
    return (time.thread_time() - computed) / (time.perf_counter() - begin)


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
