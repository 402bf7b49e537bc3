"""A running text of one's own, that a language model learns: looked through, split by place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tfm_core.config.corpus_tasks import text_problem
from tfm_core.data.own.normal import normalised_text
from tfm_core.data.own.report import Report, set_name
from tfm_core.data.own.rows import BadData, decoded
from tfm_core.data.own.tokens import Cutter
from tfm_core.sentences import N_
from tfm_core.variants.units import UNITS

MOST_TEXT = 2_000_000
"""Characters of a text."""
_WINDOW, _N_WINDOWS = {"words": 8, "characters": 40}, 50
"""Tokens of a passage that is looked for in training, and how many are."""


def running_text(raw: bytes | str, name: str, unit: str, test: bytes | str | None) -> Report:
    """Look through a text, and a test file of its own; see ``texts.inspect_text``. Never raises."""
    split = {"by": "place" if test is None else "file"}
    blank = Report("text", set_name(name, "text"), unit, split, (N_("line"),))
    try:
        text, notes = normalised_text(decoded(raw).strip("\n"))
    except BadData as error:
        return replace(blank, refusal=error.sentence)
    problem = text_problem(text, unit, most=MOST_TEXT)
    if problem is not None:
        return replace(blank, text=text[:MOST_TEXT], refusal=problem)
    blank = replace(blank, notes=tuple(notes), cutters=(Cutter(unit),))
    tokens = UNITS[unit].cut(text)
    held = max(2, len(tokens) // 10)
    if test is None:
        return replace(
            blank,
            text=text,
            notes=(*blank.notes, *_repeated(tokens, held, unit)),
            counts={"train": len(tokens) - 2 * held, "validation": held, "test": held},
            words=(tuple(sorted(set(tokens))),),
            n_tokens=len(tokens),
        )
    return _with_test(replace(blank, text=text, n_tokens=len(tokens)), tokens, test)


def _repeated(tokens: list[str], held: int, unit: str) -> Iterator[str]:
    """Yield a note where the test part of a text repeats its training part."""
    length = min(_WINDOW[unit], held)
    train = _listed(tokens[: -2 * held])
    starts = range(len(tokens) - held, len(tokens) - length + 1)
    starts = starts[:: -(-len(starts) // _N_WINDOWS)]
    n = sum(_listed(tokens[start : start + length]) in train for start in starts)
    if n > len(starts) / 10:
        yield N_(
            "The text repeats itself: {share:.0%} of the passages of its test part stand word for "
            "word in its training part. What is measured on them is what was learned by heart.",
            share=n / len(starts),
        )


def _listed(tokens: list[str]) -> str:
    """Return tokens in one text, so that a row of them can be looked for."""
    return "\0".join(["", *tokens, ""])


def _with_test(blank: Report, tokens: list[str], test: bytes | str) -> Report:
    """Add a test file of one's own to a text, and what is worth knowing of it."""
    try:
        tested, changed = normalised_text(decoded(test).strip("\n"))
        problem = text_problem(tested, blank.unit, most=MOST_TEXT)
    except BadData as error:
        tested, changed, problem = "", [], error.sentence
    if problem is not None:
        return replace(blank, refusal=N_("The test file: {why}", why=problem))
    cut, seen = UNITS[blank.unit].cut(tested), set(tokens)
    n_unknown = sum(token not in seen for token in cut)
    notes = [*blank.notes, *(N_("The test file: {why}", why=note) for note in changed)]
    if tested in blank.text or _listed(cut) in _listed(tokens):
        notes.append(
            N_(
                "The test file stands in the text word for word: what is measured on it is what "
                "was learned by heart."
            )
        )
    if n_unknown:
        notes.append(
            N_(
                "{n:,} of the {all:,} tokens of the test file never stand in the text: the model "
                "has a place for each, but never learns what it means.",
                n=n_unknown,
                all=len(cut),
            )
        )
    held = max(2, len(tokens) // 10)
    return replace(
        blank,
        test=tested,
        notes=tuple(notes),
        counts={"train": len(tokens) - held, "validation": held, "test": len(cut)},
        words=(tuple(sorted({*seen, *cut})),),
        n_unknown=n_unknown,
    )
