"""How fast this machine is."""

from tfm_core.machine import slowness


def test_slowness_is_measured_once_and_positive():
    first = slowness()
    assert 0.01 < first < 1000
    assert slowness() is first
