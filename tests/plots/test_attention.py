"""Attention maps: numbers, tokens, colours and frames, and maps over pictures."""

import numpy as np
import plotly.graph_objects as go
import pytest

from tfm_core.inspect.attention.map_view import MapView
from tfm_core.plots.export import map_svg
from tfm_core.plots.heads.attention import head_map, outline_cells, usual_top
from tfm_core.plots.heads.patches import patch_overlay, patch_weights
from tfm_core.plots.palette import MASKED, SCALES, contrast

QUERY, KEY = ("<bos>", "학교", "에"), ("I", "go", "to", "school", "&")


def weights_of(n_query=3, n_key=5):
    return np.random.default_rng(3).dirichlet(np.ones(n_key), n_query).astype(np.float32)


def view_of(**parts):
    return MapView(weights_of(), QUERY, KEY, **parts)


def test_axes_hover_and_grey_tell_weights_tokens_and_masks():
    figure = head_map(view_of(query_title="target", key_title="source"), "Layer 1")
    assert figure.layout.yaxis.autorange == "reversed"
    assert figure.layout.yaxis.title.text == "target (query)"
    assert figure.layout.xaxis.title.text == "source (key)"
    assert figure.data[0].z.shape == (3, 5)
    weights = weights_of()
    text = head_map(MapView(weights, QUERY, KEY)).data[0].hovertext[1][3]
    assert text == f"query 2: 학교<br>key 4: school<br>weight <span>{weights[1, 3]:.4f}</span>"
    figure = head_map(view_of())
    assert figure.layout.yaxis.ticktext[0] == "&lt;bos&gt;"
    assert figure.layout.xaxis.ticktext[4] == "&amp;"
    assert "<b>" not in head_map(view_of(), "<b>bold</b>").layout.title.text
    allowed = np.tril(np.ones((3, 5), bool))
    figure = head_map(MapView(weights_of() * allowed, QUERY, KEY, allowed), theme="dark")
    assert np.array_equal(np.isnan(figure.data[0].z), ~allowed)
    assert figure.layout.plot_bgcolor == MASKED["dark"]
    assert figure.data[0].hovertext[0][1].endswith("weight <span>0.0000</span> (masked)")


@pytest.mark.parametrize("theme", SCALES)
def test_the_mask_is_told_apart_from_a_weight_of_zero(theme):
    assert contrast(MASKED[theme], SCALES[theme][0]) > 1.25


def test_marked_cells_have_frames_and_patches_leave_out_cls():
    cells = np.zeros((3, 5), np.bool_)
    cells[1, 4] = cells[2, 0] = True
    (shape,) = outline_cells(go.Figure(), cells, "#c47a00").layout.shapes
    assert shape.path.count("M") == 2
    assert shape.path.startswith("M 3.56,0.56")
    weights = patch_weights_of(17, 17)
    row = patch_weights(weights, 5, has_cls=True)
    assert row.shape == (4, 4)
    assert row[2, 3] == weights[5, 1 + 2 * 4 + 3]
    weights = patch_weights_of(16, 16)
    received = patch_weights(weights, None, has_cls=False)
    assert received.ravel() == pytest.approx(weights.mean(0))


def patch_weights_of(n_query, n_key):
    return np.random.default_rng(3).dirichlet(np.ones(n_key), n_query).astype(np.float32)


@pytest.mark.parametrize("channels", [1, 3])
def test_the_overlay_lies_on_the_patches_of_the_picture(channels):
    picture = np.zeros((channels, 28, 28), np.uint8)
    weights = patch_weights_of(4, 4)
    figure = patch_overlay(weights, picture, chosen=(1, 2))
    veil, image = figure.data
    assert np.asarray(image.z).shape == (28, 28, 3)
    assert list(veil.x) == [3.0, 10.0, 17.0, 24.0]  # the middle pixel of each 7-pixel patch
    assert veil.hovertext[1][2] == f"patch 2,3: weight {weights[1, 2]:.4f}"
    outline = figure.layout.shapes[0]
    assert (outline.x0, outline.y0, outline.x1, outline.y1) == (13.5, 6.5, 20.5, 13.5)


def test_weights_of_200_tokens_are_seen_though_each_row_is_spread_over_all():
    """A causal head that spreads evenly: the last row's weights are 1/200, the first row's is 1."""
    allowed = np.tril(np.ones((200, 200), bool))
    weights = (allowed / allowed.sum(1, keepdims=True)).astype(np.float32)
    view = MapView(weights, [str(n) for n in range(200)], [str(n) for n in range(200)], allowed)
    figure = head_map(view, top=None)
    assert figure.data[0].zmax < 0.1
    assert figure.data[0].colorbar.ticktext[-1].startswith("≥ 0.0")
    assert usual_top(weights) < 0.1
    svg = map_svg(view, top=None).decode()
    assert "colours from 0 to 0.0" in svg


def test_a_few_keys_have_a_scale_that_ends_at_1_or_at_the_largest_weight():
    view = view_of()
    assert usual_top(view.weights) == 1.0
    assert head_map(view).data[0].zmax == 1.0
    assert head_map(view, top=None).data[0].zmax == view.weights.max()
