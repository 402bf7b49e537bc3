"""A report on data: how they were read, their problems, and a preview."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
from pydantic import BaseModel, Field, ValidationError

from pages.app import show
from pages.app.address import view
from pages.app.typed import escape
from pages.i18n import N_, _, language, ngettext, paragraph, speaking
from pages.train.own_data import upload
from pages.train.own_data.upload import CUT_AT, ROLES, SCOPE, choice_key
from tfm_core.choices.config.image_tasks import MAX_NAME as MAX_CLASS_NAME
from tfm_core.data.user_data import kinds
from tfm_core.data.user_data.pictures import Split, arranged, as_zip, has_duplicates
from tfm_core.data.user_data.records import INSTRUCTION
from tfm_core.data.user_data.sets import SPLITS, UserSet
from tfm_core.data.user_data.texts import LONGEST, as_lines
from tfm_core.data.user_data.uploads import (
    ENCODINGS,
    TEXT_ENCODINGS,
    Accounting,
    ColumnLayout,
    Item,
    Report,
    n_lines,
)
from tfm_core.plots import examples as plots

_ICONS = {"warning": ":orange[:material/warning:]", "note": ":material/info:"}
_FOLDERS = {"splits": N_("Splits"), "classes": N_("Classes")}
_BY = {"file": N_("As named"), "seed": N_("Random")}
_MAX_LISTED = 50
_MAX_NAMES = 3
_MAX_UNUSED = 20
"""Unused columns shown at most."""


@dataclass(frozen=True)
class Splits:
    """How pictures are split: as their folders or files say, or at random."""

    by: str = view.choice(N_("Splits"), _BY)
    share: int = view.number(
        N_("Test share, %"),
        5,
        40,
        15,
        step=5,
        help=N_("The same share of each class."),
        when=lambda chosen: chosen.by == "seed",
        look={"width": 260},
    )


def preview(report: Report) -> None:
    """Show an upload as it was read, and offer to save it."""
    top = st.container()
    _ask(report)
    if report.kind == "pictures" and report.items:
        report = _arranged(report)
    with top:
        if report.refusal is None:
            upload.save_row(report)
            unit = _("Tokens") if report.kind == "text" else _("Examples")
            st.markdown(_("{unit}: {counts}", unit=unit, counts=counts(report.counts, "**{:,}**")))
            unused = escape(", ".join(_unused(report)))
            columns = _("Unused: {columns}.", columns=unused) if unused else ""
            st.caption(f"{_accounted(report.accounting)} {columns}")
            if report.test_accounting.total:
                st.caption(_("Test file: {words}", words=_accounted(report.test_accounting)))
        else:
            show.problem(report.refusal)
            is_chosen = report.kind == "pictures"
            again = _("Choose other files") if is_chosen else _("Clear all fields")
            key, icon = "own-data-again", ":material/undo:"
            st.button(again, key=key, icon=icon, on_click=upload.begin_anew)
    for level, sentence in report.findings:
        st.markdown(f"{_ICONS[level]} {escape(_(sentence))}")
    _skipped(report)
    if report.refusal is None or report.items:
        _contents(report, has_rows=report.kind == "text")


def saved(own: UserSet) -> None:
    try:
        report = upload.read_once(own.id, lambda: kinds.report_of(own))
    except ValueError as error:
        show.problem(error)
        return
    _read_from(own)
    _contents(report, has_rows=True)
    if own.kind == "pictures":
        _download(_("Download as zip"), lambda: as_zip(report), f"{own.id}.zip", "application/zip")
        return
    name = f"{own.id}.{'txt' if own.kind == 'text' else 'tsv'}"
    _download(_("Download as text"), lambda: as_lines(report), name, "text/plain")


def counts(numbers: Mapping[str, int], form: str = "{:,}") -> str:
    """Return a text with the number of examples or tokens of each split."""
    n = {part: form.format(numbers.get(part, 0)) for part in SPLITS}
    if not numbers.get("validation"):
        return _("{train} training and validation, {test} test.", **n)
    return _("{train} training, {validation} validation, {test} test.", **n)


def _accounted(accounting: Accounting) -> str:
    n, total = accounting.total, f"{accounting.total:,}"
    whole = {
        "lines": ngettext("{n} line read", "{n} lines read", n, n=total),
        "entries": ngettext("{n} entry read", "{n} entries read", n, n=total),
        "answers": ngettext("{n} answer in chats read", "{n} answers in chats read", n, n=total),
    }[accounting.counted]
    parts = [_("{n} kept", n=f"{accounting.kept:,}")]
    for label, count in (
        (N_("{n} skipped"), accounting.left_out),
        (N_("{n} repeated"), accounting.repeated),
        (N_("{n} blank"), accounting.blank),
        (N_("{n} header"), accounting.header),
        (N_("{n} from the operating system"), accounting.system),
    ):
        if count:
            parts.append(_(label, n=f"{count:,}"))
    return f"{whole}: {', '.join(parts)}."


def _skipped(report: Report) -> None:
    """List why lines or files are skipped; the first ones, and a file with all of them."""
    items = report.skipped
    if not (n := n_lines(items)):
        return
    label = ngettext("{n} line skipped", "{n} lines skipped", n, n=f"{n:,}")
    if report.accounting.counted == "entries":
        label = ngettext("{n} entry skipped", "{n} entries skipped", n, n=f"{n:,}")
    with st.expander(label, icon=":material/block:", expanded=len(items) <= 3):
        for item in items[:_MAX_LISTED]:
            st.caption(escape(_(item.reason)))
        more = len(items) - _MAX_LISTED
        if more > 0:
            st.caption(_("And {n} more.", n=f"{more:,}"))
            file = partial(_listed, items, language())
            _download(_("Download full list"), file, "left-out.txt", "text/plain")


def _listed(items: Sequence[Item], spoken: str) -> str:
    with speaking(spoken):
        return "\n".join(_(item.reason) for item in items) + "\n"


def _download(label: str, file: Callable[[], bytes | str], name: str, mime: str) -> None:
    icon = ":material/download:"
    st.download_button(label, file, file_name=name, mime=mime, icon=icon, on_click="ignore")


def _contents(report: Report, *, has_rows: bool) -> None:
    """Show the first pictures or rows, and the distribution of classes and lengths."""
    if report.words:
        src, tgt = (f"{len(report.words[at]):,}" for at in (0, -1))
        sizes = _("Vocabulary: **{src}** tokens", src=src)
        if report.kind == "pairs":
            sizes = _(
                "Vocabulary: **{src}** source tokens, **{tgt}** target tokens", src=src, tgt=tgt
            )
        st.markdown(sizes)
    if report.kind == "pictures":
        _pictures(report)
    elif has_rows:
        st.dataframe(
            pd.DataFrame(list(report.preview), columns=[_(column) for column in report.columns]),
            hide_index=True,
            height=210,
            key=f"own-data-rows-{report.kind}",
        )
    if report.balance:
        caption = _("Examples per class and split.")
        show.figure(plots.balance(report.balance), caption, key="own-data-balance")
    if report.lengths:
        shown = report.columns[: 1 if report.kind == "labels" else 2]
        lengths = {_(column): report.lengths[column] for column in shown}
        show.figure(plots.lengths(lengths), _("Text length in tokens."), key="own-data-lengths")


def _pictures(report: Report) -> None:
    """Show the number and form of the pictures, and the first of each class."""
    if not report.items:
        return
    by_class: dict[str, list[Any]] = {label: [] for label in report.balance}
    for item in report.items:
        by_class[item.label].append(item.content)
    n, n_classes = len(report.items), len(by_class)
    channels, size, _width = report.items[0].content.shape
    parts = [
        ngettext("**{n}** picture", "**{n}** pictures", n, n=f"{n:,}"),
        ngettext("**{n}** class", "**{n}** classes", n_classes, n=n_classes),
        _("{size} × {size} pixels", size=size),
        _("grey") if channels == 1 else _("colour"),
    ]
    st.markdown(" · ".join(parts))
    st.html(plots.strips(by_class))
    if n_classes > plots.MAX_STRIPS:
        st.caption(_("And {n} more classes.", n=n_classes - plots.MAX_STRIPS))


def _ask(report: Report) -> None:
    """Ask how to read ambiguous data; the guess is preselected."""
    guess, is_texts = report.read_as, report.kind != "pictures"
    encodings = TEXT_ENCODINGS if is_texts else ENCODINGS
    if guess.encoding in {"", *encodings}:
        names = list(encodings)
        st.selectbox(
            _("Text encoding") if is_texts else _("File name encoding"),
            names,
            index=names.index(guess.encoding) if guess.encoding else None,
            format_func=lambda name: _(encodings[name]),
            key=choice_key("encoding"),
            width=300,
        )
    if guess.layout is not None:
        _ask_for_columns(report, guess.layout)
        st.number_input(
            _("Cut at (tokens)"),
            0,
            LONGEST,
            CUT_AT[report.kind],
            key=choice_key("cut_at"),
            help=paragraph("own-data/cut", most=LONGEST),
            width=220,
        )
    if guess.merges_labels is not None:
        st.toggle(
            _("Merge labels that differ only in case"),
            value=True,
            key=choice_key("merges_labels"),
            help=_("Uses the most frequent spelling."),
        )
    if guess.folders is not None:
        listed = ", ".join(f"“{name}”" for name in report.names[:_MAX_NAMES])
        more = len(report.names) - _MAX_NAMES
        listed = _("{names} and {n} more", names=listed, n=more) if more > 0 else listed
        st.segmented_control(
            _("Meaning of the folders {names}", names=escape(listed)),
            list(_FOLDERS),
            format_func=lambda name: _(_FOLDERS[name]),
            default=guess.folders,
            required=True,
            key=choice_key("folders"),
        )
    if guess.is_turned is not None:
        st.toggle(
            _("Rotate pictures"),
            guess.is_turned,
            key=choice_key("is_turned"),
            help=_("Swaps rows and columns, as EMNIST needs."),
        )


def _arranged(read: Report) -> Report:
    """Ask for splits, duplicates and names of classes, and return pictures arranged so."""
    split = _split(read)
    key = "own-data-doubles"
    drops = has_duplicates(read) and st.toggle(_("Drop duplicate pictures"), key=key)
    table = {label: sum(counts) for label, counts in read.balance.items()}
    with st.expander(_("Rename, merge or drop classes"), icon=":material/edit:"):
        st.caption(_("Equal names merge; an empty name drops a class."))
        edited = st.data_editor(
            pd.DataFrame({"class": table.keys(), "n": table.values(), "name": table.keys()}),
            column_config={
                "class": st.column_config.TextColumn(_("Class"), disabled=True),
                "n": st.column_config.NumberColumn(_("Pictures"), disabled=True),
                "name": st.column_config.TextColumn(_("Name"), max_chars=MAX_CLASS_NAME),
            },
            hide_index=True,
            height=min(35 * (len(table) + 1) + 3, 320),
            key=f"own-data-classes-{hash(tuple(table))}",
        )
    typed = edited["name"].fillna("").astype(str).tolist()  # an emptied cell is NaN
    names = [] if typed == list(table) else typed
    return arranged(read, split, names=names, drops_duplicates=drops)


def _split(read: Report) -> Split:
    is_named = read.split["by"] == "file"
    by = view.choice(N_("Splits"), _BY, "file" if is_named else "seed")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        splits = view.ask(Splits, SCOPE, hidden=() if is_named else ("by",), by=by)
        if splits.by == "file":
            return Split(by="file")
        seed = st.number_input(
            _("Test seed"), 0, 9999, 0, key="own-data-seed", persist_state="session", width=150
        )
    return Split(seed=int(seed), share=splits.share / 100)


class _ColumnsRead(BaseModel):
    """The columns that a set was read from, and their names if the file has any."""

    columns: list[int] = Field(min_length=1)
    names: list[str] = []


def _read_from(own: UserSet) -> None:
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


def _ask_for_columns(report: Report, layout: ColumnLayout) -> None:
    if not report.sample:
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        for name, role in zip(ROLES, report.columns, strict=True):
            st.selectbox(
                _("Column: {role}", role=_(role)),
                range(len(report.sample[0])),
                index=getattr(layout, name),
                format_func=lambda at: _name(report, at),
                key=choice_key(f"column-{name}"),
                width=220,
                on_change=_swap,
                args=(name, layout),
            )
        st.toggle(
            _("First row is a header"),
            value=layout.has_header,
            key=choice_key("column-header"),
            disabled=not layout.has_header and bool(report.names),
        )
    roles = {layout.first: _(report.columns[0]), layout.second: _(report.columns[1])}
    order = [layout.first, layout.second]
    order += [at for at in range(len(report.sample[0])) if at not in order][:_MAX_UNUSED]
    heads = {at: f"{roles.get(at, _('not used'))} · {_name(report, at)}" for at in order}
    table = pd.DataFrame({heads[at]: [row[at] for row in report.sample] for at in order})
    st.dataframe(table, hide_index=True, height=210, key=f"own-data-sample-{report.kind}")


def _unused(report: Report) -> list[str]:
    layout = report.read_as.layout
    if layout is None or not report.sample:
        return []
    used = [_name(report, at) for at in (layout.first, layout.second)]
    joined = {part for name in used if name == INSTRUCTION for part in name.split(" + ")}
    names = [_name(report, at) for at in range(len(report.sample[0]))]
    names = [name for name in names if name not in {*used, *joined}]
    more = len(names) - _MAX_UNUSED
    return [*names[:_MAX_UNUSED], *([_("{n} more", n=more)] if more > 0 else [])]


def _name(report: Report, at: int) -> str:
    name = report.names[at] if at < len(report.names) else ""
    if name and report.names.count(name) == 1:
        return name[:40]
    return _("column {n}", n=at + 1)


def _swap(name: str, layout: ColumnLayout) -> None:
    """If both roles have the same column, give the other role the previous one."""
    first, second = (st.session_state[choice_key(f"column-{role}")] for role in ROLES)
    if first == second:
        other = ROLES[1 - ROLES.index(name)]
        st.session_state[choice_key(f"column-{other}")] = getattr(layout, name)
