"""What killed processes left is swept, and nothing that anybody works on."""

import os
import time

import pytest

from tests.runs.waiting import tiny
from tfm_core.runs.disk import cleanup, trash
from tfm_core.runs.process.identity import this_host

pytestmark = pytest.mark.quick


def names(folder):
    return sorted(os.listdir(folder))


@pytest.fixture
def later(monkeypatch):
    """Let it be half an hour later: a file's time of change cannot be set back."""
    now = time.time() + 1_800
    monkeypatch.setattr("tfm_core.runs.disk.cleanup.time.time", lambda: now)


def leave(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half")


def test_half_made_runs_go(store, later):
    run = store.create(tiny())
    leave(store.root / ".new-half" / "experiment.json")
    leave(store.root / trash.FOLDER / ".gone-0123456789ab" / "status.json")
    leave(store.root / "notes.txt")
    assert cleanup.clean_up(store.root) == 2
    assert names(store.root) == sorted([trash.FOLDER, "notes.txt", run.id])
    assert names(store.root / trash.FOLDER) == []


def test_half_written_files_of_a_run_go(store, end, later):
    run = end(store.create(tiny()))
    before = names(run.folder / "checkpoints" / "last")
    for name in (
        ".status.json.0b00c4f5",
        "snapshots/.00000007.safetensors.0b00c4f5",
        "checkpoints/last/checkpoint.safetensors.new",
        "checkpoints/last/.tmpAb3xYz",
    ):
        leave(run.folder / name)
    assert cleanup.clean_up(store.root) == 4
    assert names(run.folder / "checkpoints" / "last") == before
    assert names(run.folder / "snapshots") == []
    assert run.status.state == "stopped"


def test_what_has_a_worker_is_left_alone(store, end, later):
    run = end(store.create(tiny()), "running", pid=os.getpid(), host=this_host())
    leave(run.folder / "checkpoints" / "last" / "checkpoint.safetensors.new")
    assert cleanup.clean_up(store.root) == 0


def test_what_is_being_written_is_left_alone(store):
    leave(store.root / ".new-now" / "experiment.json")
    leave(store.create(tiny(), state="stopped").folder / ".status.json.0b00c4f5")
    assert cleanup.clean_up(store.root) == 0


def test_a_copy_in_the_making_is_no_leftover(store, monkeypatch):
    copied = store.root / ".new-copy" / "events.jsonl"
    leave(copied)
    os.utime(copied, (0, 0))  # as copying does: the time of the original
    os.utime(copied.parent, (0, 0))
    assert cleanup.clean_up(store.root) == 0


def test_a_link_out_of_the_folder_leads_nowhere(store, tmp_path, later):
    leave(tmp_path / "elsewhere" / "kept")
    store.create(tiny())
    (store.root / ".new-link").symlink_to(tmp_path / "elsewhere")
    assert cleanup.clean_up(store.root) == 1
    assert names(tmp_path / "elsewhere") == ["kept"]
