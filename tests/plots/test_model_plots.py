"""Figures of models and of positions."""

import numpy as np

from pages.look_inside.costs import bars, growth_lines
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.facts.compute import PARTS
from tfm_core.facts.parameter_table import most_in, parameter_table
from tfm_core.inspect import position_tables as core
from tfm_core.plots.model import positions
from tfm_core.plots.model.walk import treemap


def test_areas_add_up_and_bars_leave_out_what_is_nothing():
    for name in ["transformer-base", "gpt2-small", "vit-b"]:
        known = ARCHITECTURES[name]
        table = parameter_table(known.model, known.shape)
        (tree,) = treemap(table.folded, table.total).data
        inside: dict[str, int] = {}
        for parent, value in zip(tree.parents, tree.values, strict=True):
            inside[parent] = inside.get(parent, 0) + value
        sizes = dict(zip(tree.ids, tree.values, strict=True))
        assert inside["model"] == table.total
        for parent, value in inside.items():
            if parent:
                assert value <= sizes[parent]
    values = {**dict.fromkeys(PARTS, 0.0), "scores": 2.0, "output": 3.0}
    assert list(bars(values, "GMAC").data[0].y) == ["output", "scores"]
    parts = {name: [v, 4 * v] for name, v in values.items()}
    figure = growth_lines([1, 2], parts, "length", "GMAC")
    assert [line.name for line in figure.data] == ["scores", "output"]
    assert figure.data[0].y.dtype == np.float32


def test_the_part_with_most_parameters_is_named():
    known = ARCHITECTURES["gpt2-xl"]
    words = most_in(parameter_table(known.model, known.shape).folded)
    assert "Largest part: feed-forward layers, 63%." in words


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
