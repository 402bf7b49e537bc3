"""Figures of words: tokens, batches, embeddings, and sides on which words stand."""

import numpy as np
import plotly.graph_objects as go
import pytest

from tfm_core.inspect.positions.tables import cosines
from tfm_core.inspect.text.embeddings import EmbeddingTable, principal
from tfm_core.inspect.text.tokenise import Token, batch
from tfm_core.plots.films import SIDES, projected, sides, width
from tfm_core.plots.texts import tokens

RNG = np.random.default_rng(5)
WORDS = ("<pad>", "<bos>", "<eos>", "<unk>", "dog", "cat", "<b>")
KINDS = (*["special"] * 4, "animals", "animals", "word")
TABLE = EmbeddingTable(
    "src", WORDS, KINDS, (0, 3, 11), RNG.normal(size=(3, 7, 5)).astype(np.float32), True
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
    html = tokens.chips([Token("a", 4)] * 7, most=5)
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
    heat = tokens.likeness(like, WORDS, [4, 5, 6, 0, 1, 2, 3]).data[0]
    assert heat.z[0][1] == pytest.approx(like[4, 5])
    assert heat.hovertext[0][1] == f"dog and cat<br>cosine {like[4, 5]:.4f}"
    assert sides(np.array([[0.5, 0.999]]), ["dog"], size=SIZE) != ["top center"]


@pytest.mark.parametrize("in_space", [False, True])
def test_words_move_and_nothing_else(in_space):
    projection = principal(TABLE.values[-1])
    figure = projected(TABLE, projection, in_space=in_space)
    assert [frame.name for frame in figure.frames] == ["0", "3", "11"]
    points = projection.of(TABLE.values)
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
