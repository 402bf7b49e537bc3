"""The state of a run, and the conclusion that its worker is gone."""

import dataclasses
import json
import os
import subprocess
import sys

import pytest

from tests.runs.waiting import tiny, wait_until
from tfm_core.runs.process import requests
from tfm_core.runs.process.identity import (
    ProcessId,
    Watch,
    is_alive,
    process_id,
    this_boot,
    this_host,
)
from tfm_core.runs.status import ALIVE, STATES, Status, read_status, write_status
from tfm_core.sentences import N_, Sentence

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("state", sorted(set(STATES) - ALIVE - {"interrupted"}))
def test_a_state_without_a_worker_is_read_as_it_was_written(tmp_path, state):
    status = Status(state, step=3, total_steps=7, epoch=0.5, reason="why", seconds=1.25)
    write_status(tmp_path, status)
    assert read_status(tmp_path) == status


@pytest.mark.parametrize("state", sorted(ALIVE))
def test_a_living_worker_keeps_its_state_and_a_dead_one_is_an_interruption(tmp_path, state):
    mark = process_id()
    here = Status(state, step=3).with_process(mark)
    write_status(tmp_path, here)
    assert read_status(tmp_path) == here

    write_status(tmp_path, dataclasses.replace(here, started=f"{this_boot()}:1"))
    gone = read_status(tmp_path)

    assert gone.state == "interrupted"
    assert gone.can_resume
    assert "ended at step 3" in gone.reason


def test_a_dead_process_is_not_alive_even_before_it_is_reaped():
    child = subprocess.Popen([sys.executable, "-c", ""])
    mark = process_id(child.pid)
    wait_until(lambda: not is_alive(mark), "the child is a zombie")
    child.wait()
    assert not is_alive(mark)


def test_a_worker_elsewhere_is_judged_by_whether_its_heartbeat_changes(tmp_path):
    now = 0.0
    watch, elsewhere = Watch(lambda: now), ProcessId(os.getpid(), "another-machine")
    assert watch.silence(elsewhere, 7.0, tmp_path) == 0
    now = 29.0
    assert watch.silence(elsewhere, 7.0, tmp_path) == 29
    assert watch.silence(elsewhere, 3.0, tmp_path) == 0, "a clock that was set back is a heartbeat"
    assert watch.silence(elsewhere, 7.0, tmp_path / "another run") == 0
    now = 60.0
    assert watch.silence(elsewhere, 3.0, tmp_path) == 31


@pytest.mark.parametrize(
    "content",
    [None, "", "{", "[]", '{"state": "dancing"}', '{"state": "stopped", "step": "three"}'],
)
def test_a_damaged_status_is_an_interruption_that_says_so(tmp_path, content):
    if content is not None:
        (tmp_path / "status.json").write_text(content)
    status = read_status(tmp_path)
    assert status.state == "interrupted"
    assert status.reason.startswith("This run is damaged (status.json")
    assert status.reason.endswith(", so how it ended is unknown.")


def test_progress_is_the_share_of_steps():
    assert Status("running", step=3, total_steps=12).progress == 0.25
    assert Status("running").progress == 0.0


@pytest.mark.parametrize(
    ("state", "sentence"),
    [
        ("finished", "Train a copy"),
        ("stopped", "can resume it"),
        ("failed", "resume it from its last checkpoint"),
        ("running", "was interrupted"),
    ],
)
def test_a_request_that_nobody_would_take_is_refused(store, end, state, sentence):
    run = end(store.create(tiny()), state)
    with pytest.raises(ValueError, match=sentence):
        run.request("pause")


def test_a_run_that_waits_can_only_be_stopped(store):
    run = store.create(tiny())
    with pytest.raises(ValueError, match="can only stop it"):
        run.request("pause")


def test_an_unknown_request_is_refused(store):
    with pytest.raises(ValueError, match="'fly' is not a request"):
        store.create(tiny()).request("fly")


def test_requests_are_taken_once_in_the_order_in_which_they_came(store, end):
    run = end(store.create(tiny()), "running", pid=os.getpid(), host=this_host())
    for kind in ("pause", "step", "step", "snapshot", "stop"):
        run.request(kind)
    (run.folder / "requests" / "litter").write_text("?")

    assert requests.take(run.folder) == ["pause", "step", "step", "snapshot", "stop"]
    assert requests.take(run.folder) == []
    assert list((run.folder / "requests").iterdir()) == []


def test_reason_keeps_its_template_and_values_through_the_file(tmp_path):
    reason = N_("Stopped after {n:,} steps.", n=1200)
    write_status(tmp_path, Status("stopped", reason=reason))
    found = read_status(tmp_path).reason
    assert found == "Stopped after 1,200 steps."
    assert isinstance(found, Sentence)
    assert (found.template, found.values) == ("Stopped after {n:,} steps.", {"n": 1200})


@pytest.mark.parametrize("parts", [7, {"template": "{lost}", "values": {"n": 1}}])
def test_reason_stays_plain_english_where_its_parts_do_not_make_it(tmp_path, parts):
    write_status(tmp_path, Status("stopped", reason="It ended."))
    path = tmp_path / "status.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"reason_parts": parts}))
    assert read_status(tmp_path).reason == "It ended."
