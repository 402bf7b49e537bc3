"""The sample of combinations that long products are replaced by."""

import itertools

from tests.pairwise import pairwise

CHOICES = {"norm": ["a", "b", "c"], "scale": [1, 2], "size": [3, 5, 7, 11]}


def pairs(combinations):
    return {pair for one in combinations for pair in itertools.combinations(one.items(), 2)}


def test_every_pair_meets_and_what_is_not_allowed_occurs_in_none():
    found = pairwise(**CHOICES)
    every = [dict(zip(CHOICES, one, strict=True)) for one in itertools.product(*CHOICES.values())]
    assert pairs(found) == pairs(every)
    assert 3 * 4 <= len(found) < len(every) / 1.5
    assert found == pairwise(**CHOICES)

    def allowed(one):
        return not (one["norm"] == "a" and one["scale"] == 1)

    found = pairwise(allowed, **CHOICES)
    assert all(map(allowed, found))
    assert {(one["norm"], one["size"]) for one in found} == set(
        itertools.product(CHOICES["norm"], CHOICES["size"])
    )
