"""Two maps, and position vectors, compared where the answer is known."""

from dataclasses import replace

import numpy as np
import pytest

from tests.inspect.constructed import constructed_run, text_experiment, vit_experiment
from tfm_core.inspect.attention.example import common_step, nearest, same_example
from tfm_core.inspect.attention.maps import MapView, check_same_tokens, compare_maps
from tfm_core.inspect.position_tables import cosines, geometry, tiles, tiles_of
from tfm_core.probe.types import Snapshot
from tfm_core.runs.snapshots import write_snapshot
from tfm_core.runs.store import RECORDED, RunStore
from tfm_core.sentences import StudentError


def test_what_moved_is_counted_and_maps_of_others_are_said():
    left = np.array([[1.0, 0.0], [0.0, 1.0]])
    right = np.array([[0.5, 0.5], [0.0, 1.0]])
    assert compare_maps(left, right)[0] == pytest.approx(0.25)
    left, right = np.eye(2), np.eye(2)
    right[0] = [0.25, 0]
    assert compare_maps(left, right)[0] == pytest.approx((0.75 + 0) / 2)
    allowed = np.array([[True, True], [False, False]])
    left, right = np.array([[1.0, 0], [0, 0]]), np.array([[0.0, 1], [0, 0]])
    assert compare_maps(left, right, allowed)[0] == pytest.approx(1)
    assert compare_maps(left, right, np.zeros((2, 2), bool))[0] == 0
    with pytest.raises(ValueError, match="The maps are 2 by 2 and 3 by 3"):
        compare_maps(np.eye(2), np.eye(3))
    check_same_tokens((["a"], ["b"]), (("a",), ("b",)))
    with pytest.raises(ValueError, match="query tokens differ from token 2"):
        check_same_tokens((["a", "b"], []), (["a", "c"], []))
    with pytest.raises(ValueError, match="key tokens differ from token 2"):
        check_same_tokens(([], ["a"]), ([], ["a", "c"]))
    table = np.array([[1.0, 0], [0, 2], [3, 3], [0, 0]])
    expected = np.array(
        [[1, 0, 0.5**0.5, 0], [0, 1, 0.5**0.5, 0], [0.5**0.5] * 2 + [1, 0], [0] * 4]
    )
    np.testing.assert_allclose(cosines(table), expected, atol=1e-6)


def test_tiles_are_of_learned_positions_of_pictures_alone():
    rows, columns = np.divmod(np.arange(25), 5)
    grid = tiles(np.hstack([np.eye(5)[rows], np.eye(5)[columns]]), 5)  # half row, half column
    noise = tiles(np.random.default_rng(1).normal(size=(25, 12)), 5)
    assert geometry(grid) == pytest.approx(0.5)
    assert abs(geometry(noise)) < 0.1
    assert grid[2, 3, 2, 3] == pytest.approx(1)
    table = np.random.default_rng(1).normal(size=(10, 7))
    np.testing.assert_array_equal(tiles(table, 3, has_cls=True), tiles(table[1:], 3))
    with pytest.raises(ValueError, match="10 positions do not fill 3 by 3 patches"):
        tiles(table, 3)
    computed = vit_experiment()
    computed = computed.replace(model={**computed.model.model_dump(), "position": "sinusoidal-2d"})
    with pytest.raises(ValueError, match="sinusoidal-2d"):
        tiles_of(computed, Snapshot(0))
    with pytest.raises(ValueError, match="Step 7 has no saved positions"):
        tiles_of(vit_experiment(), Snapshot(7))
    with pytest.raises(ValueError, match="reads text"):
        tiles_of(text_experiment(), Snapshot(0))


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_tiles_follow_the_training(tmp_path, pooling):
    run = constructed_run(RunStore(tmp_path, recorded=None), vit_experiment(pooling), steps=())
    rows = 16 + (pooling == "cls")
    for step in (0, 3):
        table = np.random.default_rng(step).normal(size=(rows, 12)).astype(np.float16)
        write_snapshot(run.folder, Snapshot(step, positions={"positions.table": table}))
    first, last = (tiles_of(run.experiment, run.snapshot(step)) for step in (0, 3))
    assert first.shape == last.shape == (4, 4, 4, 4)
    assert not np.allclose(first, last)


pytestmark = pytest.mark.quick
STORE = RunStore(recorded=RECORDED)


def test_runs_stand_at_the_end_of_the_shortest_and_examples_are_what_they_are() -> None:
    assert common_step([[0, 100, 600], [0, 100, 600]]) == 600
    assert common_step([[0, 97, 100], [0, 97, 600]]) == 97
    assert common_step([[0, 600], [0, 31, 1000]]) == 600
    assert common_step([[], [0, 7]]) == 7
    assert common_step([[], []]) is None
    assert nearest(600, [0, 590, 1000]) == 590
    probe = STORE.get("recorded-one-head").probe()
    turned = replace(probe, items=tuple(reversed(probe.items)))
    last = len(probe.items) - 1
    assert same_example(probe, turned, 1) == last - 1
    digits = STORE.get("recorded-digits").probe()
    assert digits.images is not None
    turned = replace(digits, items=tuple(reversed(digits.items)), images=np.flip(digits.images, 0))
    assert same_example(digits, turned, 0) == len(digits.items) - 1
    with pytest.raises(StudentError, match="lacks this example"):
        same_example(probe, digits, 0)


QUERY, KEY = "abc", "vwxyz"
MASK = np.tril(np.ones((3, 5), bool))


def weights(*outer):
    return np.random.default_rng(0).random((*outer, 3, 5)).astype(np.float16)


def test_masks_and_names_of_maps_are_those_of_each_head():
    view = MapView(weights(2, 7), QUERY, KEY, MASK)
    film = weights(11, 2, 7)
    for seen, given in ((view.seen(), view.weights), (view.seen(film), film)):
        assert seen.dtype == np.float16
        assert np.array_equal(np.isnan(seen), np.broadcast_to(~MASK, given.shape))
        assert np.array_equal(seen[..., MASK], given[..., MASK])
    masks = np.stack([MASK, ~MASK])[:, None]
    one = MapView(weights(2, 7), QUERY, KEY, masks, "rows", "columns", "012").head(1, 5)
    assert np.array_equal(one.weights, weights(2, 7)[1, 5])
    assert np.array_equal(one.allowed, ~MASK)
    assert (one.query, one.key, one.query_words) == (QUERY, KEY, "012")
    assert (one.query_title, one.key_title) == ("rows", "columns")
    with pytest.raises(ValueError, match="maps are 3 by 5, but there are 5 query and 3 key"):
        MapView(weights(), KEY, QUERY)
    MapView(np.zeros((1, 5)), (), KEY)  # a single row without a name
