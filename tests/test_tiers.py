"""The tiers of the tests, and what their costs are compared with."""

import os
import subprocess
import sys
import time
from collections import Counter

import pytest

from tests import costs, tiers


def test_a_test_or_a_folder_fails_the_run_above_its_limit():
    core = Counter({"tests/layers/test_a.py::at": 7.5, "tests/layers/test_a.py::above": 7.6})
    found = costs.violations(core, Counter(), 1.0, whole=False)
    assert found == ["tests/layers/test_a.py::above took 7.6 CPU seconds; the limit is 7.5."]
    assert costs.violations(core, Counter(), 1.1, whole=False) == []  # on a slower machine
    for setup, excess in ((0.05, True), (0.15, False), (9.0, False)):
        setups = Counter({"tests/layers/test_a.py::above": setup})
        assert bool(costs.violations(core, setups, 1.0, whole=False)) == excess
    core["tests/layers/test_a.py::above"] = 10.6
    assert costs.violations(core, setups, 1.0, whole=False)
    assert costs.violations(
        Counter({"tests/layers/test_a.py::a": 12.0}), Counter(), 1.5, whole=False
    )
    assert (
        costs.violations(Counter({"tests/layers/test_a.py::a": 80.0}), Counter(), 1.6, whole=True)
        == []
    )
    core = Counter({f"tests/layers/test_a.py::test_{n}": 3.1 for n in range(10)})
    assert costs.violations(core, Counter(), 1.0, whole=False) == []
    found = costs.violations(core, Counter(), 1.0, whole=True)
    assert found == ["tests/layers took 31 CPU seconds; the limit is 30."]


def test_a_process_that_died_within_a_test_costs_nothing(request: pytest.FixtureRequest):
    counted = costs.Costs(request.config)
    crashed = pytest.TestReport("tests/a.py::b", ("", 0, ""), {}, "failed", "crashed", "???")
    counted.pytest_runtest_logreport(crashed)
    assert not counted.tests


def test_child_processes_are_counted_while_they_live_and_after():
    before = costs.tree_seconds()
    work = "sum(n * n for n in range(3_000_000)); print(flush=True); input()"
    child = subprocess.Popen(
        [sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()
    alive = costs.tree_seconds() - before
    assert child.pid in set(costs.child_ids(os.getpid()))
    child.communicate(b"\n")
    ended = costs.tree_seconds() - before
    assert alive > 0.02
    assert 0.9 * alive < ended  # clock ticks are coarse


def test_a_change_reaches_what_imports_it_lazily_too():
    found = tiers.imports(tiers.ROOT)
    assert "tfm_core/layers/attention.py" in found["tests/layers/test_attention.py"]
    assert "pages/components/pickers.py" in found["tests/pages/look_inside/masks/test_page.py"]
    far = tiers.distances(found, {"pages/components/pickers.py"})
    assert far["tests/pages/look_inside/masks/test_page.py"] == 1
    assert "tests/layers/test_attention.py" not in far


@pytest.mark.parametrize(
    ("changed", "reached"),
    [
        ("a/x.py", {"a/x.py": 0, "b/y.py": 1, "tests/test_z.py": 2}),
        ("a/words/en.md", {"a/x.py": 0, "b/y.py": 1, "tests/test_z.py": 2}),
        ("tests/test_z.py", {"tests/test_z.py": 0}),
        ("README.md", {}),
    ],
)
def test_distances_are_counted_in_imports(changed: str, reached: dict[str, int]):
    imported = {"a/x.py": set(), "b/y.py": {"a/x.py"}, "tests/test_z.py": {"b/y.py"}}
    assert tiers.distances(imported, {changed}) == reached


@pytest.mark.core(2)
@pytest.mark.parametrize("n", range(5))
def test_of_the_cases_of_a_test_some_are_in_the_core(n: int, request: pytest.FixtureRequest):
    assert tiers.is_wide(request.node) == (n not in (0, 2))


def test_no_wide_test_begins_behind_the_limit(monkeypatch: pytest.MonkeyPatch, request):
    monkeypatch.setenv("TFM_UNTIL", "0")
    tiers.pytest_runtest_setup(request.node)
    request.node.add_marker("wide")
    with pytest.raises(pytest.skip.Exception):
        tiers.pytest_runtest_setup(request.node)
    monkeypatch.setenv("TFM_UNTIL", str(time.time() + 3600))
    tiers.pytest_runtest_setup(request.node)
