"""The faults that the benchmark plants: each is a change that Python reads, and has tests near."""

import ast
import shutil
from pathlib import Path

import pytest

from benchmarks import mutants

ROOT = Path(mutants.__file__).resolve().parents[1]


@pytest.mark.wide
def test_each_mutant_is_another_program_and_the_seed_says_which():
    drawn = mutants.draw(ROOT, 12, seed=3)
    assert drawn == mutants.draw(ROOT, 12, seed=3) != mutants.draw(ROOT, 12, seed=4)
    assert {Path(one.path).parts[0] for one in drawn} == {"tfm_core", "pages"}
    for one in (*drawn, *mutants.by_hand(ROOT)):
        text = (ROOT / one.path).read_text(encoding="utf-8")
        end = one.start + len(one.old)
        assert text[one.start : end] == one.old
        changed = ast.parse(text[: one.start] + one.new + text[end:])
        assert ast.dump(changed) != ast.dump(ast.parse(text)), str(one)
        assert text.count("\n", 0, one.start) == one.line - 1


@pytest.mark.wide
def test_the_tests_of_a_line_are_those_that_run_it(tmp_path):
    (tmp_path / "tfm_core").mkdir()
    (tmp_path / "pages").mkdir()
    module, tests = tmp_path / "tfm_core" / "halves.py", tmp_path / "tests" / "test_halves.py"
    module.write_text("LIMIT = 3\n\ndef low():\n    return 1\n\ndef high():\n    return LIMIT\n")
    tests.parent.mkdir()
    tests.write_text(
        "from tfm_core.halves import high, low\n"
        "def test_low():\n    assert low() == 1\n"
        "def test_high():\n    assert high() == 3\n"
    )
    shutil.copytree(ROOT / "benchmarks", tmp_path / "benchmarks")
    covering = mutants.Covering([tmp_path])
    low, high = "tests/test_halves.py::test_low", "tests/test_halves.py::test_high"
    assert covering.tests("tfm_core/halves.py", range(4, 5)) == (low,)
    assert covering.tests("tfm_core/halves.py", range(6, 8)) == (high,)
    assert set(covering.tests("tfm_core/halves.py", range(1, 2))) == {low, high}
