"""Child processes of tests: forked where that is as good as a start, and none left behind.

Commands ``python -m tfm_core…`` that a test, or the product in a test, starts by ``subprocess`` are
forked (see ``tests/zygote.py``); elsewhere than on Linux they are started. A test that is about the
start itself uses the fixture ``true_start``; one whose other commands may be forked, too,
``forked_all``.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.costs import child_ids
from tests.zygote import ZYGOTE, Forked, ForkedAll

IS_LINUX = sys.platform == "linux" and Path("/proc/self/task").is_dir()
HAS_GPU = Path("/dev/nvidiactl").exists()
"""A process that has looked for its GPUs cannot be forked."""
PATIENCE = 30.0
"""Seconds for a process that was told to end; only a test that fails waits so long."""


@pytest.fixture
def true_start() -> None:
    """Start every process of a test by itself."""


@pytest.fixture
def forked_all() -> None:
    """Fork ``python -c``, modules of others and what forked processes start, too.

    For commands that do not ask what was imported before them.
    """


@contextlib.contextmanager
def forking(kind: type[Forked] = ForkedAll) -> Iterator[None]:
    """Fork what is started meanwhile, where that can be."""
    with pytest.MonkeyPatch.context() as patch:
        if IS_LINUX and not HAS_GPU:
            patch.setattr(subprocess, "Popen", kind)
        yield


@pytest.fixture(autouse=True)
def _forked(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fork the commands that a test starts."""
    if "true_start" in request.fixturenames:
        yield
        return
    with forking(ForkedAll if "forked_all" in request.fixturenames else Forked):
        yield


@pytest.fixture(scope="session", autouse=True)
def _zygote() -> Iterator[None]:
    yield
    ZYGOTE.close()


@pytest.fixture(autouse=True)
def _no_process_is_left() -> Iterator[None]:
    """Fail a test that leaves a process behind: it works on beside later tests.

    Processes that fixtures of a wider scope have started stay, and so does what these start.
    """
    before = children().keys()
    yield
    if left := _left(before):
        end = time.monotonic() + PATIENCE
        while left and time.monotonic() < end:
            time.sleep(0.02)
            left = _left(before)
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        assert not left, "the test leaves processes behind"


def _left(before: set[int]) -> dict[int, str]:
    """Return the live processes that are neither of those before nor started by them."""
    theirs = {pid for old in before for pid in _tree(old)}
    return {pid: words for pid, words in children().items() if pid not in before | theirs}


def _tree(pid: int) -> Iterator[int]:
    for child in child_ids(pid):
        yield child
        yield from _tree(child)


def children() -> dict[int, str]:
    """Return the live processes below this one: number -> command; empty elsewhere than on Linux.

    The zygote is none of them.
    """
    found = {}
    for pid in _tree(os.getpid()) if IS_LINUX else ():
        with contextlib.suppress(OSError):
            state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2]
            if pid not in ZYGOTE.pids and state.split()[0] not in "ZX":
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                found[pid] = b" ".join(words).decode(errors="replace").strip()
    return found
