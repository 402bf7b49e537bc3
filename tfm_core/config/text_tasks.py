"""The text tasks by name: what each asks for and how long it gets, known before data is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tfm_core.sentences import N_, Paragraph

TextTaskName = Literal[
    "english-korean", "dates", "numbers", "copy", "reverse", "sort", "addition",
    "modular-addition", "select", "sort-by-key", "brackets", "parity", "two-sum",
    "sentiment", "masked-words", "span-corruption",
]  # fmt: skip
AnswerKind = Literal["sequence", "label", "blanks"]
"""What is answered: a sequence up to <eos>, one label, or each hidden word in its place."""
SEQUENCE_FAMILIES = ("encoder-decoder", "encoder-only", "decoder-only", "recurrent")
"""The families that turn one sequence into another."""


@dataclass(frozen=True, slots=True)
class TextTaskFacts:
    """Label and help of a text task, the meaning of ``size``, and the longest sequences.

    ``max_src_len`` and ``max_tgt_len`` take the size and return tokens, without special tokens.
    ``families`` are the model families that can learn it, ``answer`` is what they answer.
    ``unseen`` says what is new in an unseen example; its shares are those of the default settings.
    ``hides``: words of a sentence are hidden; several may be right, and ``size`` is no length.
    ``n_pairs`` takes the size and returns how many pairs there are, None where they never run out.
    ``language`` is that of the words that are read, ``tgt_language`` the one that a translation is
    written in, as in ``ko``; None where sequences are of no language.
    """

    label: str
    help: str
    size_label: str
    size_help: str
    sizes: range
    default_size: int
    max_src_len: Callable[[int], int]
    max_tgt_len: Callable[[int], int]
    unseen: str
    families: tuple[str, ...] = SEQUENCE_FAMILIES
    answer: AnswerKind = "sequence"
    hides: bool = False
    n_pairs: Callable[[int], int] | None = None
    language: str | None = None
    tgt_language: str | None = None


def shares(sizes: Sequence[int], total: int) -> tuple[int, ...]:
    """Return the sizes, or where ``total`` is less than their sum, its parts in their proportions.

    At least one each, but for the last one, which takes what the others leave.
    """
    wanted = sum(sizes)
    if total >= wanted:
        return tuple(sizes)
    parts = [max(1, total * size // wanted) for size in sizes[:-1]]
    return (*parts, total - sum(parts))


def _sequences(n_symbols: int, longest: int) -> int:
    """Return how many sequences of 1 to ``longest`` symbols there are."""
    powers: int = n_symbols**longest
    return n_symbols * (powers - 1) // (n_symbols - 1)


_COPY = TextTaskFacts(
    N_("Copy"),
    N_("Repeat the sequence."),
    N_("Longest"),
    N_("Longest sequence, in tokens."),
    range(2, 513),
    10,
    lambda n: n,
    lambda n: n,
    N_("Splits share no sequence."),
    n_pairs=lambda n: _sequences(16, n),
)

TEXT_TASKS: dict[str, TextTaskFacts] = {
    "english-korean": TextTaskFacts(
        N_("English to Korean"),
        N_("Simple English to Korean: verb last, nouns with particles."),
        N_("Clauses"),
        N_("1: simple sentences; 2: two joined by “and” (much harder)."),
        range(1, 3),
        1,
        lambda n: (16, 33)[n - 1],
        lambda n: (17, 34)[n - 1],
        Paragraph("settings/unseen-english"),
        language="en",
        tgt_language="ko",
    ),
    "dates": TextTaskFacts(
        N_("Dates to ISO"),
        N_("Written dates to 2026-11-21; characters are tokens."),
        N_("Forms"),
        N_("Number of date formats."),
        range(1, 7),
        6,
        lambda n: (18, 18, 18, 22, 22, 33)[n - 1],
        lambda n: 10,
        Paragraph("settings/unseen-dates"),
        language="en",
    ),
    "numbers": TextTaskFacts(
        N_("Numbers"),
        N_("Number words to digits: “forty two” to 4 2."),
        N_("Digits"),
        N_("Digits of the longest number."),
        range(1, 7),
        4,
        lambda n: (1, 2, 5, 7, 8, 11)[n - 1],
        lambda n: n,
        N_("Splits share no number."),
        n_pairs=lambda n: 10**n,
        language="en",
    ),
    "copy": _COPY,
    "reverse": replace(_COPY, label=N_("Reverse"), help=N_("Write the sequence backwards.")),
    "sort": replace(
        _COPY,
        label=N_("Sort"),
        help=N_("Sort the digits in ascending order."),
        unseen=Paragraph("settings/unseen-sort"),
        n_pairs=lambda n: _sequences(10, n),
    ),
    "addition": TextTaskFacts(
        N_("Addition"),
        N_("Add two numbers, digit by digit."),
        N_("Digits"),
        N_("Digits of each number."),
        range(1, 6),
        2,
        lambda n: 2 * n + 1,
        lambda n: n + 1,
        Paragraph("settings/unseen-sums"),
        n_pairs=lambda n: 100**n,
    ),
    "modular-addition": TextTaskFacts(
        N_("Arithmetic modulo n"),
        N_("Calculate on a clock; each number is one token."),
        N_("Modulus"),
        N_("Numbers on the clock."),
        range(5, 114),
        59,
        lambda n: 2,
        lambda n: 1,
        Paragraph("settings/unseen-modular"),
        families=("encoder-only",),
        answer="label",
        n_pairs=lambda n: n * n,
    ),
    "select": replace(
        _COPY,
        label=N_("Selective copy"),
        help=N_("Copy the letters and skip the dots (Gu & Dao 2023)."),
        unseen=Paragraph("settings/unseen-select"),
        n_pairs=lambda n: _sequences(17, n) - n,
    ),
    "sort-by-key": replace(
        _COPY,
        label=N_("Sort by key"),
        help=N_("Write the letters in the order of the digits before them."),
        unseen=Paragraph("settings/unseen-sort-by-key"),
        sizes=range(1, 257),
        default_size=6,
        size_help=N_("Most letters; each has a digit before it."),
        max_src_len=lambda n: 2 * n,
        n_pairs=lambda n: _sequences(160, n),
    ),
    "brackets": replace(
        _COPY,
        label=N_("Brackets"),
        help=N_("Are ( ) and [ ] balanced? (Dyck language)"),
        sizes=range(12, 129),
        default_size=24,
        max_tgt_len=lambda n: 1,
        families=("encoder-only",),
        answer="label",
        n_pairs=None,
    ),
    "parity": replace(
        _COPY,
        label=N_("Parity"),
        help=N_("Is the number of ones even or odd?"),
        sizes=range(10, 129),
        default_size=16,
        max_tgt_len=lambda n: 1,
        families=("encoder-only",),
        answer="label",
        n_pairs=lambda n: _sequences(2, n),
    ),
    "two-sum": replace(
        _COPY,
        label=N_("Two-sum"),
        help=N_("Do two of the digits add up to ten?"),
        sizes=range(3, 129),
        default_size=8,
        max_tgt_len=lambda n: 1,
        families=("encoder-only",),
        answer="label",
        n_pairs=lambda n: _sequences(10, n),
    ),
    "sentiment": TextTaskFacts(
        N_("Sentiment"),
        N_("Rate a short review positive, negative or neutral."),
        N_("Clauses"),
        N_("Most clauses in a sentence; more are harder."),
        range(2, 5),
        2,
        lambda n: 8 * n - 1,
        lambda n: 1,
        N_("Splits share no sentence."),
        families=("encoder-only",),
        answer="label",
        language="en",
    ),
    "masked-words": TextTaskFacts(
        N_("Masked words"),
        N_("Guess hidden words from both sides (BERT)."),
        N_("Hidden, %"),
        N_("Share of words hidden, at least one; BERT: 15%."),
        range(5, 31),
        15,
        lambda n: 16,
        lambda n: 16,
        Paragraph("settings/unseen-masked-words"),
        families=("encoder-only",),
        answer="blanks",
        hides=True,
        language="en",
    ),
    "span-corruption": TextTaskFacts(
        N_("Span corruption"),
        N_("Write the hidden spans, each after its sentinel (T5)."),
        N_("Hidden, %"),
        N_("Share of words hidden, in spans of 2 on average; T5: 15%, spans of 3."),
        range(10, 51),
        30,
        lambda n: 16,
        lambda n: round(16 * n / 100) + max(1, round(round(16 * n / 100) / 2)) + 1,
        Paragraph("settings/unseen-spans"),
        families=("encoder-decoder", "decoder-only", "recurrent"),
        hides=True,
        language="en",
    ),
}
