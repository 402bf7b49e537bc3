"""Which process works on a run, and whether it still lives."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass
from functools import cache

import psutil

STALE_SECONDS = 30.0
"""A heartbeat older than this means that a worker on another machine is gone."""

_AHEAD_SECONDS = 3600.0  # clocks of two machines differ; a heartbeat of next year is none
_SAME_START_SECONDS = 5.0  # clocks are corrected; process numbers come around much later


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """What tells one process from all others: number, machine, and when it started (Unix time)."""

    pid: int
    host: str
    created: float | None = None


@cache
def this_host() -> str:
    """Return the name of this machine."""
    return socket.gethostname()


def mark_of(pid: int | None = None) -> ProcessMark:
    """Return the mark of a process of this machine; by default of this one."""
    pid = os.getpid() if pid is None else pid
    try:
        created = psutil.Process(pid).create_time()
    except (psutil.Error, ValueError, TypeError, OverflowError):
        created = None
    return ProcessMark(pid, this_host(), created)


def is_same(one: ProcessMark, other: ProcessMark) -> bool:
    """Say whether two marks are of one process; the clock may have been corrected in between."""
    if (one.pid, one.host) != (other.pid, other.host):
        return False
    if one.created is None or other.created is None:
        return True
    return abs(one.created - other.created) < _SAME_START_SECONDS


def is_alive(mark: ProcessMark, *, heartbeat: float | None = None) -> bool:
    """Say whether a process lives: by looking here, by its last heartbeat (Unix time) elsewhere.

    Total: a number that can be no process's names none that lives.
    """
    if mark.host != this_host():
        return heartbeat is not None and -_AHEAD_SECONDS < time.time() - heartbeat < STALE_SECONDS
    try:
        process = psutil.Process(mark.pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        started = process.create_time()
    except (psutil.NoSuchProcess, ValueError, TypeError, OverflowError):
        return False
    except psutil.Error:  # it is there, but not ours to look at
        return True
    return is_same(mark, ProcessMark(mark.pid, mark.host, started))
