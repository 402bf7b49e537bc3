"""Figures of parameters and compute hold the numbers they were given."""

import numpy as np

from pages.look_inside.costs import bars, growth_lines
from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.facts.compute import PARTS
from tfm_core.facts.parameter_table import most_in, parameter_table
from tfm_core.plots.treemap import treemap


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
