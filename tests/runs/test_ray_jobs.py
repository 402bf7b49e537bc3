"""Runs as jobs of a real Ray: a head of this machine, started and killed by these tests."""

import contextlib
import importlib.util
import shutil
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.runs.comparing import assert_same
from tests.runs.waiting import tiny, wait_until
from tests.sweeps.made import a_plan, trials_of
from tfm_core import settings
from tfm_core.runs.disk.locks import RunLock
from tfm_core.runs.process import worker
from tfm_core.runs.process.execute import NotWaiting, execute
from tfm_core.runs.queue import ray_jobs as backend
from tfm_core.runs.queue import waiting_line
from tfm_core.runs.queue.limits import Limits
from tfm_core.runs.queue.ray_jobs import RayJobs
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.queue.waiting_line import Unavailable
from tfm_core.sweeps.driver import Driver

ADDRESS = "http://head:8265"
without_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None,
    reason="Ray is not installed: pip install -r requirements-cluster.txt",
)
pytestmark = pytest.mark.filterwarnings("ignore")  # those of Ray and what it imports are not ours


def with_ray(test: Any) -> Any:
    return pytest.mark.wide(without_ray(test))


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
        options = {
            "port": self.port,
            "dashboard-host": "127.0.0.1",
            "dashboard-port": self.dashboard,
            "dashboard-agent-listen-port": a_free_port(),
            "num-cpus": 2,
            "temp-dir": self.folder,
        }
        command += [f"--{name}={value}" for name, value in options.items()]
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


@contextlib.contextmanager
def started() -> Iterator[Head]:
    head = Head()
    try:
        head.start()
        yield head
    finally:
        head.kill()
        shutil.rmtree(head.folder, ignore_errors=True)


@pytest.fixture(scope="module")
def head() -> Iterator[Head]:
    with started() as one:
        yield one


@pytest.fixture
def queue_on(make_queue, monkeypatch) -> Callable[[Head], RunQueue]:
    """Makes queues whose thread is the test."""
    monkeypatch.setattr(backend, "LOOK_SECONDS", 0.0)

    def made(head: Head) -> RunQueue:
        monkeypatch.setenv("TFM_RAY_ADDRESS", head.address)
        return make_queue(warm=None)

    return made


@pytest.fixture
def queue(queue_on: Callable[[Head], RunQueue], head: Head) -> RunQueue:
    return queue_on(head)


@pytest.fixture
def mortal() -> Iterator[Head]:
    """A head that its test kills."""
    with started() as one:
        yield one


def turn_until(queue: RunQueue, condition: Callable[[], Any], what: str) -> Any:
    def looked() -> Any:
        queue.step()
        return condition()

    return wait_until(looked, what)


@with_ray
def test_a_head_that_is_killed_and_started_again_loses_nothing(queue_on, store, mortal):
    head, queue = mortal, queue_on(mortal)
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
    turn_until(
        queue,
        lambda: waiting_line.start_errors.get(waiting.folder),
        "it is said that there is none",
    )
    assert f"There is no Ray at {head.address}" in waiting_line.start_errors.get(waiting.folder)
    assert waiting.status.state == "queued"
    assert run.curves().steps["step"].size, "what was written can be read"

    head.start()
    queue.resume(run)
    for one in (run, waiting):
        turn_until(queue, lambda one=one: one.status.state in {"finished", "failed"}, "it ends")
        assert one.status.state == "finished", (one.status.reason, one.log_tail())
        assert_same(here, one)
    assert run.curves().resumed == (paused.step,)


@with_ray
def test_a_job_that_does_not_find_its_run_says_so(queue, store, monkeypatch):
    run = store.create(tiny())
    command = queue.backend._command(run)
    monkeypatch.setattr(queue.backend, "_command", lambda _run: (*command[:-1], "--run=/nowhere"))
    queue.submit(run)
    turn_until(queue, lambda: run.status.state == "failed", "its job ends")
    assert "finds no waiting run in /nowhere" in run.status.reason
    assert waiting_line.ids(store.root) == []


@with_ray
def test_a_job_that_waits_for_what_there_is_not_takes_a_place_and_can_be_stopped(queue, store):
    queue.max_running = 1
    run, behind = store.create(tiny(), device="cuda:0"), store.create(tiny())
    queue.submit(run)
    queue.submit(behind)
    turn_until(queue, lambda: waiting_line.start_errors.get(run.folder), "it is submitted")
    assert waiting_line.start_errors.get(run.folder).startswith("Submitted to Ray")
    assert RunQueue(store, limits=Limits()).backend.handed_over([run.id]) == {run.id}
    assert waiting_line.start_errors.get(behind.folder) is None, "no place for the next"
    run.request("stop")
    turn_until(queue, lambda: behind.status.state == "finished", "the next one trains")
    assert run.status.state == "stopped"


@with_ray
def test_trials_of_a_sweep_are_jobs(queue, store):
    driver = Driver(queue)
    sweep = driver.sweeps.create(a_plan(base=tiny(), max_runs=2))

    def is_over() -> bool:
        driver.step()
        return sweep.plan().state == "finished"

    turn_until(queue, is_over, "its budget is used up")
    assert [trial.state for trial in trials_of(sweep) if trial.has_run] == ["complete"] * 2


@with_ray
def test_the_release_is_known(head, store):
    import ray

    assert RayJobs(store.root, Limits(), head.address).release() == ray.__version__


@with_ray
def test_an_address_where_nobody_answers_is_a_sentence(store, monkeypatch):
    with pytest.raises(Unavailable, match=r"There is no Ray at http://127\.0\.0\.1:9"):
        RayJobs(store.root, Limits(), "http://127.0.0.1:9").release()
    monkeypatch.setenv("RAY_ADDRESS", "http://127.0.0.1:8")
    with pytest.raises(Unavailable, match="Unset RAY_ADDRESS"):
        RayJobs(store.root, Limits(), "http://127.0.0.1:9").release()


def test_an_address_alone_hands_runs_to_ray(store, monkeypatch) -> None:
    monkeypatch.setenv("TFM_RAY_ADDRESS", f"{ADDRESS}/")
    queue = RunQueue(store)
    assert isinstance(queue.backend, RayJobs)
    assert (queue.backend.address, queue.max_running) == (ADDRESS, RayJobs.places)


@pytest.mark.parametrize("bad", ["auto", "ray://head:10001", "head:8265", "http://a b"])
def test_what_is_no_address_of_a_dashboard_is_refused(bad: str) -> None:
    with pytest.raises(ValueError, match=r"use an address such as http://HOST:8265\."):
        settings.read({"TFM_RAY_ADDRESS": bad})


def test_a_server_without_ray_says_what_to_install(store, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ray.job_submission", None)
    with pytest.raises(Unavailable, match="pip install -r requirements-cluster"):
        RayJobs(store.root, Limits(), ADDRESS).release()


def test_a_job_gets_the_limits_and_settings_but_not_the_address_of_ray(store, monkeypatch) -> None:
    monkeypatch.setenv("TFM_RAY_ADDRESS", ADDRESS)
    monkeypatch.setenv("TFM_PUBLIC", "1")
    jobs = RayJobs(store.root, Limits(max_seconds=60, max_pause=7), ADDRESS)
    run = store.create(tiny())
    bounds = ("--max-seconds=60", "--max-pause=7", f"--run={run.folder}")
    assert jobs._command(run)[-3:] == bounds
    environment = backend._environment(store.root)
    assert environment["TFM_PUBLIC"] == "1"
    assert "TFM_RAY_ADDRESS" not in environment


def test_a_job_that_comes_late_or_twice_touches_nothing(store, end, capsys) -> None:
    run = end(store.create(tiny()), "stopped")
    before = (run.folder / "status.json").read_bytes()
    with pytest.raises(NotWaiting, match="isn't waiting"):
        execute(run, only_waiting=True)
    assert worker.main([f"--run={run.folder}"]) == 1
    assert "finds no waiting run" in capsys.readouterr().err
    assert (run.folder / "status.json").read_bytes() == before
    RunLock(run.folder, patience=0.0).release()
