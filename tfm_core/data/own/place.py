"""Where custom sets lie: below the folder of runs, so that every worker finds them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from tfm_core import settings

FOLDER = "own-data"
"""The folder among the runs; no run is called that (see ``runs.run.ID``)."""

EXAMPLES = Path(__file__).resolve().parent / "examples"
"""Sets that come with the app: read-only."""

_RUNS: ContextVar[Path | None] = ContextVar("runs", default=None)


def root() -> Path:
    """Return the folder of sets, which need not be there yet."""
    runs = _RUNS.get() or settings.read().runs_dir
    return runs.absolute() / FOLDER


@contextmanager
def below(runs: Path) -> Iterator[None]:
    """Use the sets below this folder of runs, as a worker does for its run."""
    before = _RUNS.set(runs)
    try:
        yield
    finally:
        _RUNS.reset(before)
