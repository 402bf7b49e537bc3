"""The step of a transition: on constructed curves, and where nothing happens."""

import numpy as np

from tfm_core.inspect.discover.transitions import first, landings, over_runs, since

STEPS = np.array([0, 10, 20, 30, 50], float)
FLOORS = (1.1, 1.0, 0.8)


def test_what_ends_does_not_hold_and_a_staircase_lands_on_its_floors() -> None:
    is_there = np.array([False, True, False, True, True])
    assert first(STEPS, is_there) == 10
    assert since(STEPS, is_there) == 30
    never = np.zeros(5, bool)
    assert first(STEPS, never) is None
    assert since(STEPS, never) is None
    assert since(STEPS, np.array([True, True, True, True, False])) is None
    assert since(STEPS, np.array([False, False, False, False, True])) is None
    assert first(np.empty(0), np.empty(0, bool)) is None
    assert landings(STEPS, np.array([1.2, 1.01, 1.0, 0.85, 0.81]), FLOORS) == (10, 30)
    assert over_runs([40, None, 60]) == "50 ± 14 (2 / 3)"
    assert over_runs([1040]) == "1,040"
    assert over_runs([None]) == "–"
