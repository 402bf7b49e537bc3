"""Every figure: the grammar, its template, its words, its files."""

import base64
import io
import itertools
import re
import xml.etree.ElementTree as ET
from typing import get_args

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
from PIL import Image

from tfm_core.facts.parameter_table import ParameterRow
from tfm_core.inspect import by_hand
from tfm_core.inspect.attention.maps import MapView
from tfm_core.inspect.by_hand import attend, mask_of
from tfm_core.inspect.tables import Column, Columns, share
from tfm_core.inspect.tensors.operations import OPERATIONS, parse_arguments, shape_of
from tfm_core.inspect.tensors.sight import InputSpec, run_operation
from tfm_core.plots import sheet
from tfm_core.plots.chart import cells, chart
from tfm_core.plots.described import MAX_TRACES, described, line, scatter
from tfm_core.plots.export import csv, map_svg, map_table, page
from tfm_core.plots.heads import by_hand as plots
from tfm_core.plots.heads.by_hand import Pick
from tfm_core.plots.model import tensor_ops
from tfm_core.plots.model.tensor_ops import Colours
from tfm_core.plots.model.walk import treemap
from tfm_core.plots.palette import BACKGROUNDS, COLOURS, INKS, MASKED, SCALES, ThemeName, contrast
from tfm_core.plots.png import picture_url, png, png_url
from tfm_core.plots.sheet import written
from tfm_core.sentences import N_, Sentence

FOUND = Columns(step=Column(N_("step"), ","), right=share("right"), n=Column("of", ","))

TABLE = FOUND.table(
    {"step": [2, 3, 2, 3], "right": [0.5, 0.25, 0.125, 1], "n": 7, "run": ["b", "b", "a", "a"]}
)


def test_columns_name_the_axes_and_what_the_pointer_reads():
    figure = chart(TABLE, x="step", y="right", colour="run", hover=["n"])
    assert [line.name for line in figure.data] == ["b", "a"]
    np.testing.assert_array_equal(figure.data[1].y, np.float32([0.125, 1]))
    assert figure.layout.yaxis.tickformat == ".0%"
    said = figure.data[0].hovertemplate
    assert said == "step: %{x:,}<br>right: %{y:.1%}<br>of: %{customdata[0]:,}<extra>b</extra>"
    assert isinstance(said.values["t0"], Sentence)
    assert chart(TABLE, x="step", y={"right": "A", "n": "B"}).data[1].name == "B"


def test_rows_are_read_downwards_and_intervals_reach_to_their_ends():
    ends = TABLE.assign(low=TABLE["right"] - 0.125, high=2.0)
    settings = {"colour": "run", "ends": ("low", "high"), "orientation": "h"}
    looks = {"a": {"colour": "#123456", "name": "first"}}
    figure = chart(ends, "points", x="right", y="step", looks=looks, **settings)
    (points,) = figure.data
    assert (points.name, points.marker.color) == ("first", "#123456")
    np.testing.assert_allclose(points.error_x.arrayminus, 0.125)
    np.testing.assert_allclose(points.error_x.array, [1.875, 1])
    assert figure.layout.yaxis.autorange == "reversed"
    assert len(chart(ends, "bands", x="step", y="right", ends=("low", "high")).data) == 3
    flat = {"kind": "bars", "orientation": "h"}
    both = chart(ends, x={"low": "A", "right": "B"}, y="run", **flat)
    np.testing.assert_array_equal(both.data[1].x, np.float32(TABLE["right"]))
    assert chart(ends, x="high", y="step", text="run", **flat).layout.xaxis.range[1] > 2.5


def test_panels_have_their_names_and_one_legend():
    table = TABLE.assign(part=[*"uvuv"])
    lines = {"x": "step", "y": "right", "colour": "run", "facet": "part"}
    figure = chart(table, **lines)
    assert [trace.yaxis for trace in figure.data if trace.showlegend] == ["y", "y"]
    assert figure.layout.yaxis2.title.text == "v"
    assert figure.layout.yaxis2.domain[1] < figure.layout.yaxis.domain[0]
    assert chart(table, **lines, n_beside=2).layout.xaxis2.title.text == "v"
    more = {"facets": [*"uvw"], "n_beside": 2, "picture": np.zeros((1, 4, 4), np.uint8)}
    figure = cells(np.stack([np.eye(2)] * 3), "share", (0, 1), **more)
    assert described(figure).startswith("u: 2 rows, 2 columns")


THEMES = get_args(ThemeName)


def test_both_backgrounds_show_all_and_pictures_have_channels_first():
    for theme in THEMES:
        for meaning in COLOURS:
            assert contrast(COLOURS[meaning], BACKGROUNDS[theme]) >= 3
        assert contrast(INKS[theme], BACKGROUNDS[theme]) >= 7
        steps = [contrast(colour, BACKGROUNDS[theme]) for colour in SCALES[theme]]
        assert all(lower < higher for lower, higher in itertools.pairwise(steps))
    picture = np.random.default_rng(1).integers(0, 256, (3, 5, 7), np.uint8)
    np.testing.assert_array_equal(read_url(picture_url(picture[:1])), picture[0])
    np.testing.assert_array_equal(read_url(picture_url(picture)), np.moveaxis(picture, 0, -1))


@pytest.mark.parametrize("group", [("query", "key", "value"), ("encoder", "decoder", "cross")])
def test_what_is_shown_together_has_different_colours(group):
    assert len({COLOURS[meaning] for meaning in group}) == len(group)
    assert COLOURS["train"] != COLOURS["validation"] != COLOURS["test"]


def picture_of(content: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(content)))


def read_url(url: str) -> np.ndarray:
    kind, _, content = url.partition(",")
    assert kind == "data:image/png;base64"
    return picture_of(base64.b64decode(content))


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3)])
def test_pixels_survive(shape):
    pixels = np.random.default_rng(1).integers(0, 256, shape, np.uint8)
    np.testing.assert_array_equal(picture_of(png(pixels)), pixels)
    np.testing.assert_array_equal(read_url(png_url(pixels)), pixels)


TASKS = Columns(step=Column("step"), loss=Column("loss"), right=share("right"))


def test_lines_maps_and_bars_tell_their_extremes():
    losses = np.array([3.25, 0.5, 5.75, 1.5])
    table = TASKS.table({"step": [0, 7, 11, 13], "loss": losses, "right": losses / 8})
    words = described(chart(table, x="step", y={"loss": "training"}))
    for part in ("training", "3.25 at 0", "1.5 at 13", "0.5 at 7", "5.75 at 11", "step"):
        assert part in words
    assert "Horizontal axis: step. Vertical axis: loss." in described(
        chart(table, x="step", y="loss")
    )
    assert "71.9%" in described(chart(table, x="step", y="right"))
    words = line("a", [0, 1, 2, 3], [None, 2, np.nan, 5])
    assert "2 at 1" in words
    assert "5 at 3" in words
    assert "nan" not in words
    numbers = np.full((3, 5), 0.125)
    numbers[2, 3] = 0.875
    x = {"title": "key", "names": ["k0", "k1", "k2", "&lt;eos&gt;", "k4"]}
    y = {"title": "query", "names": ["q0", "q1", "q2<br><i>two</i>"]}
    words = described(cells(numbers, ["#ffffff", "#000000"], (0, 1), x=x, y=y))
    for part in ("3 rows", "5 columns", "0.875", "q2 two", "<eos>", "0.125"):
        assert part in words
    table = TASKS.table({"task": ["pad", "copy", "shift"], "loss": [7, 2, 5]})
    upright = chart(table, "bars", x="task", y="loss")
    flat = chart(table, "bars", x="loss", y="task", orientation="h")
    named = chart(
        table.assign(task=range(3)), "bars", x="task", y="loss", ticks=["pad", "copy", "shift"]
    )
    for words in map(described, (upright, flat, named)):
        assert "7 at pad" in words
        assert "2 at copy" in words


def test_trees_points_and_many_lines_are_told():
    sizes = {"a": 7, "b.c": 11}
    rows = [
        ParameterRow(
            our_name=name, module=name, kind="", shape="", n_parameters=n, formula="", share=0
        )
        for name, n in sizes.items()
    ]
    words = described(treemap(rows, 18))
    for part in ("2 parts", "18", "b.c", "11"):
        assert part in words
    columns = {f"run {n}": [0, n] for n in range(11)}
    figure = chart(TASKS.table({"step": [0, 1], **columns}), x="step", y=[*columns])
    words = described(figure)
    assert f"{11 - MAX_TRACES} more" in words
    assert "run 10" not in words
    parts = described(figure).values.values()
    assert all(isinstance(part, Sentence) for part in parts)
    aid = go.Scatter(x=[0, 1], y=[0, 123], hoverinfo="skip", name="aid")
    assert described(go.Figure()) == described(go.Figure(aid)) == "Nothing is drawn yet."
    assert scatter("here", [0.5], ["validation"]) == "here: 0.5 at validation."
    assert scatter("there", ["a", "b"], ["c", "d"], has_line=True) == "there: 2 points."
    assert "1 to 2 horizontally, 3 to 5 vertically" in scatter("points", [1, 2], [5, 3])
    assert line("gaps", [1, 2], [None, None]) == "gaps: no values yet."


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
    x = by_hand.one_hot(3, 3)
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
    return run_operation(
        name,
        InputSpec(**{"shape": shape_of(operation.shape), **source}),
        parse_arguments(operation, {}),
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
        assert sheet.described([], {}) == []
    for name in ["view", "einsum", "stack", "unsqueeze", "arange"]:
        seen = looked(name)
        index_at = tensor_ops.index_at
        found, row = [], 0
        for panel in tensor_ops.tensor_board(seen.after, "y", Colours((99, 99))).panels:
            for shown in panel.values:
                found += [index_at(seen.after, row, column) for column in range(len(shown))]
                row += 1
        assert found == list(np.ndindex(*seen.after.shape))
    found, made = lines(mask_of("causal", 3), Pick(1, 0, 2))
    boards = boards_of(made)
    for name, cell in (("scores", (1, 0)), ("weights", (1, 0)), ("output", (1, 2))):
        marks = boards[name].panels[0].marks
        assert [at for at, mark in marks.items() if mark == "picked"] == [cell]
    assert [line.arithmetic[0][:4] for line in made] == ["q(lo", "0.00", "sum ", "outp"]
    assert f"{found.weights[1, 0]:.4f}" in made[2].arithmetic[-1]


QUERY, KEY = ("<bos>", "학교", "에"), ("I", "&", "</text>", "school", "\x07")

SVG = "{http://www.w3.org/2000/svg}"


def weights_of():
    return np.random.default_rng(3).dirichlet(np.ones(5), 3).astype(np.float32)


def test_pages_and_pictures_hold_all_they_need():
    found = page(go.Figure(go.Scatter(y=[1, 2])), title="<b>Head</b>", words="Look & see").decode()
    assert "<h1>&lt;b&gt;Head&lt;/b&gt;</h1>" in found
    assert "Look &amp; see" in found
    assert len(found) > 3_000_000
    assert not re.search(r"<(script|link|img)[^>]*(src|href)=", found)
    allowed = np.tril(np.ones((3, 5), bool))
    drawn = map_svg(MapView(weights_of(), QUERY, KEY, allowed)).decode()
    assert drawn.count(f'fill="{MASKED["light"]}"') == (~allowed).sum()
    assert drawn.count("(masked)") == (~allowed).sum()
    tokens = [str(index) for index in range(512)]
    drawn = map_svg(MapView(np.eye(512), tokens, tokens))
    assert len(drawn) < 200_000
    assert b"data:image/png;base64," in drawn
    ET.fromstring(drawn)


@pytest.mark.parametrize("theme", list(SCALES))
def test_an_svg_has_a_square_for_each_cell_and_a_word_for_each_token(theme):
    weights = weights_of()
    drawn = ET.fromstring(map_svg(MapView(weights, QUERY, KEY), title="Layer <1>", theme=theme))
    squares = [cell for cell in drawn.iter(f"{SVG}rect") if cell.find(f"{SVG}title") is not None]
    assert len(squares) == 15
    assert squares[7].find(f"{SVG}title").text == f"학교 → </text>: {weights[1, 2]:.4f}"
    words = [text.text for text in drawn.iter(f"{SVG}text")]
    assert {"<bos>", "학교", "&", "</text>", "Layer <1>"} <= set(words)


def test_tables_and_csv_say_what_each_cell_is_and_no_token_is_a_formula():
    table = map_table(MapView(weights_of(), QUERY, KEY), ("a", None, "b"))
    assert table["writes"].dropna().tolist() == ["a"] * 5 + ["b"] * 5
    assert "writes" not in map_table(MapView(weights_of(), QUERY, KEY))
    weights = weights_of()
    table = map_table(MapView(weights, QUERY, KEY))
    row = table[(table["query"] == 2) & (table["key"] == 4)].iloc[0]
    assert (row["query_token"], row["key_token"]) == ("학교", "school")
    assert row["weight"] == weights[1, 3]
    assert len(table) == 15
    table = map_table(MapView(weights_of(), QUERY, ("I", "to", "a", "b", "c")))
    again = pd.read_csv(io.BytesIO(csv(table)))
    assert again["query_token"].tolist() == table["query_token"].tolist()
    np.testing.assert_allclose(again["weight"], table["weight"], rtol=1e-6)
    found = csv(pd.DataFrame({"token": ["=1+1", "+", "-", "a-b"], "n": [-1, 2, 3, 4]})).decode()
    assert found.splitlines()[1:] == ["'=1+1,-1", "'+,2", "'-,3", "a-b,4"]
