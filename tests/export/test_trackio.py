"""Trackio's importers read our event files and metrics.csv; where it is not installed, the form."""

from __future__ import annotations

import csv
import re

import pytest

from tests.export.exported import unpacked
from tfm_core.export import figures, tensorboard
from tfm_core.runs.store import RunStore


@pytest.fixture(scope="module")
def run():
    return RunStore().get("recorded-korean")


@pytest.fixture
def metrics(run, tmp_path):
    path = tmp_path / "metrics.csv"
    path.write_bytes(figures.csv_of(run.curves()))
    return path


def test_a_table_has_steps_and_columns_of_numbers(run, metrics):
    """It wants ``step`` and takes columns of numbers; names keep letters, digits and ``/``."""
    with metrics.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    names = {re.sub(r"[^a-zA-Z0-9/]", "", name)[:10]: name for name in rows[0]}
    assert len(names) == len(rows[0])
    assert {"step", "loss", "accuracy"} <= names.keys()
    assert [int(float(row[names["step"]])) for row in rows[:3]] == [1, 2, 3]
    for short, name in names.items():
        if short not in {"split", "step"}:
            assert all(float(row[name]) or True for row in rows if row[name])
    assert len(rows) == sum(
        len(part) for part in (run.curves().steps, run.curves().validation, run.curves().test)
    )


@pytest.mark.filterwarnings("ignore")
def test_both_are_imported(run, metrics, tmp_path, monkeypatch):
    pytest.importorskip("tbparse")
    imports = pytest.importorskip("trackio.imports")
    sqlite_storage = pytest.importorskip("trackio.sqlite_storage")
    utils = pytest.importorskip("trackio.utils")
    for module in (utils, sqlite_storage):
        monkeypatch.setattr(module, "TRACKIO_DIR", tmp_path / "trackio")
    imports.import_csv(metrics, project="table")
    imports.import_tf_events(unpacked(tensorboard.bundle(run), tmp_path / "logs"), project="events")
    logs = sqlite_storage.SQLiteStorage
    assert logs.get_runs("table") == ["metrics"]
    (name,) = logs.get_runs("events")
    seen = {key for row in logs.get_logs("events", name) for key in row}
    assert {"loss/train", "loss/validation", "accuracy/test"} <= seen
    steps = [row["step"] for row in logs.get_logs("events", name) if "loss/train" in row]
    assert steps == run.curves().steps["step"].tolist()
