"""Runs as jobs of a real Ray: a head of this machine, started and killed by these tests."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import psutil
import pytest

from tests.hosting.clusters.test_cluster import turn_until
from tests.runs.comparing import assert_same
from tests.runs.waiting import tiny, wait_until
from tfm_core.hosting.clusters import jobs
from tfm_core.hosting.clusters.jobs import NameTaken
from tfm_core.hosting.clusters.ray import RayJobs
from tfm_core.runs.backends import job
from tfm_core.runs.backends.backend import Unavailable
from tfm_core.runs.process.execute import execute
from tfm_core.runs.queue import tickets
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.queue.run_queue import RunQueue

pytestmark = [
    pytest.mark.skipif(
        importlib.util.find_spec("ray") is None,
        reason="Ray is not installed: pip install -r requirements-cluster.txt",
    ),
    pytest.mark.filterwarnings("ignore"),  # those of Ray and what it imports are not ours
]


def a_free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Head:
    """The head of a cluster of one machine, always at the same address."""

    def __init__(self) -> None:
        self.port, self.dashboard = a_free_port(), a_free_port()
        self.address = f"http://127.0.0.1:{self.dashboard}"
        self.folder = Path(tempfile.mkdtemp(prefix="ray-"))  # names of sockets must be short
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block"]
        said = {
            "port": self.port,
            "dashboard-host": "127.0.0.1",
            "dashboard-port": self.dashboard,
            "dashboard-agent-listen-port": a_free_port(),
            "num-cpus": 2,
            "temp-dir": self.folder,
        }
        command += [f"--{name}={value}" for name, value in said.items()]
        with (self.folder / "head.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "--disable-usage-stats"], stdout=log, stderr=log, start_new_session=True
            )
        wait_until(self._answers, "the head answers")

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "head.log").read_text()[-2000:]
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"{self.address}/api/version").close()
            return True
        return False

    def kill(self) -> None:
        """Kill the whole machine, so to speak: the head, its node, and every job on it."""
        if self._process is None:
            return
        tree = [psutil.Process(self._process.pid)]
        tree += tree[0].children(recursive=True)
        for one in tree:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.kill()
        psutil.wait_procs(tree)
        self._process.wait()
        self._process = None


@pytest.fixture(scope="module")
def head() -> Iterator[Head]:
    head = Head()
    try:
        head.start()
        yield head
    finally:
        head.kill()
        shutil.rmtree(head.folder, ignore_errors=True)


@pytest.fixture
def queue(store, head: Head, monkeypatch) -> Iterator[RunQueue]:
    monkeypatch.setenv("TFM_RAY_ADDRESS", head.address)
    made = RunQueue(store, limits=Limits())
    yield made
    made.close()


def test_a_head_that_is_killed_and_started_again_loses_nothing(queue, store, head):
    run, waiting, here = (store.create(tiny(40)) for _ in range(3))
    assert execute(here).state == "finished"
    queue.submit(run)
    turn_until(queue, lambda: run.status.is_alive, "it begins")
    run.request("pause")
    paused = wait_until(lambda: run.status.state == "paused" and run.status, "it pauses")
    assert 0 < paused.step < 40

    head.kill()
    wait_until(lambda: run.status.state == "interrupted", "its job died with the head")
    queue.submit(waiting)
    turn_until(queue, lambda: tickets.start_error(run.folder), "it is said that there is no head")
    assert f"There is no Ray at {head.address}" in tickets.start_error(run.folder)
    assert (run.status.state, waiting.status.state) == ("queued", "queued")
    assert run.curves().steps["step"].size, "what was written can be read"

    head.start()
    for one in (run, waiting):
        turn_until(queue, lambda one=one: one.status.state in {"finished", "failed"}, "it ends")
        assert one.status.state == "finished", (one.status.reason, one.log_tail())
        assert_same(here, one)
    assert job.read(run.folder).name == f"{run.id}-2", "Ray takes no name twice"
    assert run.curves().resumed == (paused.step,)
    assert "Ray job" in job.trained_by(run.folder, run.status)


def test_a_name_is_taken_once_and_a_job_without_its_run_says_so(queue, store, monkeypatch):
    environment = jobs._environment(store.root) | {"TFM_RUNS_DIR": str(store.root / "elsewhere")}
    monkeypatch.setattr(jobs, "_environment", lambda root: environment)
    run = store.create(tiny())
    queue.submit(run)
    turn_until(queue, lambda: run.status.state == "failed", "its job ends")
    assert "finds no run" in run.status.reason
    with pytest.raises(NameTaken):
        queue.backend.cluster.submit(queue.backend._order(run, job.read(run.folder)))


def test_a_job_that_waits_for_what_there_is_not_can_be_stopped(queue, store):
    run = store.create(tiny(), device="cuda:0")
    queue.submit(run)
    turn_until(queue, lambda: job.words(run.folder), "it is handed over")
    assert queue.backend.cluster.state(run.id) == "there"
    run.request("stop")
    turn_until(queue, lambda: job.read(run.folder).phase == "over", "it is let go")
    assert run.status.state == "stopped"


def test_the_doctor_says_who_trains(head, store):
    import ray

    environment = os.environ | {
        "TFM_RAY_ADDRESS": head.address,
        "TFM_RUNS_DIR": str(store.root),
    }
    command = [sys.executable, "-m", "tfm_core", "doctor", "--json"]
    said = subprocess.run(command, env=environment, capture_output=True, text=True)
    (found,) = (row for row in json.loads(said.stdout) if row["name"] == "backend")
    assert found["level"] == "ok"
    assert found["words"] == f"Ray {ray.__version__} at {head.address} trains the runs."


def served(status: int, body: str) -> Iterator[str]:
    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("status", "body", "sentence"),
    [
        (200, "<html>", "is not a Ray dashboard"),
        (200, "{}", "is not a Ray dashboard"),
        (404, "", "is not a Ray dashboard"),
        (500, "", "is not a Ray dashboard"),
        (401, "", "refuses the credentials: set RAY_AUTH_MODE=token"),
        (403, "", "refuses the credentials: set RAY_AUTH_MODE=token"),
        (200, '{"ray_version": "1.8.0"}', "Is its release"),
    ],
)
def test_an_answer_that_is_not_rays_is_a_sentence(status, body, sentence):
    with contextlib.contextmanager(served)(status, body) as address:
        with pytest.raises(Unavailable, match=sentence) as refused:
            RayJobs(address).state("any")
        assert address in str(refused.value)
        assert "\n" not in str(refused.value)


def test_an_address_where_nobody_answers_is_a_sentence(monkeypatch):
    with pytest.raises(Unavailable, match=r"There is no Ray at http://127\.0\.0\.1:9"):
        RayJobs("http://127.0.0.1:9").state("any")
    monkeypatch.setenv("RAY_ADDRESS", "http://127.0.0.1:8")
    with pytest.raises(Unavailable, match="Unset RAY_ADDRESS"):
        RayJobs("http://127.0.0.1:9").state("any")
