"""Schedules: where they rise, stay and end."""

from itertools import pairwise

import pytest

from tfm_core.choices.variants.schedules import SCHEDULES, WSD

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("name", ["cosine", "linear", "wsd"])
def test_a_schedule_that_falls_to_zero_would_be_there_one_step_after_the_last(name):
    share = SCHEDULES[name].share
    assert share(1001, 100, 1000) == pytest.approx(0, abs=1e-9)
    assert 0 < share(1000, 100, 1000) < 0.01, "the last step still moves a little"


def test_warm_up_stable_decay_rises_stays_and_cools_in_the_last_fifth():
    rates = [WSD.share(step, 100, 1000) for step in range(1, 1001)]
    assert rates[49] == 0.5
    assert set(rates[99:800]) == {1.0}
    assert rates[899] == pytest.approx(0.5, abs=0.01)
    falls = [before - after for before, after in pairwise(rates[800:])]
    assert max(falls) == pytest.approx(min(falls)), "linearly"


@pytest.mark.parametrize(("warm", "total"), [(1, 1), (3, 2), (950, 1000), (1, 4)])
def test_warm_up_stable_decay_never_jumps_however_short_or_long_its_parts(warm, total):
    rates = [WSD.share(step, warm, total) for step in range(1, total + 1)]
    assert all(0 < rate <= 1 for rate in rates)
    peak = rates.index(max(rates))
    assert rates[: peak + 1] == sorted(rates[: peak + 1])
    assert rates[peak:] == sorted(rates[peak:], reverse=True)
