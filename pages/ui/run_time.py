"""How long a training will take here: one forecast for every page that says a time."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from itertools import zip_longest
from pathlib import Path

import streamlit as st

from pages.i18n import _, ngettext
from pages.ui import runs_access, show, state
from tfm_core import machine
from tfm_core.config import Experiment
from tfm_core.machine import slowness
from tfm_core.runs import settings
from tfm_core.runs.record import expected_time
from tfm_core.runs.record.expected_time import BUSY, Finished, Forecast, expected, finished
from tfm_core.runs.run import Run


def takes(
    experiment: Experiment,
    *,
    device: str | None = None,
    threads: int = 1,
    measured: float | None = None,
) -> str:
    """Return how long a training will take, such as ``about 45 s``.

    device: the session's, unless given. measured: see ``expected_time.expected``.
    """
    device = device or state.device()
    found = forecast(experiment, device=device, threads=threads, measured=measured)
    return words(found, device)


def takes_now(
    experiment: Experiment,
    *,
    device: str | None = None,
    threads: int = 1,
    measured: float | None = None,
) -> str:
    """Return the same with what makes it long: ``about 45 s, this computer is busy``."""
    device = device or state.device()
    found = forecast(experiment, device=device, threads=threads, measured=measured)
    return with_load(found, device)


def words(found: Forecast | None, device: str | None = None) -> str:
    """Return a forecast in words; device: the session's, unless given."""
    if found is None:
        name = show.device(device or state.device())
        return _("time unknown on {device}", device=name)
    return show.about(found.seconds)


def with_load(found: Forecast | None, device: str | None = None) -> str:
    """Return a forecast in words, and whether the computer is busy."""
    time = words(found, device)
    if found is None or not found.is_busy:
        return time
    return _("{time}, this computer is busy", time=time)


def whose(device: str | None = None) -> str:
    """Return in a sentence or two what the times are estimated from, and whether it is busy.

    device: the session's, unless given.
    """
    device = device or state.device()
    basis, slowdown = _basis(device), _slowdown(device)
    if slowdown < BUSY:
        return basis
    busy = _("This computer is busy: training takes about {n} times as long.")
    return f"{basis} {busy.format(n=f'{slowdown:.2g}')}"


def _basis(device: str) -> str:
    n = sum(lesson.device == device for lesson in _lessons().of(runs_access.store().kept()))
    if n:
        said = ngettext(
            "Times are estimates from {n} training that finished on this computer.",
            "Times are estimates from {n} trainings that finished on this computer.",
            n,
        )
        return said.format(n=n)
    if device != "cpu":
        said = _("Times on {device} are known after the first training.")
        return said.format(device=show.device(device))
    return _(
        "Times are estimates from a short measurement of this computer. They improve after the "
        "first training."
    )


def forecast(
    experiment: Experiment,
    *,
    device: str | None = None,
    threads: int = 1,
    measured: float | None = None,
    usual: float | None = None,
) -> Forecast | None:
    """Return how long a training will take if it starts now; None where nothing is known yet.

    Every time that a page says comes from here. device: the session's, unless given. measured,
    usual: see ``expected_time.expected``.
    """
    device = device or state.device()
    return expected(
        experiment,
        _lessons().of(runs_access.store().kept()),
        slowness=slowness(),
        slowdown=_slowdown(device, threads),
        device=device,
        threads=threads,
        measured=measured,
        usual=usual,
    )


def in_sequence(
    experiments: Iterable[Experiment],
    *,
    device: str | None = None,
    threads: int = 1,
    usual: Sequence[float] = (),
) -> Forecast | None:
    """Return how long experiments take one after the other; None where one is not known.

    usual: of each, in order, where they are known; see ``expected_time.expected``.
    """
    found = [
        forecast(each, device=device, threads=threads, usual=seconds)
        for each, seconds in zip_longest(experiments, usual)
    ]
    known = [each for each in found if each is not None]
    return expected_time.in_sequence(known) if known and len(known) == len(found) else None


def now(found: Forecast | None) -> Forecast | None:
    """Return a forecast that was made a while ago for the load of this moment."""
    return found.at(_slowdown(state.device())) if found is not None else None


def _slowdown(device: str, threads: int = 1) -> float:
    """Return how much longer a training on a device takes now because this machine is busy."""
    if device != "cpu" or settings.read().trains_on != "local":
        return 1.0
    return machine.slowdown(threads, machine.WORKER_NICENESS)


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
