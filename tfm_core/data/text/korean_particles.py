"""Korean particles that agree with the sound before them.

A particle has one form after a final consonant (batchim) and one after a vowel. Hangul syllables
stand in Unicode in the order initial, vowel, final with 28 finals, so the code point tells
(The Unicode Standard, 3.12, "Conjoining Jamo Behavior").
"""

from tfm_core.sentences import StudentError

TOPIC = ("은", "는")
SUBJECT = ("이", "가")
OBJECT = ("을", "를")
WITH = ("과", "와")  # "and" between nouns
AGREEING = (TOPIC, SUBJECT, OBJECT, WITH)

_FIRST, _LAST, _FINALS = 0xAC00, 0xD7A3, 28


def has_batchim(word: str) -> bool:
    """Tell whether a Hangul word ends in a consonant. Raises ValueError for other writing."""
    if not word or not _FIRST <= ord(word[-1]) <= _LAST:
        raise StudentError("“{word}” does not end in a Hangul syllable.", word=word)
    return (ord(word[-1]) - _FIRST) % _FINALS != 0


def particle(forms: tuple[str, str], noun: str) -> str:
    """Return the form of a particle that agrees with a noun."""
    after_consonant, after_vowel = forms
    return after_consonant if has_batchim(noun) else after_vowel
