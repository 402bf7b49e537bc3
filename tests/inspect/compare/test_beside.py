"""Which step and which example of several runs stand side by side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tfm_core.inspect.attention.comparison import common_step, nearest, same_example
from tfm_core.runs.store import RECORDED, RunStore
from tfm_core.sentences import StudentError

pytestmark = pytest.mark.quick
STORE = RunStore(recorded=RECORDED)


def test_runs_stand_beside_each_other_at_the_end_of_the_shortest() -> None:
    assert common_step([[0, 100, 600], [0, 100, 600]]) == 600
    assert common_step([[0, 97, 100], [0, 97, 600]]) == 97
    assert common_step([[0, 600], [0, 31, 1000]]) == 600
    assert common_step([[], [0, 7]]) == 7
    assert common_step([[], []]) is None
    assert nearest(600, [0, 590, 1000]) == 590


def test_an_example_is_found_by_what_it_is_not_by_its_number() -> None:
    probe = STORE.get("recorded-one-head").probe()
    turned = replace(probe, items=tuple(reversed(probe.items)))
    last = len(probe.items) - 1
    assert same_example(probe, turned, 1) == last - 1
    digits = STORE.get("recorded-digits").probe()
    assert digits.images is not None
    turned = replace(digits, items=tuple(reversed(digits.items)),
                     images=np.flip(digits.images, 0))  # fmt: skip
    assert same_example(digits, turned, 0) == len(digits.items) - 1
    with pytest.raises(StudentError, match="did not keep this example"):
        same_example(probe, digits, 0)
