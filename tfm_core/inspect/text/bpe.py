"""Byte-pair encoding, merge by merge (Sennrich et al. 2016, Algorithm 1).

Start from characters; merge the most frequent pair of neighbours; repeat. Frequent words become one
token, and nothing within the alphabet is unknown. The ``tokenizers`` package learns the merges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pandas as pd

from tfm_core.data.user_data.tokens import apply, learn_merges
from tfm_core.data.vocabulary import SPECIALS, UNK
from tfm_core.inspect.tables import Column, Columns
from tfm_core.inspect.text.tokenise import Token
from tfm_core.sentences import N_

END = "\ue000"
"""Marks the end of a word inside the package: one character that is in no cleaned text."""

END_SHOWN = "</w>"
MAX_MERGES = 200

_UNKNOWN = "\ue001"


@dataclass(frozen=True, slots=True, eq=False)
class Bpe:
    """What was learned. alphabet: the characters of the corpus, the end of a word among them.

    merges: two tokens that became one, and how often they stood side by side in the corpus then.
    """

    alphabet: tuple[str, ...]
    merges: tuple[tuple[str, str, int], ...]

    def vocabulary(self, k: int) -> dict[str, int]:
        """Return token -> number after ``k`` merges; the special tokens keep 0 to 3."""
        merged = (left + right for left, right, _count in self.merges[:k])
        tokens = dict.fromkeys([*self.alphabet, *merged])
        return {token: len(SPECIALS) + index for index, token in enumerate(tokens)}


def learn(words: Sequence[str], most: int = MAX_MERGES) -> Bpe:
    """Learn up to ``most`` merges from words, the most frequent pair first, within words only."""
    pairs = learn_merges([word + END for word in words], most)
    return Bpe(tuple(sorted({*"".join(words), END})), _counted(Counter(words), pairs))


def tokens(learned: Bpe, words: Sequence[str], k: int) -> list[Token]:
    """Cut words with the first ``k`` merges; a character outside the alphabet is <unk>."""
    known = learned.vocabulary(k)
    from tokenizers import Tokenizer, models

    merges = [(left, right) for left, right, _count in learned.merges[:k]]
    vocabulary = {_UNKNOWN: UNK, **known}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges, unk_token=_UNKNOWN))
    result = []
    for word in words:
        for piece in tokenizer.encode(word + END).tokens:
            if piece == _UNKNOWN:
                result.append(Token(SPECIALS[UNK], UNK, is_unknown=True))
            else:
                result.append(Token(shown(piece), known[piece]))
    return result


SIZES = Columns(
    size=Column(N_("vocabulary (tokens)"), ","),
    length=Column(N_("length of the text (tokens)"), ",", {"rangemode": "tozero"}),
    merges=Column(N_("merges"), ","),
)


def lengths(learned: Bpe, words: Sequence[str]) -> pd.DataFrame:
    """Return merges, size of the vocabulary, and length of the text in tokens."""
    counts = Counter(words)
    split = {word: [*word, END] for word in counts}
    known = set(learned.alphabet)
    rows = []
    for k in range(len(learned.merges) + 1):
        if k:
            left, right, _count = learned.merges[k - 1]
            known.add(left + right)
            split = {word: apply(pieces, left, right) for word, pieces in split.items()}
        total = sum(counts[word] * len(pieces) for word, pieces in split.items())
        rows.append({"merges": k, "size": len(SPECIALS) + len(known), "length": total})
    return SIZES.table(rows)


def pair_counts(split: dict[str, list[str]], counts: Counter[str]) -> Counter[tuple[str, str]]:
    """Return how often each pair of neighbours is in the corpus. split: word -> its pieces."""
    of_pairs: Counter[tuple[str, str]] = Counter()
    for word, pieces in split.items():
        for pair in pairwise(pieces):
            of_pairs[pair] += counts[word]
    return of_pairs


def shown(token: str) -> str:
    """Return a token with the end of a word written as in the paper."""
    return token.replace(END, END_SHOWN)


def _counted(
    counts: Counter[str], pairs: Sequence[Sequence[str]]
) -> tuple[tuple[str, str, int], ...]:
    split = {word: [*word, END] for word in counts}
    merges = []
    for left, right in pairs:
        merges.append((left, right, pair_counts(split, counts)[left, right]))
        split = {word: apply(pieces, left, right) for word, pieces in split.items()}
    return tuple(merges)
