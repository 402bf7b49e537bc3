"""Figures of parameters and compute hold the numbers they were given."""

import numpy as np
import pytest

from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.facts.compute import PARTS
from tfm_core.facts.parameter_table import parameter_table
from tfm_core.plots.compute import bars, growth
from tfm_core.plots.parameters import histograms, treemap


@pytest.mark.parametrize("name", ["transformer-base", "gpt2-small", "vit-b"])
def test_the_areas_of_the_treemap_add_up(name):
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


def test_bars_and_curves_leave_out_what_is_nothing():
    values = {**dict.fromkeys(PARTS, 0.0), "scores": 2.0, "output": 3.0}
    assert list(bars(values, "GMAC").data[0].y) == ["output", "scores"]
    figure = growth([1, 2], {name: [v, 4 * v] for name, v in values.items()}, "length", "GMAC")
    assert [line.name for line in figure.data] == ["scores", "output"]
    assert figure.data[0].y.dtype == np.float32


def test_a_histogram_shows_before_and_after():
    edges = np.linspace(-1, 1, 4)
    shares = np.array([0.2, 0.5, 0.3])
    figure = histograms({"before": (edges, shares), "after": (edges, shares[::-1])}, "w")
    assert [line.name for line in figure.data] == ["before training", "after training"]
    assert len(figure.data[0].x) == 3
