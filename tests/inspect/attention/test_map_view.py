"""A view of maps: masks become NaN, one head is cut out of all, names must fit."""

import numpy as np
import pytest

from tfm_core.inspect.attention.map_view import MapView

QUERY, KEY = "abc", "vwxyz"
MASK = np.tril(np.ones((3, 5), bool))


def weights(*outer):
    return np.random.default_rng(0).random((*outer, 3, 5)).astype(np.float16)


def test_what_the_mask_forbids_is_not_seen_at_any_step():
    view = MapView(weights(2, 7), QUERY, KEY, MASK)
    film = weights(11, 2, 7)
    for seen, given in ((view.seen(), view.weights), (view.seen(film), film)):
        assert seen.dtype == np.float16
        assert np.array_equal(np.isnan(seen), np.broadcast_to(~MASK, given.shape))
        assert np.array_equal(seen[..., MASK], given[..., MASK])


def test_without_a_mask_everything_is_seen():
    view = MapView(weights(), QUERY, KEY)
    assert view.allowed.all()
    assert np.array_equal(view.seen(), view.weights)


def test_one_head_of_all_keeps_its_own_mask_and_all_names():
    masks = np.stack([MASK, ~MASK])[:, None]
    one = MapView(weights(2, 7), QUERY, KEY, masks, "rows", "columns", "012").head(1, 5)
    assert np.array_equal(one.weights, weights(2, 7)[1, 5])
    assert np.array_equal(one.allowed, ~MASK)
    assert (one.query, one.key, one.query_words) == (QUERY, KEY, "012")
    assert (one.query_title, one.key_title) == ("rows", "columns")


def test_names_must_fit_the_weights():
    with pytest.raises(ValueError, match="maps are 3 by 5, but there are 5 query and 3 key"):
        MapView(weights(), KEY, QUERY)
    MapView(np.zeros((1, 5)), (), KEY)  # a single row without a name
