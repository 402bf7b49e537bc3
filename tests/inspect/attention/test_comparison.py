"""Two maps, and position vectors, compared where the answer is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.inspect.constructed import constructed_run, text_experiment, vit_experiment
from tfm_core.inspect.attention.comparison import (
    check_same_tokens,
    common_step,
    compare,
    nearest,
    same_example,
)
from tfm_core.inspect.positions.similarity import geometry, similarity, tiles, tiles_of
from tfm_core.probe.types import Snapshot
from tfm_core.runs.record.snapshots import write
from tfm_core.runs.store import RECORDED, RunStore
from tfm_core.sentences import StudentError


def test_a_map_does_not_differ_from_itself():
    found = compare(np.eye(3), np.eye(3))
    assert (found.moved, found.agreeing) == (0, 1)
    assert not found.difference.any()


def test_maps_with_nothing_in_common_have_moved_all():
    found = compare(np.eye(3), np.eye(3)[::-1].copy())
    assert found.moved == pytest.approx(2 / 3)  # the query in the middle looks where it looked
    assert found.agreeing == pytest.approx(1 / 3)


def test_half_of_one_row_moved_is_counted_as_that():
    left = np.array([[1.0, 0.0], [0.0, 1.0]])
    right = np.array([[0.5, 0.5], [0.0, 1.0]])
    assert compare(left, right).moved == pytest.approx(0.25)


def test_what_a_sink_took_has_moved_too():
    left, right = np.eye(2), np.eye(2)
    right[0] = [0.25, 0]
    assert compare(left, right).moved == pytest.approx((0.75 + 0) / 2)


def test_rows_that_are_masked_do_not_count():
    allowed = np.array([[True, True], [False, False]])
    left, right = np.array([[1.0, 0], [0, 0]]), np.array([[0.0, 1], [0, 0]])
    assert compare(left, right, allowed).moved == pytest.approx(1)
    assert compare(left, right, np.zeros((2, 2), bool)).moved == 0


def test_maps_of_other_shapes_or_tokens_are_answered_with_a_sentence():
    with pytest.raises(ValueError, match="The maps are 2 by 2 and 3 by 3"):
        compare(np.eye(2), np.eye(3))
    check_same_tokens((["a"], ["b"]), (("a",), ("b",)))
    with pytest.raises(ValueError, match="query tokens differ from number 2"):
        check_same_tokens((["a", "b"], []), (["a", "c"], []))
    with pytest.raises(ValueError, match="key tokens differ from number 2"):
        check_same_tokens(([], ["a"]), ([], ["a", "c"]))


def test_similarity_is_the_cosine():
    table = np.array([[1.0, 0], [0, 2], [3, 3], [0, 0]])
    expected = np.array(
        [[1, 0, 0.5**0.5, 0], [0, 1, 0.5**0.5, 0], [0.5**0.5] * 2 + [1, 0], [0] * 4]
    )
    np.testing.assert_allclose(similarity(table), expected, atol=1e-6)


def test_positions_that_know_row_and_column_have_geometry_and_noise_has_none():
    rows, columns = np.divmod(np.arange(25), 5)
    grid = tiles(np.hstack([np.eye(5)[rows], np.eye(5)[columns]]), 5)  # half row, half column
    noise = tiles(np.random.default_rng(1).normal(size=(25, 12)), 5)
    assert geometry(grid) == pytest.approx(0.5)
    assert abs(geometry(noise)) < 0.1
    assert grid[2, 3, 2, 3] == pytest.approx(1)


def test_the_cls_token_has_no_tile():
    table = np.random.default_rng(1).normal(size=(10, 7))
    np.testing.assert_array_equal(tiles(table, 3, has_cls=True), tiles(table[1:], 3))
    with pytest.raises(ValueError, match="10 positions do not fill 3 by 3 patches"):
        tiles(table, 3)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_tiles_follow_the_training(tmp_path, pooling):
    run = constructed_run(RunStore(tmp_path, recorded=None), vit_experiment(pooling), steps=())
    rows = 16 + (pooling == "cls")
    for step in (0, 3):
        table = np.random.default_rng(step).normal(size=(rows, 12)).astype(np.float16)
        write(run.folder, Snapshot(step, positions={"positions.table": table}))
    first, last = (tiles_of(run.experiment, run.snapshot(step)) for step in (0, 3))
    assert first.shape == last.shape == (4, 4, 4, 4)
    assert not np.allclose(first, last)


def test_only_learned_positions_of_pictures_have_tiles():
    computed = vit_experiment()
    computed = computed.replace(model={**computed.model.model_dump(), "position": "sinusoidal-2d"})
    with pytest.raises(ValueError, match="sinusoidal-2d"):
        tiles_of(computed, Snapshot(0))
    with pytest.raises(ValueError, match="Step 7 has no saved positions"):
        tiles_of(vit_experiment(), Snapshot(7))
    with pytest.raises(ValueError, match="reads text"):
        tiles_of(text_experiment(), Snapshot(0))


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
    with pytest.raises(StudentError, match="lacks this example"):
        same_example(probe, digits, 0)
