"""Outlines around the cells of a map."""

import numpy as np
import plotly.graph_objects as go

from tfm_core.plots.attention import outline_cells


def test_every_marked_cell_gets_a_frame_around_its_middle():
    cells = np.zeros((3, 5), np.bool_)
    cells[1, 4] = cells[2, 0] = True
    (shape,) = outline_cells(go.Figure(), cells, "#c47a00").layout.shapes
    assert shape.path.count("M") == 2
    assert shape.path.startswith("M 3.56,0.56")


def test_no_marked_cell_gets_no_shape():
    assert not outline_cells(go.Figure(), np.zeros((3, 5), np.bool_), "#c47a00").layout.shapes
