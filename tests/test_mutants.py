"""The faults that the benchmark plants: each is a change that Python reads, and has tests near."""

import ast
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
        assert one.tests


def test_the_tests_nearest_to_a_module_begin_with_its_own():
    assert (
        mutants.nearest(ROOT, "tfm_core/training/masked.py")[0] == "tests/training/test_masked.py"
    )
    assert "tests/pages/test_shown.py" in mutants.nearest(ROOT, "pages/knockouts/outcome.py")
    assert not [one for one in mutants.nearest(ROOT, "pages/ui/show.py") if "browser" in one]
