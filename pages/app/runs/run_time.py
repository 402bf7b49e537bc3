"""How long trainings take, what they need, and on which devices they can run.

Measurements with torch happen on a thread of their own: the first one loads torch, which takes
seconds, so the page is drawn meanwhile and asks again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from pages.app import show, state
from pages.app.runs import runs_access
from pages.app.typed import escape
from pages.i18n import _, ngettext
from tfm_core import machine, settings
from tfm_core.background import Background
from tfm_core.choices.config import Experiment, to_json
from tfm_core.choices.config.advice import advice_on_moving
from tfm_core.machine import slowness
from tfm_core.runs import expected_time
from tfm_core.runs.expected_time import BUSY, Finished, Forecast, expected, finished
from tfm_core.runs.run import Run

if TYPE_CHECKING:
    from tfm_core.facts.memory import Sizes
    from tfm_core.training.devices import Device
    from tfm_core.training.estimate import Estimate


def estimate_text(experiment: Experiment) -> str:
    """Return how long a training takes on the session's device, such as ``about 45 s``."""
    return forecast_text(forecast(experiment))


def estimate_text_now(
    experiment: Experiment,
    *,
    device: str | None = None,
    threads: int = 1,
    measured: float | None = None,
) -> str:
    """Return the same with what makes it long: ``about 45 s, this computer is busy``."""
    device = device or state.device()
    estimated = forecast(experiment, device=device, threads=threads, measured=measured)
    return with_load(estimated, device)


def forecast_text(estimated: Forecast | None, device: str | None = None) -> str:
    """Return a forecast in words; device: the session's, unless given."""
    if estimated is None:
        name = show.device(device or state.device())
        return _("time unknown on {device}", device=name)
    return show.about(estimated.seconds)


def with_load(estimated: Forecast | None, device: str | None = None) -> str:
    """Return a forecast in words, and whether the computer is busy."""
    time = forecast_text(estimated, device)
    if estimated is None or not estimated.is_busy:
        return time
    return _("{time} (this computer is busy)", time=time)


def estimate_source() -> str:
    """Return what the times are estimated from, and whether the computer is busy."""
    device = state.device()
    basis, slowdown = _basis(device), _slowdown(device)
    if slowdown < BUSY:
        return basis
    busy = _("This computer is busy; expect about {n} times the usual time.", n=f"{slowdown:.2g}")
    return f"{basis} {busy}"


def _basis(device: str) -> str:
    n = sum(timing.device == device for timing in _timings())
    if n:
        return ngettext(
            "Estimated from {n} run on this computer.",
            "Estimated from {n} runs on this computer.",
            n,
            n=n,
        )
    if device != "cpu":
        return _(
            "Times on {device} are known after your first run there.", device=show.device(device)
        )
    return _("Estimated from a short measurement; more exact after your first run.")


def forecast(
    experiment: Experiment,
    *,
    device: str | None = None,
    threads: int = 1,
    measured: float | None = None,
) -> Forecast | None:
    """Return how long a training takes if it starts now, or None if unknown.

    Every time that a page says comes from here. device: the session's, unless given. measured: see
    ``expected_time.expected``.
    """
    device = device or state.device()
    return expected(
        experiment,
        _timings(),
        slowness=slowness(),
        slowdown=_slowdown(device, threads),
        device=device,
        threads=threads,
        measured=measured,
    )


def in_sequence(experiments: Iterable[Experiment], *, threads: int = 1) -> Forecast | None:
    """Return how long experiments take in sequence, or None if one is unknown."""
    forecasts = [forecast(each, threads=threads) for each in experiments]
    complete = [each for each in forecasts if each is not None]
    is_known = complete and len(complete) == len(forecasts)
    return expected_time.in_sequence(complete) if is_known else None


def _slowdown(device: str, threads: int = 1) -> float:
    """Return the factor by which the load slows a training on a device."""
    if device != "cpu" or settings.read().ray_address is not None:
        return 1.0
    return machine.slowdown(threads, machine.WORKER_NICENESS)


@st.cache_resource(show_spinner=False)
def _known_timings() -> dict[Path, Finished]:
    return {}


def _timings() -> list[Finished]:
    """Return the timings of the finished runs, each worked out once: what has finished stays so."""
    known, runs = _known_timings(), runs_access.store().kept()
    for run in runs:
        if run.folder not in known and (timing := finished(run)) is not None:
            known[run.folder] = timing
    return [known[run.folder] for run in runs if run.folder in known]


def device_choices(run: Run) -> list[str]:
    """Return the devices that a run can resume on, its own first.

    One that this machine lacks is left out as soon as that is known.
    """
    before = "cpu" if run.meta.recorded else run.meta.device
    future = devices()
    if not future.done() or future.exception() is not None:
        return list(dict.fromkeys([before, "cpu"]))
    there = [device.name for device in future.result() if device.available]
    return sorted(there, key=lambda name: name != before)


def choose_device(run: Run, names: list[str], *, key: str) -> str:
    """Draw the choice of a device to resume on, and what it changes; return it."""
    chosen = st.selectbox(
        _("Device"), names, format_func=show.device, key=f"{key}-{run.id}-{'-'.join(names)}"
    )
    before = "cpu" if run.meta.recorded else run.meta.device
    if chosen != before:
        st.caption(escape(_(advice_on_moving(before, chosen, run.experiment))))
    return chosen


PATIENCE = 0.15
"""Seconds to wait for an answer before the page goes on without it, once torch is loaded."""
_LOOK_AGAIN = 0.3  # seconds
_TRIES = 2  # the first one of a process is slow, and another process may be busy for a moment


MEASUREMENTS, COUNTS = Background("forecast"), Background("counts")
"""What is measured, and what is only counted and waits for no measurement."""


def estimate(experiment: Experiment, device: str) -> Future[Estimate]:
    """Return a future of a run's needs; it raises ValueError for an unusable device."""

    def work() -> Estimate:
        from tfm_core.training.gpu_helper import estimate as measure

        tries = [measure(experiment, device) for _ in range(_TRIES)]
        return min(tries, key=lambda estimated: estimated.seconds)

    question = f"{device} {to_json(experiment)}"
    return MEASUREMENTS.ask(question, work, patience=PATIENCE).future


def sizes(experiment: Experiment) -> Future[Sizes]:
    """Return a future of the sizes of a model and a step: counted, not measured.

    It waits for nothing that is being measured.
    """

    def work() -> Sizes:
        from tfm_core.facts.memory import sizes as count

        return count(experiment)

    return COUNTS.ask(to_json(experiment), work, patience=PATIENCE).future


def step_time(racer: str, length: int, number: int) -> Future[float]:
    """Return a future of the seconds of a pass of one of ``before.models``.

    Another ``number`` asks for another measurement. A page asks for many: it waits for none.
    """

    def work() -> float:
        from tfm_core.inspect.attention.alignment import rnn_models
        from tfm_core.inspect.speed.measure import step_time as measure

        return measure(rnn_models()[racer], length)

    return MEASUREMENTS.ask(f"step {racer} {length} {number}", work).future


def devices() -> Future[list[Device]]:
    """Return a future of the devices that runs can train on."""

    def work() -> list[Device]:
        from tfm_core.runs.queue.ray_jobs import DEVICES
        from tfm_core.training import gpu_helper

        if settings.read().ray_address is None:
            return gpu_helper.devices()
        return list(DEVICES)

    return MEASUREMENTS.ask("devices", work, patience=PATIENCE).future


def wait() -> None:
    """Wait until no question is pending."""
    MEASUREMENTS.wait()
    COUNTS.wait()


def result(future: Future[Any]) -> Any | None:
    """Return the result if it is there, else None. Raises what the work raised."""
    return future.result() if future.done() else None


def until_known(futures: Sequence[Future[Any]], draw: Callable[[], None]) -> None:
    """Draw a part again and again until futures are done, and then the whole page anew."""
    state.poll(
        lambda: not all(future.done() for future in futures),
        lambda _is_pending: draw(),
        every=_LOOK_AGAIN,
    )
