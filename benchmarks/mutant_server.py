"""Runs the tests nearest to mutants, in a copy of the tree: for ``benchmarks.mutants``.

It imports what is slow to import, then forks a child for each mutant that a line of stdin names,
and answers with the test that failed.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.mutants import Mutant

CPU_SECONDS = 300.0  # of tests that pass, for a mutant
WALL_SECONDS = 600.0
HUNG_SECONDS = 120  # CPU-seconds after which a test is taken to hang, and the fault noticed
HANGS = "a test that hangs or dies"
_PRELOADED = (
    "torch", "numpy", "pandas", "pytest", "safetensors", "pydantic", "plotly.graph_objects",
    "scipy.stats", "hypothesis", "streamlit.testing.v1",
)  # fmt: skip


def _serve() -> None:
    """Answer a mutant a line with the test that notices it. Runs in the copy."""
    for name in _PRELOADED:
        __import__(name)
    import torch

    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what tests print
    for line in sys.stdin:
        mutant = Mutant(**json.loads(line))
        answers.write(json.dumps(_killer(mutant)) + "\n")
        answers.flush()


def _killer(mutant: Mutant) -> str:
    path = Path(mutant.path)
    text = path.read_text(encoding="utf-8")
    end = mutant.start + len(mutant.old)
    assert text[mutant.start : end] == mutant.old, mutant
    unsound: list[str] = []
    while True:
        path.write_text(text[: mutant.start] + mutant.new + text[end:], encoding="utf-8")
        killer = _failing(mutant.tests, unsound)
        path.write_text(text, encoding="utf-8")
        if killer == HANGS:
            return "" if _failing(mutant.tests, unsound) == HANGS else HANGS
        if not killer or killer in unsound or not _failing([killer], []):
            return killer
        unsound.append(killer)


def _failing(tests: Sequence[str], unsound: Sequence[str]) -> str:
    """Run tests in a child until one fails; return that one, or what hung, or ""."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            os.setsid()
            most = int(CPU_SECONDS) + HUNG_SECONDS
            resource.setrlimit(resource.RLIMIT_CPU, (most, most))
            os.write(writing, _run(tests, unsound).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="utf-8") as file:
        has_answered = select.select([file], [], [], WALL_SECONDS)[0]
        if not has_answered:
            os.kill(pid, signal.SIGKILL)
        said = file.read()
    _pid, status = os.waitpid(pid, 0)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what tests started
    return HANGS if status else said


def _run(tests: Sequence[str], unsound: Sequence[str]) -> str:
    import pytest

    class UntilOneFails:
        failed = ""

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> bool | None:
            return True if self.failed or time.process_time() > CPU_SECONDS else None

        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed and not self.failed:
                self.failed = report.nodeid

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed and not self.failed:
                self.failed = report.nodeid

    plugin = UntilOneFails()
    options = ["-x", "-q", "-n", "0", "--no-header", "-p", "no:cacheprovider"]
    options += ["-p", "no:rerunfailures", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    options += [f"--deselect={name}" for name in unsound]
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    pytest.main([*options, *(name for name in tests if name not in unsound)], plugins=[plugin])
    return plugin.failed


if __name__ == "__main__":
    _serve()
