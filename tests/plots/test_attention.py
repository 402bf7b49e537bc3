import json

import numpy as np
import pytest

from tfm_core.inspect.attention.map_view import MapView
from tfm_core.plots.attention import MASKED, SCALES, head_map, short, top_of
from tfm_core.plots.palette import BACKGROUNDS, contrast

QUERY, KEY = ("<bos>", "학교", "에"), ("I", "go", "to", "school", "&")


def weights_of(n_query=3, n_key=5):
    return np.random.default_rng(3).dirichlet(np.ones(n_key), n_query).astype(np.float32)


def view_of(**parts):
    return MapView(weights_of(), QUERY, KEY, **parts)


def test_query_runs_down_and_key_across_and_the_axes_say_so():
    figure = head_map(view_of(query_title="target", key_title="source"), "Layer 1")
    assert figure.layout.yaxis.autorange == "reversed"
    assert figure.layout.yaxis.title.text == "target (query, down)"
    assert figure.layout.xaxis.title.text == "source (key, across)"
    assert figure.data[0].z.shape == (3, 5)


def test_cells_are_square():
    figure = head_map(view_of())
    assert figure.layout.yaxis.scaleanchor == "x"
    assert figure.layout.yaxis.scaleratio in (None, 1)


def test_a_map_of_few_words_and_many_patches_is_no_mere_line():
    figure = head_map(MapView(weights_of(3, 13), QUERY, [str(i) for i in range(13)]))
    assert figure.layout.yaxis.scaleanchor is None
    assert figure.layout.height == 300


@pytest.mark.parametrize("top", [1.0, 0.37, None])
def test_the_legend_says_where_its_scale_ends(top):
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
