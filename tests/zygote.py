"""A process that has imported torch and forks commands of Python; and the ``Popen`` that asks it.

A Python that imports torch takes two seconds of a core, a fork of one that has done so some
milliseconds. ``python -m tests.zygote FD`` reads a command a message from a socket, with its
standard files, and answers with the number of the process that runs it. That process is no child
of the zygote: its parent ends at once, so that it goes to the nearest reaper above, who asked (see
``prctl(2)``, ``PR_SET_CHILD_SUBREAPER``). Its modules are those that the zygote has imported; in
all else it is as a fresh one.
"""

import array
import ctypes
import gc
import json
import os
import random
import runpy
import signal
import socket
import subprocess
import sys
import threading
import types
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = str(Path(__file__).resolve().parents[1])
PRELOADED = ("tfm_core.cli", "tfm_core.cli.training", "tfm_core.inspect.speed.measure")
LONGEST = 200_000
"""Bytes of the longest message; a socket takes no more at once."""
ALLOWED = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONUNBUFFERED"}
"""Variables of Python that a forked process heeds, or that change nothing of it."""
_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER


class Zygote:
    """The process that forks for this one; the first command starts it."""

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
                self._channel, theirs = _channel()
                with theirs:
                    self._process = self._started(theirs)
                assert self._channel.recv(32) == b"ready"
            passed = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))
            self._channel.sendmsg([json.dumps(command).encode()], [passed])
            return int(self._channel.recv(32))

    def _started(self, channel: socket.socket) -> subprocess.Popen[bytes]:
        single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        return subprocess.Popen(
            [sys.executable, "-m", "tests.zygote", str(channel.fileno())],
            cwd=ROOT,
            env={**os.environ, **single},
            stdin=subprocess.DEVNULL,
            pass_fds=[channel.fileno()],
        )

    def nest(self) -> None:
        """Fork a zygote for this process, which has just been forked itself."""
        self._channel, theirs = _channel()
        if os.fork() == 0:
            self._channel.close()
            nothing = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(nothing, number)
            serve(theirs)
            sys.exit()
        theirs.close()

    def close(self) -> None:
        """End it; the next command starts another."""
        if self._process is not None and self._channel is not None:
            self._channel.close()
            self._process.wait()
        self._channel = self._process = None


def _channel() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a new channel, and make this process the parent of what is forked."""
    if ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0):
        raise OSError("prctl refuses to make this process a reaper")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * LONGEST)
    return ours, theirs


ZYGOTE = Zygote()
_EXECUTE = subprocess.Popen._execute_child  # type: ignore[attr-defined]


class Forked(subprocess.Popen[Any]):
    """``subprocess.Popen`` that forks ``python -m`` with a module of ours."""

    takes_all = False

    def _execute_child(self, *given: Any) -> None:
        """Fork, or start. given: as ``Popen.__init__`` hands it on, in its order."""
        names = _EXECUTE.__code__.co_varnames[1 : _EXECUTE.__code__.co_argcount]
        said = dict(zip(names, given, strict=True))
        is_list = isinstance(said["args"], list | tuple)
        words = [os.fsdecode(each) for each in said["args"]] if is_list else [""]
        environment = {
            os.fsdecode(name): os.fsdecode(value)
            for name, value in (os.environ if said["env"] is None else said["env"]).items()
        }
        unusual = ("preexec_fn", "pass_fds", "shell", "executable", "gid", "gids", "uid")
        if any(said[name] for name in unusual) or not self._is_plain(words, environment):
            _EXECUTE(self, *given)
            return
        pairs = [("p2cread", 0), ("c2pwrite", 1), ("errwrite", 2)]
        self.pid = ZYGOTE.fork(
            {
                "arguments": [word for word in words[1:] if word != "-u"],
                "folder": os.fsdecode(said["cwd"] or os.getcwd()),
                "environment": environment,
                "session": said["start_new_session"],
                "unbuffered": words[1] == "-u" or "PYTHONUNBUFFERED" in environment,
                "nests": self.takes_all,
            },
            [number if said[name] == -1 else said[name] for name, number in pairs],
        )
        self._child_created = True
        self._close_pipe_fds(  # type: ignore[attr-defined]
            *(said[f"{name}{end}"] for name in ("p2c", "c2p", "err") for end in ("read", "write"))
        )

    def _is_plain(self, words: Sequence[str], environment: dict[str, str]) -> bool:
        """Return whether a forked process can run a command."""
        of_python = {name for name in environment if name.startswith("PYTHON")}
        paths = environment.get("PYTHONPATH", "").split(os.pathsep)
        if not of_python <= ALLOWED or not set(paths) <= {"", ROOT, *sys.path}:
            return False
        python, *words = (word for word in words if word != "-u")
        if python != sys.executable or len(words) < 2 or words[0] not in {"-m", "-c"}:
            return False
        is_ours = words[0] == "-m" and words[1].split(".")[0] in {"tfm_core", "tests"}
        return is_ours or self.takes_all


class ForkedAll(Forked):
    """The same for ``-c``, for modules of others, and for what a forked process starts."""

    takes_all = True


def main() -> None:
    """Import what commands do, train a little as a worker does, and fork when a message comes."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    for name in PRELOADED:
        import_module(name)
    import_module("tfm_core.runs.process.worker").warm_up()
    assert len(os.listdir("/proc/self/task")) == 1, "threads do not survive a fork"
    gc.collect()
    gc.freeze()
    channel.send(b"ready")
    serve(channel)


def serve(channel: socket.socket) -> None:
    """Fork until the channel closes; in what is forked, run its command and return then."""
    while True:
        size = socket.CMSG_SPACE(3 * array.array("i").itemsize)
        message, ancillary, _flags, _address = channel.recvmsg(LONGEST, size)
        if not message:
            return
        files = array.array("i")
        for _level, _kind, data in ancillary:
            files.frombytes(data)
        if (pid := _forked()) == 0:
            channel.close()
            _run(json.loads(message), list(files))
            return
        for file in files:
            os.close(file)
        channel.send(str(pid).encode())


def _forked() -> int:
    """Fork a process whose parent is gone; return its number, or 0 in it."""
    reading, writing = os.pipe()
    if (between := os.fork()) == 0:
        if (pid := os.fork()) != 0:
            os.write(writing, str(pid).encode())
            os._exit(0)
        os.close(reading)
        os.close(writing)
        return 0
    os.close(writing)
    pid = int(os.read(reading, 32))
    os.close(reading)
    os.waitpid(between, 0)
    return pid


def _run(command: dict[str, Any], files: list[int]) -> None:
    """Run a command as a process that has just started."""
    for number, file in enumerate(files):
        os.dup2(file, number)
    for file in files:
        os.close(file)
    if command["session"]:
        os.setsid()
    if command["nests"]:
        ZYGOTE.nest()
        subprocess.Popen = ForkedAll  # type: ignore[misc]
    os.chdir(command["folder"])
    os.environ.clear()
    os.environ.update(command["environment"])
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _draw_anew()
    _reopen(is_unbuffered=command["unbuffered"])
    kind, name, *rest = command["arguments"]
    sys.argv, sys.path[0] = [kind, *rest], os.getcwd() if kind == "-m" else ""
    for path in reversed(os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        if path and path not in sys.path:
            sys.path.insert(1, path)
    if kind == "-m":
        if not hasattr(sys.modules.get(name), "__path__"):
            sys.modules.pop(name, None)  # it runs as the main module
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.modules["__main__"] = module = types.ModuleType("__main__")
        exec(compile(name, "<string>", "exec"), module.__dict__)


def _draw_anew() -> None:
    """Draw other random numbers than the zygote and the other processes that it forks."""
    import numpy as np
    import torch

    random.seed()
    np.random.seed()
    torch.default_generator.seed()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))


def _reopen(*, is_unbuffered: bool) -> None:
    """Make the standard files anew: the old ones may hold what the zygote has read or written."""
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # noqa: SIM115
    for number, name in ((1, "stdout"), (2, "stderr")):
        old = getattr(sys, name)
        new = open(number, "w", encoding=old.encoding, errors=old.errors, closefd=False)  # noqa: SIM115
        new.reconfigure(line_buffering=number == 2, write_through=is_unbuffered)
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


if __name__ == "__main__":
    from tests import zygote  # what is forked imports it by this name, and finds the same

    zygote.main()
