"""Figures of what is inside: heads, words, walks."""

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from tfm_core.inspect.attention.maps import MapView
from tfm_core.inspect.position_tables import cosines
from tfm_core.inspect.text.embeddings import EmbeddingTable, principal
from tfm_core.inspect.text.tokenise import Token, batch
from tfm_core.plots import tokens
from tfm_core.plots.export import map_svg
from tfm_core.plots.films import SIDES, projected, sides, width
from tfm_core.plots.heads.attention import (
    difference_map,
    head_map,
    numbered,
    outline_cells,
    patch_overlay,
    patch_weights,
    score_lines,
    usual_top,
)
from tfm_core.plots.kinds import HOLES
from tfm_core.plots.model.walk import tensor_map
from tfm_core.plots.palette import COLOURS, MASKED, SCALES, contrast
from tfm_core.plots.writing import (
    digit_map,
    guesses,
    head_rows,
    lens_map,
    surprise_text,
    written_text,
)

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
    figure = head_map(MapView(weights_of() * allowed, QUERY, KEY, allowed))
    assert np.array_equal(np.isnan(figure.data[0].z), ~allowed)
    assert figure.layout.plot_bgcolor == HOLES
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
    figure = difference_map(view, view)
    assert np.isnan(figure.data[0].z[0, 1])
    assert figure.layout.plot_bgcolor == HOLES
    assert figure.data[0].hovertext[0][1].endswith("(masked)")
    with pytest.raises(ValueError, match="they must be alike"):
        difference_map(view, MapView(np.eye(3), "abc", "abc"))


EVIL = "<img src=x onerror=alert(1)>"


def test_the_lens_has_a_row_for_each_token_and_a_column_for_each_depth():
    depth, length = 3, 5
    chances = np.random.default_rng(0).random((depth, length))
    says = tuple(tuple(f"{d}{t}" for t in range(length)) for d in range(depth))
    figure = lens_map(("<bos>", "a", " ", "\n", EVIL), says, chances, chances / 2)
    trace = figure.data[0]
    np.testing.assert_allclose(trace.z, chances.T, rtol=1e-6)
    assert trace.text[4][2] == "24"
    assert list(figure.layout.xaxis.ticktext) == ["embedding", "layer 1", "layer 2"]
    assert list(figure.layout.yaxis.ticktext)[:4] == ["&lt;bos&gt;", "a", "␣", "↵"]
    assert "<img" not in figure.to_json()


def test_what_came_is_marked_framed_and_told_and_never_markup():
    best = [("a", 0.5), ("b", 0.25)]
    figure = guesses(best, "b", 0.25, 2)
    assert [float(x) for x in figure.data[0].x] == [0.5, 0.25]
    assert figure.layout.yaxis.ticktext[1] == "b ◀ actual, rank 2"
    figure = guesses(best, EVIL, 0.001, 31)
    assert len(figure.data[0].x) == 3
    assert figure.layout.yaxis.ticktext[2].endswith("◀ actual, rank 31")
    assert "<img" not in figure.to_json()
    html = surprise_text(("a", EVIL, "b"), np.log([1.0, 64.0, 2.0]), 2, " ")
    assert "2: 6.00 bits (4.16 nats), p = 0.0156" in html
    assert 'class="t high"' in html
    assert 'class="t picked"' in html
    assert "--s:0%" in html
    assert "<img" not in html
    assert "<img" not in written_text((EVIL, EVIL), [0.5], 1, " ")
    vocabulary = ("<pad>", "<bos>", "<eos>", "<unk>", "0", "1", "2")
    chances = np.zeros((2, 7))
    chances[0, 5], chances[1, 2], chances[1, 6] = 1.0, 0.25, 0.75
    figure = digit_map(("1", "<eos>"), pd.DataFrame(chances, columns=vocabulary))
    trace = figure.data[0]
    assert list(figure.layout.yaxis.ticktext) == ["0", "1", "2", "&lt;eos&gt;"]
    assert trace.text[1][0] == "100% ✓"
    assert trace.text[3][1] == "25% ✓"
    assert trace.text[2][1] == "75%"
    frames = {(shape.x0, shape.y0) for shape in figure.layout.shapes}
    assert frames == {(0.5, 0.5), (1.5, 2.5)}


WORDS = ("<b>the", "food", "was", "good")


def test_every_head_is_a_row_and_every_word_a_column():
    heads = np.random.default_rng(1).random((2, 3, 4))
    figure = head_rows(heads, WORDS, marked=[3])
    np.testing.assert_allclose(figure.data[0].z, heads.reshape(6, 4), rtol=1e-6)
    assert figure.layout.xaxis.ticktext == ("&lt;b&gt;the", "food", "was", "▸ good")
    with pytest.raises(ValueError, match="but there are 3 words"):
        head_rows(heads, WORDS[:3])


def test_the_hover_has_the_exact_value_and_says_what_is_masked():
    values = np.array([[0.123456789, np.nan], [-2.0, 5.0]])
    figure = tensor_map(
        values,
        ["Q 0: a", "Q 1: b"],
        ["K 0: c", "K 1: d"],
        row_title="Q",
        column_title="K",
    )
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
        np.arange(6.0).reshape(2, 3),
        ["B 0: 1", "B 1: 2"],
        ["T 0: a", "T 1: <b>", "T 2: c"],
        row_title="",
        column_title="",
        is_whole_number=True,
        words=words,
    ).data[0]
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


RNG = np.random.default_rng(5)

VOCABULARY = ("<pad>", "<bos>", "<eos>", "<unk>", "dog", "cat", "<b>")

KINDS = (*["special"] * 4, "animals", "animals", "word")

TABLE = EmbeddingTable(
    "src", VOCABULARY, KINDS, (0, 3, 11), RNG.normal(size=(3, 7, 5)).astype(np.float32), True
)


def test_chips_escape_mark_and_count_what_is_typed():
    html = tokens.chips([Token("<i>x", 9), Token("q", 3, is_unknown=True), Token("es</w>", 11)])
    assert "<i>x" not in html
    assert "&lt;i&gt;x" in html
    assert 'class="chip unknown"' in html
    assert html.count('class="chip"') == 2
    assert '<i class="end">&lt;/w&gt;</i>' in html
    html = tokens.chips([Token("사자", 4), Token("lion", 5), Token("사자 lion", 6)])
    assert html.count('lang="ko"') == 1
    assert '<b lang="ko">사자</b>' in html
    html = tokens.chips([Token("a", 4)] * 7, max_chips=5)
    assert html.count('class="chip"') == 5
    assert "and 2 more" in html


def test_ids_have_the_shape_of_the_batch_and_likeness_is_ordered():
    made = batch([["a", "b", "c"], ["<b>"]], length=5)
    ids, mask = tokens.ids(made).data[0], tokens.mask(made).data[0]
    np.testing.assert_array_equal(np.array(mask.z), made.mask.astype(int))
    kinds = np.array(ids.z)
    assert (kinds[~made.mask] == 0).all()
    assert (kinds[made.ids == 1] == 1).all()
    assert (kinds[made.ids > 3] == 2).all()
    assert "&lt;b&gt;" in ids.hovertext[1][1]
    like = cosines(TABLE.values[-1])
    heat = tokens.likeness(like, VOCABULARY, [4, 5, 6, 0, 1, 2, 3]).data[0]
    assert heat.z[0][1] == pytest.approx(like[4, 5])
    assert (heat.y[0], heat.x[1]) == ("dog", "cat")
    assert heat.hovertemplate == "%{y} and %{x}<br>cosine %{z:.4f}<extra></extra>"
    assert sides(np.array([[0.5, 0.999]]), ["dog"], size=SIZE) != ["top center"]


@pytest.mark.parametrize("in_space", [False, True])
def test_words_move_and_nothing_else(in_space):
    mean, axes, shares = principal(TABLE.values[-1])
    figure = projected(TABLE, (mean, axes, shares), in_space=in_space)
    assert [frame.name for frame in figure.frames] == ["0", "3", "11"]
    points = (TABLE.values - mean) @ axes.T
    for frame, expected in zip(figure.frames, points, strict=True):
        animals = next(group for group in frame.data if group.name == "animals")
        np.testing.assert_allclose(np.array(animals.x), expected[4:6, 0])
        np.testing.assert_allclose(np.array(animals.y), expected[4:6, 1])
        assert [group.name for group in frame.data] == [group.name for group in figure.data]
        assert frame.layout == go.Layout()
    for group, last in zip(figure.data, figure.frames[-1].data, strict=True):
        np.testing.assert_array_equal(np.array(group.x), np.array(last.x))
    axis = figure.layout.scene.xaxis if in_space else figure.layout.xaxis
    assert axis.range[0] < points[..., 0].min()
    assert axis.range[1] > points[..., 0].max()


SIZE = (700.0, 350.0)


def box(point, word, side):
    """Left, bottom, right, top of a word in pixels, as plotly places it."""
    middle = np.array(point) * SIZE + np.array(SIDES[side]) * (np.array([width(word), 13]) + 10) / 2
    half = np.array([width(word), 13]) / 2
    return *(middle - half), *(middle + half)


def touch(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


@pytest.mark.parametrize("words", [["likes", "liked", "draws"], ["강아지", "고양이", "토끼"]])
def test_words_of_points_that_lie_close_do_not_cover_each_other(words):
    points = np.array([[0.5, 0.5], [0.515, 0.51], [0.53, 0.5]])

    def meetings(chosen):
        boxes = [box(*one) for one in zip(points, words, chosen, strict=True)]
        return sum(touch(a, b) for i, a in enumerate(boxes) for b in boxes[:i])

    assert meetings(["top center"] * 3) > 0
    assert meetings(sides(points, words, size=SIZE)) == 0
