"""An Optuna study from elsewhere is looked at, or a sentence says exactly why it cannot be."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import optuna
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from tests.sweeps.made import a_plan, driven
from tests.sweeps.test_driver import valley
from tfm_core.plots.training import sweeps as plots
from tfm_core.runs.store import RunStore
from tfm_core.sweeps import foreign, ready
from tfm_core.sweeps.driver import Driver
from tfm_core.sweeps.foreign import ImportRecord, NotAStudy
from tfm_core.sweeps.store import SweepStore

optuna.logging.set_verbosity(optuna.logging.ERROR)
Objective = Callable[[optuna.Trial], float]


def a_figure(trial: optuna.Trial) -> float:
    x, y = trial.suggest_float("x", 0.1, 10, log=True), trial.suggest_int("y", 0, 5)
    kind = trial.suggest_categorical("kind", ["a", "<b>c", None])
    return math.log(x) ** 2 + y + (kind == "a")


def journal(folder: Path, objective: Objective = a_figure, n: int = 12, **study: object) -> bytes:
    """What a script elsewhere leaves."""
    path = folder / f"foreign-{len(list(folder.iterdir()))}.log"
    made = optuna.create_study(storage=JournalStorage(JournalFileBackend(str(path))), **study)
    made.optimize(objective, n_trials=n, catch=ZeroDivisionError)
    return path.read_bytes()


def bring(root: Path, content: bytes):
    return SweepStore(root).bring(content, ImportRecord("Elsewhere", ready.now(), None))


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_study_from_elsewhere_is_looked_at(tmp_path: Path, direction: str) -> None:
    content = journal(tmp_path, direction=direction, study_name="A study")
    sweep = bring(tmp_path / "runs", content)
    (look,) = foreign.read_studies(sweep.folder)
    assert look.name == "A study"
    figures = [one.value for one in look.complete]
    assert len(figures) == 12
    assert figures == sorted(figures, reverse=direction == "maximize")
    assert set(look.settings) == {"x", "y", "kind"}
    assert {one.values["kind"] for one in look.trials} <= {"a", "‹b›c", "None"}
    drawn = plots.of_foreign(look)
    assert set(drawn) == {"history", "parallel", "importance"}
    assert "<b>c" not in drawn["parallel"].to_json()
    assert [one.id for one in SweepStore(tmp_path / "runs").list()] == [sweep.id]
    assert sweep.journal.read_bytes() == content, "it is copied as it is"


def test_a_sweep_of_this_app_is_a_study_elsewhere(
    driver: Driver, store: RunStore, tmp_path: Path
) -> None:
    sweep = driver.sweeps.create(a_plan(max_runs=5))
    driven(driver, store, sweep, valley)
    other = bring(tmp_path / "other", sweep.journal.read_bytes())
    (look,) = foreign.read_studies(other.folder)
    assert len(look.complete) == 5
    driver.step()  # whoever drives sweeps leaves it alone
    assert driver.trouble(other.id) is None


def test_of_a_file_that_is_still_written_the_whole_lines_count(tmp_path: Path) -> None:
    content = journal(tmp_path)
    sweep = bring(tmp_path / "runs", content + b'{"op_code": 4, "wor')
    assert sweep.journal.read_bytes() == content


def no_figure(trial: optuna.Trial) -> float:
    return 1 / 0


def two(trial: optuna.Trial) -> tuple[float, float]:
    return trial.suggest_float("x", 0, 1), 1.0


def _database(folder: Path) -> bytes:
    storage = optuna.storages.RDBStorage(f"sqlite:///{folder}/study.db")
    optuna.create_study(storage=storage).optimize(a_figure, n_trials=1)
    storage.engine.dispose()  # Python 3.13 and newer warn of a database that is left open
    return (folder / "study.db").read_bytes()


CASES: dict[str, tuple[Callable[[Path], bytes], str]] = {
    "a database": (_database, "an Optuna database"),
    "a pickle": (lambda folder: b"\x80\x04\x95more\n", "a pickle, which could run code"),
    "nothing": (lambda folder: b"", "no complete line"),
    "another kind of file": (
        lambda folder: journal(folder) + b"hello\n",
        r"Line \d+ is not a line of an Optuna journal",
    ),
    "a list": (lambda folder: b"[1]\n", "Line 1 is not a line"),
    "deep JSON": (lambda folder: b"[" * 90_000 + b"\n", "Line 1 is not a line"),
    "no study": (lambda folder: b"\n" + b'{"op_code": 99, "worker_id": "a"}\n', "journal"),
    "two figures": (
        lambda folder: journal(folder, two, directions=["minimize", "maximize"]),
        "optimises 2 metrics",
    ),
    "no figure": (lambda folder: journal(folder, no_figure), "None of the 12 trials .* a value"),
    "records that are none": (
        lambda folder: b'{"op_code": 0, "worker_id": "a"}\n',
        r"Optuna cannot read this journal \(KeyError",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_be_looked_at_says_exactly_why_and_leaves_nothing(
    name: str, tmp_path: Path
) -> None:
    make, match = CASES[name]
    (tmp_path / "made").mkdir()
    content = make(tmp_path / "made")
    with pytest.raises(NotAStudy, match=match):
        bring(tmp_path / "runs", content)
    assert list((tmp_path / "runs" / "sweeps").iterdir()) == []


def test_what_is_huge_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = journal(tmp_path)
    monkeypatch.setattr(foreign, "MAX_TRIALS", 7)
    with pytest.raises(NotAStudy, match="has 12 trials; the limit is 7"):
        bring(tmp_path / "runs", content)
    monkeypatch.setattr(foreign, "MAX_BYTES", 99)
    with pytest.raises(NotAStudy, match="limit for a journal is 99 B"):
        bring(tmp_path / "runs", content)


def test_a_note_of_it_that_is_damaged_is_none(tmp_path: Path) -> None:
    sweep = bring(tmp_path / "runs", journal(tmp_path))
    for values in ({"name": "a\nb"}, [], {"name": "a", "created": "never"}):
        (sweep.folder / foreign.FILE).write_text(json.dumps(values))
        assert sweep.brought() is None
