"""Which process works on a run, and whether it is alive; no answer depends on the clock."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

STALE_SECONDS = 30.0
"""A watched worker elsewhere without a heartbeat for so long counts as dead."""

_SAME_START_SECONDS = 5.0  # clocks are corrected; process numbers come around much later
_MAX_WATCHED = 4096


@dataclass(frozen=True, slots=True)
class ProcessId:
    """What tells one process from all others: its number, its machine, and when it started.

    started: on Linux the boot of the machine and the clock ticks from there to the start.
    created: the start in Unix time, which on Linux moves when the clock is set; it decides
    elsewhere, and in runs of release 0.1.
    """

    pid: int
    host: str
    created: float | None = None
    started: str | None = None


@cache
def this_host() -> str:
    """Return the name of this machine."""
    return socket.gethostname()


@cache
def this_boot() -> str | None:
    """Return what names the time from one start of this machine to the next, where it is known."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() or None
    except OSError:
        return None


def process_id(pid: int | None = None) -> ProcessId:
    """Return the mark of a process of this machine; by default of this one."""
    pid = os.getpid() if pid is None else pid
    started = _started(pid)
    return ProcessId(pid, this_host(), None if started else _created(pid), started)


def is_same(one: ProcessId, other: ProcessId) -> bool:
    """Return whether two marks are of one process."""
    if (one.pid, one.host) != (other.pid, other.host):
        return False
    if one.started is not None and other.started is not None:
        return one.started == other.started
    if one.created is None or other.created is None:
        return True
    return abs(one.created - other.created) < _SAME_START_SECONDS


def is_alive(
    mark: ProcessId, *, heartbeat: float | None = None, folder: Path | None = None
) -> bool:
    """Return whether a process lives, by looking for it; elsewhere, whether its heartbeat changes.

    One elsewhere lives until its heartbeat in ``folder`` was seen unchanged for STALE_SECONDS: how
    old it is cannot be told, the clocks of two machines may differ. Total: a number that can be no
    process's names none that lives.
    """
    if mark.host != this_host():
        return WATCH.silence(mark, heartbeat, folder) < STALE_SECONDS
    try:
        if psutil.Process(mark.pid).status() == psutil.STATUS_ZOMBIE:
            return False
        return is_same(mark, _as_it_is(mark))
    except (psutil.NoSuchProcess, ValueError, TypeError, OverflowError):  # or no process's number
        return False
    except psutil.Error:  # it is there, but not ours to look at
        return True


def seconds_since_heartbeat(
    mark: ProcessId, heartbeat: float | None, uptime: float | None, folder: Path | None = None
) -> float:
    """Return for how many seconds nothing was heard of a process that lives.

    uptime: its last heartbeat by ``time.monotonic``, which all processes of a machine share from
    one start of it to the next. Elsewhere, and without one, it is what this process has watched.
    """
    boot = this_boot()
    is_here = boot is not None and (mark.started or "").startswith(f"{boot}:")
    if is_here and uptime is not None:
        return max(0.0, time.monotonic() - uptime)
    return WATCH.silence(mark, heartbeat, folder)


class Watch:
    """When each heartbeat from elsewhere was last seen to change, by the clock of this process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with nothing seen."""
        self._clock, self._lock = clock, threading.Lock()
        self._seen: OrderedDict[object, tuple[float | None, float]] = OrderedDict()

    def silence(self, mark: ProcessId, heartbeat: float | None, folder: Path | None) -> float:
        """Return for how many seconds a heartbeat is known not to have changed."""
        now, key = self._clock(), (mark, folder)
        with self._lock:
            seen = self._seen.pop(key, None)
            if seen is None or seen[0] != heartbeat:
                seen = (heartbeat, now)
            self._seen[key] = seen
            if len(self._seen) > _MAX_WATCHED:
                self._seen.popitem(last=False)
        return now - seen[1]

    def forget(self) -> None:
        """Begin with nothing seen again: what lies between could not be watched."""
        with self._lock:
            self._seen.clear()


WATCH = Watch()
"""What this process has seen of workers elsewhere."""


def _as_it_is(mark: ProcessId) -> ProcessId:
    """Return the id of the process that has this number now, with the same facts as ``mark``."""
    if mark.started is not None:
        return ProcessId(mark.pid, mark.host, None, _started(mark.pid))
    return ProcessId(mark.pid, mark.host, _created(mark.pid))


def _started(pid: int) -> str | None:
    """Return boot and ticks of a process's start, where /proc tells them (see proc(5))."""
    boot = this_boot()
    try:
        facts = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        ticks = int(facts.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None
    return None if boot is None else f"{boot}:{ticks}"


def _created(pid: int) -> float | None:
    try:
        return float(psutil.Process(pid).create_time())
    except (psutil.Error, ValueError, TypeError, OverflowError):
        return None
