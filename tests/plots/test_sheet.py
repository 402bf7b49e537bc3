"""Sheets of numbers: legible in both themes, and made of the numbers they are given."""

import numpy as np
import pytest

from tfm_core.inspect.by_hand import attention
from tfm_core.inspect.by_hand.attention import attend, mask_of
from tfm_core.inspect.tensors.operations import OPERATIONS, read, shape_of
from tfm_core.inspect.tensors.sight import InputSpec, sight
from tfm_core.plots.heads import by_hand as plots
from tfm_core.plots.heads.by_hand import Pick
from tfm_core.plots.model import tensor_ops
from tfm_core.plots.model.tensor_ops import Colours
from tfm_core.plots.sheet import described, written

WORDS = ("I", "love", "AI")


def test_numbers_are_written_alike():
    for value, text in [
        (0.714, "0.71"),
        (-0.001, "0.00"),
        (-2, "−2.00"),
        (np.nan, "NaN"),
        (-np.inf, "−∞"),
    ]:
        assert written(value) == text


PICK = Pick(2, 1, 0)


def lines(allowed, pick=PICK, is_scaled=True):
    x = attention.one_hot(3, 3)
    found = attend(x, x, x, allowed, is_scaled=is_scaled)
    return found, plots.attention_lines(found, WORDS, pick)


def boards_of(made):
    return {board.name: board for line in made for board in line.boards if board.name}


@pytest.mark.parametrize("mask", ["none", "causal"])
def test_every_table_holds_the_numbers_of_the_attention(mask):
    found, made = lines(mask_of(mask, 3))
    boards = boards_of(made)
    expected = {
        "query": found.query,
        "key": found.key.T,
        "scores": found.products,
        "scaled": found.scores,
        "exp": found.exponentials,
        "weights": found.weights,
        "output": found.output,
    }
    for name, values in expected.items():
        (panel,) = boards[name].panels
        assert panel.packed()["texts"] == [
            [written(value) for value in row] for row in values.tolist()
        ], name
    assert ("masked" in boards) == (mask == "causal")


def looked(name, **source):
    operation = OPERATIONS[name]
    second = None if operation.second is None else shape_of(operation.second)
    return sight(
        name,
        InputSpec(**{"shape": shape_of(operation.shape), **source}),
        read(operation, {}),
        second,
    )


def test_elements_have_their_colour_and_a_click_finds_and_frames_them():
    for name in OPERATIONS:
        seen = looked(name)
        colours = Colours(tuple(look.storage.size for look in seen.before), True)
        board = tensor_ops.tensor_board(seen.after, "y", colours)
        origins = iter(seen.after.origins.ravel().tolist())
        for panel in board.panels:
            for fills, names in zip(panel.fills, panel.names, strict=True):
                for fill, name, origin in zip(fills, names, origins, strict=False):
                    assert origin < 0 or (fill, name) == (colours.fill(origin), f"e{origin}")
        assert list(origins) == []
        memory = tensor_ops.memory_board(seen.after, "Memory", colours)
        assert memory.panels[0].values.size == seen.after.storage.size
        assert described([], {}) == []
    for name in ["view", "einsum", "stack", "unsqueeze", "arange"]:
        seen = looked(name)
        index_at = tensor_ops.index_at
        found, row = [], 0
        for panel in tensor_ops.tensor_board(seen.after, "y", Colours((99, 99))).panels:
            for cells in panel.values:
                found += [index_at(seen.after, row, column) for column in range(len(cells))]
                row += 1
        assert found == list(np.ndindex(*seen.after.shape))
    found, made = lines(mask_of("causal", 3), Pick(1, 0, 2))
    boards = boards_of(made)
    for name, cell in (("scores", (1, 0)), ("weights", (1, 0)), ("output", (1, 2))):
        marks = boards[name].panels[0].marks
        assert [at for at, mark in marks.items() if mark == "picked"] == [cell]
    assert [line.arithmetic[0][:4] for line in made] == ["q(lo", "0.00", "sum ", "outp"]
    assert f"{found.weights[1, 0]:.4f}" in made[2].arithmetic[-1]
