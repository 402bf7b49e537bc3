"""Own pairs, labelled sentences and texts: input, preview and problems."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import partial

import pandas as pd
import streamlit as st
from pydantic import BaseModel, Field, ValidationError

from pages.i18n import N_, _, language, ngettext, paragraph, speaking
from pages.own_data import columns, shelf, state
from pages.ui import show
from pages.ui.typed import MAX_MEGABYTES, escape
from tfm_core.data.own import texts
from tfm_core.data.own.encodings import TEXT_ENCODINGS
from tfm_core.data.own.report import Accounting, Report, TextChoices, as_lines, report_of
from tfm_core.data.own.sets import OwnSet
from tfm_core.data.own.texts import LONGEST, inspect_text
from tfm_core.data.own.tokens import CUTS
from tfm_core.plots.examples import own_data as plots
from tfm_core.sentences import whole_percent
from tfm_core.variants.units import UNITS

_MAX_SAID = 50
_CUT_AT = {"pairs": 0, "labels": LONGEST, "text": 0}
"""Tokens at which long texts are cut at first, 0 for never: half a translation is a wrong one."""
_TITLES = {
    "pairs": N_("Add pairs"),
    "labels": N_("Add sentences"),
    "text": N_("Add a text"),
}
_PASTE = {
    "pairs": N_("Paste one pair per line"),
    "labels": N_("Paste one sentence and label per line"),
    "text": N_("Paste a text"),
}
_LIKE = {
    "pairs": "good morning\tguten Morgen\nthank you\tdanke",
    "labels": "I liked every minute\tgood\nnever again\tbad",
    "text": "It was a bright cold day in April …",
}


@dataclass(frozen=True, slots=True, eq=False)
class TextInput:
    """An input that is not saved yet."""

    report: Report
    data: str = ""
    """A digest of the data: what is chosen for them is forgotten when others are read."""


def add(kind: str) -> TextInput | None:
    """Ask for data of a kind; return what was read, or None before there is any."""
    with st.container(border=True, gap="small"):
        st.header(_(_TITLES[kind]), anchor=False)
        pasted = st.text_area(
            _(_PASTE[kind]),
            key=state.upload_key(f"paste-{kind}"),
            height=110,
            placeholder=_LIKE[kind],
            help=paragraph(f"own-data/how-{kind}"),
        )
        files = _files(_("Or choose files"), f"file-{kind}", paragraph(f"own-data/files-{kind}"))
        cuts = UNITS if kind == "text" else CUTS
        unit = st.segmented_control(
            _("Tokens"),
            list(cuts),
            format_func=lambda name: _(cuts[name].label),
            default="words",
            required=True,
            wrap=True,
            key=f"own-data-unit-{kind}",
            persist_state="session",
            help="\n".join(f"- **{_(cut.label)}**: {_(cut.help)}" for cut in cuts.values()),
        )
        seed, test = _more(kind)
    raw = files or pasted
    if not raw:
        return None
    name = state.common_name([name for name, _content in files]) if files else ""
    content = b"".join(one for _name, one in files) or pasted.encode(errors="surrogatepass")
    data = hashlib.blake2b(kind.encode() + content, digest_size=8).hexdigest()
    layout = columns.chosen(data)
    cut_at = int(st.session_state.get(_key(data, "cut"), _CUT_AT[kind]))
    choices = TextChoices(
        st.session_state.get(_key(data, "encoding")),
        max(2, cut_at) if cut_at else None,
        bool(st.session_state.get(_key(data, "merge"), True)),
    )
    key = (kind, name, unit, seed, layout, choices, raw, test)
    report = state.read_once(
        key,
        lambda: inspect_text(
            kind,
            raw,
            name=name,
            unit=unit or "words",
            seed=seed,
            test=test,
            layout=layout,
            choices=choices,
        ),
    )
    return TextInput(report, data)


def _key(data: str, choice: str) -> str:
    return f"own-data-{choice}-{data}"


def _files(label: str, key: str, help_text: str) -> tuple[tuple[str, bytes], ...]:
    files = st.file_uploader(
        label,
        accept_multiple_files=True,
        key=state.upload_key(key),
        max_upload_size=MAX_MEGABYTES,
        help=help_text,
    )
    return tuple((file.name, file.getvalue()) for file in files)


def _more(kind: str) -> tuple[int, tuple[tuple[str, bytes], ...] | None]:
    label = _("Your own test file")
    with st.expander(label if kind == "text" else _("Split"), icon=":material/tune:"):
        seed = 0
        if kind != "text":
            seed = st.number_input(
                _("Split seed"),
                0,
                9999,
                0,
                key="own-data-text-seed",
                persist_state="session",
                help=_("Draws a tenth each for validation and test."),
            )
        test = _files(label, f"test-{kind}", _("Not used for training."))
    return int(seed), test or None


def preview(draft: TextInput) -> None:
    report = draft.report
    st.header(_("Read: {name}", name=escape(report.name)), anchor=False)
    if report.refusal is not None:
        show.problem(report.refusal)
        st.button(
            _("Clear all fields"),
            key="own-data-again",
            icon=":material/undo:",
            on_click=state.begin_anew,
        )
        _choices(draft)
        _problems(report)
        return
    shelf.save_row(report.kind, report.name, lambda name: texts.prepare(report, name=name))
    _counts(report)
    _much_left_out(report)
    _choices(draft)
    for note in report.notes:
        st.markdown(f":orange[:material/warning:] {escape(_(note))}")
    _problems(report)
    _vocabulary(report)
    if report.kind == "text":
        _rows(report)
    _figures(report)


def _choices(draft: TextInput) -> None:
    """Ask how the data are read."""
    report = draft.report
    if report.encoding in {"", *TEXT_ENCODINGS}:
        key = _key(draft.data, "encoding")
        shelf.encoding_picker(_("Text encoding"), TEXT_ENCODINGS, report.encoding, key=key)
    columns.picker(report, draft.data)
    if report.layout is not None:
        st.number_input(
            _("Cut at (tokens)"),
            0,
            LONGEST,
            _CUT_AT[report.kind],
            key=_key(draft.data, "cut"),
            help=paragraph("own-data/cut", most=LONGEST),
            width=220,
        )
    if report.spellings:
        st.toggle(
            _("Merge labels that differ only in case"),
            value=True,
            key=_key(draft.data, "merge"),
            help=_("Uses the most frequent spelling."),
        )


def saved(own: OwnSet) -> None:
    try:
        report = state.read_once(own.id, lambda: report_of(own))
    except ValueError as error:
        show.problem(error)
        return
    _read_from(own)
    _vocabulary(report)
    _rows(report)
    _figures(report)
    name = f"{own.id}.{'txt' if own.kind == 'text' else 'tsv'}"
    file = partial(as_lines, report)
    shelf.download(_("Download as text"), file, name=name, mime="text/plain")


def nothing_yet() -> None:
    """Preview the built-in text, ready to save."""
    from tfm_core.data.corpus.task import read_text

    unit = str(st.session_state.get("own-data-unit-text") or "words")
    name = _("Alice in Wonderland, first chapter")
    report = inspect_text("text", read_text(), name=name, unit=unit)
    preview(TextInput(report))


def _counts(report: Report) -> None:
    parts = {part: f"{report.counts.get(part, 0):,}" for part in ("train", "validation", "test")}
    unit = _("Tokens") if report.kind == "text" else _("Examples")
    st.markdown(
        _(
            "{unit}: **{train}** training, **{validation}** validation, **{test}** test.",
            unit=unit,
            **parts,
        )
    )
    words = [_accounted(report.accounting)]
    if unused := columns.unused(report):
        words.append(_("Unused: {columns}.", columns=escape(", ".join(unused))))
    st.caption(" ".join(words))
    if report.test_accounting.total:
        st.caption(_("Test file: {words}", words=_accounted(report.test_accounting)))


def _accounted(accounting: Accounting) -> str:
    n, total = accounting.total, f"{accounting.total:,}"
    whole = ngettext("{n} line read", "{n} lines read", n, n=total)
    if accounting.in_answers:
        whole = ngettext("{n} answer in chats read", "{n} answers in chats read", n, n=total)
    elif accounting.in_entries:
        whole = ngettext("{n} entry read", "{n} entries read", n, n=total)
    parts = [_("{n} kept", n=f"{accounting.kept:,}")]
    for words, count in (
        (N_("{n} skipped"), accounting.left_out),
        (N_("{n} repeated"), accounting.repeated),
        (N_("{n} blank"), accounting.blank),
        (N_("{n} header"), accounting.header),
    ):
        if count:
            parts.append(_(words, n=f"{count:,}"))
    return f"{whole}: {', '.join(parts)}."


def _much_left_out(report: Report) -> None:
    """Warn if so many lines were skipped that the file is probably misread."""
    if not report.is_much_left_out:
        return
    worst = max(
        (report.accounting, report.test_accounting),
        key=lambda accounting: accounting.share_left_out,
    )
    is_test = worst is not report.accounting
    first = next(
        accounting for accounting in report.problems if accounting.is_in_test_file == is_test
    )
    words = _(
        "{share} of the file was skipped, {n} of {total}. First reason: {why}",
        share=whole_percent(worst.share_left_out),
        n=f"{worst.left_out:,}",
        total=f"{worst.total:,}",
        why=escape(_(first.sentence)),
    )
    st.warning(words, icon=":material/warning:")


def _vocabulary(report: Report) -> None:
    if not report.words:
        return
    src, *tgt = (f"{len(tokens):,}" for tokens in report.words)
    words = _("Vocabulary: **{src}** tokens", src=src)
    if report.kind == "pairs":
        words = _(
            "Vocabulary: **{src}** source tokens, **{tgt}** target tokens", src=src, tgt=tgt[0]
        )
    st.markdown(words)


def _problems(report: Report) -> None:
    n = sum(problem.n_lines for problem in report.problems)
    if not n:
        return
    label = ngettext("{n} line skipped", "{n} lines skipped", n, n=f"{n:,}")
    with st.expander(label, icon=":material/block:", expanded=len(report.problems) <= 3):
        for problem in report.problems[:_MAX_SAID]:
            st.caption(escape(_(problem.sentence)))
        more = len(report.problems) - _MAX_SAID
        if more > 0:
            st.caption(_("And {n} more.", n=f"{more:,}"))
            st.download_button(
                _("Download full list"),
                partial(_listed, report, language()),
                file_name="left-out.txt",
                mime="text/plain",
                icon=":material/download:",
                on_click="ignore",
                key="own-data-left-out",
            )


def _listed(report: Report, spoken: str) -> str:
    with speaking(spoken):
        return "\n".join(_(problem.sentence) for problem in report.problems) + "\n"


class _ColumnsRead(BaseModel):
    """The columns that a set was read from, and their names if the file has any."""

    columns: list[int] = Field(min_length=1)
    names: list[str] = []


def _read_from(own: OwnSet) -> None:
    try:
        read = _ColumnsRead.model_validate(own.details.get("read"))
    except ValidationError:
        return
    names = [*read.names, *[""] * len(read.columns)]
    listed = ", ".join(
        _("column {n}", n=at + 1) + (f" ({escape(name)})" if name else "")
        for at, name in zip(read.columns, names, strict=False)
    )
    st.caption(_("Read from {columns}.", columns=listed))


def _rows(report: Report) -> None:
    st.dataframe(
        pd.DataFrame(list(report.preview), columns=[_(column) for column in report.columns]),
        hide_index=True,
        height=210,
        key=f"own-data-rows-{report.kind}",
    )


def _figures(report: Report) -> None:
    if report.balance:
        show.figure(plots.labels(report.balance), _("Sentences per label."), key="own-data-labels")
    if report.lengths:
        sizes = {_(column): report.lengths[column] for column in report.columns}
        if report.kind == "labels":
            sizes.pop(_(report.columns[1]))
        show.figure(
            plots.lengths(sizes),
            _("Text length in tokens."),
            key="own-data-lengths",
        )
