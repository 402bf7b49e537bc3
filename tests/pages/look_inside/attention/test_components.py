"""What the head grid sends to the browser, and what the components believe of what comes back."""

import base64
import dataclasses
import json

import numpy as np
import pytest

from pages.components import heads
from pages.components.component import Component, is_index
from pages.components.digits import SIDE, decode
from pages.components.heads import (
    MAX_VALUES,
    GridStyle,
    OverPicture,
    SnapshotAnimation,
    pack_grid,
    pack_lines,
    single_frame,
    valid_pin,
)
from tests.pages.looking import unpacked
from tfm_core.inspect.attention.maps import MapView

LOOK = GridStyle(chosen=(0, 0), theme="light")


def test_grids_and_drawings_are_sent_as_they_are_and_no_head_is_not_picked():
    weights = np.random.default_rng(0).random((6, 8, 64, 64)).astype(np.float16)
    tokens = [f"token {i}" for i in range(64)]
    header, values = unpacked(pack_grid(MapView(weights, tokens, tokens), LOOK))
    assert np.array_equal(values, weights)
    assert header["block"] == 1
    weights = np.random.default_rng(0).random((2, 3, 501, 499)).astype(np.float32)
    header, values = unpacked(pack_grid(MapView(weights, ["q"] * 501, ["k"] * 499), LOOK))
    assert values.size <= MAX_VALUES
    assert header["block"] == 2
    assert values[1, 2, 3, 4] == weights[1, 2, 6:8, 8:10].max()
    assert values[1, 2, -1, -1] == weights[1, 2, 500, 498]
    for value in (None, 7, "", "AAAA", "é" * 16728, "*" * 16728, "A" * 16728):
        assert decode(value) is None, value
    drawn = np.random.default_rng(0).integers(0, 256, (SIDE, SIDE), dtype=np.uint8)
    assert np.array_equal(decode(base64.b64encode(drawn.tobytes()).decode()), drawn)
    for value in (None, [0], [0, 3], [-1, 0], [True, 0], ["0", 0], [2, 0], {}):
        assert not is_index(value, 2, 3), value
    assert is_index([1, 2], 2, 3)


@pytest.mark.parametrize("row", [0, 400, None])
def test_of_hundreds_of_patches_only_what_is_drawn_over_the_picture_is_sent(row):
    weights = np.random.default_rng(0).random((2, 4, 401, 401)).astype(np.float32)
    tokens = ["CLS", *(f"{i}" for i in range(400))]
    over = OverPicture(np.zeros((3, 40, 40), np.uint8), row, 1, "read by one")
    look = dataclasses.replace(LOOK, over=over)
    header, values = unpacked(pack_grid(MapView(weights, tokens, tokens), look))
    expected = weights.mean(2) if row is None else weights[:, :, row]
    np.testing.assert_allclose(values[:, :, 0], expected, rtol=1e-4)
    assert (header["over"]["side"], header["over"]["row"]) == (20, 0)
    assert header["rows"] == ["read by one"]
    assert len(header["key"]) == 401


def test_lines_are_weights_and_tokens_are_pinned_and_let_go():
    weights = np.random.default_rng(0).random((5, 7)).astype(np.float16)
    sent = pack_lines(MapView(weights, ["q"] * 5, ["k"] * 7), ink="#2f7fc1", pin=("k", 6))
    length = int.from_bytes(sent[:4], "little")
    header = json.loads(sent[4 : 4 + length])
    assert header["pin"] == ["k", 6]
    values = np.frombuffer(sent[4 + length :], header["kind"])
    assert np.array_equal(values.reshape(5, 7), weights)
    weights = np.zeros((5, 7), np.float16)
    sent = pack_lines(MapView(weights, ["q"] * 5, ["k"] * 7), ink="#2f7fc1", pin=("q", 5))
    assert json.loads(sent[4 : 4 + int.from_bytes(sent[:4], "little")])["pin"] is None
    for value in (None, [0], [2, 0], [0, 5], [1, 7], [-1, 0], [0, True], "q1"):
        assert valid_pin(value, 5, 7) == (False, None), value
    assert valid_pin([0, 4], 5, 7) == (True, ("q", 4))
    assert valid_pin([1, 6], 5, 7) == (True, ("k", 6))
    assert valid_pin([], 5, 7) == (True, None)


@pytest.mark.parametrize("draw", ["grid", "lines"])
def test_what_a_session_keeps_of_a_drawing_holds_no_weights(monkeypatch, draw):
    """Callbacks live as long as the session: an array in one would be kept for every visitor."""
    kept = {}
    monkeypatch.setattr(heads, f"_{draw}", Component(lambda **given: kept.update(given)))
    weights = np.zeros((2, 3, 5, 5), np.float16)
    view = MapView(weights, "abcde", "abcde")
    if draw == "grid":
        look = GridStyle(chosen=(0, 0), theme="light", animation=single_frame(weights))
        heads.head_grid(view, look, on_pick=print, key="k", on_step=print)
    else:
        heads.head_lines(view.head(0, 0), ink="#000000", pin=None, on_pin=print, key="k")
    callbacks = [value for name, value in kept.items() if name.startswith("on_")]
    assert callbacks
    held = [value for one in callbacks for value in _references(one)]
    assert print in held
    kinds = (np.ndarray, SnapshotAnimation, MapView, GridStyle)
    assert not [one for one in held if isinstance(one, kinds)]


def _references(function):
    """Yield all that a function keeps alive: its arguments given beforehand and its closure."""
    parts = [*getattr(function, "args", ()), getattr(function, "func", None)]
    parts += [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    for part in parts:
        yield part
        if callable(part):
            yield from _references(part)
