"""The sentences of figures: each number in them is the figure's own."""

import numpy as np
import plotly.graph_objects as go

from tfm_core.facts.parameter_table import ParameterRow
from tfm_core.inspect.tables import Column, Columns, share
from tfm_core.plots.chart import cells, chart
from tfm_core.plots.described import MAX_TRACES, described, line, scatter
from tfm_core.plots.treemap import treemap
from tfm_core.sentences import Sentence

TASKS = Columns(step=Column("step"), loss=Column("loss"), right=share("right"))


def test_lines_maps_and_bars_tell_their_extremes():
    losses = np.array([3.25, 0.5, 5.75, 1.5])
    table = TASKS.table({"step": [0, 7, 11, 13], "loss": losses, "right": losses / 8})
    words = described(chart(table, x="step", y={"loss": "training"}))
    for part in ("training", "3.25 at 0", "1.5 at 13", "0.5 at 7", "5.75 at 11", "step"):
        assert part in words
    assert "Across: step. Up: loss." in described(chart(table, x="step", y="loss"))
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
        ParameterRow(here=name, module=name, kind="", shape="", n_parameters=n, formula="", share=0)
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
    assert "across from 1 to 2, up from 3 to 5" in scatter("points", [1, 2], [5, 3])
    assert line("gaps", [1, 2], [None, None]) == "gaps: no values yet."
