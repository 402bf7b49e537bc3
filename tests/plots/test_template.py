"""The look of figures on both backgrounds, and pixels as PNG."""

import base64
import io
import itertools
from typing import get_args

import numpy as np
import pytest
from PIL import Image

from tfm_core.plots.examples.pictures import picture_url, png, png_url
from tfm_core.plots.palette import BACKGROUNDS, COLOURS, INKS, SCALES, ThemeName, contrast

THEMES = get_args(ThemeName)


def test_both_backgrounds_show_all_and_pictures_have_channels_first():
    for theme in THEMES:
        for meaning in COLOURS:
            assert contrast(COLOURS[meaning], BACKGROUNDS[theme]) >= 3
    for theme in THEMES:
        assert contrast(INKS[theme], BACKGROUNDS[theme]) >= 7
    for theme in THEMES:
        steps = [contrast(colour, BACKGROUNDS[theme]) for colour in SCALES[theme]]
        assert all(lower < higher for lower, higher in itertools.pairwise(steps))
    picture = np.random.default_rng(1).integers(0, 256, (1, 5, 7), np.uint8)
    np.testing.assert_array_equal(read_url(picture_url(picture)), picture[0])
    picture = np.random.default_rng(1).integers(0, 256, (3, 5, 7), np.uint8)
    np.testing.assert_array_equal(read_url(picture_url(picture)), np.moveaxis(picture, 0, -1))


@pytest.mark.parametrize("group", [("query", "key", "value"), ("encoder", "decoder", "cross")])
def test_what_is_shown_together_has_different_colours(group):
    assert len({COLOURS[meaning] for meaning in group}) == len(group)
    assert COLOURS["train"] != COLOURS["validation"] != COLOURS["test"]


def read(content: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(content)))


def read_url(url: str) -> np.ndarray:
    kind, _, content = url.partition(",")
    assert kind == "data:image/png;base64"
    return read(base64.b64decode(content))


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3)])
def test_pixels_survive(shape):
    pixels = np.random.default_rng(1).integers(0, 256, shape, np.uint8)
    np.testing.assert_array_equal(read(png(pixels)), pixels)
    np.testing.assert_array_equal(read_url(png_url(pixels)), pixels)
