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
        ("95%", "을", "95%를"),
        ("책", "예요", "책이에요"),
        ("logits", "을", "logits를"),
        ("logit", "을", "logit을"),
        ("dropout", "이나", "dropout이나"),
        ("notebook", "라는", "notebook이라는"),
        ("batch", "이며", "batch며"),
        ("“달걀”", "로", "“달걀”로"),
        ("(3)", "이", "(3)이"),
        ("1", "번째", "첫 번째"),
        ("10", "번째", "열 번째"),
        ("11", "번째", "11번째"),
    ],
)
def test_particle_follows_the_last_sound(word: str, particle: str, expected: str) -> None:
    assert with_particle(word, particle) == expected


def test_template_chooses_the_particle_of_its_value() -> None:
    assert _("{name:을} 고르세요", name="모델") == "모델을 고르세요"
    assert _("{name:을} 고르세요", name=N_("모양")) == "모양을 고르세요"


@pytest.mark.parametrize(
    ("template", "values", "expected"),
    [
        (
            "{head:이} {word:을} 봅니다.",
            {"head": "3번 헤드", "word": "“egg”"},
            "3번 헤드가 “egg”를 봅니다.",
        ),
        ("{n:으로} 나누어떨어지지 않습니다.", {"n": 7}, "7로 나누어떨어지지 않습니다."),
        ("{n:,:은} 너무 큽니다.", {"n": 20_000}, "20,000은 너무 큽니다."),
        ("정확도는 {share:.0f:이에요}", {"share": 97.6}, "정확도는 98이에요"),
        ("{name:은} {n:을} 곱합니다.", {"name": "`d_ff`", "n": "2"}, "`d_ff`는 2를 곱합니다."),
        (
            "{a:과} {b:을} 비교하세요.",
            {"a": "GPT-2", "b": "BERT-base"},
            "GPT-2와 BERT-base를 비교하세요.",
        ),
        ("{run:을} 여세요.", {"run": "**숫자(recorded)**"}, "**숫자(recorded)**를 여세요."),
        ("{step:으로} 돌아갑니다.", {"step": "스텝 1,000"}, "스텝 1,000으로 돌아갑니다."),
        ("{task:이면} 됩니다.", {"task": N_("copy")}, "copy면 됩니다."),
        ("{size:이} 필요합니다.", {"size": "3.4 MiB"}, "3.4 MiB가 필요합니다."),
    ],
)
def test_sentence_takes_the_particles_of_its_values(
    template: str, values: dict[str, object], expected: str
) -> None:
    assert _(template, **values) == expected
