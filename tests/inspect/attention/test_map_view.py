"""A view of maps: masks become NaN, one head is cut out of all, names must fit."""

import numpy as np
import pytest

from tfm_core.inspect.attention.map_view import MapView

QUERY, KEY = "abc", "vwxyz"
MASK = np.tril(np.ones((3, 5), bool))


def weights(*outer):
    return np.random.default_rng(0).random((*outer, 3, 5)).astype(np.float16)


def test_masks_and_names_of_maps_are_those_of_each_head():
    view = MapView(weights(2, 7), QUERY, KEY, MASK)
    film = weights(11, 2, 7)
    for seen, given in ((view.seen(), view.weights), (view.seen(film), film)):
        assert seen.dtype == np.float16
        assert np.array_equal(np.isnan(seen), np.broadcast_to(~MASK, given.shape))
        assert np.array_equal(seen[..., MASK], given[..., MASK])
    masks = np.stack([MASK, ~MASK])[:, None]
    one = MapView(weights(2, 7), QUERY, KEY, masks, "rows", "columns", "012").head(1, 5)
    assert np.array_equal(one.weights, weights(2, 7)[1, 5])
    assert np.array_equal(one.allowed, ~MASK)
    assert (one.query, one.key, one.query_words) == (QUERY, KEY, "012")
    assert (one.query_title, one.key_title) == ("rows", "columns")
    with pytest.raises(ValueError, match="maps are 3 by 5, but there are 5 query and 3 key"):
        MapView(weights(), KEY, QUERY)
    MapView(np.zeros((1, 5)), (), KEY)  # a single row without a name
