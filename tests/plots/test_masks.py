"""Maps of weights with numbers: NaN is shown as NaN."""

import numpy as np
import pytest

from tfm_core.plots.masks import DIVERGING, weight_map


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
