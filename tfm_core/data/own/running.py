"""A running text of one's own, that a language model learns: looked through, split by place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tfm_core.config.corpus_tasks import text_problem
from tfm_core.data.own.records import BadData
from tfm_core.data.own.report import Report, set_name
from tfm_core.data.own.rows import Accounting, decoded, normalised_text
from tfm_core.data.own.tokens import learned_from_text
from tfm_core.sentences import N_, counted

MAX_TEXT = 2_000_000
"""Characters of a text."""
_N_PASSAGE = 40
"""Characters of a passage that hardly occurs twice by chance."""
_MAX_REPEATED = 0.2
"""Share of a test that may repeat passages of training before it is worth a note."""


def running_text(raw: bytes | str, name: str, unit: str, test: bytes | str | None) -> Report:
    """Look through a text, and a test file of its own; see ``texts.inspect_text``. Never raises."""
    split = {"by": "place" if test is None else "file"}
    blank = Report("text", set_name(name, "text"), unit, split, (N_("line"),))
    try:
        whole = decoded(raw)
    except BadData as error:
        return replace(blank, refusal=error.sentence)
    text = whole.strip("\n")
    blank = replace(blank, accounting=_accounting(whole, text))
    text, notes = normalised_text(text)
    problem = text_problem(text, unit, most=MAX_TEXT)
    if problem is not None:
        return replace(blank, text=text[:MAX_TEXT], refusal=problem)
    cutter = learned_from_text(unit, text, has_test=test is not None)
    blank = replace(blank, notes=tuple(notes), cutters=(cutter,))
    tokens = cutter.cut_text(text)
    held = max(2, len(tokens) // 10)
    if test is None:
        start = round(len(text) * (1 - held / len(tokens)))
        return replace(
            blank,
            text=text,
            notes=(*blank.notes, *_of_repeats(text[:start], text[start:])),
            counts={"train": len(tokens) - 2 * held, "validation": held, "test": held},
            words=(cutter.text_vocabulary(text),),
            n_tokens=len(tokens),
        )
    return _with_test(replace(blank, text=text, n_tokens=len(tokens)), tokens, test)


def _listed(tokens: list[str]) -> str:
    """Return tokens in one text, so that a row of them can be looked for."""
    return "\0".join(["", *tokens, ""])


def _with_test(blank: Report, tokens: list[str], test: bytes | str) -> Report:
    """Add a test file of one's own to a text, and what is worth knowing of it."""
    try:
        whole = decoded(test)
        tested = whole.strip("\n")
        blank = replace(blank, test_accounting=_accounting(whole, tested))
        tested, changed = normalised_text(tested)
        problem = text_problem(tested, blank.unit, most=MAX_TEXT)
    except BadData as error:
        tested, changed, problem = "", [], error.sentence
    if problem is not None:
        return replace(blank, refusal=N_("The test file: {why}", why=problem))
    (cutter,) = blank.cutters
    cut, seen = cutter.cut_text(tested), set(tokens)
    n_unknown = sum(token not in seen for token in cut)
    notes = [*blank.notes, *(N_("The test file: {why}", why=note) for note in changed)]
    if tested in blank.text or _listed(cut) in _listed(tokens):
        notes.append(N_("The text contains the whole test file: its score measures memory."))
    else:
        notes += _of_repeats(blank.text, tested)
    if n_unknown:
        notes.append(
            counted(
                "{n:,} of {all:,} test tokens is not in training, so the model never learns it.",
                "{n:,} of {all:,} test tokens are not in training, so the model never learns them.",
                n_unknown,
                all=len(cut),
            )
        )
    held = max(2, len(tokens) // 10)
    return replace(
        blank,
        test=tested,
        notes=tuple(notes),
        counts={"train": len(tokens) - held, "validation": held, "test": len(cut)},
        words=(cutter.text_vocabulary(blank.text, tested),),
        n_unknown=n_unknown,
    )


def _accounting(whole: str, text: str) -> Accounting:
    """Count the lines of a text, and the blank ones around it, which are left out."""
    total, kept = (one.removesuffix("\n").count("\n") + 1 if one else 0 for one in (whole, text))
    return Accounting(total=total, kept=kept, blank=total - kept)


def _of_repeats(train: str, test: str) -> Iterator[str]:
    """Say how much of a test is made of long passages that training holds, where it is much."""
    share = _share_repeated(train, test)
    if share > _MAX_REPEATED:
        yield N_(
            "{share:.0%} of the test repeats training passages: that share measures memory.",
            share=share,
        )


def _share_repeated(train: str, test: str) -> float:
    """Return the share of a test in passages of ``_N_PASSAGE`` characters that training holds.

    Training is cut into passages side by side, so the ends of a repeat, of less than one passage
    each, are not counted.
    """
    known = {train[at : at + _N_PASSAGE] for at in range(0, len(train), _N_PASSAGE)}
    repeated, end = 0, 0
    for at in range(len(test) - _N_PASSAGE + 1):
        if test[at : at + _N_PASSAGE] in known:
            repeated += at + _N_PASSAGE - max(at, end)
            end = at + _N_PASSAGE
    return repeated / max(1, len(test))
