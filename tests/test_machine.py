"""How fast this machine is."""

from types import SimpleNamespace

import pytest

from tfm_core import machine
from tfm_core.machine import slowness


def test_slowness_is_measured_once_and_a_busy_moment_changes_nothing(monkeypatch):
    first = slowness()
    assert 0.01 < first < 1000
    assert slowness() is first
    pieces = iter([0.2, 0.005, 0.3, 0.005, 0.1, 0.006, 0.005, 0.4, 0.006, 0.005, 0.005])
    monkeypatch.setattr(machine, "_piece", lambda: next(pieces))
    assert machine._measured.__wrapped__() <= 0.006 / machine.REFERENCE_SECONDS


def test_only_the_time_of_the_own_thread_counts(monkeypatch):
    ticks = iter(range(1000))
    clock = SimpleNamespace(thread_time=lambda: 0.01 * next(ticks))  # and no other clock
    monkeypatch.setattr(machine, "time", clock)
    assert machine._measured.__wrapped__() == pytest.approx(0.01 / machine.REFERENCE_SECONDS)


@pytest.mark.parametrize(
    ("share", "load", "cores", "slowdown"),
    [
        (1.0, 0.0, 2, 1.0),  # idle
        (1.0, 1.0, 2, 1.0),  # another core is free
        (0.2, 9.0, 2, 5.0),  # busy for a while
        (0.25, 0.0, 2, 2.0),  # busy since a moment ago
        (1.0, 7.0, 2, 2.0),  # no longer busy
        (1.02, 3.0, 8, 1.0),
    ],
)
def test_what_runs_now_and_ran_lately_makes_the_slowdown(share, load, cores, slowdown):
    assert machine.combined_slowdown(share, load, cores) == pytest.approx(slowdown)


def test_a_slowdown_is_measured_and_kept_for_a_moment(monkeypatch):
    asked = []
    monkeypatch.setattr(machine, "_share", lambda niceness: asked.append(niceness) or 0.5)
    found = machine._Slowdown(3, 5)
    first = found.get()
    assert first >= 2**0.5
    assert found.get() == first
    assert asked == [5, 5, 5]  # of one core for each thread
