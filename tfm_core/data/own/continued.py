"""A text that is continued, and its test file: checked, counted and cut."""

from __future__ import annotations

from collections.abc import Iterator

from tfm_core.choices.config.corpus_tasks import text_problem
from tfm_core.data.own.containers import (
    Accounting,
    BadData,
    Remark,
)
from tfm_core.data.own.report import ReadAs, Report
from tfm_core.data.own.text_files import (
    NormalisationLog,
    Upload,
    of_test_file,
    texts_of,
)
from tfm_core.data.own.tokens import learned_from_text
from tfm_core.sentences import N_

MAX_TEXT = 2_000_000
"""Characters of a text."""
_N_PASSAGE = 40
"""Characters of a passage that hardly occurs twice by chance."""
_MAX_REPEATED = 0.2
"""Share of a test that may repeat passages of training before it is worth a note."""


def inspect_continued(
    report: Report, raw: Upload, test: Upload | None, encoding: str | None
) -> None:
    """Check a text and its test file, and fill a report. Raises BadData."""
    report.text, report.accounting, used, notes = _read_text(raw, encoding)
    report.read_as = ReadAs(used)
    _check(report.text, report.unit)
    cutter = learned_from_text(report.unit, report.text, has_test=test is not None)
    tokens = cutter.cut_text(report.text)
    n_held_out = max(2, len(tokens) // 10)
    n_train, n_test = len(tokens) - n_held_out, n_held_out
    if test is None:
        n_train -= n_held_out
        start = round(len(report.text) * (1 - n_held_out / len(tokens)))
        notes += _repeat_notes(report.text[:start], report.text[start:])
    else:
        with of_test_file():
            tested, report.test_accounting, _encoding, changed = _read_text(test, encoding)
            _check(tested, report.unit)
        cut = cutter.cut_text(tested)
        notes += [N_("The test file: {why}", why=note) for note in changed]
        if tested in report.text or _joined(cut) in _joined(tokens):
            notes.append(N_("The text contains the whole test file: its score measures memory."))
        else:
            notes += _repeat_notes(report.text, tested)
        known = set(tokens)
        if n_unknown := sum(token not in known for token in cut):
            words = N_("Test tokens missing from training: {n:,} of {all:,}; never learned.")
            notes.append(N_(words, n=n_unknown, all=len(cut)))
        report.test, n_test = tested, len(cut)
    report.findings = tuple(Remark("warning", note) for note in notes)
    report.cutters = (cutter,)
    report.counts = {"train": n_train, "validation": n_held_out, "test": n_test}
    report.words = (cutter.text_vocabulary(*filter(None, (report.text, report.test))),)


def _check(text: str, unit: str) -> None:
    if problem := text_problem(text, unit, most=MAX_TEXT):
        raise BadData(problem)


def _read_text(upload: Upload, encoding: str | None) -> tuple[str, Accounting, str, list[str]]:
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


def _joined(tokens: list[str]) -> str:
    """Return tokens as one text that can be searched for a row of them."""
    return "\0".join(["", *tokens, ""])


def _repeat_notes(train: str, test: str) -> Iterator[str]:
    """Yield a note where much of a test repeats long passages of training."""
    # training is cut into passages side by side, so the ends of a repeat, of less than one passage
    # each, are not counted
    passages = {train[at : at + _N_PASSAGE] for at in range(0, len(train), _N_PASSAGE)}
    repeated, end = 0, 0
    for at in range(len(test) - _N_PASSAGE + 1):
        if test[at : at + _N_PASSAGE] in passages:
            repeated += at + _N_PASSAGE - max(at, end)
            end = at + _N_PASSAGE
    share = repeated / max(1, len(test))
    if share > _MAX_REPEATED:
        yield N_(
            "{share:.0%} of the test repeats training passages: that share measures memory.",
            share=share,
        )
