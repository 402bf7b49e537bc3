"""What a task offers: tokens of a text, languages of captions, operations modulo n."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tfm_core.choices.variants.record import Registry, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit(Variant):
    """cut: a text into tokens; case is kept. is_spaced: a space is written between two of them.

    plural: what several tokens are called in a sentence.
    """

    cut: Callable[[str], list[str]]
    is_spaced: bool
    plural: str = field(init=False)

    @property
    def separator(self) -> str:
        """What is written between two tokens."""
        return " " if self.is_spaced else ""


MARK, JOINER = "\u0300", "\u200d"
"""What ``outline`` writes for every combining mark, and for ZWJ and ZWNJ."""
JOINERS = "\u200c\u200d"
SKIN_TONES = r"\U0001f3fb-\U0001f3ff"
LETTERS = r"\w[\w\u0300\u200d]*"
SIGN = r"[^\w\s]\u0300*(?:\u200d[^\w\s]\u0300*)*"
WORD_PATTERN = rf"{LETTERS}(?:['’\-]{LETTERS})*|{SIGN}"
"""A word with its marks, or a sign with its own (an emoji of several parts is one sign)."""
PIECE_PATTERN = rf" ?{LETTERS}| ?{SIGN}"
"""What byte-pair merges never cross: a word or a sign, with the space before it."""
RUNNING_LETTERS = r"\w[\w\u0300\u200d]{0,63}"
RUNNING_PIECE_PATTERN = rf" ?{RUNNING_LETTERS}| ?{SIGN}| +(?= )|\s"
"""The same in a running text, of which every character is kept: blanks and line breaks, too.

Words end after 64 characters: merging takes the square of a word's length, and a genome is one.
"""
SPACED_PATTERN = r"(?<!\S)<(?=(?:pad|bos|eos|unk)>(?!\S))|\S+"
"""Text between spaces; what looks like a special token is cut after its first character."""
CLOSING, OPENING = r".,;:!?…)\]}’”।॥۔،؛؟。，、！？：；」』）】》〉", "([{‘¿¡「『（【《〈„"
"""Signs without a space before them, and without one behind them."""

# default-ignorable characters that change the order or the breaks of what is drawn, not its text
_HIDDEN = r"\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufeff"
HIDDEN = re.compile(f"[{_HIDDEN}]")
"""Bidirectional controls, zero-width spaces and soft hyphens; not ZWJ and ZWNJ, which spell."""


def normalised(text: str) -> str:
    """Return a text in Unicode's form NFC (UAX #15) without hidden characters."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", HIDDEN.sub("", text))


def outline(text: str) -> str:
    r"""Return a text of the same length in which ``\w`` and two characters tell what makes a word.

    Python's ``\w`` leaves out combining marks (Mn, Mc, Me): vowel signs of Hindi, Thai or Arabic.
    """
    if text.isascii():
        return text
    return re.sub(r"[^\w\s!-~]", _outlined, text)


def _outlined(match: re.Match[str]) -> str:
    sign = match[0]
    if sign in JOINERS:
        return JOINER
    is_mark = unicodedata.category(sign)[0] == "M" or "\U0001f3fb" <= sign <= "\U0001f3ff"
    return MARK if is_mark else sign


def found_in(pattern: re.Pattern[str], text: str) -> list[str]:
    """Return what a pattern of ``outline`` finds in a text."""
    return [text[one.start() : one.end()] for one in pattern.finditer(outline(text))]


def joined_words(tokens: Sequence[str]) -> str:
    """Write words with spaces between them; with punctuation in its place."""
    text = re.sub(r" *\n *", "\n", " ".join(tokens))
    text = re.sub(rf" ([{CLOSING}])", r"\1", text)
    text = re.sub(rf"([{OPENING}]) ", r"\1", text)
    text = re.sub(r'" ([^"\n]*) "', r'"\1"', text)
    return re.sub(r"(„[^„“\n]*) “|“ ", _quoted, text)


def _quoted(match: re.Match[str]) -> str:
    return "“" if match[1] is None else f"{match[1]}“"


_WORD = re.compile(rf"{WORD_PATTERN}|\n")


def _words(text: str) -> list[str]:
    return found_in(_WORD, text)


WORDS = Unit(
    name="words",
    source="Bengio et al. 2003",
    cut=_words,
    is_spaced=True,
)
CHARACTERS = Unit(
    name="characters",
    source="Sutskever, Martens & Hinton 2011",
    cut=list,
    is_spaced=False,
)
BYTE_PAIRS = Unit(
    name="bpe",
    source="Sennrich et al. 2016",
    cut=list,  # before any merge is learned: ``data.user_data.tokens`` has the merges
    is_spaced=False,
)

UNITS = Registry("text unit", WORDS, CHARACTERS, BYTE_PAIRS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Language(Variant):
    """grammar: how its captions are written, and of which words."""

    grammar: str


ENGLISH = Language(
    name="english",
    source="a toy grammar of this app",
    grammar="tfm_core.data.caption_words:ENGLISH_GRAMMAR",
)
KOREAN = Language(
    name="korean",
    source="a toy grammar of this app",
    grammar="tfm_core.data.caption_words:KOREAN_GRAMMAR",
)

LANGUAGES = Registry("language", ENGLISH, KOREAN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Variant):
    """What is computed of two numbers modulo n.

    signs: what may stand between them, the written one first. result(a, b, n): the answer.
    divides: whether n must be prime, and b is never 0.
    """

    signs: str
    result: Callable[[int, int, int], int]
    divides: bool = False

    def n_pairs(self, modulus: int) -> int:
        """Return how many pairs of numbers have an answer."""
        return modulus * (modulus - self.divides)


_SOURCE = "Power et al. 2022, appendix A.1"
_ANY = "∘,"
ADD = Operation(name="add", source=_SOURCE, signs="+", result=lambda a, b, n: (a + b) % n)
OPERATIONS = Registry(
    "operation modulo n",
    ADD,
    Operation(name="subtract", source=_SOURCE, signs="−-", result=lambda a, b, n: (a - b) % n),
    Operation(
        name="multiply",
        source="Doshi et al. 2024, arXiv 2406.03495",
        signs="×*·",
        result=lambda a, b, n: a * b % n,
    ),
    Operation(
        name="divide",
        source=_SOURCE,
        signs="÷/",
        result=lambda a, b, n: a * pow(b, -1, n) % n,
        divides=True,
    ),
    Operation(
        name="squares", source=_SOURCE, signs=_ANY, result=lambda a, b, n: (a * a + b * b) % n
    ),
    Operation(
        name="squares-and-product",
        source=_SOURCE,
        signs=_ANY,
        result=lambda a, b, n: (a * a + a * b + b * b) % n,
    ),
    Operation(
        name="cube-and-product",
        source=_SOURCE,
        signs=_ANY,
        result=lambda a, b, n: (a**3 + a * b) % n,
    ),
)


def is_prime(n: int) -> bool:
    """Return whether a number is prime."""
    return n > 1 and all(n % k for k in range(2, int(n**0.5) + 1))
