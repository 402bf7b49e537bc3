"""Sentences of different lengths as one rectangle of numbers, and the mask that hides the filling.

A batch is a tensor (B, T), so every sentence is filled up with <pad> to the length of the longest,
or cut to the longest that is allowed. The mask says what is a token: True = may be attended to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tfm_core.data.vocabulary import BOS, EOS, PAD, SPECIALS, Vocabulary
from tfm_core.inspect.text.tokenise import clean, vocabulary, words_of
from tfm_core.sentences import Paragraph, StudentError

MAX_SENTENCES = 8
MAX_TOKENS = 32


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Sentences as numbers.

    ids: int64 (B, T); mask: bool (B, T), True = a token, False = padding. tokens: the same as
    words. cut: for each sentence the words that did not fit, in order.
    """

    ids: npt.NDArray[np.int64]
    mask: npt.NDArray[np.bool_]
    tokens: tuple[tuple[str, ...], ...]
    cut: tuple[tuple[str, ...], ...]
    known: Vocabulary

    @property
    def padding_share(self) -> float:
        """Share of the cells that are padding, computed for nothing."""
        return float(1 - self.mask.mean())


def sentences_of(text: str) -> list[list[str]]:
    """Read one sentence a line and cut each into words.

    Raises ValueError, in a sentence, for none, for more than MAX_SENTENCES, and for a sentence of
    more than MAX_TOKENS words.
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise StudentError("There is no sentence: enter at least one, each on its own line.")
    if len(lines) > MAX_SENTENCES:
        raise StudentError(
            "{n_lines} sentences are too many: the limit is {most_sentences}.",
            n_lines=len(lines),
            most_sentences=MAX_SENTENCES,
        )
    sentences = [words_of(clean(line)) for line in lines]
    for number, words in enumerate(sentences, 1):
        if len(words) > MAX_TOKENS:
            raise StudentError(
                "Sentence {number} has {n_words} words: the limit is {most_tokens}.",
                number=number,
                n_words=len(words),
                most_tokens=MAX_TOKENS,
            )
    return sentences


def longest(sentences: Sequence[Sequence[str]], *, has_bos: bool, has_eos: bool) -> int:
    """Return how many tokens the longest sentence has, special ones included."""
    return max(map(len, sentences)) + has_bos + has_eos


def batch(
    sentences: Sequence[Sequence[str]], *, length: int, has_bos: bool = True, has_eos: bool = True
) -> Batch:
    """Number the words and lay the sentences into a rectangle of the longest, at most ``length``.

    A sentence that is too long loses its last words; <bos> and <eos> keep their places.
    Raises ValueError where ``length`` has no room for a single word.
    """
    room = length - has_bos - has_eos
    if room < 1:
        raise StudentError(
            Paragraph("text/length-too-small", length=length, least=1 + has_bos + has_eos)
        )
    known = vocabulary(Counter(word for sentence in sentences for word in sentence))
    start, end = [BOS] * has_bos, [EOS] * has_eos
    rows = [[*start, *known.encode(sentence[:room]), *end] for sentence in sentences]
    width = max(map(len, rows))
    ids = np.full((len(rows), width), PAD, np.int64)
    for i, row in enumerate(rows):
        ids[i, : len(row)] = row
    words = tuple(tuple(known.token(int(id)) for id in row) for row in ids)
    cut = tuple(tuple(sentence[room:]) for sentence in sentences)
    return Batch(ids, ids != PAD, words, cut, known)


def entries(known: Vocabulary) -> list[dict[str, Any]]:
    """Return the vocabulary as rows: number and token, the special ones first."""
    return [{"id": id, "token": known.token(id), "special": id < len(SPECIALS)}
            for id in range(len(known))]  # fmt: skip
