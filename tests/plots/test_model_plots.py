"""Figures of parameters and compute hold the numbers they were given."""

import numpy as np
import pytest

from tfm_core.facts.architectures import ARCHITECTURES
from tfm_core.facts.compute import PARTS
from tfm_core.facts.parameter_table import most_in, parameter_table
from tfm_core.inspect.errors.groups import AnswerGroup
from tfm_core.plots.examples.errors import accuracies, losses
from tfm_core.plots.model.architecture import bars, growth, histograms, treemap


def test_the_areas_of_the_treemap_add_up():
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


def test_bars_and_curves_leave_out_what_is_nothing():
    values = {**dict.fromkeys(PARTS, 0.0), "scores": 2.0, "output": 3.0}
    labels = {name: name for name in PARTS}
    assert list(bars(values, "GMAC", labels).data[0].y) == ["output", "scores"]
    parts = {name: [v, 4 * v] for name, v in values.items()}
    figure = growth([1, 2], parts, "length", "GMAC", labels)
    assert [line.name for line in figure.data] == ["scores", "output"]
    assert figure.data[0].y.dtype == np.float32


def test_parts_that_grow_alike_are_one_line_with_both_names():
    parts = {"projections": [1.0, 4.0], "scores": [1.0, 8.0], "feed-forward": [1.0, 4.0]}
    figure = growth([1, 2], parts, "length", "GMAC", {name: name for name in parts})
    assert [line.name for line in figure.data] == ["projections = feed-forward", "scores"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_output_is_told_from_the_frame_and_every_area_has_an_edge(theme):
    known = ARCHITECTURES["transformer-base"]
    table = parameter_table(known.model, known.shape)
    (tree,) = treemap(table.folded, table.total, theme).data
    colours = dict(zip(tree.ids, tree.marker.colors, strict=True))
    assert tree.marker.line.width > 0
    assert len({colours["model"], colours["encoder"], colours["decoder.layers"]}) == 1
    leaves = set(tree.ids) - set(tree.parents)
    assert colours["model"] not in {colours[leaf] for leaf in leaves}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpt2-xl", "Largest part: feed-forward layers, 63%."),
        ("vit-b", "feed-forward layers"),
    ],
)
def test_the_part_with_most_parameters_is_named(name, words):
    known = ARCHITECTURES[name]
    assert words in most_in(parameter_table(known.model, known.shape).folded)


def test_a_model_of_many_words_and_little_else_holds_most_in_its_embedding():
    rows = parameter_table(ARCHITECTURES["gpt2-small"].model, ARCHITECTURES["gpt2-small"].shape)
    few = [row for row in rows.folded if "feed_forward" not in row.module]
    assert "embeddings" in most_in(few)


def test_a_histogram_shows_before_and_after():
    edges = np.linspace(-1, 1, 4)
    shares = np.array([0.2, 0.5, 0.3])
    figure = histograms({"before": (edges, shares), "after": (edges, shares[::-1])}, "w")
    assert [line.name for line in figure.data] == ["before training", "after training"]
    assert len(figure.data[0].x) == 3


@pytest.mark.parametrize("draw", [accuracies, losses])
def test_groups_of_answers_stand_in_their_order_and_more_of_them_take_more_room(draw):
    groups = [AnswerGroup(name, 10, 7, 0.5, 0.1) for name in ("first", "second", "third")]
    figure = draw(groups, "length")
    assert list(figure.data[0].y) == ["first", "second", "third"]
    assert (figure.layout.yaxis.autorange, figure.layout.yaxis.title.text) == ("reversed", "length")
    assert figure.layout.height > draw(groups[:1], "length").layout.height
