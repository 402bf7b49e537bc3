"""The grammar of figures: what a table declares is on the axes and under the pointer."""

import numpy as np

from tfm_core.inspect.tables import Column, Columns, share
from tfm_core.plots.chart import chart
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
