"""Child processes of tests: forked where that is as good as a start, and none left behind.

A Python that imports torch takes two seconds of a core, a fork of one that has done so some
milliseconds. So commands ``python -m tfm_core…`` that a test, or the product in a test, starts by
``subprocess`` are forked from one process (see ``tests/zygote.py``); elsewhere than on Linux they
are started. A test that is about the start itself uses the fixture ``true_start``; one whose
``python -c`` may be forked, too, uses ``forked_code``.
"""

from __future__ import annotations

import array
import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import zygote
from tests.costs import child_ids

IS_LINUX = sys.platform == "linux" and Path("/proc/self/task").is_dir()
HAS_GPU = Path("/dev/nvidiactl").exists()
"""A process that has looked for its GPUs cannot be forked."""
PATIENCE = 30.0
"""Seconds for a process that was told to end; only a test that fails waits so long."""
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


class Zygote:
    """The process that forks; the first command starts it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None

    @property
    def pids(self) -> set[int]:
        """Its number, once it was started."""
        return set() if self._process is None else {self._process.pid}

    def fork(self, command: dict[str, object], files: list[int]) -> int:
        """Return the number of a process, a child of this one, that runs a command."""
        with self._lock:
            if self._channel is None:
                self._channel = self._started()
            passed = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))
            self._channel.sendmsg([json.dumps(command).encode()], [passed])
            return int(self._channel.recv(32))

    def _started(self) -> socket.socket:
        if ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0):
            raise OSError("prctl refuses to make this process a reaper")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * zygote.LONGEST)
        with theirs:
            single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.zygote", str(theirs.fileno())],
                cwd=zygote.ROOT,
                env={**os.environ, **single},
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        assert ours.recv(32) == b"ready"
        return ours

    def close(self) -> None:
        """End it."""
        if self._process is not None and self._channel is not None:
            self._channel.close()
            self._process.wait()


ZYGOTE = Zygote()
_EXECUTE = subprocess.Popen._execute_child  # type: ignore[attr-defined]


class Forked(subprocess.Popen[Any]):
    """``subprocess.Popen`` that forks what the zygote can run."""

    takes_code = False

    def _execute_child(self, *given: Any) -> None:
        """Fork, or start. given: as ``Popen.__init__`` hands it on, in its order."""
        names = _EXECUTE.__code__.co_varnames[1 : _EXECUTE.__code__.co_argcount]
        said = dict(zip(names, given, strict=True))
        arguments = said["args"]
        is_list = isinstance(arguments, list | tuple)
        words = [os.fsdecode(each) for each in arguments] if is_list else [""]
        environment = {
            os.fsdecode(name): os.fsdecode(value)
            for name, value in (os.environ if said["env"] is None else said["env"]).items()
        }
        unusual = ("preexec_fn", "pass_fds", "shell", "executable", "gid", "gids", "uid")
        if any(said[name] for name in unusual) or not zygote.is_plain(
            words, environment, code=self.takes_code
        ):
            _EXECUTE(self, *given)
            return
        pairs = [("p2cread", 0), ("c2pwrite", 1), ("errwrite", 2)]
        self.pid = ZYGOTE.fork(
            {
                "arguments": words[1:],
                "folder": os.fsdecode(said["cwd"] or os.getcwd()),
                "environment": environment,
                "session": said["start_new_session"],
            },
            [number if said[name] == -1 else said[name] for name, number in pairs],
        )
        self._child_created = True
        self._close_pipe_fds(  # type: ignore[attr-defined]
            *(said[f"{name}{end}"] for name in ("p2c", "c2p", "err") for end in ("read", "write"))
        )


class ForkedCode(Forked):
    """The same for ``python -c``."""

    takes_code = True


@pytest.fixture
def true_start() -> None:
    """Start every process of a test by itself."""


@pytest.fixture
def forked_code() -> None:
    """Fork ``python -c`` too: the code does not ask what was imported before it."""


@pytest.fixture(autouse=True)
def _forked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the commands that a test starts, where that can be."""
    if IS_LINUX and not HAS_GPU and "true_start" not in request.fixturenames:
        is_code = "forked_code" in request.fixturenames
        monkeypatch.setattr(subprocess, "Popen", ForkedCode if is_code else Forked)


@pytest.fixture(scope="session", autouse=True)
def _zygote() -> Iterator[None]:
    yield
    ZYGOTE.close()


def children() -> dict[int, str]:
    """Return the live processes below this one: number -> command; empty elsewhere than on Linux.

    The zygote is none of them.
    """
    found, waiting = dict[int, str](), [os.getpid()] if IS_LINUX else []
    while waiting:
        for pid in child_ids(waiting.pop()):
            with contextlib.suppress(OSError):
                state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2]
                if state.split()[0] not in "ZX":
                    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
                    found[pid] = b" ".join(words).decode(errors="replace").strip()
            waiting.append(pid)
    return {pid: words for pid, words in found.items() if pid not in ZYGOTE.pids}


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
