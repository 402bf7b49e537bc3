"""What the head grid sends to the browser, and what the components believe of what comes back."""

import base64
import time

import numpy as np
import pytest

from pages.components.digit_pad import SIDE, decode
from pages.components.head_grid import MAX_VALUES, pack, valid_place
from tests.pages.looking import unpacked


def test_the_grid_of_48_heads_is_built_within_20_ms():
    weights = np.random.default_rng(0).random((6, 8, 64, 64)).astype(np.float16)
    tokens = [f"token {i}" for i in range(64)]
    times = []
    for _ in range(3):
        start = time.perf_counter()
        sent = pack(weights, tokens, tokens, chosen=(0, 0), theme="light")
        times.append(time.perf_counter() - start)
    assert min(times) < 0.02
    header, values = unpacked(sent)
    assert np.array_equal(values, weights)
    assert header["block"] == 1


def test_too_many_weights_are_sent_as_the_largest_of_each_block():
    weights = np.random.default_rng(0).random((2, 3, 501, 499)).astype(np.float32)
    header, values = unpacked(pack(weights, ["q"] * 501, ["k"] * 499, chosen=(0, 0), theme="dark"))
    assert values.size <= MAX_VALUES
    assert header["block"] == 2
    assert values[1, 2, 3, 4] == weights[1, 2, 6:8, 8:10].max()
    assert values[1, 2, -1, -1] == weights[1, 2, 500, 498]


@pytest.mark.parametrize("value", [None, [0], [0, 3], [-1, 0], [True, 0], ["0", 0], [2, 0], {}])
def test_what_is_no_head_is_not_picked(value):
    assert valid_place(value, 2, 3) is None
    assert valid_place([1, 2], 2, 3) == (1, 2)


@pytest.mark.parametrize("value", [None, 7, "", "AAAA", "é" * 16728, "*" * 16728, "A" * 16728])
def test_what_is_no_drawing_is_none(value):
    assert decode(value) is None


def test_a_drawing_arrives_as_grey_values():
    drawn = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE), dtype=np.uint8)
    assert np.array_equal(decode(base64.b64encode(drawn.tobytes()).decode()), drawn)
