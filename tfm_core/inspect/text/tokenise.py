"""Text cut into tokens, byte-pair encoding, and sentences padded into one batch.

What a vocabulary lacks becomes <unk>. Byte-pair encoding (Sennrich et al. 2016, Algorithm 1) starts
from characters and merges the most frequent pair of neighbours, again and again: frequent words
become one token, and nothing within the alphabet is unknown. The ``tokenizers`` package learns the
merges.
"""

from __future__ import annotations

import os
import random
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfm_core.choices.config import TextTaskConfig
from tfm_core.data.tasks import text_task
from tfm_core.data.user_data.tokens import apply, learn_merges
from tfm_core.data.vocabulary import BOS, EOS, PAD, SPECIALS, UNK, Vocabulary
from tfm_core.inspect.questions import Question, number_question
from tfm_core.inspect.tables import Column, Columns
from tfm_core.sentences import N_, Paragraph, StudentError

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
    """Return a text in NFC, visible characters only. Raises StudentError if empty or too long."""
    seen = "".join(
        " " if c.isspace() else c
        for c in unicodedata.normalize("NFC", text)
        if c.isspace() or unicodedata.category(c) not in {"Cc", "Cs", "Co", "Cn"}
    )
    seen = " ".join(seen.split())
    if not seen:
        raise StudentError("Enter at least one character.")
    if len(seen) > MAX_TEXT:
        raise StudentError(
            "The text has {n:,} characters; the limit is {most:,}.",
            n=len(seen),
            most=MAX_TEXT,
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
    """Return how often each word is in a text."""
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


MAX_SENTENCES = 8
MAX_TOKENS = 32


@dataclass(frozen=True, slots=True, eq=False)
class PaddedBatch:
    """Sentences as numbers.

    ids: int64 (B, T); mask: bool (B, T), False = padding. tokens: as words. cut: for each sentence
    the words that did not fit.
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
    """Read one sentence a line, cut into words. Raises StudentError for none or too many."""
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise StudentError("Enter at least one sentence, each on its own line.")
    if len(lines) > MAX_SENTENCES:
        raise StudentError(
            "There are {n_lines} sentences; the limit is {most_sentences}.",
            n_lines=len(lines),
            most_sentences=MAX_SENTENCES,
        )
    sentences = [words_of(clean(line)) for line in lines]
    for number, words in enumerate(sentences, 1):
        if len(words) > MAX_TOKENS:
            raise StudentError(
                "Sentence {number} has {n_words} words; the limit is {most_tokens}.",
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
) -> PaddedBatch:
    """Number the words and pad the sentences to the longest, at most ``length``.

    A longer sentence loses its last words; <bos> and <eos> stay. Raises StudentError if no word
    fits.
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
    return PaddedBatch(ids, ids != PAD, words, cut, known)


def entries(known: Vocabulary) -> list[dict[str, Any]]:
    """Return the vocabulary as rows: number and token, the special ones first."""
    return [
        {"id": id, "token": known.token(id), "special": id < len(SPECIALS)}
        for id in range(len(known))
    ]


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


def learn_bpe(words: Sequence[str], most: int = MAX_MERGES) -> Bpe:
    """Learn up to ``most`` merges from words, the most frequent pair first, within words only."""
    pairs = learn_merges([word + END for word in words], most)
    return Bpe(tuple(sorted({*"".join(words), END})), _merge_counts(Counter(words), pairs))


def bpe_tokens(learned: Bpe, words: Sequence[str], k: int) -> list[Token]:
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
                result.append(Token(shown_token(piece), known[piece]))
    return result


SIZES = Columns(
    size=Column(N_("vocabulary (tokens)"), ","),
    length=Column(N_("length of the text (tokens)"), ",", {"rangemode": "tozero"}),
    merges=Column(N_("merges"), ","),
)


def text_lengths(learned: Bpe, words: Sequence[str]) -> pd.DataFrame:
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


def shown_token(token: str) -> str:
    """Return a token with the end of a word written as in the paper."""
    return token.replace(END, END_SHOWN)


def _merge_counts(
    counts: Counter[str], pairs: Sequence[Sequence[str]]
) -> tuple[tuple[str, str, int], ...]:
    split = {word: [*word, END] for word in counts}
    merges = []
    for left, right in pairs:
        merges.append((left, right, pair_counts(split, counts)[left, right]))
        split = {word: apply(pieces, left, right) for word, pieces in split.items()}
    return tuple(merges)


def compound_of(text: str) -> str:
    """Return a new word: the two longest different words of a text in one; "" with fewer."""
    words = [word for word in words_of(text) if word.isalpha()]
    longest = sorted(dict.fromkeys(words), key=lambda word: -len(word))[:2]
    return "".join(longest) if len(longest) == 2 else ""


def about_compound(word: str, tokens: Sequence[Token]) -> Question:
    """Ask into how many tokens a new word is cut, as ``tokens`` are."""
    pieces = " · ".join(token.shown for token in tokens)
    return number_question(
        N_("Into how many tokens is the new word “{word}” cut?", word=word),
        len(tokens),
        N_("It becomes {pieces}.", pieces=pieces),
        wrong={
            1: N_("For that, the whole word would have to be in the vocabulary."),
            2: N_("Its two halves were words of the text, but the cut doesn't know that."),
            len(word): N_("That is the number of characters, but here pieces are longer."),
            len(word.encode()): N_("That is the number of bytes, but here pieces are longer."),
        },
        hint=N_("Look at how the two words inside it are cut above."),
    )


def about_padding(made: PaddedBatch) -> Question:
    """Ask how much padding the rows get when a sentence two tokens longer than all joins them."""
    n, width = made.ids.shape
    lengths = made.mask.sum(1)
    longer = width + 2
    before, after = (int((size - lengths).sum()) for size in (width, longer))
    return number_question(
        Paragraph("questions/padding", n=n, longer=longer),
        after,
        N_("Each of the {n} rows grows by 2: {before} + 2 · {n}.", n=n, before=before),
        wrong={
            before: N_("The rectangle grows, because every row is as long as the longest."),
            before + 2: N_("All {n} rows grow by 2, not just one.", n=n),
            before + 2 * (n + 1): N_("The new sentence fills its own row."),
            longer * n: N_("Those are all cells of the old rows, not only their padding."),
        },
        hint=N_("Count the cells without a token that each row gets."),
    )
