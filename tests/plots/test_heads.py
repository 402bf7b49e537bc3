"""Figures about heads: every head is there, the chosen one stands out, hover has exact values."""

import numpy as np
import pandas as pd
import pytest

from tfm_core.inspect.attention.map_view import MapView
from tfm_core.plots.heads.attention import difference_map
from tfm_core.plots.heads.scores import score_lines
from tfm_core.plots.palette import COLOURS, MASKED

MODULES = ("decoder.layers.0.cross_attention", "decoder.layers.1.cross_attention")


def scores():
    rows = []
    for step in (0, 3, 11):
        for layer, module in enumerate(MODULES, 1):
            for head in (1, 2, 3):
                share = 0.9 if (layer, head, step) == (2, 3, 11) else 0.1 * head
                rows.append(
                    {
                        "step": step,
                        "module": module,
                        "kind": "cross",
                        "layer": layer,
                        "head": head,
                        "share": share,
                        "aer": 1 - share,
                        "chance": 0.2,
                    }
                )
    return pd.DataFrame(rows)


def test_every_head_has_a_line_and_the_chosen_one_stands_out():
    figure = score_lines(scores(), chosen=(MODULES[1], 2))
    assert len(figure.data) == 6
    bold = [trace for trace in figure.data if trace.line.width == 3]
    assert [trace.name for trace in bold] == ["layer 2, head 3"]
    assert bold[0].line.color == COLOURS["cross"]
    assert list(bold[0].customdata[0]) == [MODULES[1], 2]


def test_the_difference_scale_is_even_around_zero_and_grey_where_masked():
    left = np.array([[0.9, 0.1], [0.5, 0.5]])
    right = np.array([[0.2, 0.8], [0.5, 0.5]])
    views = (MapView(weights, ["a", "b"], ["c", "d"]) for weights in (left, right))
    heat = difference_map(*views, names=("step 1", "step 9")).data[0]
    assert (heat.zmin, heat.zmax) == pytest.approx((-0.7, 0.7))
    np.testing.assert_allclose(heat.z, right - left, atol=1e-6)
    assert heat.hovertext[0][1].endswith("step 1 0.1000<br>step 9 0.8000<br>difference +0.7000")
    allowed = np.tril(np.ones((2, 2), bool))
    view = MapView(np.eye(2), "ab", "ab", allowed)
    figure = difference_map(view, view, "dark")
    assert np.isnan(figure.data[0].z[0, 1])
    assert figure.layout.plot_bgcolor == MASKED["dark"]
    assert figure.data[0].hovertext[0][1].endswith("(masked)")
    with pytest.raises(ValueError, match="they must be alike"):
        difference_map(view, MapView(np.eye(3), "abc", "abc"))
