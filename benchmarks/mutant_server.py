"""Runs tests against mutants, in a copy of the tree: for ``benchmarks.mutants``.

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
NOT_FOUND = "what all tests import"
_PRELOADED = (
    "torch",
    "numpy",
    "pandas",
    "pytest",
    "safetensors",
    "pydantic",
    "plotly.graph_objects",
    "scipy.stats",
    "hypothesis",
    "streamlit.testing.v1",
)


def _serve() -> None:
    """Answer a mutant a line with the test that notices it. Runs in the copy."""
    for name in _PRELOADED:
        __import__(name)
    import torch

    torch.set_num_threads(1)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what tests print
    for line in sys.stdin:
        asked = json.loads(line)
        killer = _killer(Mutant(**asked["mutant"]), asked["tests"])
        answers.write(json.dumps(killer) + "\n")
        answers.flush()


def _killer(mutant: Mutant, tests: Sequence[str]) -> str:
    path = Path(mutant.path)
    text = path.read_text(encoding="utf-8")
    end = mutant.start + len(mutant.old)
    assert text[mutant.start : end] == mutant.old, mutant
    unsound: list[str] = []
    while tests:
        path.write_text(text[: mutant.start] + mutant.new + text[end:], encoding="utf-8")
        killer = _failing(tests, unsound)
        path.write_text(text, encoding="utf-8")
        if killer in (HANGS, NOT_FOUND):
            return "" if _failing(tests, unsound) == killer else killer
        if not killer or killer in unsound or not _failing([killer], []):
            return killer
        unsound.append(killer)
    return ""


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
    """Run them in this order; what keeps all of them from being found counts as a failure, too."""
    import pytest

    wanted = [name for name in tests if name not in unsound]

    class UntilOneFails:
        failed = ""

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtest_protocol(self, item: Any, nextitem: Any) -> bool | None:
            return True if self.failed or time.process_time() > CPU_SECONDS else None

        def pytest_runtest_logreport(self, report: Any) -> None:
            if report.failed and not self.failed:
                self.failed = report.nodeid

        def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
            due = [item for name in wanted for item in items if item.nodeid == name]
            config.hook.pytest_deselected(items=[item for item in items if item not in due])
            items[:] = due

        def pytest_collectreport(self, report: Any) -> None:
            if report.failed and not self.failed:
                self.failed = report.nodeid

    plugin = UntilOneFails()
    options = ["-x", "-q", "-n", "0", "--no-header", "-p", "no:cacheprovider"]
    options += ["-p", "no:rerunfailures", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    files = dict.fromkeys(name.partition("::")[0] for name in wanted)
    code = pytest.main([*options, *files], plugins=[plugin])
    return plugin.failed or (NOT_FOUND if code == pytest.ExitCode.USAGE_ERROR else "")


if __name__ == "__main__":
    _serve()
