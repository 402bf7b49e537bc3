"""The look of figures on both backgrounds, and pixels as PNG."""

from __future__ import annotations

import base64
import io
import itertools
from typing import get_args

import numpy as np
import plotly.graph_objects as go
import pytest
from PIL import Image

from tfm_core.plots.examples.pictures import picture_url, png, png_url
from tfm_core.plots.kinds import sequential, template
from tfm_core.plots.palette import BACKGROUNDS, COLOURS, INKS, ThemeName, contrast

THEMES = get_args(ThemeName)


def test_black_on_white_has_the_greatest_contrast() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#2f7fc1", "#2f7fc1") == 1


def test_every_colour_can_be_seen_on_both_backgrounds() -> None:
    for theme in THEMES:
        for meaning in COLOURS:
            assert contrast(COLOURS[meaning], BACKGROUNDS[theme]) >= 3


def test_words_can_be_read() -> None:
    for theme in THEMES:
        assert contrast(INKS[theme], BACKGROUNDS[theme]) >= 7


@pytest.mark.parametrize("group", [("query", "key", "value"), ("encoder", "decoder", "cross")])
def test_what_is_shown_together_has_different_colours(group: tuple[str, ...]) -> None:
    assert len({COLOURS[meaning] for meaning in group}) == len(group)
    assert COLOURS["train"] != COLOURS["validation"] != COLOURS["test"]


def test_a_figure_takes_the_colours_of_its_theme() -> None:
    for theme in THEMES:
        figure = go.Figure(go.Scatter(y=[1, 2]), layout={"template": template(theme)})
        assert figure.layout.template.layout.font.color == INKS[theme]
        assert figure.layout.template.layout.paper_bgcolor == "rgba(0,0,0,0)"


def test_more_weight_stands_out_more() -> None:
    for theme in THEMES:
        steps = [contrast(colour, BACKGROUNDS[theme]) for _, colour in sequential(theme)]
        assert all(lower < higher for lower, higher in itertools.pairwise(steps))


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
