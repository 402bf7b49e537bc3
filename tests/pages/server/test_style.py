"""The rules of style that the theme has no setting for."""

import re

from app import STYLE
from tfm_core.plots.palette import BACKGROUNDS, CARDS, contrast

RULES = STYLE.read_text(encoding="utf-8")
COLOUR = r"(#[0-9a-f]{6})"
PAIRS = re.findall(rf"\bcolor: light-dark\({COLOUR}, {COLOUR}\)", RULES)


def test_words_have_contrast_in_both_themes():
    for ground in [BACKGROUNDS, CARDS]:
        for pair in PAIRS:
            for colour, theme in zip(pair, ("light", "dark"), strict=True):
                assert contrast(colour, ground[theme]) >= 4.5


def test_every_colour_is_given_for_both_themes():
    assert len(PAIRS) >= 6
    for words in re.findall(r"color: ([^;]+);", RULES):
        assert words.startswith("light-dark(")


def test_no_class_that_changes_restyles_all_that_stands_below_it() -> None:
    """A browser that looks for a part of a class does so at every change of any element's."""
    rules = re.sub(r"/\*.*?\*/", "", RULES, flags=re.DOTALL)
    for selector in re.findall(r"([^{}]+)\{", rules):
        assert not re.search(r"\[class[*^$].*[\s>~+(]\*", selector, re.DOTALL), selector
