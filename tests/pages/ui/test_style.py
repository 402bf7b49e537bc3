"""The rules of style that the theme has no setting for."""

import re

import pytest

from pages.ui.style import RULES
from tfm_core.plots.palette import BACKGROUNDS, CARDS, contrast

COLOUR = r"(#[0-9a-f]{6})"
PAIRS = re.findall(rf"\bcolor: light-dark\({COLOUR}, {COLOUR}\)", RULES)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
@pytest.mark.parametrize("ground", [BACKGROUNDS, CARDS], ids=["page", "card"])
def test_words_have_contrast_in_both_themes(pair, ground):
    for colour, theme in zip(pair, ("light", "dark"), strict=True):
        assert contrast(colour, ground[theme]) >= 4.5


def test_every_colour_is_given_for_both_themes():
    assert len(PAIRS) >= 6
    for words in re.findall(r"color: ([^;]+);", RULES):
        assert words.startswith("light-dark(")
