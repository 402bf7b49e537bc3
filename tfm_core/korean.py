"""Korean: particles, whose form follows the last sound before them, ordinals, and HTML."""

from __future__ import annotations

import re

_PAIRS = (
    ("은", "는"),
    ("이", "가"),
    ("을", "를"),
    ("과", "와"),
    ("으로", "로"),
    ("이에요", "예요"),
    ("이나", "나"),
    ("이라고", "라고"),
    ("이라는", "라는"),
    ("이며", "며"),
    ("이면", "면"),
)
PARTICLES = {particle: pair for pair in _PAIRS for particle in pair}
"""Either form of a particle, and both: after a consonant, after a vowel."""
_ORDINALS = dict(
    enumerate(["첫", "두", "세", "네", "다섯", "여섯", "일곱", "여덟", "아홉", "열"], 1)
)
ENDINGS = {*PARTICLES, "번째"}
"""What a placeholder may end in: ``{name:을}``, ``{n:번째}``."""

_DIGITS = dict(zip("0123456789", "영일이삼사오육칠팔구", strict=True))
_LETTERS = {"L": "엘", "M": "엠", "N": "엔", "R": "알"}
_ENDINGS = (
    *(("ng", "응"), ("n", "은"), ("m", "음"), ("l", "을"), ("ck", "윽"), ("ook", "욱")),
    *(("put", "풋"), ("out", "웃"), ("set", "셋"), ("dot", "닷"), ("logit", "짓")),
)
"""English endings that Korean writes with a final consonant; ``step`` and ``map`` have one too."""


def lang(text: str) -> str:
    """Return the attribute of HTML that says that a text is Korean; nothing for other texts."""
    is_korean = re.search("[가-힣]", text) and not re.search("[A-Za-z]", text)
    return ' lang="ko"' if is_korean else ""


def with_particle(word: str, particle: str) -> str:
    """Return a word with the form of a particle that its last sound asks for.

    Marks behind the word and a gloss in brackets, as in ``어텐션(attention)``, have no sound here.
    A number up to ten with ``번째`` is a word: 첫 번째, 열 번째, 11번째.
    """
    if particle == "번째":
        n = int(word) if word.isdecimal() else 0
        return f"{_ORDINALS[n]} 번째" if n in _ORDINALS else f"{word}번째"
    after_consonant, after_vowel = PARTICLES[particle]
    final = (ord(_last_syllable(word)) - ord("가")) % 28  # 0: none, 8: ㄹ
    is_open = final == 0 or (final == 8 and after_vowel == "로")
    return word + (after_vowel if is_open else after_consonant)


def _last_syllable(word: str) -> str:
    """Return a Hangul syllable that ends as the word does when it is read aloud."""
    sounding = re.sub(r"(?<=\w)\s*\([^()]*\)\W*$|[^\w%]+$", "", word) or word
    last, end = sounding[-1:], re.search(r"[A-Za-z]*$", sounding)
    letters = end[0] if end else ""
    if "가" <= last <= "힣":
        return last
    if last in _DIGITS:
        return _DIGITS[last]
    if letters.isupper() or len(letters) == 1:
        return _LETTERS.get(letters[-1].upper(), "이")
    if re.search(r"(?<![aeiou])[aeiou]p$", letters):
        return "읍"
    return next((sound for ending, sound in _ENDINGS if letters.endswith(ending)), "이")
