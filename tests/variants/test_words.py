"""Units cut and join as they say; a language has its own captions."""

import pytest

from tfm_core.choices.config import CaptionTaskConfig
from tfm_core.choices.variants.languages import LANGUAGES
from tfm_core.choices.variants.units import UNITS
from tfm_core.data import caption_words
from tfm_core.data.own.tokens import learned_from_text
from tfm_core.data.scenes import LARGE, PlacedDigit

TEXT = "Alice’s cat sat.\nIt slept"


@pytest.mark.parametrize(
    ("name", "tokens"),
    [
        ("words", ["Alice’s", "cat", "sat", ".", "\n", "It", "slept"]),
        ("characters", list(TEXT)),
    ],
)
def test_a_unit_cuts_a_text_and_loses_no_letter(name, tokens):
    cut = UNITS[name].cut(TEXT)
    assert cut == tokens
    assert "".join(cut).replace(" ", "") == TEXT.replace(" ", "")


def test_every_unit_and_every_language_has_its_own_words():
    cuts = {learned_from_text(unit, TEXT * 9) for unit in UNITS}
    assert len({tuple(cutter.cut_text(TEXT)) for cutter in cuts}) == len(UNITS)
    scene = [PlacedDigit(8, 0, 0), PlacedDigit(3, LARGE, 0)]
    captions = set()
    for name in LANGUAGES:
        config = CaptionTaskConfig(name="captions", language=name)
        words = caption_words.caption(scene, config).words
        assert set(words) <= set(caption_words.vocabulary(config).tokens)
        captions.add(words)
    assert len(captions) == len(LANGUAGES)
