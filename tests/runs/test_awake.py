"""Time in which a process was suspended is no time."""

import pytest

from tfm_core.runs.process.recorder import AwakeClock

pytestmark = pytest.mark.quick


def test_a_gap_between_two_looks_is_sleep():
    now = 10.0
    clock = AwakeClock(lambda: now)
    begin = clock()
    for now in (10.5, 12.0, 72.0, 72.25):  # noqa: B007
        clock.look()
    assert clock() - begin == pytest.approx(2.25)
    assert clock.asleep == 60.0


def test_whoever_asks_first_after_a_sleep_sees_it_left_out():
    now = 0.0
    clock = AwakeClock(lambda: now)
    begin = clock()
    now = 61.0
    assert clock() == begin
