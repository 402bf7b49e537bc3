"""Which process works on a run, and whether it is alive.

Only of a process on another machine does the clock decide: its heartbeat is all that is known.
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil

STALE_SECONDS = 60.0
"""A worker on another machine without a heartbeat for so long counts as dead."""

_SAME_START_SECONDS = 5.0  # clocks are corrected; process numbers come around much later


@dataclass(frozen=True, slots=True)
class ProcessId:
    """What tells one process from all others: its number, its machine, and when it started.

    created: the start in Unix time; on Linux it moves when the clock is set.
    started: on Linux the boot of the machine and the clock ticks from there to the start. Where
    both marks have it, it decides.
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
    try:
        created = float(psutil.Process(pid).create_time())
    except (psutil.Error, ValueError, TypeError, OverflowError):
        created = None
    return ProcessId(pid, this_host(), created, _started(pid))


def is_same(one: ProcessId, other: ProcessId) -> bool:
    """Return whether two marks are of one process."""
    if (one.pid, one.host) != (other.pid, other.host):
        return False
    if one.started is not None and other.started is not None:
        return one.started == other.started
    if one.created is None or other.created is None:
        return True
    return abs(one.created - other.created) < _SAME_START_SECONDS


def is_alive(mark: ProcessId, *, heartbeat: float | None = None) -> bool:
    """Return whether a process lives: by looking for it here, by its heartbeat elsewhere.

    Total: a number that can be no process's names none that lives.
    """
    if mark.host != this_host():
        return heartbeat is not None and abs(time.time() - heartbeat) < STALE_SECONDS
    try:
        if psutil.Process(mark.pid).status() == psutil.STATUS_ZOMBIE:
            return False
        return is_same(mark, process_id(mark.pid))
    except (psutil.NoSuchProcess, ValueError, TypeError, OverflowError):  # or no process's number
        return False
    except psutil.Error:  # it is there, but not ours to look at
        return True


def seconds_since_heartbeat(
    mark: ProcessId, heartbeat: float | None, uptime: float | None
) -> float:
    """Return for how many seconds nothing was heard of a process that lives.

    uptime: its last heartbeat by ``time.monotonic``, which all processes of a machine share from
    one start of it to the next. Elsewhere, and without one, the clock decides.
    """
    boot = this_boot()
    is_here = boot is not None and (mark.started or "").startswith(f"{boot}:")
    if is_here and uptime is not None:
        return max(0.0, time.monotonic() - uptime)
    return 0.0 if heartbeat is None else max(0.0, time.time() - heartbeat)


def _started(pid: int) -> str | None:
    """Return boot and ticks of a process's start, where /proc tells them (see proc(5))."""
    boot = this_boot()
    try:
        facts = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        ticks = int(facts.rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None
    return None if boot is None else f"{boot}:{ticks}"
