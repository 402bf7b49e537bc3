"""A store of runs of a test's own, and the app started on it."""

import functools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from pages.app.model import your_input
from pages.app.runs import comparison, run_time, runs_access
from tests.pages.made_runs import made_run
from tests.pages.opening import opened_at
from tests.runs.conftest import end_workers
from tfm_core import machine
from tfm_core.runs.queue import local_workers
from tfm_core.runs.queue.run_queue import RunQueue
from tfm_core.runs.store import RECORDED, RunStore


@pytest.fixture(scope="session", autouse=True)
def _packages_are_read_once() -> Iterator[None]:
    """Let Streamlit look for components once: every AppTest reads all installed packages anew.

    That would take more than half of the time of these tests.
    """
    with pytest.MonkeyPatch.context() as patch:
        scan = functools.cache(manifest_scanner.scan_component_manifests)
        patch.setattr(manifest_scanner, "scan_component_manifests", scan)
        yield


@pytest.fixture(scope="session", autouse=True)
def _no_run_ends_in_an_exception() -> Iterator[None]:
    """Let each run of a page, the first one and those after a press, fail where it breaks down."""
    run = AppTest._run

    def checked(*args: Any, **options: Any) -> AppTest:
        app = run(*args, **options)
        assert not app.exception, app.exception[0].value
        return app

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AppTest, "_run", checked)
        yield


@pytest.fixture(autouse=True)
def _no_forecast_goes_on() -> Iterator[None]:
    """Let no thread work on a forecast once a test is over."""
    yield
    run_time.wait()


@pytest.fixture(autouse=True)
def _idle_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no forecast depend on what else runs while the tests do."""
    monkeypatch.setattr(machine, "slowdown", lambda *_what, **_how: 1.0)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunStore]:
    """An empty store, without the recorded runs, that the pages use too."""
    monkeypatch.setenv("TFM_RUNS_DIR", str(tmp_path))
    monkeypatch.setattr(local_workers, "default_size", lambda: 0)
    shared = runs_access.store()
    monkeypatch.setattr(shared, "recorded", None)
    yield shared
    if any(thread.name == "queue" for thread in threading.enumerate()):
        runs_access.close_queue()
        end_workers(shared)


@pytest.fixture
def recorded(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> RunStore:
    """The same store with the runs that come with the app."""
    monkeypatch.setattr(store, "recorded", RECORDED)
    return store


@pytest.fixture
def digits_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boards for digits wait for their models, which another test may have loaded or not."""
    monkeypatch.setattr(your_input, "models_are_loaded", lambda _run: True)


@pytest.fixture
def open_page(store: RunStore) -> Callable[..., AppTest]:
    """Open a page by its file below pages/, with the query of a link."""
    return opened_at


@pytest.fixture
def busy_queue(store: RunStore, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunQueue]:
    """A queue whose only place is taken, by the process of the test, so that new runs wait."""
    monkeypatch.setenv("TFM_MAX_RUNNING", "1")
    made_run(store, state="running", name="The one that trains")
    yield runs_access.queue()
    runs_access.close_queue()


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs that were compared last."""
    ids: list[str] = []
    monkeypatch.setattr(
        comparison, "open_comparison", lambda found: ids.__setitem__(slice(None), found)
    )
    return ids
