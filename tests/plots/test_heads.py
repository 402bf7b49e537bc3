"""Figures about heads: every head is there, the chosen one stands out, hover has exact values."""

import numpy as np
import pandas as pd
import pytest

from tfm_core.inspect.attention.deletion import deletion
from tfm_core.inspect.attention.map_view import MapView
from tfm_core.plots.heads.attention import DIFFERENCE, MASKED, SCALES, difference_map
from tfm_core.plots.heads.head_scores import best_of, score_lines
from tfm_core.plots.heads.knockouts import deletion_curves
from tfm_core.plots.model.positions import mosaic_of, position_tiles
from tfm_core.plots.palette import COLOURS, _luminance

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


@pytest.mark.parametrize("measure", ["share", "aer"])
def test_every_head_has_a_line_and_the_best_one_stands_out(measure):
    figure = score_lines(scores(), measure)
    assert len(figure.data) == 6
    assert best_of(scores(), measure) == (MODULES[1], 2)
    bold = [trace for trace in figure.data if trace.line.width == 3]
    assert [trace.name for trace in bold] == ["layer 2, head 3"]
    assert bold[0].line.color == COLOURS["cross"]
    assert list(bold[0].customdata[0]) == [MODULES[1], 2]


def test_another_head_can_be_chosen_and_the_moment_marked():
    figure = score_lines(scores(), chosen=(MODULES[0], 0), at_step=3)
    assert next(t.name for t in figure.data if t.line.width == 3) == "layer 1, head 1"
    assert any(shape.x0 == 3 for shape in figure.layout.shapes)


def test_a_logarithmic_axis_has_no_step_0_and_a_linear_one_has():
    assert score_lines(scores()).data[0].x.tolist() == [3, 11]
    assert score_lines(scores(), is_log=False).data[0].x.tolist() == [0, 3, 11]


def test_no_scores_make_an_empty_figure():
    assert len(score_lines(scores().iloc[:0]).data) == 0


def test_the_difference_scale_is_even_around_zero():
    left = np.array([[0.9, 0.1], [0.5, 0.5]])
    right = np.array([[0.2, 0.8], [0.5, 0.5]])
    views = (MapView(weights, ["a", "b"], ["c", "d"]) for weights in (left, right))
    heat = difference_map(*views, names=("step 1", "step 9")).data[0]
    assert (heat.zmin, heat.zmax) == pytest.approx((-0.7, 0.7))
    np.testing.assert_allclose(heat.z, right - left, atol=1e-6)
    assert heat.hovertext[0][1].endswith("step 1 0.1000<br>step 9 0.8000<br>difference +0.7000")


def test_what_the_mask_forbids_is_grey_in_a_difference_too():
    allowed = np.tril(np.ones((2, 2), bool))
    view = MapView(np.eye(2), "ab", "ab", allowed)
    figure = difference_map(view, view, "dark")
    assert np.isnan(figure.data[0].z[0, 1])
    assert figure.layout.plot_bgcolor == MASKED["dark"]
    assert figure.data[0].hovertext[0][1].endswith("(masked)")
    with pytest.raises(ValueError, match="they must be alike"):
        difference_map(view, MapView(np.eye(3), "abc", "abc"))


@pytest.mark.parametrize("theme", list(SCALES))
def test_a_diverging_scale_gets_stronger_on_both_sides(theme):
    lightness = [_luminance(colour) for colour in DIFFERENCE[theme]]
    middle = lightness[2]
    away = [abs(value - middle) for value in lightness]
    assert away[0] > away[1] > 0
    assert away[4] > away[3] > 0


def test_deletion_curves_say_their_area():
    found = deletion(lambda pictures: pictures.mean((1, 2, 3)), np.ones((1, 4, 4)),
                     {"rollout": np.eye(2), "own": np.ones((2, 2))})  # fmt: skip
    figure = deletion_curves(found, class_name="seven", names={"own": "My own"})
    names = [trace.name for trace in figure.data]
    assert f"Attention rollout, area {found.areas['rollout']:.2f}" in names
    assert f"My own, area {found.areas['own']:.2f}" in names
    assert f"random order, area {found.random_area:.2f}" in names
    assert "seven" in figure.layout.yaxis.title.text


@pytest.mark.parametrize("side", [4, 9])
def test_position_tiles_lie_where_their_patches_lie(side):
    tiles = np.random.default_rng(1).uniform(-1, 1, (side,) * 4).astype(np.float32)
    mosaic, _texts = mosaic_of(tiles)
    assert mosaic.shape == (side * (side + 1) - 1,) * 2
    np.testing.assert_array_equal(mosaic[side + 1 : 2 * side + 1, :side], tiles[1, 0])
    assert np.isnan(mosaic[side]).all()
    figure = position_tiles(tiles)
    assert figure.layout.yaxis.autorange == "reversed"
    assert len(figure.data) == 1


def test_hover_of_a_position_tile_names_both_patches():
    tiles = np.zeros((3, 3, 3, 3), np.float32)
    tiles[1, 2, 0, 1] = 0.5
    heat = position_tiles(tiles).data[0]
    assert heat.hovertext[4][9] == "patch 2,3 and patch 1,2<br>similarity 0.500"
