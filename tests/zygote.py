"""A process that has imported torch and forks commands of Python: ``python -m tests.zygote FD``.

It reads a command a message from a socket, with the standard files, and answers with the number of
the process that runs it. That process is no child of this one: it goes to the nearest reaper above,
so that who asked can wait for it (see ``prctl(2)``, ``PR_SET_CHILD_SUBREAPER``). It imports nothing
that this process has imported, and behaves as a fresh one in all else.
"""

from __future__ import annotations

import array
import gc
import json
import os
import random
import runpy
import signal
import socket
import sys
import types
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

LONGEST = 200_000
"""Bytes of the longest message; a socket takes no more at once."""
ALLOWED = {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "PYTHONHASHSEED", "PYTHONUNBUFFERED"}
"""Variables of Python that a forked process heeds, or that change nothing of it."""
PRELOADED = ("tfm_core.cli", "tfm_core.cli.training", "tfm_core.inspect.speed.measure")
ROOT = str(Path(__file__).resolve().parents[1])


def is_plain(arguments: Sequence[str], environment: dict[str, str], *, code: bool) -> bool:
    """Return whether a forked process can run a command: Python with a module of ours, or code."""
    if arguments[0] != sys.executable or len(arguments) < 3:
        return False
    of_python = {name for name in environment if name.startswith("PYTHON")}
    paths = environment.get("PYTHONPATH", "").split(os.pathsep)
    if not of_python <= ALLOWED or not set(paths) <= {"", ROOT, *sys.path}:
        return False
    if arguments[1] == "-c":
        return code
    return arguments[1] == "-m" and arguments[2].split(".")[0] in {"tfm_core", "tests"}


def main() -> None:
    """Import what commands need, then fork whenever a message comes."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    _warm_up()
    channel.send(b"ready")
    while True:
        message, files = _received(channel)
        if not message:
            return
        if (pid := _forked()) == 0:
            channel.close()
            _become(json.loads(message), files)
            return
        for file in files:
            os.close(file)
        channel.send(str(pid).encode())


def _warm_up() -> None:
    """Import what commands do, and train a little, as a worker does before its first run."""
    for name in PRELOADED:
        import_module(name)
    worker = import_module("tfm_core.runs.process.worker")
    worker.warm_up()
    assert len(os.listdir("/proc/self/task")) == 1, "threads do not survive a fork"
    gc.collect()
    gc.freeze()


def _received(channel: socket.socket) -> tuple[bytes, list[int]]:
    size = socket.CMSG_SPACE(3 * array.array("i").itemsize)
    message, ancillary, _flags, _address = channel.recvmsg(LONGEST, size)
    files = array.array("i")
    for _level, _kind, data in ancillary:
        files.frombytes(data)
    return message, list(files)


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


def _become(command: dict[str, object], files: list[int]) -> None:
    """Run a command as a process that has just started."""
    for number, file in enumerate(files):
        os.dup2(file, number)
    for file in files:
        os.close(file)
    if command["session"]:
        os.setsid()
    os.chdir(str(command["folder"]))
    os.environ.clear()
    os.environ.update(command["environment"])  # type: ignore[call-overload]
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _draw_anew()
    _reopen(is_unbuffered="PYTHONUNBUFFERED" in os.environ)
    kind, name, *rest = command["arguments"]  # type: ignore[misc]
    for path in reversed(os.environ.get("PYTHONPATH", "").split(os.pathsep)):
        if path and path not in sys.path:
            sys.path.insert(1, path)
    if kind == "-m":
        sys.argv, sys.path[0] = ["-m", *rest], os.getcwd()
        sys.modules.pop(name, None)  # it runs as the main module
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = ["-c", *rest], ""
        sys.modules["__main__"] = module = types.ModuleType("__main__")
        exec(compile(name, "<string>", "exec"), module.__dict__)


def _draw_anew() -> None:
    import numpy as np
    import torch

    random.seed()
    np.random.seed()
    torch.default_generator.seed()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))


def _reopen(*, is_unbuffered: bool) -> None:
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # noqa: SIM115
    for number, name in ((1, "stdout"), (2, "stderr")):
        old = getattr(sys, name)
        new = open(number, "w", encoding=old.encoding, errors=old.errors, closefd=False)  # noqa: SIM115
        new.reconfigure(line_buffering=number == 2, write_through=is_unbuffered)
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


if __name__ == "__main__":
    main()
