"""What tests cost, in CPU seconds of the test process and all processes below it.

CPU seconds hold on a busy machine where minutes do not. They are divided by how much slower than
the reference the machine is, and compared with the budgets below. The division is rough: what is
above its budget is printed, and only a core test or a folder above a budget and a half fails the
run. On a busy machine nothing does.
"""

import contextlib
import os
import random
import time
from collections import Counter
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.tiers import is_wide, runs_whole_core

TEST_BUDGET = 5.0
SETUP_ALLOWANCE = 3.0  # what a fixture makes once for a whole file, on top of the budget
BROWSER_TEST_BUDGET = 35.0  # a journey through several pages; the first starts server and browser
BUDGETS = {
    "browser": 350,
    "pages": 220,
    "inspect": 45,
    "trace": 30,
    "studies": 30,
    "training": 45,
    "runs": 45,
    "export": 40,
    "": 35,
    "data": 25,
    "models": 25,
}
"""CPU seconds of a folder below tests/, where it has a budget of its own."""
OTHER_BUDGET = 20
MARGIN = 1.5
BUSY = 1.5  # how many times slower than the reference a machine is at least
REFERENCE_SECONDS = 0.022
"""CPU seconds of ``_fixed_work`` on the quiet machine on which the budgets were measured."""
N_DEAREST = 20
FIRST_TRY_LETTERS = 3000  # of a failure that a second try made good
_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


def tree_seconds() -> float:
    """Return the CPU seconds of this process and of all below it that live or have ended."""
    total = sum(os.times()[:4])
    unread = list(child_ids(os.getpid()))
    while unread:
        process = unread.pop()
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, words[11:15])) / _TICKS_PER_SECOND  # with its ended children
            unread += child_ids(process)
    return total


def child_ids(process: int) -> Iterator[int]:
    """Yield the ids of the living processes that a process has started; none outside Linux."""
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            with contextlib.suppress(OSError):
                yield from map(int, (thread / "children").read_text().split())


def slowness() -> float:
    """Return how many times as long as on the reference machine this one computes now."""
    return min(_fixed_work() for _try in range(3)) / REFERENCE_SECONDS


def _fixed_work() -> float:
    begin = time.process_time()
    numbers = random.Random(0).choices(range(10_000), k=60_000)
    Counter(sorted(str(number) for number in numbers))
    return time.process_time() - begin


class Costs:
    """Adds up what the tests cost, in the process that reports them."""

    def __init__(self, config: pytest.Config) -> None:
        """Begin with nothing."""
        self._config = config
        self.tests: Counter[str] = Counter()
        self.core: Counter[str] = Counter()
        self.setups: Counter[str] = Counter()
        self._slowness: list[float] = []
        self.violations: list[str] = []
        self._first_tries: list[pytest.TestReport] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the cost of a phase; a second try begins again.

        A process of xdist that died mid-test reports no cost.
        """
        if not hasattr(report, "cpu_seconds"):
            return
        if report.when == "setup":
            self.tests[report.nodeid] = 0
            self.setups[report.nodeid] = report.cpu_seconds
        self.tests[report.nodeid] += report.cpu_seconds
        if report.outcome == "rerun":
            self._first_tries.append(report)
        if not report.is_wide:
            self.core[report.nodeid] = self.tests[report.nodeid]

    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a process of xdist found out about the machine."""
        self._slowness += getattr(node, "workeroutput", {}).get("slowness", [])

    @pytest.hookimpl(wrapper=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None]:
        """Fail the run where something costs too much."""
        yield
        self._slowness += self._config.stash.get(_SLOWNESS, [])
        whole = runs_whole_core(self._config)
        self.violations = violations(self.core, self.setups, self.scale, whole=whole)
        if self.violations and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @property
    def scale(self) -> float:
        """How many times slower than the reference the machine was, at least 1."""
        return max(1.0, sum(self._slowness) / max(1, len(self._slowness)))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the dearest tests and folders, and what costs too much."""
        write = terminalreporter.write_line
        terminalreporter.section(
            f"{sum(self.tests.values()):.0f} CPU seconds; {self.scale:.2f} times the reference's"
        )
        for test, seconds in self.tests.most_common(N_DEAREST):
            mark = " above its budget" if seconds > budget_of(test) * self.scale else ""
            write(f"{seconds:6.1f}  {test}{mark}")
        write("")
        for folder, seconds in folders(self.tests).most_common():
            write(f"{seconds:6.0f} of {BUDGETS.get(folder, OTHER_BUDGET)}  tests/{folder}")
        for sentence in self.violations:
            write(sentence, red=True)
        for report in self._first_tries:  # why a second one was needed
            write(f"{report.nodeid}, first try:\n{report.longreprtext[-FIRST_TRY_LETTERS:]}")


def violations(core: Counter[str], setups: Counter[str], scale: float, *, whole: bool) -> list[str]:
    """Return what costs too much, as sentences; folders count where the whole core was run."""
    found: list[str] = []
    if scale > BUSY:
        return found
    for test, seconds in core.items():
        limit = budget_of(test) * MARGIN
        if seconds - min(setups[test], SETUP_ALLOWANCE) > limit * scale:
            found.append(f"{test} took {seconds / scale:.1f} CPU seconds; the limit is {limit:g}.")
    for folder, seconds in folders(core).items() if whole else ():
        limit = BUDGETS.get(folder, OTHER_BUDGET) * MARGIN
        if seconds > limit * scale:
            found.append(
                f"tests/{folder} took {seconds / scale:.0f} CPU seconds; the limit is {limit:g}."
            )
    return found


def budget_of(test: str) -> float:
    """Return the CPU seconds that a test of the core may take on the reference machine."""
    return BROWSER_TEST_BUDGET if folder_of(test) == "browser" else TEST_BUDGET


def folders(tests: Counter[str]) -> Counter[str]:
    """Return the CPU seconds by folder below tests/."""
    total: Counter[str] = Counter()
    for test, seconds in tests.items():
        total[folder_of(test)] += seconds
    return total


def folder_of(test: str) -> str:
    """Return the folder below tests/ in which a test lies, "" for tests/ itself."""
    parts = test.partition("::")[0].split("/")
    return parts[1] if len(parts) > 2 else ""


_SLOWNESS = pytest.StashKey[list[float]]()
_last_seconds = tree_seconds()


def pytest_configure(config: pytest.Config) -> None:
    """Count in the process that reports; look at the machine in each that tests."""
    config.stash[_SLOWNESS] = [slowness()]
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Costs(config))


def pytest_collection_finish() -> None:
    """Begin to count: collection is no test's cost."""
    global _last_seconds
    _last_seconds = tree_seconds()


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put on each report what was spent since the one before."""
    global _last_seconds
    report = yield
    before, _last_seconds = _last_seconds, tree_seconds()
    # what was killed below another process is lost to the sum
    report.cpu_seconds = max(0.0, _last_seconds - before)
    report.is_wide = is_wide(item)
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand on what this process found out about the machine."""
    measured = [*session.config.stash[_SLOWNESS], slowness()]
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["slowness"] = measured
