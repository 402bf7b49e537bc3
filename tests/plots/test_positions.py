"""Figures of positions: what is drawn is what was given."""

import numpy as np

from tfm_core.inspect.positions import tables as core
from tfm_core.plots.model import positions


def test_a_pair_is_a_sine_and_a_cosine_and_a_row_counts_from_0():
    table = core.sinusoidal_table(17, 6)
    figure = positions.waves(table, [0, 2], trained=11)
    assert [trace.name for trace in figure.data] == [
        "dimension 0: sine", "dimension 1: cosine", "dimension 4: sine", "dimension 5: cosine",
        "trained length, 11",
    ]  # fmt: skip
    for trace, column in zip(figure.data, (0, 1, 4, 5), strict=False):
        np.testing.assert_array_equal(trace.y, table[:, column])
    rate = 10000 ** (-4 / 6)
    np.testing.assert_allclose(figure.data[2].y, np.sin(np.arange(17) * rate), atol=1e-6)
    np.testing.assert_allclose(figure.data[3].y, np.cos(np.arange(17) * rate), atol=1e-6)
    assert list(figure.data[4].x) == [10.5, 10.5]
    assert len(positions.waves(table, [0], trained=17).data) == 2
    figure = positions.row(core.sinusoidal_table(7, 6), 0)
    assert figure.data[0].y.tolist() == [0, 0, 0]
    assert figure.data[0].x.tolist() == [0, 2, 4]
    assert figure.data[1].y.tolist() == [1, 1, 1]
    assert figure.data[1].x.tolist() == [1, 3, 5]
    assert figure.data[0].name == "even dimensions, 2i: sine"


def test_tiles_are_named_at_their_centres_and_stand_where_their_patch_lies():
    tiles = np.random.default_rng(0).uniform(-1, 1, (3, 3, 3, 3)).astype(np.float32)
    figure = positions.position_tiles(tiles)
    (mosaic,) = figure.data
    assert mosaic.z.shape == (11, 11)
    assert np.isnan(mosaic.z[3]).all()  # between two rows of tiles
    assert figure.layout.yaxis.autorange == "reversed"
    assert figure.layout.xaxis.tickvals == figure.layout.yaxis.tickvals == (1, 5, 9)
    assert figure.layout.xaxis.ticktext == ("1", "2", "3")
    np.testing.assert_array_equal(mosaic.z[4:7, 8:11], tiles[1, 2])
