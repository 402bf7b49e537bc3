"""Words beside points that lie close."""

import numpy as np
import pytest

from tfm_core.plots.label_sides import SIDES, sides, width

SIZE = (700.0, 350.0)


def box(point, word, side):
    """Left, bottom, right, top of a word in pixels, as plotly places it."""
    middle = np.array(point) * SIZE + np.array(SIDES[side]) * (np.array([width(word), 13]) + 10) / 2
    half = np.array([width(word), 13]) / 2
    return *(middle - half), *(middle + half)


def touch(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def test_a_word_alone_stands_above_its_point():
    assert sides(np.array([[0.5, 0.5]]), ["dog"], size=SIZE) == ["top center"]


def test_a_word_at_the_top_does_not_leave_the_figure():
    assert sides(np.array([[0.5, 0.999]]), ["dog"], size=SIZE) != ["top center"]


@pytest.mark.parametrize("words", [["likes", "liked", "draws"], ["강아지", "고양이", "토끼"]])
def test_words_of_points_that_lie_close_do_not_cover_each_other(words):
    points = np.array([[0.5, 0.5], [0.515, 0.51], [0.53, 0.5]])

    def meetings(chosen):
        boxes = [box(*one) for one in zip(points, words, chosen, strict=True)]
        return sum(touch(a, b) for i, a in enumerate(boxes) for b in boxes[:i])

    assert meetings(["top center"] * 3) > 0
    assert meetings(sides(points, words, size=SIZE)) == 0


def test_korean_letters_are_wider():
    assert width("개") > width("d")


def test_words_beyond_counting_all_stand_above():
    points = np.random.default_rng(0).random((401, 2))
    assert set(sides(points, ["dog"] * 401, size=SIZE)) == {"top center"}
