"""Particles as a Korean reads the word before them aloud."""

import pytest

from pages.i18n import _
from tfm_core.korean import with_particle
from tfm_core.sentences import N_


@pytest.mark.parametrize(
    ("word", "particle", "expected"),
    [
        ("모델", "을", "모델을"),
        ("위치", "을", "위치를"),
        ("레이어", "는", "레이어는"),
        ("손실", "가", "손실이"),
        ("3", "으로", "3으로"),
        ("7", "으로", "7로"),
        ("1,000", "를", "1,000을"),
        ("12", "와", "12와"),
        ("GPT", "가", "GPT가"),
        ("MLM", "은", "MLM은"),
        ("token", "를", "token을"),
        ("layer", "을", "layer를"),
        ("block", "이", "block이"),
        ("mask", "이", "mask가"),
        ("step", "는", "step은"),
        ("loop", "은", "loop는"),
        ("**서울**", "으로", "**서울**로"),
        ("`d_model`", "은", "`d_model`은"),
        ("어텐션(attention)", "를", "어텐션(attention)을"),
        ("95 %", "을", "95 %를"),
        ("책", "예요", "책이에요"),
    ],
)
def test_particle_follows_the_last_sound(word: str, particle: str, expected: str) -> None:
    assert with_particle(word, particle) == expected


def test_template_chooses_the_particle_of_its_value() -> None:
    assert _("{name:을} 고르세요", name="모델") == "모델을 고르세요"
    assert _("{name:을} 고르세요", name=N_("모양")) == "모양을 고르세요"
