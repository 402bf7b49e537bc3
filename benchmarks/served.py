"""The app as a real server in its own folder, with a warm worker; both end with the block."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from tfm_core.runs.store import RunStore

ROOT = Path(__file__).resolve().parent.parent
PATIENCE = 60.0  # seconds
_UNCOMPILED = "PYTHONDONTWRITEBYTECODE"


@dataclass(frozen=True, slots=True)
class Served:
    """A running ``streamlit run app.py`` and its runs."""

    url: str
    store: RunStore
    process: psutil.Process

    def await_warm_worker(self) -> None:
        """Wait until a worker has torch imported and waits for a run."""
        wait_until(self._is_warm, "a warm worker")

    def _is_warm(self) -> bool:
        for child in self.process.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if "--warm" in child.cmdline():
                    return child.cpu_times().user > 0.5 and child.cpu_percent(0.5) == 0
        return False

    def end_runs(self) -> None:
        """Stop whatever trains."""
        for run in self.store.list():
            if run.status.is_active:
                run.request("stop")
        wait_until(lambda: not any(r.status.is_active for r in self.store.list()), "the end")


def wait_until(is_so: Callable[[], object], what: str) -> None:
    """Look again and again. Raises TimeoutError."""
    end = time.monotonic() + PATIENCE
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError(f"Waited {PATIENCE:.0f} seconds for {what} in vain.")
        time.sleep(0.05)


@contextlib.contextmanager
def serve(folder: Path) -> Iterator[Served]:
    """Start the app with one warm worker; its runs and its log lie in ``folder``.

    The server keeps its compiled modules, as it does everywhere unless it is forbidden to: only its
    very first start compiles them.
    """
    port = _free_port()
    store = RunStore(folder / "runs", recorded=None)
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    around = {name: text for name, text in os.environ.items() if name != _UNCOMPILED}
    ours = {
        "TFM_RUNS_DIR": str(store.root),
        "TFM_MAX_RUNNING": "1",
    }
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env={**around, **ours}, stdout=log, stderr=log
        )
    served = Served(f"http://localhost:{port}", store, psutil.Process(process.pid))
    try:
        wait_until(lambda: _answers(served.url), "the server")
        yield served
        served.end_runs()
    finally:
        _end(process, served)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/_stcore/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _end(process: subprocess.Popen[bytes], served: Served) -> None:
    """End the server and every worker it started, those that outlive it too."""
    ours = served.process.children(recursive=True)
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for left in ours:
        with contextlib.suppress(psutil.NoSuchProcess):
            left.kill()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
