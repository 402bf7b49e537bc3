"""A running text of one's own, that a language model learns: looked through, split by place."""

from __future__ import annotations

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
            counts={"train": len(tokens) - 2 * held, "validation": held, "test": held},
            words=(tuple(sorted(set(tokens))),),
            n_tokens=len(tokens),
        )
    return _with_test(replace(blank, text=text, n_tokens=len(tokens)), tokens, test)


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
    if tested in blank.text:
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
