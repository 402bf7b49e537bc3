"""What docs/security.md promises is tested by tests and stress tests that exist."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

from benchmarks import reliability

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs/security.md").read_text(encoding="utf-8")
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))
MODULES = sorted(path.stem for path in (ROOT / "benchmarks/stress").glob("[!_]*.py"))


def test_every_test_that_is_named_is_there() -> None:
    for file in {file for file, _ in TESTS}:
        module = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        there = {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
        assert {name for each, name in TESTS if each == file} <= there, file


def test_every_promise_names_what_tests_it() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    promises = [row for row in rows if not row.startswith("| promise |")]
    assert promises
    for row in promises:
        assert re.search(r"`(tests|benchmarks/stress)/[\w/]+\.py(::\w+)?`", row), row


def test_every_stress_test_that_is_named_is_there() -> None:
    for name in re.findall(r"`benchmarks/stress/(\w+)\.py`", PAGE):
        assert name in reliability.STRESS_TESTS


def test_every_stress_test_is_run() -> None:
    assert sorted(reliability.STRESS_TESTS) == MODULES
    for name in reliability.STRESS_TESTS:
        tables = importlib.import_module(reliability.module(name)).tables
        assert "quick" in inspect.signature(tables).parameters


def test_a_stress_test_that_crashes_is_said_and_leaves_the_others(monkeypatch) -> None:
    monkeypatch.setattr(reliability, "STRESS_TESTS", ("first", "second"))
    found = reliability.tables(quick=True)
    assert "crashed" in str(next(found))
    assert "second" in str(next(found))
    with pytest.raises(RuntimeError, match="first, second"):
        next(found)
