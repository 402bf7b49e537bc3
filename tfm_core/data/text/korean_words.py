"""The Korean of the toy grammar: its words, and particles that agree with the sound before them.

A verb is a stem form, which an ending follows as a token of its own: 다 closes the sentence, 고
joins the next clause. ``korean_final`` is the present stem before 다 (먹는다), ``korean_linking``
the one before 고 (먹고), ``korean_past`` stands before both (먹었다, 먹었고). A particle has one
form after a final consonant (batchim) and one after a vowel.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tfm_core.korean import with_particle

TOPIC = ("은", "는")
SUBJECT = ("이", "가")
OBJECT = ("을", "를")
WITH = ("과", "와")  # "and" between nouns
AGREEING = (TOPIC, SUBJECT, OBJECT, WITH)


@cache
def particle(forms: tuple[str, str], noun: str) -> str:
    """Return the form of a particle that agrees with a Hangul noun."""
    return with_particle(noun, forms[0]).removeprefix(noun)


@dataclass(frozen=True, slots=True)
class Noun:
    """An English noun, its Korean, and the adjectives that go well with it."""

    english: str
    korean: str
    adjectives: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb in its three English and three Korean forms, and what may stand around it.

    ``subjects`` and ``objects`` are keys of ``NOUNS``; a verb without objects is intransitive.
    ``place`` is the kind of place phrase: "in", "to", or "" for none.
    """

    singular: str
    plural: str
    past: str
    korean_final: str
    korean_linking: str
    korean_past: str
    subjects: tuple[str, ...]
    objects: tuple[str, ...]
    place: str


@dataclass(frozen=True, slots=True)
class Location:
    """A place, its Korean, and the English preposition for being there."""

    english: str
    korean: str
    preposition: str


ADJECTIVES = {
    "big": "큰",
    "small": "작은",
    "red": "빨간",
    "blue": "파란",
    "white": "하얀",
    "hungry": "배고픈",
    "kind": "친절한",
    "cute": "귀여운",
    "expensive": "비싼",
}

_PEOPLE = ("hungry", "kind")
_ANIMALS = ("big", "small", "white", "hungry", "cute")
_THINGS = ("big", "small", "red", "blue", "white", "expensive")

NOUNS: dict[str, tuple[Noun, ...]] = {
    "people": (
        Noun("teacher", "선생님", _PEOPLE),
        Noun("student", "학생", _PEOPLE),
        Noun("doctor", "의사", _PEOPLE),
        Noun("child", "아이", (*_PEOPLE, "small", "cute")),
        Noun("friend", "친구", _PEOPLE),
    ),
    "animals": (
        Noun("dog", "개", _ANIMALS),
        Noun("cat", "고양이", _ANIMALS),
        Noun("bear", "곰", _ANIMALS),
        Noun("rabbit", "토끼", _ANIMALS),
    ),
    "food": (
        Noun("apple", "사과", ("big", "small", "red", "expensive")),
        Noun("cake", "케이크", ("big", "small", "white", "expensive")),
        Noun("egg", "달걀", ("big", "small", "white", "expensive")),
        Noun("carrot", "당근", ("big", "small", "expensive")),
    ),
    "things": (
        Noun("book", "책", _THINGS),
        Noun("hat", "모자", _THINGS),
        Noun("bag", "가방", _THINGS),
        Noun("chair", "의자", _THINGS),
        Noun("flower", "꽃", _THINGS),
    ),
}

_LIVING = ("people", "animals")
_GOODS = ("food", "things")
_ANYTHING = ("people", "animals", "food", "things")

VERBS = (
    Verb("eats", "eat", "ate", "먹는", "먹", "먹었", _LIVING, ("food",), "in"),
    Verb("buys", "buy", "bought", "산", "사", "샀", ("people",), _GOODS, "in"),
    Verb("sees", "see", "saw", "본", "보", "봤", _LIVING, _ANYTHING, "in"),
    Verb("draws", "draw", "drew", "그린", "그리", "그렸", ("people",), _ANYTHING, "in"),
    Verb("finds", "find", "found", "찾는", "찾", "찾았", _LIVING, _ANYTHING, "in"),
    Verb("likes", "like", "liked", "좋아한", "좋아하", "좋아했", _LIVING, _ANYTHING, ""),
    Verb("meets", "meet", "met", "만난", "만나", "만났", ("people",), ("people",), "in"),
    Verb("sleeps", "sleep", "slept", "잔", "자", "잤", _LIVING, (), "in"),
    Verb("plays", "play", "played", "논", "놀", "놀았", _LIVING, (), "in"),
    Verb("comes", "come", "came", "온", "오", "왔", _LIVING, (), "to"),
)

PLACES = (
    Location("school", "학교", "at"),
    Location("market", "시장", "at"),
    Location("park", "공원", "in"),
    Location("garden", "정원", "in"),
    Location("room", "방", "in"),
)

# English, Korean, and whether the sentence is in the past (True), the present, or either (None).
TIMES: dict[str, tuple[str, bool | None]] = {
    "yesterday": ("어제", True),
    "today": ("오늘", None),
    "daily": ("매일", False),
}

PREPOSITIONS = {"in": "에서", "at": "에서", "to": "에"}
ARTICLES = ("the", "a", "an")
AND = "and"
FULL_STOP_ENDING, LINKING_ENDING = "다", "고"

ALL_NOUNS = {noun.english: noun.korean for group in NOUNS.values() for noun in group}
ALL_PLACES = {place.english: place.korean for place in PLACES}
