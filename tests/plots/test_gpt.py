"""Figures of language models and of readers."""

from __future__ import annotations

import numpy as np
import pytest

from tfm_core.inspect.text.gpt_reading import Digits, Lens, LensReading
from tfm_core.plots.texts import reading
from tfm_core.plots.texts.gpt import before_and_after, digit_map, guesses, lens_map
from tfm_core.plots.texts.writing import surprise_text, written_text

EVIL = "<img src=x onerror=alert(1)>"
THEMES = ("light", "dark")


def looked(depth=3, length=5):
    chances = np.random.default_rng(0).random((depth, length))
    says = tuple(tuple(f"{d}{t}" for t in range(length)) for d in range(depth))
    lens = Lens(np.zeros((depth, length), np.int32), chances, chances / 2, chances)
    return LensReading(7, ("<bos>", "a", " ", "\n", EVIL), says, lens)


@pytest.mark.parametrize("theme", THEMES)
def test_the_lens_has_a_row_for_each_token_and_a_column_for_each_depth(theme):
    found = looked()
    figure = lens_map(found, theme)
    trace = figure.data[0]
    np.testing.assert_allclose(trace.z, found.lens.probability.T, rtol=1e-6)
    assert trace.text[4][2] == "24"
    assert list(figure.layout.xaxis.ticktext) == ["embedding", "layer 1", "layer 2"]
    assert list(figure.layout.yaxis.ticktext)[:4] == ["&lt;bos&gt;", "a", "␣", "↵"]
    assert "<img" not in figure.to_json()


def test_a_long_text_is_cut_to_what_can_be_read():
    figure = lens_map(looked(), "light", most=2)
    assert np.shape(figure.data[0].z) == (2, 3)
    assert len(figure.layout.yaxis.ticktext) == 2


def test_the_token_that_came_is_marked_even_where_it_was_not_expected():
    best = [("a", 0.5), ("b", 0.25)]
    figure = guesses(best, "b", 0.25, 2)
    assert [float(x) for x in figure.data[0].x] == [0.5, 0.25]
    assert figure.layout.yaxis.ticktext[1] == "b ◀ came, no. 2"
    figure = guesses(best, EVIL, 0.001, 31)
    assert len(figure.data[0].x) == 3
    assert figure.layout.yaxis.ticktext[2].endswith("◀ came, no. 31")
    assert "<img" not in figure.to_json()


def test_both_distributions_stand_side_by_side():
    figure = before_and_after(("a", "b"), np.array([0.7, 0.3]), np.array([1.0, 0.0]))
    assert [trace.name for trace in figure.data] == ["model", "sampled from"]
    assert [list(trace.x) for trace in figure.data] == [
        pytest.approx([0.7, 0.3]),
        pytest.approx([1.0, 0.0]),
    ]
    assert figure.data[0].marker.pattern.shape  # not by colour alone


def test_each_true_digit_has_a_frame_and_a_tick():
    vocabulary = ("<pad>", "<bos>", "<eos>", "<unk>", "0", "1", "2")
    chances = np.zeros((2, 7))
    chances[0, 5], chances[1, 2], chances[1, 6] = 1.0, 0.25, 0.75
    figure = digit_map(Digits(1, "0+1", ("1", "2"), ("1", "<eos>"), vocabulary, chances), "light")
    trace = figure.data[0]
    assert list(figure.layout.yaxis.ticktext) == ["0", "1", "2", "&lt;eos&gt;"]
    assert trace.text[1][0] == "100 % ✓"
    assert trace.text[3][1] == "25 % ✓"
    assert trace.text[2][1] == "75 %"
    frames = {(shape.x0, shape.y0) for shape in figure.layout.shapes}
    assert frames == {(0.5, 0.5), (1.5, 2.5)}


def test_surprise_is_told_in_numbers_and_underlined_not_only_coloured():
    html = surprise_text(("a", EVIL, "b"), np.log([1.0, 64.0, 2.0]), 2, " ")
    assert "2: 6.00 bits (4.16 nats), p = 0.0156" in html
    assert 'class="t high"' in html
    assert 'class="t picked"' in html
    assert "--s:0%" in html
    assert "<img" not in html


def test_texts_of_users_never_act_as_markup():
    assert "<img" not in written_text((EVIL, EVIL), [0.5], 1, " ")


def test_what_was_written_stands_behind_the_prompt():
    assert "Underlined" not in written_text(("a",), [], 1, "")
    html, _div, legend = written_text(("a", "b", "\n"), [0.5, 0.25], 1, "").partition(
        '<div class="tfm-gpt scale">'
    )
    assert "Underlined: written by the model" in legend
    assert html.count('class="given"') == 1
    assert html.count('class="t own"') == 2
    assert "<br>" in html


WORDS = ("<b>the", "food", "was", "good")


def test_labels_are_drawn_with_their_probabilities():
    figure = reading.label_bars(("negative", "neutral", "positive"), np.array([0.2, 0.1, 0.7]))
    np.testing.assert_allclose(figure.data[0].x, [0.2, 0.1, 0.7], rtol=1e-6)
    assert figure.layout.xaxis.title.text == "probability"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_head_is_a_row_and_every_word_a_column(theme):
    heads = np.random.default_rng(1).random((2, 3, 4))
    figure = reading.head_rows(heads, WORDS, theme=theme, marked=[3])
    np.testing.assert_allclose(figure.data[0].z, heads.reshape(6, 4), rtol=1e-6)
    assert figure.layout.xaxis.ticktext == ("&lt;b&gt;the", "food", "was", "▸ good")
    with pytest.raises(ValueError, match="but there are 3 words"):
        reading.head_rows(heads, WORDS[:3], theme=theme)


def test_explanations_are_shares_of_their_largest_and_keep_their_values():
    values = {"needed": np.array([0.1, -0.2, 0.0, 0.4]), "rollout": np.array([1, 2, 3, 4]) / 10}
    figure = reading.word_bars(WORDS, values)
    np.testing.assert_allclose(figure.data[0].y, [0.25, -0.5, 0, 1], atol=1e-6)
    np.testing.assert_allclose(figure.data[1].customdata, values["rollout"], rtol=1e-6)
    assert figure.layout.yaxis.range[0] < -0.5
    assert len({bar.marker.pattern.shape for bar in figure.data}) == 2


def test_the_truth_stands_beside_the_model_where_there_is_one():
    both = reading.word_choice(WORDS, np.full(4, 0.1), np.full(4, 0.2))
    assert [bar.name for bar in both.data] == ["truth", "model"]
    assert [bar.name for bar in reading.word_choice(WORDS, np.ones(4), None).data] == ["model"]
