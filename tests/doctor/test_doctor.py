"""The doctor says what is wrong in a line each, mends what it may, and leaves living runs alone."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.runs.waiting import tiny
from tfm_core import doctor
from tfm_core.cli import main
from tfm_core.doctor import checks
from tfm_core.doctor.checks import Finding, check_backend, check_disk, check_folder, check_variables
from tfm_core.doctor.runs import check_claims, check_leftovers, check_line, check_runs
from tfm_core.runs import RunStore
from tfm_core.runs.process.identity import process_id
from tfm_core.runs.queue import claim, tickets
from tfm_core.runs.status import Status, write_status

UNWRITABLE = Path("/proc/sys/kernel/random")
"""A folder in which not even root can make a file."""


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path / "runs"))
    monkeypatch.setenv("TFM_DATA_DIR", str(tmp_path / "data"))
    return RunStore(tmp_path / "runs")


@pytest.fixture
def alive(store):
    """A run that trains: in this very process."""
    run = store.create(tiny())
    values = dataclasses.asdict(process_id())
    write_status(run.folder, Status("running", total_steps=7, heartbeat=time.time(), **values))
    return run


def test_a_sound_folder_is_ok_on_one_line_a_check(store, capsys):
    store.create(tiny(), state="stopped")
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines] == [
        *("variables", "versions", "torchvision", "devices", "MNIST", "backend"),
        *("folder", "disk", "runs", "line", "claims", "leftovers"),
    ]
    assert {line.split()[0] for line in lines} <= {"ok", "warning"}  # the disk may be short


def test_a_cluster_that_cannot_be_asked_is_a_problem(monkeypatch, tmp_path):
    assert check_backend().level == "ok"
    monkeypatch.setenv("TFM_BACKEND", "slurm")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = check_backend()
    assert found.level == "problem"
    assert "squeue is not installed" in found.words


def test_a_problem_is_exit_code_one(store, capsys):
    store.create(tiny())  # it waits, and has no ticket
    assert main(["doctor", "--json"]) == 1
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert found["line"]["level"] == "problem"
    assert "--mend" in found["line"]["do"]
    assert main(["doctor", "--mend", "--json"]) == 0
    found = {one["name"]: one for one in json.loads(capsys.readouterr().out)}
    assert len(found["line"]["mended"]) == 1


def test_a_bad_variable_is_said_and_what_hangs_on_it_left_out(store, monkeypatch):
    monkeypatch.setenv("TFM_MAX_RUNNING", "many")
    found = list(doctor.examine(mends=True))
    assert "TFM_MAX_RUNNING is 'many'" in found[0].words
    assert "folder" not in {finding.name for finding in found}


def test_every_listed_variable_is_known_to_be_read():
    listed = Path(__file__).resolve().parents[2] / "docs/settings.md"
    rows = re.findall(r"^\| `(TFM_\w+)`", listed.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(rows) == checks.KNOWN


def test_a_variable_that_nobody_reads_is_named_with_what_was_meant(store, monkeypatch):
    monkeypatch.setenv("TFM_MAX_RUNING", "3")
    found = check_variables()
    assert found.level == "warning"
    assert "TFM_MAX_RUNING (is TFM_MAX_RUNNING meant?)" in found.words


def test_a_public_server_without_a_host_is_warned_about(store, monkeypatch):
    monkeypatch.setenv("TFM_PUBLIC", "1")
    assert "nobody can act as the host" in check_variables().words
    monkeypatch.setenv("TFM_HOST_KEY", "a key of the host's own")
    found = check_variables()
    assert found.level == "ok"
    assert "a key" not in found.words


def test_packages_that_are_missing_or_others_are_named(tmp_path):
    asked = tmp_path / "requirements.txt"
    asked.write_text("numpy>=2\nnumpy<1\n")
    found = checks.check_versions(asked)
    assert (found.level, "numpy" in found.words) == ("warning", True)
    asked.write_text("no-such-package-here~=1.0\n")
    found = checks.check_versions(asked)
    assert (found.level, found.words) == ("problem", "Not installed: no-such-package-here~=1.0.")


def test_the_files_of_mnist_are_compared_with_their_checksums(store, tmp_path):
    assert checks.check_mnist().level == "ok"
    folder = tmp_path / "data" / "MNIST" / "raw"
    folder.mkdir(parents=True)
    (folder / "train-images-idx3-ubyte.gz").write_bytes(b"packed")
    assert "lacks t10k-images-idx3-ubyte, " in checks.check_mnist().words
    (folder / "t10k-images-idx3-ubyte").write_bytes(b"others")
    found = checks.check_mnist()
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
    monkeypatch.setattr("tfm_core.doctor.checks.SHORT_BYTES", 2**60)
    store.create(tiny())
    found = check_disk(store)
    assert found.level == "warning"
    assert "in 1 run, 0 B in the trash (0)" in found.words


def test_damaged_runs_are_named(store):
    run = store.create(tiny(), state="stopped")
    (run.folder / "experiment.json").write_text("{")
    found = check_runs(store)
    assert (found.level, run.id in found.words) == ("warning", True)


def test_the_line_is_put_in_order_and_no_other_run_is_touched(store, alive):
    waits, forgotten, stopped = store.create(tiny()), store.create(tiny()), store.create(tiny())
    write_status(stopped.folder, Status("stopped", total_steps=7))
    for run_id in (waits.id, stopped.id, "gone-for-good", alive.id):
        tickets.add(store.root, run_id)
    before = check_line(store)
    assert before.level == "problem"
    assert forgotten.id in before.words
    mended = check_line(store, mends=True)
    assert tickets.waiting(store.root) == [waits.id, alive.id, forgotten.id]
    assert sum(stopped.id in done for done in mended.mended) == 1
    assert len(mended.mended) == 3
    assert check_line(store).level == "ok"


def test_stale_claims_are_released_but_not_those_of_living_processes(store, alive, neighbour):
    held, stale = store.create(tiny(), state="stopped"), store.create(tiny(), state="stopped")
    assert claim.take(held.folder, neighbour)
    assert claim.take(alive.folder, process_id())
    gone = subprocess.Popen([sys.executable, "-c", ""])
    assert claim.take(stale.folder, process_id(gone.pid))
    gone.wait()
    before = check_claims(store)
    assert before.level == "warning"
    assert stale.id in before.words
    assert held.id not in before.words
    assert check_claims(store, mends=True).mended == (f"released {stale.id}.",)
    assert not claim.is_stale(stale.folder)
    assert not claim.is_held(stale.folder)
    assert claim.is_held(held.folder)
    assert claim.is_held(alive.folder)
    assert check_claims(store).level == "ok"


def test_leftovers_are_removed_but_not_of_a_run_that_lives(store, alive, monkeypatch):
    monkeypatch.setattr("tfm_core.runs.disk.cleanup.QUIET_SECONDS", -1.0)
    ended = store.create(tiny(), state="stopped")
    (store.root / ".new-abcdefgh").mkdir()
    for run in (ended, alive):
        (run.folder / ".status.json.0123abcd").write_text("{")
    assert check_leftovers(store).words.startswith("2 leftovers")
    assert check_leftovers(store, mends=True).mended
    assert sorted(os.listdir(ended.folder)) == sorted(
        set(os.listdir(alive.folder)) - {".status.json.0123abcd"}
    )
    assert check_leftovers(store).level == "ok"


def test_a_finding_is_a_line_and_what_was_done_stands_below():
    finding = Finding("line", "ok", "In order.", "Do: nothing", mended=("gave a ticket.",))
    assert str(finding).splitlines() == [
        "ok       line        In order. Do: nothing",
        "                     mended: gave a ticket.",
    ]
