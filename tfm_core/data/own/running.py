"""A custom text for a language model: checked, and split by position."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tfm_core.config.corpus_tasks import text_problem
from tfm_core.data.own.containers import BadData
from tfm_core.data.own.report import Accounting, Report, set_name
from tfm_core.data.own.text_files import NormalisationLog, Upload, texts_of
from tfm_core.data.own.tokens import learned_from_text
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
    report = Report("text", set_name(name, "text"), unit, split, (N_("line"),))
    try:
        text, accounting, used, notes = _read(raw, encoding)
    except BadData as error:
        encoding = report.encoding if error.encoding is None else error.encoding
        return replace(report, refusal=error.sentence, encoding=encoding)
    report = replace(report, accounting=accounting, encoding=used)
    problem = text_problem(text, unit, most=MAX_TEXT)
    if problem is not None:
        return replace(report, text=text[:MAX_TEXT], refusal=problem)
    cutter = learned_from_text(unit, text, has_test=test is not None)
    tokens = cutter.cut_text(text)
    report = replace(report, text=text, notes=tuple(notes), cutters=(cutter,), n_tokens=len(tokens))
    n_held_out = max(2, len(tokens) // 10)
    if test is not None:
        return _with_test(report, tokens, test, encoding, n_held_out)
    start = round(len(text) * (1 - n_held_out / len(tokens)))
    n_train = len(tokens) - 2 * n_held_out
    return replace(
        report,
        notes=(*notes, *_repeat_notes(text[:start], text[start:])),
        counts={"train": n_train, "validation": n_held_out, "test": n_held_out},
        words=(cutter.text_vocabulary(text),),
    )


def _read(upload: Upload, encoding: str | None) -> tuple[str, Accounting, str, list[str]]:
    """Return a text, what became of its lines, its encoding and notes. Raises BadData.

    Blank lines around it are left out.
    """
    ((_name, whole),), used, notes = texts_of(upload, encoding, most=1)
    text = whole.strip("\n")
    total, kept = (one.removesuffix("\n").count("\n") + 1 if one else 0 for one in (whole, text))
    if not text.isascii():
        changes = NormalisationLog()
        lines = [changes.text(line, number) for number, line in enumerate(text.split("\n"), 1)]
        text = "\n".join(lines)
        notes += changes.notes()
    return text, Accounting(total=total, kept=kept, blank=total - kept), used, notes


def _with_test(
    report: Report, tokens: list[str], test: Upload, encoding: str | None, n_held_out: int
) -> Report:
    """Add a test file to a text, and notes on it."""
    try:
        tested, accounting, _used, changed = _read(test, encoding)
        report = replace(report, test_accounting=accounting)
        problem = text_problem(tested, report.unit, most=MAX_TEXT)
    except BadData as error:
        problem = error.sentence
        if error.encoding is not None:
            report = replace(report, encoding=error.encoding)
    if problem is not None:
        return replace(report, refusal=N_("The test file: {why}", why=problem))
    (cutter,) = report.cutters
    cut, known = cutter.cut_text(tested), set(tokens)
    n_unknown = sum(token not in known for token in cut)
    notes = [*report.notes, *(N_("The test file: {why}", why=note) for note in changed)]
    if tested in report.text or _delimited(cut) in _delimited(tokens):
        notes.append(N_("The text contains the whole test file: its score measures memory."))
    else:
        notes += _repeat_notes(report.text, tested)
    if n_unknown:
        notes.append(
            N_(
                "Test tokens missing from training: {n:,} of {all:,}; never learned.",
                n=n_unknown,
                all=len(cut),
            )
        )
    n_train = len(tokens) - n_held_out
    return replace(
        report,
        test=tested,
        notes=tuple(notes),
        counts={"train": n_train, "validation": n_held_out, "test": len(cut)},
        words=(cutter.text_vocabulary(report.text, tested),),
        n_unknown=n_unknown,
    )


def _delimited(tokens: list[str]) -> str:
    """Return tokens as one text that can be searched for a row of them."""
    return "\0".join(["", *tokens, ""])


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
