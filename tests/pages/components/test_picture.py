"""What the picture of a model sends to the browser: less of a large one, and how it says so."""

import numpy as np
import pytest

from pages.components import picture as component
from tests.pages.looking import header_of
from tfm_core.anatomy import Part
from tfm_core.trace.picture import Lane, Picture, Stage

HEADS, TOKENS, WIDTH = 3, 11, 300


def shown() -> Picture:
    random = np.random.default_rng(0)
    maps = random.random((HEADS, TOKENS, TOKENS), np.float32)
    vectors = random.random((TOKENS, WIDTH), np.float32)
    stages = (
        Stage(
            "heads",
            Part(kind="attention", path="a"),
            "Attention",
            "a.weights",
            maps,
            maps.shape,
            scores=maps,
        ),
        Stage("vectors", Part(kind="norm", path="b"), "Norm", "b.normed", vectors, vectors.shape),
    )
    return Picture((Lane("encoder", tuple("abcdefghijk"), stages),))


@pytest.mark.parametrize(
    ("most", "has_maps", "has_scores", "columns"),
    [
        (10**6, True, True, 150),
        (3_300, True, False, 150),
        (1_100, True, False, 60),
        (900, False, False, 60),
    ],
)
def test_of_too_many_numbers_scores_go_first_then_columns_then_maps(
    most, has_maps, has_scores, columns, monkeypatch
):
    monkeypatch.setattr(component, "MAX_NUMBERS", most)
    heads, vectors = header_of(component.pack(shown(), theme="light"))["lanes"][0]["stages"]
    assert (heads["offset"] >= 0, heads["scores"] >= 0) == (has_maps, has_scores)
    assert vectors["columns"] == columns
    assert vectors["offset"] == HEADS * TOKENS**2 * (has_maps + has_scores)
