"""The sentences of figures: each number in them is the figure's own."""

import numpy as np
import plotly.graph_objects as go

from tfm_core.plots.described import MAX_TRACES, described
from tfm_core.sentences import Sentence


def test_lines_maps_and_bars_tell_their_extremes():
    steps, losses = np.array([0, 7, 11, 13]), np.array([3.25, 0.5, 5.75, 1.5], np.float32)
    figure = go.Figure(go.Scatter(x=steps, y=losses, name="training", mode="lines"))
    words = described(figure.update_layout(xaxis_title="step", yaxis_title="loss"))
    for part in ("training", "3.25 at 0", "1.5 at 13", "0.5 at 7", "5.75 at 11", "step", "loss"):
        assert part in words
    words = described(go.Figure(go.Scatter(x=[0, 1, 2, 3], y=[None, 2, np.nan, 5], name="a")))
    assert "2 at 1" in words
    assert "5 at 3" in words
    assert "nan" not in words
    figure = go.Figure(go.Scatter(x=[1, 2], y=[0.25, 0.75]), {"yaxis": {"tickformat": ".0%"}})
    assert "75.0%" in described(figure)
    cells = np.full((3, 5), 0.125)
    cells[2, 3] = 0.875
    ticks = {
        "xaxis": {"tickvals": list(range(5)), "ticktext": ["k0", "k1", "k2", "&lt;eos&gt;", "k4"]},
        "yaxis": {"tickvals": list(range(3)), "ticktext": ["q0", "q1", "q2<br><i>two</i>"]},
    }
    words = described(go.Figure(go.Heatmap(z=cells), ticks))
    for part in ("3 rows", "5 columns", "0.875", "q2 two", "<eos>", "0.125"):
        assert part in words
    names, values = ["pad", "copy", "shift"], [7, 2, 5]
    upright = described(go.Figure(go.Bar(x=names, y=values)))
    flat = described(go.Figure(go.Bar(x=values, y=names, orientation="h")))
    for words in (upright, flat):
        assert "7 at pad" in words
        assert "2 at copy" in words


def test_trees_points_and_many_lines_are_told():
    tree = go.Treemap(
        ids=["all", "all.a", "all.b", "all.b.c"],
        parents=["", "all", "all", "all.b"],
        values=[18, 7, 11, 11],
    )
    words = described(go.Figure(tree))
    for part in ("2 parts", "18", "all.b.c", "11"):
        assert part in words
    figure = go.Figure([go.Scatter(x=[0, 1], y=[0, n], name=f"run {n}") for n in range(11)])
    words = described(figure)
    assert f"{11 - MAX_TRACES} more" in words
    assert "run 10" not in words
    words = described(go.Figure(go.Scatter(x=[0, 1], y=[2, 3], name="a")))
    assert all(isinstance(part, Sentence) for part in words.values.values())
    aid = go.Scatter(x=[0, 1], y=[0, 123], hoverinfo="skip", name="aid")
    assert described(go.Figure()) == described(go.Figure(aid))
    one = go.Figure(go.Scatter(x=[0.5], y=["validation"], mode="markers", name="here"))
    assert described(one) == "here: 0.5 at validation."
    two = go.Figure(go.Scatter(x=["a", "b"], y=["c", "d"], mode="lines", name="there"))
    assert described(two) == "there: 2 points."
    gaps = go.Figure(go.Scatter(x=[1, 2], y=[None, None], mode="lines", name="gaps"))
    assert described(gaps) == "gaps: no values yet."
