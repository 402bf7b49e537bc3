"""PNG: what is written is what is read back, grey and in colour."""

import base64
import io

import numpy as np
import pytest
from PIL import Image

from tfm_core.plots.png import picture_url, png, png_url


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


def test_a_grey_picture_has_its_channel_first():
    picture = np.random.default_rng(1).integers(0, 256, (1, 5, 7), np.uint8)
    np.testing.assert_array_equal(read_url(picture_url(picture)), picture[0])


def test_a_coloured_picture_has_its_channels_first():
    picture = np.random.default_rng(1).integers(0, 256, (3, 5, 7), np.uint8)
    np.testing.assert_array_equal(read_url(picture_url(picture)), np.moveaxis(picture, 0, -1))
