"""How fast this machine is."""

from types import SimpleNamespace

import pytest

from tfm_core import machine
from tfm_core.machine import slowness


def test_slowness_is_measured_once_and_positive():
    first = slowness()
    assert 0.01 < first < 1000
    assert slowness() is first


def test_a_moment_in_which_the_machine_is_busy_changes_nothing(monkeypatch):
    pieces = iter([0.2, 0.005, 0.3, 0.005, 0.1, 0.006, 0.005, 0.4, 0.006, 0.005, 0.005])
    monkeypatch.setattr(machine, "_piece", lambda: next(pieces))
    assert machine._measured.__wrapped__() <= 0.006 / machine.REFERENCE_SECONDS


def test_only_the_time_of_the_own_thread_counts(monkeypatch):
    ticks = iter(range(1000))
    clock = SimpleNamespace(thread_time=lambda: 0.01 * next(ticks))  # and no other clock
    monkeypatch.setattr(machine, "time", clock)
    assert machine._measured.__wrapped__() == pytest.approx(0.01 / machine.REFERENCE_SECONDS)
