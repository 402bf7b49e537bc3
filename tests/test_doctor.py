"""The doctor says what is wrong in a line each."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

from tests.runs.waiting import tiny
from tfm_core import doctor, settings
from tfm_core.cli import main
from tfm_core.doctor import (
    check_backend,
    check_disk,
    check_folder,
    check_runs,
    check_variables,
)
from tfm_core.runs import RunStore

UNWRITABLE = Path("/proc/sys/kernel/random")
"""A folder in which not even root can make a file."""


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("TFM_DATA_DIR", str(tmp_path / "data"))
    return RunStore(tmp_path / "runs")


def test_a_sound_folder_is_ok_on_one_line_a_check(store, capsys):
    store.create(tiny(), state="stopped")
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == [
        *("variables", "versions", "torchvision", "devices", "MNIST", "backend"),
        *("folder", "disk", "runs"),
    ]
    assert {line.split()[0] for line in lines} <= {"ok", "warning"}  # the disk may be short


def test_a_cluster_that_cannot_be_asked_is_a_problem(monkeypatch):
    assert check_backend().level == "ok"
    monkeypatch.setenv("TFM_RAY_ADDRESS", "http://head:8265")
    monkeypatch.setitem(sys.modules, "ray.job_submission", None)
    found = check_backend()
    assert found.level == "problem"
    assert "Ray is not installed" in found.words


def test_a_problem_is_exit_code_one(store, capsys, monkeypatch):
    monkeypatch.setenv("TFM_MAX_RUNNING", "many")
    assert main(["doctor", "--json"]) == 1
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert found["variables"]["level"] == "problem"


def test_a_bad_variable_is_said_and_what_hangs_on_it_left_out(store, monkeypatch):
    monkeypatch.setenv("TFM_MAX_RUNNING", "many")
    found = list(doctor.examine())
    assert "TFM_MAX_RUNNING is 'many'" in found[0].words
    assert "folder" not in {finding.name for finding in found}


def test_every_listed_variable_is_known_to_be_read():
    listed = Path(__file__).resolve().parents[1] / "docs/settings.md"
    rows = re.findall(r"^\| `(TFM_\w+)`", listed.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(rows) == {*settings.VARIABLES, *settings.OTHERS}


def test_a_variable_that_nobody_reads_is_named_with_what_was_meant(store, monkeypatch):
    monkeypatch.setenv("TFM_MAX_RUNING", "3")
    found = check_variables()
    assert found.level == "warning"
    assert "TFM_MAX_RUNING is unknown. Did you mean TFM_MAX_RUNNING?" in found.words


def test_packages_that_are_missing_or_others_are_named(tmp_path):
    asked = tmp_path / "requirements.txt"
    asked.write_text("numpy>=2\nnumpy<1\n")
    found = doctor.check_versions(asked)
    assert (found.level, "numpy" in found.words) == ("warning", True)
    asked.write_text("no-such-package-here~=1.0\n")
    found = doctor.check_versions(asked)
    assert (found.level, found.words) == ("problem", "Not installed: no-such-package-here~=1.0.")


def test_the_files_of_mnist_are_compared_with_their_checksums(store, tmp_path):
    assert doctor.check_mnist().level == "ok"
    folder = tmp_path / "data" / "MNIST" / "raw"
    folder.mkdir(parents=True)
    (folder / "train-images-idx3-ubyte.gz").write_bytes(b"packed")
    assert "lacks t10k-images-idx3-ubyte, " in doctor.check_mnist().words
    (folder / "t10k-images-idx3-ubyte").write_bytes(b"others")
    found = doctor.check_mnist()
    assert (found.level, "not the official files: t10k-images" in found.words) == ("warning", True)


@pytest.mark.skipif(not UNWRITABLE.is_dir(), reason="only Linux has such a folder")
def test_a_folder_that_takes_nothing_is_a_problem():
    assert check_folder(RunStore(UNWRITABLE)).level == "problem"


def test_a_folder_without_locks_is_said(store, monkeypatch):
    store.create(tiny(), state="stopped")
    assert check_folder(store).words.endswith("its locks work.")
    monkeypatch.setattr("tfm_core.runs.disk.locks.is_locked", lambda path: False)
    assert (check_folder(store).level, os.listdir(store.root)) == ("warning", [store.list()[0].id])


def test_a_short_disk_is_said(store, monkeypatch):
    monkeypatch.setattr("tfm_core.doctor.SHORT_BYTES", 2**60)
    store.create(tiny())
    found = check_disk(store)
    assert found.level == "warning"
    assert "in 1 run, 0 B in the trash (0)" in found.words


def test_damaged_runs_are_named(store):
    run = store.create(tiny(), state="stopped")
    (run.folder / "experiment.json").write_text("{")
    found = check_runs(store)
    assert (found.level, run.id in found.words) == ("warning", True)
