"""Outlines and the score over the training."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from tfm_core.plots.outline import outline_cells
from tfm_core.plots.score_over_training import score_over_training


def test_every_marked_cell_gets_a_frame_around_its_middle():
    cells = np.zeros((3, 5), np.bool_)
    cells[1, 4] = cells[2, 0] = True
    (shape,) = outline_cells(go.Figure(), cells, "#c47a00").layout.shapes
    assert shape.path.count("M") == 2
    assert shape.path.startswith("M 3.56,0.56")


def test_no_marked_cell_gets_no_shape():
    assert not outline_cells(go.Figure(), np.zeros((3, 5), np.bool_), "#c47a00").layout.shapes


def test_a_head_is_a_line_over_the_snapshots():
    frame = pd.DataFrame(
        {
            "step": [0, 9, 0, 9],
            "module": ["m"] * 4,
            "layer": [1] * 4,
            "head": [1, 1, 2, 2],
            "share": [0.1, 0.9, 0.2, 0.3],
            "aer": [0.8, 0.1, 0.7, 0.6],
            "chance": [0.2] * 4,
        }
    )
    figure = score_over_training(frame, best=("m", 1), step=9)
    assert [line.name for line in figure.data] == ["layer 1, head 1", "layer 1, head 2"]
    assert np.allclose(figure.data[0].x, [0, 1])
    assert np.allclose(figure.data[0].y, [0.1, 0.9])
    assert figure.data[0].line.width > figure.data[1].line.width
