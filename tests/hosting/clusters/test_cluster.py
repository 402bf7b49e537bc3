"""Runs as jobs of a cluster. The cluster is a fake of Slurm's commands, the jobs are real."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.runs.comparing import assert_same
from tests.runs.test_claim import DEAD
from tests.runs.waiting import tiny, wait_until
from tfm_core.hosting.clusters import jobs
from tfm_core.runs import Run, RunStore
from tfm_core.runs.backends import job
from tfm_core.runs.backends.backend import Unavailable
from tfm_core.runs.backends.job import Job, NotItsTurn
from tfm_core.runs.process.execute import execute
from tfm_core.runs.process.requests import ASKED_TO_END
from tfm_core.runs.queue import claim, tickets
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.status import Status, write_status

LONG = 1_000_000


def turn_until(queue: RunQueue, condition, what: str):
    def looked():
        queue.step()
        return condition()

    return wait_until(looked, what)


def submitted(slurm: Path) -> list[dict]:
    return [json.loads(path.read_text()) for path in sorted(slurm.glob("*.json"))]


@pytest.mark.wide
def test_a_run_is_trained_by_a_job_as_in_this_process(queue, store, slurm):
    run, here = store.create(tiny(), threads=2), store.create(tiny(), threads=2)
    write_status(here.folder, Status("starting"))
    assert execute(here).state == "finished"
    queue.submit(run)
    turn_until(queue, lambda: run.status.state in {"finished", "failed"}, "it is over")
    assert run.status.state == "finished", (run.status.reason, run.log_tail())
    assert_same(here, run)
    (row,) = submitted(slurm)
    assert (row["name"], row["cpus_per_task"], row["gres"]) == (run.id, 2, None)
    assert f"resume --job {run.id} -- {run.id}" in row["wrap"]
    assert tickets.waiting(store.root) == []
    assert str(job.trained_by(run.folder, run.status)).startswith(f"Slurm job {run.id} on ")


def test_a_gpu_and_the_hosts_limits_and_options_go_with_the_job(store, slurm, monkeypatch):
    monkeypatch.setenv("TFM_SLURM_OPTIONS", "--time=4:00:00")
    monkeypatch.setenv("TFM_HOST_KEY", "a key that is secret")
    (slurm / "drained").touch()
    queue = RunQueue(store, limits=Limits(max_seconds=60, max_pause=7))
    run = store.create(tiny(), device="cuda:0")
    queue.submit(run)
    queue.step()
    (row,) = submitted(slurm)
    assert (row["gres"], row["time"]) == ("gpu:1", "4:00:00")
    assert "--max-seconds=60 --max-pause=7" in row["wrap"]
    assert "secret" not in json.dumps(row)
    assert "TFM_HOST_KEY" not in jobs._environment(store.root)
    run.request("stop")


def test_a_run_that_was_handed_over_waits_takes_a_place_and_can_be_stopped(queue, store, slurm):
    (slurm / "drained").touch()
    queue.max_running = 1
    run, next_run = store.create(tiny()), store.create(tiny(2))
    queue.submit(run)
    queue.submit(next_run)
    for _ in range(3):
        queue.step()
    assert (run.status.state, run.status.queue_position) == ("queued", 1)
    assert job.words(run.folder).startswith(f"Submitted to Slurm as job {run.id}. It starts once")
    assert [row["name"] for row in submitted(slurm)] == [run.id], "no place for the next"
    run.request("stop")
    turn_until(queue, lambda: job.read(run.folder).phase == "over", "its job is cancelled")
    assert submitted(slurm)[0]["state"] == "CANCELLED"
    (slurm / "drained").unlink()
    turn_until(queue, lambda: next_run.status.state == "finished", "the next one trains")
    assert run.status.state == "stopped"


def test_a_job_answers_requests_and_its_death_costs_nothing(queue, store):
    run, here = store.create(tiny(40)), store.create(tiny(40))
    assert execute(here).state == "finished"
    queue.submit(run)
    turn_until(queue, lambda: run.status.is_alive, "It starts")
    run.request("pause")
    paused = wait_until(lambda: run.status.state == "paused" and run.status, "it pauses")
    run.request("step")
    wait_until(lambda: run.status.step == paused.step + 1, "a single step")
    os.kill(paused.pid, signal.SIGKILL)
    turn_until(queue, lambda: run.status.state == "finished", "another job ends it")
    assert job.read(run.folder).name == f"{run.id}-2"
    (resumed,) = run.curves().resumed
    assert paused.step <= resumed <= paused.step + 1
    assert_same(here, run)


def test_a_job_at_its_time_limit_keeps_a_checkpoint_and_goes_on_in_another(queue, store):
    run = store.create(tiny(LONG))
    queue.submit(run)
    turn_until(queue, lambda: run.status.step > 2, "it trains")
    os.kill(run.status.pid, signal.SIGTERM)
    stopped = wait_until(lambda: run.status.state == "stopped" and run.status, "it ends")
    assert stopped.reason == ASKED_TO_END
    turn_until(queue, lambda: run.status.step > stopped.step, "another goes on")
    assert run.curves().resumed == (stopped.step,)
    run.request("stop")
    wait_until(lambda: run.status.state == "stopped", "it is stopped by hand")
    for _ in range(3):
        queue.step()
    assert run.status.state == "stopped"


def test_a_controller_that_is_gone_is_said_and_runs_wait(queue, store, slurm):
    (slurm / "down").touch()
    (slurm / "drained").touch()
    run = store.create(tiny())
    queue.submit(run)
    for _ in range(3):
        queue.step()
    assert run.status.state == "queued"
    assert "Unable to contact slurm controller" in tickets.start_error(run.folder)
    assert "Runs wait" in tickets.start_error(run.folder)
    (slurm / "down").unlink()
    turn_until(queue, lambda: submitted(slurm), "it is submitted")
    assert submitted(slurm)[0]["name"] == run.id, "no name was spent on what was never submitted"
    assert tickets.start_error(run.folder) is None
    run.request("stop")


def test_a_job_that_is_refused_keeps_no_other_from_its_turn(queue, store, slurm, monkeypatch):
    (slurm / "drained").touch()
    (slurm / "no-gpus").touch()
    monkeypatch.setattr(jobs, "DOWN_SECONDS", 1e9)
    refused, run = store.create(tiny(), device="cuda:0"), store.create(tiny())
    queue.submit(refused)
    queue.submit(run)
    queue.step()
    assert "Requested node configuration is not available" in tickets.start_error(refused.folder)
    assert [row["name"] for row in submitted(slurm)] == [run.id]
    run.request("stop")


def test_a_job_waits_for_its_run_to_be_let_go(queue, store, neighbour):
    run = store.create(tiny())
    queue.submit(run)
    queue.step()
    claim.take(run.folder, neighbour)
    wait_until(lambda: (run.folder / "worker.log").exists(), "its job wants the run")
    claim.release(run.folder, neighbour)
    turn_until(queue, lambda: run.status.state == "finished", "and has it")


def test_a_machine_without_slurm_says_so(store, tmp_path, monkeypatch):
    monkeypatch.setenv("TFM_BACKEND", "slurm")
    monkeypatch.setenv("PATH", str(tmp_path))
    queue, run = RunQueue(store, limits=Limits()), store.create(tiny())
    queue.submit(run)
    queue.step()
    assert "sbatch is not installed" in tickets.start_error(run.folder)


def test_a_server_killed_before_it_submitted_leaves_a_run_that_waits(queue, store, slurm):
    (slurm / "drained").touch()
    run = store.create(tiny())
    queue.submit(run)
    job.write(run.folder, Job("slurm", run.id))  # and then it was killed
    turn_until(queue, lambda: submitted(slurm), "it is submitted anew")
    assert [row["name"] for row in submitted(slurm)] == [f"{run.id}-2"]
    run.request("stop")


def test_a_run_that_loses_job_after_job_is_left_for_a_person(queue, store, monkeypatch):
    run = store.create(tiny())
    queue.submit(run)
    monkeypatch.setattr(queue.backend.cluster, "submit", lambda order: None)
    turn_until(queue, lambda: run.status.state == "failed", "it gives up")
    assert run.status.reason.startswith("Slurm lost 3 jobs of this run")
    assert tickets.waiting(store.root) == []


def test_a_run_that_gets_no_further_is_left_interrupted(queue, store):
    run = store.create(tiny())
    write_status(run.folder, Status("running", pid=DEAD.pid, host=DEAD.host, created=1.0))
    job.write(run.folder, Job("slurm", run.id, tries=jobs.TRIES))
    queue.step()
    assert run.status.state == "interrupted"
    assert job.read(run.folder).phase == "over"
    queue.resume(run)
    assert job.read(run.folder).tries == 0, "a person may try again"


def test_a_job_that_sees_another_folder_says_so(queue, store, tmp_path, monkeypatch):
    elsewhere = tmp_path / "elsewhere"
    environment = jobs._environment(store.root) | {"TFM_RUNS_DIR": str(elsewhere)}
    monkeypatch.setattr(jobs, "_environment", lambda root: environment)
    run = store.create(tiny())
    queue.submit(run)
    turn_until(queue, lambda: run.status.state == "failed", "its job ends")
    assert f"The Slurm job {run.id} ended before training started: " in run.status.reason
    assert f"finds no run {run.id} in {elsewhere}" in run.status.reason


def test_a_python_that_is_not_there_is_said(queue, store, monkeypatch):
    monkeypatch.setenv("TFM_CLUSTER_PYTHON", "python-of-nowhere -X dev")
    run = store.create(tiny())
    queue.submit(run)
    turn_until(queue, lambda: run.status.state == "failed", "its job ends")
    assert "python-of-nowhere" in run.status.reason


@pytest.mark.parametrize(
    ("noted", "state", "sentence"),
    [
        (Job("slurm", "another"), "queued", "does not wait for the job mine"),
        (Job("slurm", "mine", phase="again"), "queued", "does not wait for the job mine"),
        (Job("slurm", "mine"), "stopped", "is stopped, so the job mine has nothing to do"),
        (None, "queued", "its job: none"),
    ],
)
def test_a_job_that_comes_late_or_twice_touches_nothing(store, noted, state, sentence):
    run = store.create(tiny())
    if noted is not None:
        job.write(run.folder, noted)
    write_status(run.folder, Status(state))
    before = (run.folder / "status.json").read_bytes()
    with pytest.raises(NotItsTurn, match=sentence):
        execute(run, job="mine")
    assert (run.folder / "status.json").read_bytes() == before
    assert not claim.is_held(run.folder)
    command = [sys.executable, "-m", "tfm_core", "resume", "--job", "mine", "--", run.id]
    environment = os.environ | {"TFM_RUNS_DIR": str(store.root)}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert ended.returncode == 2
    assert sentence in ended.stderr


def test_whoever_trains_a_run_by_hand_takes_it_from_its_job(store):
    run = store.create(tiny(2))
    job.write(run.folder, Job("slurm", run.id))
    assert execute(run).state == "finished"
    assert job.read(run.folder) == Job("slurm", "", phase="over")
    assert job.trained_by(run.folder, run.status) is None


def test_two_servers_hand_a_run_over_once(store, slurm):
    (slurm / "drained").touch()
    run = store.create(tiny())
    servers = [RunQueue(store, limits=Limits()) for _ in range(2)]
    servers[0].submit(run)
    for _ in range(2):
        for server in servers:
            server.step()
    assert [row["name"] for row in submitted(slurm)] == [run.id]
    run.request("stop")


@pytest.mark.parametrize(
    "change",
    [{"name": "a b"}, {"backend": "moon"}, {"attempt": -1}, {"phase": []}, {"tries": True}],
)
def test_a_note_that_cannot_be_is_none(store, change):
    run = store.create(tiny())
    values = dataclasses.asdict(Job("ray", run.id)) | change
    (run.folder / job.FILE).write_text(json.dumps(values))
    assert job.read(run.folder) is None


def test_the_names_of_jobs_are_those_of_their_run(store: RunStore) -> None:
    run: Run = store.create(tiny())
    first = job.following(run.folder, "ray", step=0)
    job.write(run.folder, job.unsubmitted(first))
    again = job.following(run.folder, "ray", step=0)
    assert (first.name, again.name, again.tries) == (run.id, run.id, 1)
    job.write(run.folder, again)
    further = job.following(run.folder, "ray", step=5)
    assert (further.name, further.tries) == (f"{run.id}-2", 1)
    job.write(run.folder, further)
    assert job.following(run.folder, "ray", step=5).tries == 2


def test_what_cannot_be_asked_is_left_alone_for_a_while(queue, monkeypatch):
    monkeypatch.setattr(jobs, "DOWN_SECONDS", 1e9)
    asked = []

    def ask() -> None:
        asked.append(1)
        raise Unavailable("It is gone.")

    for _ in range(2):
        with pytest.raises(Unavailable, match="It is gone"):
            queue.backend._asked(ask)
    assert len(asked) == 1
