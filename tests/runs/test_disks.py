"""Disks that fail: nothing is lost, and what ended a run is a sentence that helps."""

import contextlib
import errno
import logging
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from tests.nightly import only_nightly
from tests.refusing import refusing
from tests.runs.comparing import assert_same, stopping_at
from tests.runs.waiting import tiny
from tfm_core import cli
from tfm_core.runs import RunStore, status
from tfm_core.runs.disk.failures import (
    REFUSALS,
    Refused,
    obstacle,
    os_errors_as_sentences,
    refusal,
    sentence,
)
from tfm_core.runs.process.execute import execute
from tfm_core.runs.process.identity import this_host
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.sentences import StudentError
from tfm_core.training.checkpoints import CheckpointDamaged
from tfm_core.training.progress import TrainingDiverged

NUMBERS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EMFILE, errno.EIO)

TRAIN = ["train", "--preset", "copy", "--set", "training.steps=30", "--quiet"]


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def tmpfs(tmp_path):
    """A disk of so many KiB of one's own, which can be made larger or read-only."""
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(options: str) -> Path:
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("no disk can be mounted here")
        return folder

    if not sys.platform.startswith("linux") or shutil.which("mount") is None:
        pytest.skip("no disk can be mounted here")
    yield mount
    subprocess.run(["umount", "-l", str(folder)], capture_output=True, check=False)


@pytest.mark.parametrize("number", NUMBERS)
def test_whatever_is_asked_of_a_failing_disk_is_one_sentence_and_nothing_is_lost(
    store, end, number
):
    ended, waits = end(store.create(tiny(), name="Before")), store.create(tiny())
    deleted = end(store.create(tiny()))
    store.delete(deleted.id)
    queue = RunQueue(store, warm=0)
    before = content(store.root)
    asked = {
        "start": lambda: store.create(tiny()),
        "submit": lambda: queue.submit(waits),
        "resume": lambda: queue.resume(ended),
        "rename": lambda: store.rename(ended.id, "After"),
        "delete": lambda: store.delete(ended.id),
        "stop": lambda: waits.request("stop"),
        "train further": lambda: store.fork(ended.id, steps=19),
        "undo": lambda: store.undelete(deleted.id),
    }
    with refusing(store.root, number):
        for act in asked.values():
            with pytest.raises(Refused) as refused:
                act()
            assert refused.value.sentence == refusal(OSError(number, ""))
    assert content(store.root) == before
    assert store.rename(ended.id, "After").meta.name == "After"
    assert execute(waits).state == "finished"


@pytest.mark.parametrize("number", NUMBERS)
def test_the_command_line_says_it_in_one_sentence(store, end, number, monkeypatch, capfd):
    monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))
    run = store.create(tiny(), state="stopped")
    for arguments in (TRAIN, ["resume", run.id, "--quiet"]):
        with refusing(store.root, number):
            assert cli.main(arguments) in {cli.FAILED, cli.WRONG_INPUT}
        said = capfd.readouterr()
        assert said.err.strip() == refusal(OSError(number, ""))
        assert said.out == ""
    assert cli.main(["resume", run.id, "--quiet"]) == 0


@pytest.mark.wide
def test_a_run_that_a_full_disk_stopped_says_so_and_goes_on(tmpfs):
    store = RunStore(tmpfs("size=1m"), recorded=None)
    run = store.create(tiny(steps=400))

    def fill(event):
        if getattr(event, "step", 0) == 3:
            with contextlib.suppress(OSError), (store.root / "filler").open("ab") as file:
                while True:
                    file.write(b"x" * 512)
                    file.flush()

    try:
        why = execute(run, listener=fill).reason
    except OSError as error:  # not even the last status found room
        why = refusal(error)
    assert why.startswith(REFUSALS[errno.ENOSPC])
    (store.root / "filler").unlink()
    assert execute(run).state == "finished"
    whole = store.create(tiny(steps=400))
    execute(whole)
    assert_same(whole, run)


@pytest.mark.wide
@only_nightly
@pytest.mark.parametrize("size", [16, 64, 96, 128, 160, 192, 256, 384, 512, 768, 1536])
def test_a_disk_that_fills_up_anywhere_is_one_sentence_and_the_run_ends_as_on_a_large_one(
    tmpfs, whole, size
):
    store = RunStore(tmpfs(f"size={size}k"), recorded=None)
    try:
        run = store.create(tiny())
    except Refused:
        assert store.list() == []
        tmpfs("remount,size=32m")
        run = store.create(tiny())
    try:
        ended = execute(run)
        why = None if ended.state == "finished" else ended.reason
    except OSError as error:  # not even the last status found room
        why = refusal(error)
    if why is not None:
        assert why.startswith(REFUSALS[errno.ENOSPC])
        tmpfs("remount,size=32m")
        assert execute(run).state == "finished"
    assert_same(run, whole)


def test_a_disk_that_became_read_only_is_what_ended_a_run(tmpfs, end):
    folder = tmpfs("size=1m")
    store = RunStore(folder, recorded=None)
    with subprocess.Popen([sys.executable, "-c", ""]) as dead:
        pass
    run = end(store.create(tiny()), "running", pid=dead.pid, host=this_host())
    assert "killed" in run.status.reason
    tmpfs("remount,ro")
    assert "can't be written" in run.status.reason
    assert run.status.reason.endswith(REFUSALS[errno.EROFS])


def test_a_folder_that_disappears_is_said(store, monkeypatch, capfd):
    monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))
    run = store.create(tiny(steps=400))
    execute(run, *stopping_at(3, run))
    written = status.write_status

    def gone(folder, *rest, **more):
        shutil.rmtree(folder, ignore_errors=True)
        written(folder, *rest, **more)

    monkeypatch.setattr("tfm_core.runs.process.recorder.write_status", gone)
    assert cli.main(["resume", run.id, "--quiet"]) == cli.FAILED
    assert capfd.readouterr().err.strip() == REFUSALS[errno.ENOENT]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no such permissions")
def test_a_forbidden_folder_lists_nothing_and_breaks_nothing(store, monkeypatch, capfd):
    run = store.create(tiny())
    with pytest.MonkeyPatch.context() as patch:

        def forbidden(path, *_, **__):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))

        patch.setattr(os, "scandir", forbidden)
        patch.setattr(os, "listdir", forbidden)
        assert store.list() == []
        store.empty_trash()
        monkeypatch.setenv("TFM_RUNS_DIR", str(store.root))
        assert cli.main(["runs"]) == cli.FAILED
        assert capfd.readouterr().err.strip() == REFUSALS[errno.EACCES]
    assert [kept.id for kept in store.list()] == [run.id]


def test_a_failure_says_what_would_help_also_of_the_folder(tmp_path, monkeypatch):
    for error, expected in [
        (
            torch.OutOfMemoryError("CUDA out of memory"),
            "memory of cuda:0",
        ),
        (MemoryError(), "memory of cuda:0"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "The memory of"),
        (RuntimeError("MPS backend out of memory (MPS allocated)"), "The memory of"),
        (OSError(errno.ENOSPC, "No space left on device"), "The disk is full"),
        (OSError("The checkpoint could not be written: No space left on device"), "disk is full"),
        (
            OSError("The checkpoint could not be written: I/O error: Disk quota (os error 122)"),
            "Disk quota exceeded",
        ),
        (
            shutil.Error([("a", "b", "[Errno 30] Read-only file system: '/srv/a' -> '/srv/b'")]),
            "is read-only",
        ),
        (RuntimeError("CUDA error: device-side assert triggered\nmore"), "cuda:0 stopped working"),
        (
            TrainingDiverged("The loss became nan at step 5: try 0.4."),
            "^The loss became nan at step 5",
        ),
        (CheckpointDamaged("The checkpoint last is damaged."), "^The checkpoint last is damaged.$"),
        (StudentError("{name} is not there.", name="cuda:3"), "^cuda:3 is not there.$"),
        (ValueError("Not one of ours."), "^ValueError: Not one of ours. .details in worker.log"),
        (KeyError("weight"), "KeyError: 'weight' .details in worker.log"),
        (RuntimeError(), "RuntimeError: no message"),
        (
            PermissionError(errno.EACCES, "Permission denied"),
            "The permissions of the runs folder forbid this",
        ),
    ]:
        assert re.search(expected, sentence(error, tiny(), "cuda:0"))
    assert obstacle(tmp_path) is None
    assert "is gone" in obstacle(tmp_path / "gone")
    monkeypatch.setattr("tfm_core.runs.disk.failures.shutil.disk_usage", lambda _: Usage(9, 9, 0))
    assert "disk is full" in obstacle(tmp_path)


class Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_what_the_system_refuses_is_a_sentence_without_a_path(caplog):
    for number in (*REFUSALS, errno.EXDEV):
        error = OSError(number, os.strerror(number), "/srv/runs/.meta.json.0b00c4f5")
        caplog.clear()
        with (
            caplog.at_level(logging.WARNING),
            pytest.raises(Refused) as refused,
            os_errors_as_sentences(),
        ):
            raise error
        said = str(refused.value)
        assert said == refusal(error)
        assert "/srv" not in said
        assert "Errno" not in said
        assert said.endswith(".")
        assert "/srv/runs" in caplog.text  # the log has the detail
    assert os.strerror(errno.EXDEV) in refusal(OSError(errno.EXDEV, "", "/srv"))
