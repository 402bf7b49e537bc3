"""The state of a run, and the conclusion that its worker is gone."""

import dataclasses
import os
import subprocess
import sys
import time

import pytest

from tests.runs.waiting import tiny, wait_until
from tfm_core.runs.process import requests
from tfm_core.runs.process.identity import (
    STALE_SECONDS,
    ProcessId,
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


def test_a_worker_elsewhere_is_judged_by_its_heartbeat(tmp_path):
    status = Status("running").with_process(ProcessId(os.getpid(), "another-machine"))
    for ago, state in ((0, "running"), (STALE_SECONDS, "interrupted"), (None, "interrupted")):
        heartbeat = None if ago is None else time.time() - ago
        write_status(tmp_path, dataclasses.replace(status, heartbeat=heartbeat))
        assert read_status(tmp_path).state == state


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


def test_a_run_that_waits_can_only_be_stopped_and_unknown_requests_are_refused(store):
    run = store.create(tiny())
    with pytest.raises(ValueError, match="can only stop it"):
        run.request("pause")
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
