"""Text cut into tokens: by word, by character, by byte; and what each vocabulary knows.

A tokeniser is a rule for cutting and a vocabulary learned from a corpus; what the vocabulary lacks
becomes <unk>, one number for everything unknown. Byte-pair encoding is in ``bpe``.
"""

from __future__ import annotations

import os
import random
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from tfm_core.config import TextTaskConfig
from tfm_core.data.text import text_task
from tfm_core.data.vocabulary import SPECIALS, UNK, Vocabulary
from tfm_core.sentences import StudentError

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")  # its threads would fight the training

MAX_TEXT = 1000
"""Characters of a text that are cut."""

GRAMMAR_SENTENCES = 400
FIRST_BYTE = len(SPECIALS)
"""The number of byte 0: all 256 bytes follow the special tokens."""

Corpus = Literal["text", "english", "korean"]


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a text and its number. shown: as a person reads it, spaces made visible."""

    shown: str
    id: int
    is_unknown: bool = False


def clean(text: str, *, lower: bool = False) -> str:
    """Return a text with composed characters (NFC) and without what cannot be seen.

    Raises ValueError, in a sentence, for nothing at all and for more than MAX_TEXT characters.
    """
    seen = "".join(
        " " if c.isspace() else c
        for c in unicodedata.normalize("NFC", text)
        if c.isspace() or unicodedata.category(c) not in {"Cc", "Cs", "Co", "Cn"}
    )
    seen = " ".join(seen.split())
    if not seen:
        raise StudentError("There is no text to tokenise: enter at least one character.")
    if len(seen) > MAX_TEXT:
        raise StudentError(
            "The text has {n_seen:,} characters; the limit is {max_text:,}. Shorten it.",
            n_seen=len(seen),
            max_text=MAX_TEXT,
        )
    return seen.lower() if lower else seen


def words_of(text: str) -> list[str]:
    """Cut at spaces and around punctuation, in any script (Unicode's idea of a word character)."""
    from tokenizers.pre_tokenizers import Whitespace

    return [word for word, _span in Whitespace().pre_tokenize_str(text)]


@lru_cache(maxsize=4)
def grammar_corpus(language: Corpus) -> str:
    """Return sentences of the toy grammar from English into Korean, always the same."""
    task = text_task(TextTaskConfig(name="english-korean"))
    rng = random.Random(0)
    pairs = [task.sample(rng) for _ in range(GRAMMAR_SENTENCES)]
    if language == "english":
        return " ".join(task.join_src(pair.src) for pair in pairs)
    return " ".join(task.join_tgt(pair.tgt) for pair in pairs)


def word_counts(text: str) -> Counter[str]:
    """Return how often each word stands in a text."""
    return Counter(words_of(text))


def vocabulary(counts: Counter[str], most: int | None = None) -> Vocabulary:
    """Return a vocabulary of the ``most`` frequent pieces; equally frequent ones by spelling."""
    ranked = sorted(counts, key=lambda piece: (-counts[piece], piece))
    return Vocabulary(tuple(ranked[:most]))


def by_word(text: str, known: Vocabulary) -> list[Token]:
    """Cut into words; a word that the vocabulary lacks is <unk>."""
    return _numbered(words_of(text), known)


def by_character(text: str, known: Vocabulary) -> list[Token]:
    """Cut into characters (code points), spaces included."""
    return _numbered(text, known)


def by_byte(text: str) -> list[Token]:
    """Cut into the bytes of UTF-8: 256 numbers write every text there is, nothing is unknown."""
    return [Token(f"{byte:02X}", FIRST_BYTE + byte) for byte in text.encode()]


def _numbered(pieces: Iterable[str], known: Vocabulary) -> list[Token]:
    return [
        Token("␣" if piece == " " else piece, known.id_of(piece), known.id_of(piece) == UNK)
        for piece in pieces
    ]


def bytes_of(text: str) -> list[tuple[str, str]]:
    """Return each different character with its bytes in UTF-8, such as (한, ``ED 95 9C``)."""
    return [(c, c.encode().hex(" ").upper()) for c in dict.fromkeys(text) if c != " "]


def unknown_share(tokens: Sequence[Token]) -> float:
    """Return the share of tokens that are <unk>, 0 to 1."""
    return sum(token.is_unknown for token in tokens) / len(tokens) if tokens else 0.0
