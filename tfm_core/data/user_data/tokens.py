"""How the sentences of a set are cut into tokens and written again.

Byte-pair encoding (Sennrich et al. 2016) is learned from the training part alone with the library
``tokenizers``; only the merges are kept, in order. Every word carries the
space before it as ``▁`` (Kudo & Richardson 2018), so tokens are joined by writing them on. In a
running text, where blanks and line breaks count, pieces hold the spaces themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

from tfm_core.choices.config.corpus_tasks import MIN_TOKENS, even_lines
from tfm_core.choices.variants.record import Registry, Variant
from tfm_core.choices.variants.tasks import (
    PIECE_PATTERN,
    RUNNING_PIECE_PATTERN,
    SPACED_PATTERN,
    UNITS,
    found_in,
    joined_words,
)

SPACE = "▁"
MAX_MERGES = 2_000
LABEL = "label"
_PIECES = re.compile(PIECE_PATTERN)
_RUNNING_PIECES = re.compile(RUNNING_PIECE_PATTERN)
_CHARACTERS_A_MERGE = 20
"""Of the training part of a text: a short one has few merges, so that most tokens are frequent."""


@dataclass(frozen=True)
class Cutter:
    """One way to cut; "label" leaves a text whole. merges: of "bpe", in the order they are made."""

    unit: str
    merges: tuple[tuple[str, str], ...] = ()

    def cut(self, text: str) -> tuple[str, ...]:
        """Return the tokens of a sentence."""
        if self.unit == LABEL:
            return (text,)
        return tuple(CUTS[self.unit].cut(self, " ".join(text.split())))

    def cut_text(self, text: str) -> list[str]:
        """Return the tokens of a running text; written one after the other, pieces are the text.

        Spaces stand in the pieces as they are.
        """
        text = even_lines(text)
        if self.unit != "bpe":
            return UNITS[self.unit].cut(text)
        cache = self.cut_before
        return [
            token
            for piece in found_in(_RUNNING_PIECES, text)
            for token in cache.get(piece) or cache.setdefault(piece, _merged_of_text(self, piece))
        ]

    def text_vocabulary(self, *texts: str) -> tuple[str, ...]:
        """Return every token that running texts may have, sorted.

        Of byte pairs all single characters and the result of every merge, so that only a character
        that the texts lack is unknown.
        """
        if self.unit != "bpe":
            return tuple(sorted({token for text in texts for token in self.cut_text(text)}))
        merged_tokens = {"".join(pair).replace(SPACE, " ") for pair in self.merges}
        return tuple(sorted(merged_tokens.union(*map(even_lines, texts))))

    def join(self, tokens: Sequence[str]) -> str:
        """Write tokens as a person reads them."""
        return " ".join(tokens) if self.unit == LABEL else CUTS[self.unit].join(tokens)

    def to_json(self) -> dict[str, Any]:
        """Return what ``from_json`` reads."""
        return {"unit": self.unit, "merges": [list(pair) for pair in self.merges]}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Cutter:
        """Read a cutter of a set."""
        return cls(values["unit"], tuple((left, right) for left, right in values["merges"]))

    @cached_property
    def ranks(self) -> dict[tuple[str, str], int]:
        """The place of each merge."""
        return {pair: rank for rank, pair in enumerate(self.merges)}

    @cached_property
    def cut_before(self) -> dict[str, list[str]]:
        """Pieces that were cut already: a text has few different ones."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class CutKind(Variant):
    """cut(cutter, text) and join(tokens); kind: what one token is called in a sentence."""

    cut: Callable[[Cutter, str], Iterable[str]]
    join: Callable[[Sequence[str]], str]
    kind: str


def _merged(cutter: Cutter, text: str) -> list[str]:
    cache = cutter.cut_before
    return [
        token
        for piece in pieces(text)
        for token in cache.get(piece) or cache.setdefault(piece, merged(piece, cutter.ranks))
    ]


def _merged_of_text(cutter: Cutter, piece: str) -> list[str]:
    """Merge a piece of a running text; one with ``▁`` itself has no merges."""
    if SPACE in piece:
        return list(piece)
    tokens = merged(piece.replace(" ", SPACE), cutter.ranks)
    return [token.replace(SPACE, " ") for token in tokens]


def pieces(text: str) -> list[str]:
    """Cut a sentence into what no merge crosses: words and signs, each with its space.

    A typed ``▁`` is a space, as every page shows it.
    """
    spaced = " ".join(text.replace(SPACE, " ").split())
    return [piece.replace(" ", SPACE) for piece in found_in(_PIECES, f" {spaced}")]


def merged(piece: str, ranks: Mapping[tuple[str, str], int]) -> list[str]:
    """Merge neighbours, the pair that was learned first before all others, until none is left."""
    tokens = list(piece)
    while len(tokens) > 1:
        pairs = list(pairwise(tokens))
        best = min(pairs, key=lambda pair: ranks.get(pair, len(ranks)))
        if best not in ranks:
            break
        tokens = apply(tokens, *best)
    return tokens


def apply(pieces: Sequence[str], left: str, right: str) -> list[str]:
    """Merge every ``left`` that is followed by ``right``, from the left."""
    if left not in pieces:
        return list(pieces)
    merged: list[str] = []
    i = 0
    while i < len(pieces):
        if pieces[i] == left and i + 1 < len(pieces) and pieces[i + 1] == right:
            merged.append(left + right)
            i += 2
        else:
            merged.append(pieces[i])
            i += 1
    return merged


def learn_from_sentences(unit: str, texts: Iterable[str], *, n_merges: int = MAX_MERGES) -> Cutter:
    """Return how sentences are cut; merges are learned from these ones."""
    if unit != "bpe":
        return Cutter(unit)
    return Cutter(unit, learn_merges([piece for text in texts for piece in pieces(text)], n_merges))


@lru_cache(maxsize=8)
def learn_from_text(unit: str, text: str, *, has_test: bool = False) -> Cutter:
    """Return how a running text is cut; merges are learned from its training part alone.

    has_test: the test is a separate text, so only the validation is held out. The training
    part is so many tokens, and merges make fewer tokens: they are learned from a beginning of the
    text that lies within the part that results.
    """
    if unit != "bpe":
        return Cutter(unit)
    text = even_lines(text)
    n_held = 1 if has_test else 2
    end = len(text) * (10 - n_held) // 10
    while True:
        pieces_found = found_in(_RUNNING_PIECES, text[:end])
        every = [
            piece.replace(" ", SPACE)
            for piece in pieces_found
            if SPACE not in piece and not piece.strip(" ").isspace()
        ]
        cutter = Cutter(unit, learn_merges(every, min(MAX_MERGES, end // _CHARACTERS_A_MERGE)))
        tokens = cutter.cut_text(text)
        while cutter.merges and (len(tokens) < MIN_TOKENS or len(set(tokens)) < 2):
            cutter = Cutter(unit, cutter.merges[: len(cutter.merges) // 2])
            tokens = cutter.cut_text(text)
        n_train = len(tokens) - n_held * max(2, len(tokens) // 10)
        end_of_train = sum(map(len, tokens[:n_train]))
        if end <= end_of_train:
            return cutter
        end = end_of_train


def learn_merges(every: Sequence[str], n_merges: int) -> tuple[tuple[str, str], ...]:
    """Return the merges of pieces, in the order in which they are learned.

    Merging ends before pairs that occur once.
    """
    import json

    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    alphabet = sorted({sign for piece in every for sign in piece})
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    trainer = trainers.BpeTrainer(
        vocab_size=len(alphabet) + n_merges,
        min_frequency=2,
        initial_alphabet=alphabet,
        special_tokens=[],
        show_progress=False,
    )
    tokenizer.train_from_iterator(every, trainer)
    pairs = json.loads(tokenizer.to_str())["model"]["merges"]
    return tuple((left, right) for left, right in pairs)


CUTS = Registry(
    "way to cut sentences",
    CutKind(
        name="words",
        source="Bengio et al. 2003",
        cut=lambda cutter, text: UNITS["words"].cut(text),
        join=joined_words,
        kind="word",
    ),
    CutKind(
        name="spaces",
        source="Weininger 1988",
        cut=lambda cutter, text: re.findall(SPACED_PATTERN, text),
        join=" ".join,
        kind="word",
    ),
    CutKind(
        name="characters",
        source="Sutskever, Martens & Hinton 2011",
        cut=lambda cutter, text: text,
        join="".join,
        kind="character",
    ),
    CutKind(
        name="bpe",
        source="Sennrich et al. 2016",
        cut=_merged,
        join=lambda tokens: "".join(tokens).replace(SPACE, " ").strip(),
        kind="piece",
    ),
)
