"""The look of figures: readable on both backgrounds, and nothing left of plotly's default."""

from __future__ import annotations

import itertools
from typing import get_args

import plotly.graph_objects as go
import pytest

from tfm_core.plots.palette import BACKGROUNDS, COLOURS, INKS, ThemeName, contrast
from tfm_core.plots.template import sequential, template

THEMES = get_args(ThemeName)


def test_black_on_white_has_the_greatest_contrast() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#2f7fc1", "#2f7fc1") == 1


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("meaning", COLOURS)
def test_every_colour_can_be_seen_on_both_backgrounds(meaning: str, theme: ThemeName) -> None:
    assert contrast(COLOURS[meaning], BACKGROUNDS[theme]) >= 3


@pytest.mark.parametrize("theme", THEMES)
def test_words_can_be_read(theme: ThemeName) -> None:
    assert contrast(INKS[theme], BACKGROUNDS[theme]) >= 7


@pytest.mark.parametrize("group", [("query", "key", "value"), ("encoder", "decoder", "cross")])
def test_what_is_shown_together_has_different_colours(group: tuple[str, ...]) -> None:
    assert len({COLOURS[meaning] for meaning in group}) == len(group)
    assert COLOURS["train"] != COLOURS["validation"] != COLOURS["test"]


@pytest.mark.parametrize("theme", THEMES)
def test_a_figure_takes_the_colours_of_its_theme(theme: ThemeName) -> None:
    figure = go.Figure(go.Scatter(y=[1, 2]), layout={"template": template(theme)})
    assert figure.layout.template.layout.font.color == INKS[theme]
    assert figure.layout.template.layout.paper_bgcolor == "rgba(0,0,0,0)"


@pytest.mark.parametrize("theme", THEMES)
def test_more_weight_stands_out_more(theme: ThemeName) -> None:
    steps = [contrast(colour, BACKGROUNDS[theme]) for _, colour in sequential(theme)]
    assert all(lower < higher for lower, higher in itertools.pairwise(steps))
