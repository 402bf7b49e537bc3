"""A custom text for a language model: checked, and split by position."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tfm_core.config.corpus_tasks import text_problem
from tfm_core.data.own.records import BadData
from tfm_core.data.own.report import Report, set_name
from tfm_core.data.own.rows import Accounting, normalised_text
from tfm_core.data.own.tokens import learned_from_text
from tfm_core.data.own.uploads import Upload, texts_of
from tfm_core.sentences import N_

MAX_TEXT = 2_000_000
"""Characters of a text."""
_N_PASSAGE = 40
"""Characters of a passage that hardly occurs twice by chance."""
_MAX_REPEATED = 0.2
"""Share of a test that may repeat passages of training before it is worth a note."""


def running_text(
    raw: Upload, name: str, unit: str, test: Upload | None, encoding: str | None
) -> Report:
    """Check a text and its test file; see ``texts.inspect_text``. Never raises."""
    split = {"by": "place" if test is None else "file"}
    blank = Report("text", set_name(name, "text"), unit, split, (N_("line"),))
    try:
        ((_name, whole),), used, read = texts_of(raw, encoding, most=1)
    except BadData as error:
        encoding = blank.encoding if error.encoding is None else error.encoding
        return replace(blank, refusal=error.sentence, encoding=encoding)
    text = whole.strip("\n")
    blank = replace(blank, accounting=_accounting(whole, text), encoding=used)
    text, changed = normalised_text(text)
    problem = text_problem(text, unit, most=MAX_TEXT)
    if problem is not None:
        return replace(blank, text=text[:MAX_TEXT], refusal=problem)
    cutter = learned_from_text(unit, text, has_test=test is not None)
    blank = replace(blank, notes=(*read, *changed), cutters=(cutter,))
    tokens = cutter.cut_text(text)
    n_held_out = max(2, len(tokens) // 10)
    if test is None:
        start = round(len(text) * (1 - n_held_out / len(tokens)))
        return replace(
            blank,
            text=text,
            notes=(*blank.notes, *_repeat_notes(text[:start], text[start:])),
            counts={
                "train": len(tokens) - 2 * n_held_out,
                "validation": n_held_out,
                "test": n_held_out,
            },
            words=(cutter.text_vocabulary(text),),
            n_tokens=len(tokens),
        )
    return _with_test(replace(blank, text=text, n_tokens=len(tokens)), tokens, test, encoding)


def _delimited(tokens: list[str]) -> str:
    """Return tokens as one text that can be searched for a row of them."""
    return "\0".join(["", *tokens, ""])


def _with_test(blank: Report, tokens: list[str], test: Upload, encoding: str | None) -> Report:
    """Add a test file to a text, and notes on it."""
    try:
        ((_name, whole),), _used, read = texts_of(test, encoding, most=1)
        tested = whole.strip("\n")
        blank = replace(blank, test_accounting=_accounting(whole, tested))
        tested, changed = normalised_text(tested)
        changed = [*read, *changed]
        problem = text_problem(tested, blank.unit, most=MAX_TEXT)
    except BadData as error:
        tested, changed, problem = "", [], error.sentence
        if error.encoding is not None:
            blank = replace(blank, encoding=error.encoding)
    if problem is not None:
        return replace(blank, refusal=N_("The test file: {why}", why=problem))
    (cutter,) = blank.cutters
    cut, known = cutter.cut_text(tested), set(tokens)
    n_unknown = sum(token not in known for token in cut)
    notes = [*blank.notes, *(N_("The test file: {why}", why=note) for note in changed)]
    if tested in blank.text or _delimited(cut) in _delimited(tokens):
        notes.append(N_("The text contains the whole test file: its score measures memory."))
    else:
        notes += _repeat_notes(blank.text, tested)
    if n_unknown:
        notes.append(
            N_(
                "Test tokens missing from training: {n:,} of {all:,}; never learned.",
                n=n_unknown,
                all=len(cut),
            )
        )
    n_held_out = max(2, len(tokens) // 10)
    return replace(
        blank,
        test=tested,
        notes=tuple(notes),
        counts={"train": len(tokens) - n_held_out, "validation": n_held_out, "test": len(cut)},
        words=(cutter.text_vocabulary(blank.text, tested),),
        n_unknown=n_unknown,
    )


def _accounting(whole: str, text: str) -> Accounting:
    """Count the lines of a text, and the blank ones around it, which are left out."""
    total, kept = (one.removesuffix("\n").count("\n") + 1 if one else 0 for one in (whole, text))
    return Accounting(total=total, kept=kept, blank=total - kept)


def _repeat_notes(train: str, test: str) -> Iterator[str]:
    """Yield a note where much of a test repeats long passages of training."""
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
    passages = {train[at : at + _N_PASSAGE] for at in range(0, len(train), _N_PASSAGE)}
    repeated, end = 0, 0
    for at in range(len(test) - _N_PASSAGE + 1):
        if test[at : at + _N_PASSAGE] in passages:
            repeated += at + _N_PASSAGE - max(at, end)
            end = at + _N_PASSAGE
    return repeated / max(1, len(test))
