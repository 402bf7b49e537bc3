"""How long a training will take here: one answer for cards, captions and the Start line."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

import streamlit as st

from pages.i18n import _, ngettext
from pages.ui import runs_access, show, state
from tfm_core.config import Experiment
from tfm_core.machine import slowness
from tfm_core.runs.expected_time import Finished, TimeRange, expected, finished
from tfm_core.runs.run import Run


def takes(
    experiment: Experiment,
    *,
    device: str | None = None,
    threads: int = 1,
    measured: float | None = None,
) -> str:
    """Return how long a training will take, such as ``about 40 to 60 s``.

    device: the session's, unless told. measured: see ``expected_time.expected``.
    """
    device = device or state.device()
    found = time_range(experiment, device=device, threads=threads, measured=measured)
    if found is None:
        return _("time not known yet on {device}").format(device=show.device(device))
    return show.about(found.low, found.high)


def whose(device: str | None = None) -> str:
    """Return in a sentence that the times are this machine's, and what they are reckoned from.

    device: the session's, unless told.
    """
    device = device or state.device()
    n = sum(lesson.device == device for lesson in _lessons().of(runs_access.store().kept()))
    if n:
        words = ngettext(
            "Times are this machine’s, reckoned from {n} training that finished here.",
            "Times are this machine’s, reckoned from {n} trainings that finished here.",
            n,
        )
        return words.format(n=n)
    if device != "cpu":
        words = _("Nothing has finished on {device} yet; the first training says what it takes.")
        return words.format(device=show.device(device))
    return _(
        "Times are this machine’s, reckoned from a short measurement of its processor; the first "
        "training that finishes here makes them surer."
    )


def time_range(
    experiment: Experiment, *, device: str, threads: int = 1, measured: float | None = None
) -> TimeRange | None:
    """Return the seconds that a training will take, or None where nothing is known of them yet."""
    return expected(
        experiment,
        _lessons().of(runs_access.store().kept()),
        slowness=slowness(),
        device=device,
        threads=threads,
        measured=measured,
    )


class _Lessons:
    """What finished runs teach; each of them is read once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Path, tuple[int, Finished | None]] = {}

    def of(self, runs: Iterable[Run]) -> list[Finished]:
        with self._lock:
            self._known = {run.folder: self._look(run) for run in runs}
            return [lesson for _changed, lesson in self._known.values() if lesson is not None]

    def _look(self, run: Run) -> tuple[int, Finished | None]:
        """Return what a run teaches, and when its status had last changed."""
        known = self._known.get(run.folder)
        if known is not None and known[1] is not None:
            return known  # what has finished stays so
        try:
            changed = (run.folder / "status.json").stat().st_mtime_ns
        except OSError:
            changed = 0
        return known if known is not None and known[0] == changed else (changed, finished(run))


@st.cache_resource(show_spinner=False)
def _lessons() -> _Lessons:
    return _Lessons()
