"""Figures of reading: what is drawn is what was given."""

import numpy as np
import pytest

from tfm_core.plots import reading

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
