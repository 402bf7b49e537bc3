"""Sentence pairs, labelled sentences and texts: pasted or a file, what was read, what is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import pandas as pd
import streamlit as st

from pages.i18n import N_, _, ngettext
from pages.own_data import shelf, state
from pages.ui import show
from pages.ui.typed import escape
from pages.ui.uploaded import MOST_MEGABYTES
from tfm_core.data.own import texts
from tfm_core.data.own.look import as_lines, report_of
from tfm_core.data.own.report import Report
from tfm_core.data.own.sets import MOST_NAME, OwnSet
from tfm_core.data.own.texts import inspect_text
from tfm_core.data.own.tokens import CUTS
from tfm_core.plots import own_data as plots
from tfm_core.variants.units import UNITS

_MOST_SAID = 50
_ENDINGS = {
    "pairs": ["csv", "tsv", "tab", "txt", "json", "jsonl", "ndjson"],
    "labels": ["csv", "tsv", "tab", "txt", "json", "jsonl", "ndjson"],
    "text": ["txt", "md"],
}
_TITLES = {
    "pairs": N_("Add your pairs"),
    "labels": N_("Add your sentences"),
    "text": N_("Add your text"),
}
_PASTE = {
    "pairs": N_("Paste: a pair a line"),
    "labels": N_("Paste: a sentence and its label a line"),
    "text": N_("Paste a text"),
}
_HOW = {
    "pairs": N_(
        "Two columns with a tab, comma, semicolon or | between them, or JSON lines. A first line "
        "of names such as source and target is a header."
    ),
    "labels": N_(
        "Two columns with a tab, comma, semicolon or | between them, or JSON lines: a sentence and "
        "one of at least two labels."
    ),
    "text": N_(
        "The first 80 % are learned, the rest measures what was learned; with a test file of your "
        "own, 90 % are."
    ),
}
_LIKE = {
    "pairs": "good morning\tguten Morgen\nthank you\tdanke",
    "labels": "I liked every minute\tgood\nnever again\tbad",
    "text": "It was a bright cold day in April …",
}


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """What was read and is not kept yet."""

    report: Report


def add(kind: str) -> Draft | None:
    """Ask for data of a kind; return what was read, None before there is any."""
    with st.container(border=True, gap="small"):
        st.header(_(_TITLES[kind]), anchor=False)
        pasted = st.text_area(
            _(_PASTE[kind]),
            key=state.upload_key(f"paste-{kind}"),
            height=110,
            placeholder=_LIKE[kind],
            help=_(_HOW[kind]),
        )
        file = st.file_uploader(
            _("Or a file"),
            type=_ENDINGS[kind],
            key=state.upload_key(f"file-{kind}"),
            max_upload_size=MOST_MEGABYTES,
        )
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
        seed, is_swapped, test = _more(kind)
    raw = file.getvalue() if file is not None else (pasted or "")
    if not raw:
        return None
    name = "" if file is None else file.name
    key = (kind, name, unit, seed, is_swapped, raw, test)
    return Draft(
        state.read_once(
            key,
            lambda: inspect_text(
                kind,
                raw,
                name=name,
                unit=unit or "words",
                seed=seed,
                test=test,
                is_swapped=is_swapped,
            ),
        )
    )


def _more(kind: str) -> tuple[int, bool, bytes | None]:
    """Ask how the rows are split, which column is which, and for a test file."""
    if kind == "text":
        with st.expander(_("A test file of your own"), icon=":material/tune:"):
            return 0, False, _test_file(kind)
    with st.expander(_("Split and columns"), icon=":material/tune:"):
        seed = st.number_input(
            _("Seed of the split"), 0, 9999, 0, key="own-data-text-seed", persist_state="session",
            help=_("A tenth each for validation and test; the same seed draws the same ones."),
        )  # fmt: skip
        is_swapped = st.toggle(
            _("Swap the columns"), key="own-data-swap", help=_("The second one is what is read.")
        )
        test = _test_file(kind)
    return int(seed), bool(is_swapped), test


def _test_file(kind: str) -> bytes | None:
    test = st.file_uploader(
        _("A test file of your own"),
        type=_ENDINGS[kind],
        key=state.upload_key(f"test-{kind}"),
        max_upload_size=MOST_MEGABYTES,
        help=_("Its lines are the test, and nothing of it is learned from."),
    )
    return None if test is None else test.getvalue()


def preview(draft: Draft) -> None:
    """Show what was read, what is wrong with which line, and offer to keep it."""
    report = draft.report
    st.header(_("Read: {name}").format(name=escape(report.name)), anchor=False)
    if report.refusal is not None:
        show.problem(report.refusal)
        _problems(report)
        st.button(
            _("Empty the fields"), key="own-data-again", icon=":material/undo:",
            on_click=state.begin_anew,
        )  # fmt: skip
        return
    _keep(report)
    _counts(report)
    for note in report.notes:
        st.markdown(f":orange[:material/warning:] {escape(_(note))}")
    _problems(report)
    _shown(report)


def look(own: OwnSet) -> None:
    """Show the rows of a set that is kept."""
    try:
        report = state.look_once(own.id, lambda: report_of(own))
    except ValueError as error:
        show.problem(error)
        return
    _shown(report)
    name = f"{own.id}.{'txt' if own.kind == 'text' else 'tsv'}"
    file = partial(as_lines, report)
    shelf.download(_("Download as text"), file, name=name, mime="text/plain")


def nothing_yet() -> None:
    """Show the text that comes with the app, which one press takes as a set."""
    from tfm_core.data.corpus.book import read_text

    unit = str(st.session_state.get("own-data-unit-text") or "words")
    name = _("Alice in Wonderland, first chapter")
    report = inspect_text("text", read_text(), name=name, unit=unit)
    preview(Draft(report))


def _keep(report: Report) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        name = st.text_input(
            _("Name of the set"),
            key=state.name_key(report.kind, report.name[:MOST_NAME]),
            max_chars=MOST_NAME,
            width=320,
        )
        st.button(
            _("Keep this set"),
            type="primary",
            icon=":material/save:",
            key="own-data-keep",
            help=_("It is written beside the runs of this machine; then it can be learned."),
            on_click=_kept,
            args=(report, (name or "").strip()),
        )


def _kept(report: Report, name: str) -> None:
    shelf.keep(lambda: texts.prepare(report, name=name))


def _counts(report: Report) -> None:
    parts = {part: f"{report.counts.get(part, 0):,}" for part in ("train", "validation", "test")}
    what = _("tokens") if report.kind == "text" else _("lines")
    words = _(
        "**{train}** {what} to learn from, **{validation}** to watch it, **{test}** to test it "
        "once."
    )
    st.markdown(words.format(what=what, **parts))


def _vocabulary(report: Report) -> None:
    """Say how many different tokens the training part has."""
    if not report.words:
        return
    src = f"{len(report.words[0]):,}"
    words = _("Vocabulary: **{src}** different tokens").format(src=src)
    if report.kind == "pairs":
        words = _("Vocabulary: **{src}** different tokens in sources, **{tgt}** in targets").format(
            src=src, tgt=f"{len(report.words[1]):,}"
        )
    st.markdown(words)


def _problems(report: Report) -> None:
    n = len(report.problems)
    if not n:
        return
    label = ngettext("{n} line was left out", "{n} lines were left out", n).format(n=f"{n:,}")
    with st.expander(label, icon=":material/block:", expanded=n <= 3):
        for problem in report.problems[:_MOST_SAID]:
            st.caption(escape(_(problem.sentence)))
        if n > _MOST_SAID:
            st.caption(_("And {n} more.").format(n=f"{n - _MOST_SAID:,}"))


def _shown(report: Report) -> None:
    """Show the vocabulary, the first rows as a table, their lengths, and examples per label."""
    _vocabulary(report)
    names = [_(column) for column in report.columns]
    st.dataframe(
        pd.DataFrame(list(report.preview), columns=names),
        hide_index=True,
        height=210,
        key=f"own-data-rows-{report.kind}",
    )
    if report.balance:
        show.figure(
            plots.labels(report.balance),
            _("How many sentences each label has. Uneven ones flatter the accuracy."),
            key="own-data-labels",
        )
    if report.lengths:
        sizes = {_(column): report.lengths[column] for column in report.columns}
        if report.kind == "labels":
            sizes.pop(names[1])
        show.figure(
            plots.lengths(sizes),
            _("How long the texts are, in tokens. The longest ones decide the memory."),
            key="own-data-lengths",
        )
