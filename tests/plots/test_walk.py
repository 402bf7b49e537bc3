"""Figures of the walk: exact values in the hover, masked cells said, patches outlined."""

import numpy as np
import pytest

from tfm_core.plots.heads.patches import numbered
from tfm_core.plots.model.walk import tensor_map


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_hover_has_the_exact_value_and_says_what_is_masked(theme):
    values = np.array([[0.123456789, np.nan], [-2.0, 5.0]])
    figure = tensor_map(
        values, ["Q 0: a", "Q 1: b"], ["K 0: c", "K 1: d"], row_title="Q", column_title="K",
        theme=theme,
    )  # fmt: skip
    assert tuple(figure.data[0].hovertext[0]) == (
        "Q 0: a<br>K 0: c<br><b>0.123457</b>",
        "Q 0: a<br>K 1: d<br><b>masked</b>",
    )
    assert (figure.data[0].zmin, figure.data[0].zmax) == (-5, 5)
    assert figure.layout.yaxis.autorange == "reversed"


def test_tokens_write_no_markup_and_a_map_of_ids_their_words():
    figure = tensor_map(np.eye(1), ["<pad>"], ["<b>"], row_title="Q", column_title="K")
    assert "&lt;pad&gt;" in figure.data[0].hovertext[0][0]
    assert "&lt;b&gt;" in figure.layout.xaxis.ticktext[0]
    words = [["a", "<b>", "c"], ["d", "e", "f"]]
    drawn = tensor_map(
        np.arange(6.0).reshape(2, 3), ["B 0: 1", "B 1: 2"], ["T 0: a", "T 1: <b>", "T 2: c"],
        row_title="", column_title="", is_whole_number=True, words=words,
    ).data[0]  # fmt: skip
    assert [list(line) for line in drawn.text] == words
    assert drawn.texttemplate == "%{text}<br>%{z:.0f}"
    assert drawn.hovertext[1][2] == "B 1: 2<br>T 2<br>f<br><b>5</b>"
    assert "&lt;b&gt;" in drawn.hovertext[0][1]


@pytest.mark.parametrize("channels", [1, 3])
def test_boxes_of_a_picture_are_framed_and_numbered(channels):
    boxes = [(0, 0, 2, 2), (2, 0, 4, 2), (0, 2, 2, 4)]
    layout = numbered(np.zeros((channels, 6, 6), np.uint8), boxes, first=1, bad={2}).layout
    assert [shape.x0 for shape in layout.shapes] == [-0.5, 1.5, -0.5]
    assert layout.shapes[2].line.color != layout.shapes[1].line.color
    assert layout.annotations[2].text == "<b>3</b>"
