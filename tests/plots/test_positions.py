"""Figures of positions: what is drawn is what was given."""

import numpy as np

from tfm_core.inspect.positions import tables as core
from tfm_core.plots.model import positions


def test_a_pair_is_a_sine_and_a_cosine_and_a_row_counts_from_0():
    table = core.sinusoidal_table(17, 6)
    waves = core.waves(table, 2)
    rate = 10000 ** (-4 / 6)
    np.testing.assert_allclose(waves["sine"], np.sin(np.arange(17) * rate), atol=1e-6)
    np.testing.assert_allclose(waves["cosine"], np.cos(np.arange(17) * rate), atol=1e-6)
    row = core.row(core.sinusoidal_table(7, 6), 0)
    even, odd = (part for _name, part in row.groupby("wave"))
    assert even["value"].tolist() == [0, 0, 0]
    assert even["dimension"].tolist() == [0, 2, 4]
    assert odd["value"].tolist() == [1, 1, 1]
    assert even["wave"].iloc[0] == "even dimensions, 2i: sine"
    products = core.products(table)
    for first in (0, 8, 16):
        known = products[products[str(first)].notna()]
        assert known["offset"].tolist() == list(range(-first, 17 - first))
        np.testing.assert_allclose(known[str(first)], table @ table[first], rtol=1e-5)


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
