"""Windows' rules for files: what is open is not replaced, moved or removed; some names are none."""

import contextlib
import os
import threading
import time

import pytest

from tests.runs.comparing import stopping_at
from tests.runs.waiting import tiny
from tests.windows import windows
from tfm_core import disk, reading
from tfm_core.runs.disk.failures import refusal
from tfm_core.runs.disk.locks import CLAIMS, RunLock
from tfm_core.runs.process import requests
from tfm_core.runs.process.execute import execute

pytestmark = pytest.mark.quick

LONGEST = 130
"""Characters of a path below the folder of runs: Windows has 260 for the whole."""


@pytest.fixture(autouse=True)
def _rules(tmp_path):
    with windows(tmp_path):
        yield


@contextlib.contextmanager
def looked_at(folder):
    """Let a thread open one file after the other, each for a moment, as a page or a scanner does.

    Yields the names that it opened.
    """
    is_over, seen = threading.Event(), set()

    def look():
        while not is_over.is_set():
            for at, _, names in os.walk(folder):
                for name in names:
                    with contextlib.suppress(OSError), open(os.path.join(at, name), "rb"):
                        is_over.wait(0.002)
                        seen.add(name)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        is_over.set()
        thread.join()


def let_go_soon(file):
    """Close a file from another thread, a moment later."""
    threading.Timer(0.05, file.close).start()


def test_a_run_that_is_looked_at_all_the_time_trains_and_goes_on(store):
    run = store.create(tiny(11))
    with looked_at(store.root) as seen:
        assert execute(run, *stopping_at(5, run)).state == "stopped"
        assert execute(run).state == "finished"
    assert {"status.json", "events.jsonl", "checkpoint.safetensors"} <= seen
    assert run.curves().steps["step"].tolist()[-1] == 11
    assert run.snapshot_steps()[-1] == 11


def test_what_a_visitor_does_to_a_run_holds_while_it_is_looked_at(store):
    run = store.create(tiny())
    execute(run)
    with looked_at(store.root):
        store.rename(run.id, "Mine")
        copy = store.fork(run.id, steps=11)
        assert execute(copy).state == "finished"
        store.delete(run.id)
        assert [one.id for one in store.list()] == [copy.id]
        assert store.undelete(run.id).labels.name == "Mine"
        store.delete(copy.id)
        store.empty_trash()
    assert [one.id for one in store.list()] == [run.id]


def test_a_worker_that_is_just_ending_keeps_no_run_from_being_deleted(store, whole):
    file = open(whole.folder / "worker.log", "a")  # noqa: SIM115
    let_go_soon(file)
    store.delete(whole.id)
    assert store.list() == []


def test_a_program_that_goes_on_holding_a_file_is_said(store, whole, monkeypatch):
    monkeypatch.setattr(disk, "_HELD_SECONDS", (0.01,))
    with open(whole.folder / "status.json"), pytest.raises(OSError) as caught:  # noqa: PT011
        (whole.folder / "status.json").unlink()
    assert "Another program uses this file" in refusal(caught.value)


def test_a_lock_that_is_being_looked_at_keeps_nobody_from_the_run(store):
    run = store.create(tiny())
    RunLock(run.folder).release()
    with (run.folder / CLAIMS / "lock").open(), RunLock(run.folder) as hold:
        assert hold.is_mine
    RunLock(run.folder, patience=0.0).release()


def test_names_are_short_and_do_not_differ_by_their_case_alone(store, whole, tmp_path):
    requests.drop(whole.folder, "stop")
    store.delete(store.create(tiny()).id)
    paths = [str(path.relative_to(tmp_path)) for path in store.root.rglob("*")]
    assert any("checkpoint" in path for path in paths)
    assert max(map(len, paths)) < LONGEST
    assert len({path.casefold() for path in paths}) == len(paths)


def test_a_link_is_not_followed_where_the_system_would(store, whole, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_NO_LINKS", 0)
    path = whole.folder / "status.json"
    (tmp_path / "secret").write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(tmp_path / "secret")
    assert "status.json isn't a regular file" in whole.status.reason


def test_a_reader_waits_while_a_file_is_being_replaced(store, whole, monkeypatch):
    """A file that is just being replaced can for a moment not be opened on Windows."""
    opened, refused = os.open, []

    def busy(path, *more, **named):
        if len(refused) < 2 and str(path).endswith("status.json"):
            refused.append(path)
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *more, **named)

    monkeypatch.setattr(disk, "OPEN_IS_HELD", True)
    monkeypatch.setattr(os, "open", busy)
    began = time.monotonic()
    assert whole.status.state == "finished"
    assert len(refused) == 2
    assert time.monotonic() - began > 0.02
