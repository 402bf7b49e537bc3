import json

import numpy as np
import pytest

from tfm_core.plots.patches import patch_overlay, patch_weights


def weights_of(n_query, n_key):
    return np.random.default_rng(3).dirichlet(np.ones(n_key), n_query).astype(np.float32)


def test_the_figure_is_plain_json():
    json.loads(patch_overlay(np.ones((4, 4)) / 16, np.zeros((28, 28), np.uint8)).to_json())


def test_what_a_patch_pays_is_its_row_without_the_cls_token():
    weights = weights_of(17, 17)
    row = patch_weights(weights, 5, has_cls=True)
    assert row.shape == (4, 4)
    assert row[2, 3] == weights[5, 1 + 2 * 4 + 3]


def test_what_patches_receive_is_the_mean_over_all_that_ask():
    weights = weights_of(16, 16)
    received = patch_weights(weights, None, has_cls=False)
    assert received.ravel() == pytest.approx(weights.mean(0))


@pytest.mark.parametrize("channels", [1, 3])
def test_the_overlay_lies_on_the_patches_of_the_picture(channels):
    picture = np.zeros((channels, 28, 28), np.uint8)
    weights = weights_of(4, 4)
    figure = patch_overlay(weights, picture, chosen=(1, 2))
    veil, image = figure.data
    assert np.asarray(image.z).shape == (28, 28, 3)
    assert list(veil.x) == [3.0, 10.0, 17.0, 24.0]  # the middle pixel of each 7-pixel patch
    assert veil.hovertext[1][2] == f"patch 2,3: weight {weights[1, 2]:.4f}"
    outline = figure.layout.shapes[0]
    assert (outline.x0, outline.y0, outline.x1, outline.y1) == (13.5, 6.5, 20.5, 13.5)
