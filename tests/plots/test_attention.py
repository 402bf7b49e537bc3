"""Attention maps: numbers, tokens, colours and frames, and maps over pictures."""

from __future__ import annotations

import json

import numpy as np
import plotly.graph_objects as go
import pytest

from tfm_core.inspect.attention.map_view import MapView
from tfm_core.plots.heads.attention import (
    DIVERGING,
    MASKED,
    SCALES,
    head_map,
    outline_cells,
    short,
    top_of,
    weight_map,
)
from tfm_core.plots.heads.patches import patch_overlay, patch_weights
from tfm_core.plots.palette import BACKGROUNDS, contrast

QUERY, KEY = ("<bos>", "학교", "에"), ("I", "go", "to", "school", "&")


def weights_of(n_query=3, n_key=5):
    return np.random.default_rng(3).dirichlet(np.ones(n_key), n_query).astype(np.float32)


def view_of(**parts):
    return MapView(weights_of(), QUERY, KEY, **parts)


def test_query_runs_down_and_key_across_and_the_axes_say_so():
    figure = head_map(view_of(query_title="target", key_title="source"), "Layer 1")
    assert figure.layout.yaxis.autorange == "reversed"
    assert figure.layout.yaxis.title.text == "target (query)"
    assert figure.layout.xaxis.title.text == "source (key)"
    assert figure.data[0].z.shape == (3, 5)


def test_cells_are_square():
    figure = head_map(view_of())
    assert figure.layout.yaxis.scaleanchor == "x"
    assert figure.layout.yaxis.scaleratio in (None, 1)


def test_a_map_of_few_words_and_many_patches_is_no_mere_line():
    figure = head_map(MapView(weights_of(3, 13), QUERY, [str(i) for i in range(13)]))
    assert figure.layout.yaxis.scaleanchor is None
    assert figure.layout.height == 300


def test_the_legend_says_where_its_scale_ends():
    for top in [1.0, 0.37, None]:
        heat = head_map(view_of(), top=top).data[0]
        assert list(heat.colorbar.tickvals) == [0, heat.zmax / 2, heat.zmax]


def test_hover_says_both_tokens_and_the_exact_weight():
    weights = weights_of()
    text = head_map(MapView(weights, QUERY, KEY)).data[0].hovertext[1][3]
    assert text == f"query 2: 학교<br>key 4: school<br>weight <span>{weights[1, 3]:.4f}</span>"


def test_tokens_are_safe_in_the_markup_of_figures():
    figure = head_map(view_of())
    assert figure.layout.yaxis.ticktext[0] == "&lt;bos&gt;"
    assert figure.layout.xaxis.ticktext[4] == "&amp;"
    assert "<b>" not in head_map(view_of(), "<b>bold</b>").layout.title.text


def test_a_masked_weight_is_grey_and_hover_says_masked():
    allowed = np.tril(np.ones((3, 5), bool))
    figure = head_map(MapView(weights_of() * allowed, QUERY, KEY, allowed), theme="dark")
    assert np.array_equal(np.isnan(figure.data[0].z), ~allowed)
    assert figure.layout.plot_bgcolor == MASKED["dark"]
    assert figure.data[0].hovertext[0][1].endswith("weight <span>0.0000</span> (masked)")


def test_colours_go_from_0_to_1_or_to_the_largest_weight():
    weights = weights_of()
    assert (
        head_map(MapView(weights, QUERY, KEY)).data[0].zmin,
        head_map(MapView(weights, QUERY, KEY)).data[0].zmax,
    ) == (0, 1)
    assert head_map(MapView(weights, QUERY, KEY), top=None).data[0].zmax == pytest.approx(
        weights.max()
    )
    assert top_of(np.zeros((2, 3))) == 1.0


def test_long_axes_are_thinned_and_long_tokens_cut():
    tokens = [f"token{i}" for i in range(97)]
    figure = head_map(MapView(weights_of(97, 97), tokens, tokens))
    assert len(figure.layout.xaxis.tickvals) <= 40
    assert figure.layout.xaxis.ticktext[1] == tokens[figure.layout.xaxis.tickvals[1]]
    assert short("incomprehensibilities") == "incomprehen…"
    assert short(" ") == "␣"


def test_tokens_that_do_not_fit_the_weights_are_refused():
    with pytest.raises(ValueError, match="maps are 3 by 5, but there are 5 query and 3 key"):
        MapView(weights_of(), KEY, QUERY)


@pytest.mark.parametrize("theme", SCALES)
def test_more_weight_is_always_further_from_the_paper(theme):
    steps = [contrast(BACKGROUNDS[theme], colour) for colour in SCALES[theme]]
    assert steps == sorted(steps)
    assert steps[0] < 1.3 < 10 < steps[-1]


@pytest.mark.parametrize("theme", SCALES)
def test_the_mask_is_told_apart_from_a_weight_of_zero(theme):
    assert contrast(MASKED[theme], SCALES[theme][0]) > 1.25


def test_the_figure_is_plain_json():
    json.loads(head_map(view_of()).to_json())


@pytest.mark.parametrize("theme", DIVERGING)
def test_a_map_shows_every_weight_and_says_nan_where_there_is_none(theme):
    weights = np.array([[0.25, 0.75, 0.0], [np.nan] * 3])
    figure = weight_map(weights, ["a", "b"], ["x", "y", "z"], "T", theme)
    assert figure.data[0].text.tolist() == [["0.25", "0.75", "0.00"], ["NaN"] * 3]
    assert np.isfinite(figure.data[0].z).all()
    assert figure.data[0].zmin < 0


def test_a_map_that_does_not_fit_its_tokens_is_said():
    with pytest.raises(ValueError, match="2 query and 1 key tokens"):
        weight_map(np.zeros((3, 1)), ["a", "b"], ["x"])


def test_every_marked_cell_gets_a_frame_around_its_middle():
    cells = np.zeros((3, 5), np.bool_)
    cells[1, 4] = cells[2, 0] = True
    (shape,) = outline_cells(go.Figure(), cells, "#c47a00").layout.shapes
    assert shape.path.count("M") == 2
    assert shape.path.startswith("M 3.56,0.56")


def test_no_marked_cell_gets_no_shape():
    assert not outline_cells(go.Figure(), np.zeros((3, 5), np.bool_), "#c47a00").layout.shapes


def patch_weights_of(n_query, n_key):
    return np.random.default_rng(3).dirichlet(np.ones(n_key), n_query).astype(np.float32)


def test_the_overlay_is_plain_json():
    json.loads(patch_overlay(np.ones((4, 4)) / 16, np.zeros((28, 28), np.uint8)).to_json())


def test_what_a_patch_pays_is_its_row_without_the_cls_token():
    weights = patch_weights_of(17, 17)
    row = patch_weights(weights, 5, has_cls=True)
    assert row.shape == (4, 4)
    assert row[2, 3] == weights[5, 1 + 2 * 4 + 3]


def test_what_patches_receive_is_the_mean_over_all_that_ask():
    weights = patch_weights_of(16, 16)
    received = patch_weights(weights, None, has_cls=False)
    assert received.ravel() == pytest.approx(weights.mean(0))


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
