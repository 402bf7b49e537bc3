"""Runs are found by all that is known of them."""

import pytest

from tests.pages.made_runs import damaged_run, made_run
from tests.runs.waiting import tiny
from tfm_core.inspect.compare.differences import is_found
from tfm_core.runs.run import Run
from tfm_core.runs.store import RunStore


@pytest.fixture
def run(tmp_path) -> Run:
    store = RunStore(tmp_path, recorded=None)
    made = made_run(store, name="Mine", experiment=tiny())
    return store.label(
        made.id, tags=["Baseline", "too slow"], note="Falls\nlate.", group="Heads of 2"
    )


@pytest.mark.parametrize(
    "words",
    ["", " ", "mine", "MINE copy", "baseline", "#baseline", "#too-slow", "late", "heads of",
     "n_heads=2", "model.n_heads=2", "copy mine n_heads=2", "adamw", "adam",
     "norm_first=true", "extra"],
)  # fmt: skip
def test_every_word_stands_somewhere(run, words):
    assert is_found(run, words, also="Extra")


@pytest.mark.parametrize(
    "words",
    [
        "other",
        "mine other",
        "#base",
        "#mine",
        "n_heads=20",
        "n_heads=",
        "heads=2",
        "$(.*",
        "damw",
        "5",
    ],
)
def test_a_word_that_stands_nowhere_finds_nothing(run, words):
    assert not is_found(run, words)


def test_a_damaged_run_is_found_by_its_name(tmp_path):
    run = damaged_run(RunStore(tmp_path, recorded=None))
    assert is_found(run, "broken")
    assert not is_found(run, "n_heads=2")
