"""The app as a real server, with its runs in a folder of its own, and nothing left behind."""

import contextlib
import dataclasses
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path

import psutil

from tests.browser.experiments import LONG
from tests.browser.tab import PATIENCE
from tests.runs.waiting import wait_until
from tfm_core.runs.run import Run
from tfm_core.runs.status import write_status
from tfm_core.runs.store import RunStore

ROOT = Path(__file__).resolve().parents[2]
OFFLINE = dict.fromkeys(("http_proxy", "https_proxy"), "http://127.0.0.1:9")
"""Nobody listens there: what needs a download fails at once, and the same on every machine."""

SERVED = Path(__file__).parent / "served"
"""A folder that servers and workers of tests find their ``sitecustomize.py`` in."""
PORT_TRIES = 5


class PortTaken(Exception):
    """Between our finding a free port and our server's listening there, another program took it."""


@dataclasses.dataclass(frozen=True, slots=True)
class AppServer:
    """A running ``streamlit run app.py``."""

    process: subprocess.Popen[bytes]
    url: str
    store: RunStore
    log: Path

    def active(self) -> list[Run]:
        """Return the runs that train, wait for a worker or are paused."""
        return [run for run in self.store.list() if not run.problem and run.status.is_active]

    def hold(self) -> Run:
        """Pause the run that was just started after its first step; return it, paused.

        It cannot end while the page is still being drawn, however quick the machine trains.
        """
        run = wait_until(self._with_worker, "a worker has the run")
        run.request("pause")
        wait_until(lambda: run.status.state == "paused", "the run is paused")
        return run

    def _with_worker(self) -> Run | None:
        return next((run for run in self.active() if run.status.is_alive), None)

    def end_runs(self) -> None:
        """Stop whatever trains; a worker that does not listen within its time is an error."""
        for run in self.active():
            if run.status.pid == os.getpid():  # a test that failed has played its worker
                write_status(run.folder, dataclasses.replace(run.status, state="stopped"))
                continue
            with contextlib.suppress(ValueError):  # it ended by itself a moment ago
                run.request("stop")
        wait_until(lambda: not self.active(), "every run has stopped")

    def forget_runs(self) -> None:
        """Put all runs into the trash, so that a test finds only those that come with the app."""
        self.end_runs()
        for run in self.store.list():
            if not run.meta.recorded:
                self.store.delete(run.id)

    def close(self) -> None:
        """End the server, its warm workers and the workers of its runs."""
        ours = psutil.Process(self.process.pid).children(recursive=True)
        for run in self.active():
            if run.status.pid not in (None, os.getpid()):
                with contextlib.suppress(psutil.NoSuchProcess):
                    ours.append(psutil.Process(run.status.pid))
        self.process.terminate()
        try:
            self.process.wait(PATIENCE / 1000)
        finally:
            for left in ours:
                with contextlib.suppress(psutil.NoSuchProcess):
                    left.kill()
            self.process.kill()
            self.process.wait()


def start(folder: Path, environment: Mapping[str, str], base: str = "") -> AppServer:
    """Start the app; its runs, data and log lie in ``folder``. Fails when it does not answer.

    base: the path that ``environment`` tells it to be served below.
    """
    for _try in range(PORT_TRIES):
        server = _start(folder, environment, base)
        try:
            wait_until(lambda: _is_healthy(server), "the server answers", PATIENCE / 1000)  # noqa: B023
        except PortTaken:
            continue
        except BaseException:
            server.close()
            raise
        return server
    raise RuntimeError(f"Other programs took {PORT_TRIES} ports that had just been free.")


def _start(folder: Path, environment: Mapping[str, str], base: str) -> AppServer:
    port = _free_port()
    paths = [str(SERVED), str(ROOT), {**os.environ, **environment}.get("PYTHONPATH")]
    store = RunStore(folder / "runs")
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "streamlit", "run", "app.py"),
                *("--server.port", str(port), "--server.headless", "true"),
            ],
            cwd=ROOT,
            env={
                **os.environ,
                **OFFLINE,
                "TFM_DATA_DIR": os.environ.get("TFM_DATA_DIR", str(folder / "data")),
                "TFM_RUNS_DIR": str(store.root),
                "TFM_MAX_RUNNING": "1",
                "TFM_TEST_SLOW_STEPS": str(LONG.training.steps),
                **environment,
                "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            },
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    return AppServer(process, f"http://localhost:{port}{base}", store, log)


def _is_healthy(server: AppServer) -> bool:
    """Say whether this server answers, not another one that took its port a moment before."""
    said = server.log.read_text(errors="replace")
    if server.process.poll() is not None:
        if "is not available" in said:
            raise PortTaken
        raise RuntimeError(f"The server ended at once:\n{said}")
    if "Watch a Transformer learn: http" not in said:
        return False
    try:
        with urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
