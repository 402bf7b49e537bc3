"""A table with a row per run: the settings that differ, and the results."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import streamlit as st

from pages.compare.choice import StyledRun
from pages.i18n import N_, _
from pages.ui import show, state
from pages.ui.runs import run_words, runs_access
from tfm_core.inspect.compare.curves import figures
from tfm_core.inspect.compare.differences import Difference, differences
from tfm_core.plots.training.comparison import style_of

MAX_COLUMNS = 5
"""Settings shown in the main table; more get their own table."""
_WIDTH, _HEIGHT = 46, 10
_MIN_SORTED = 3
Figures = Mapping[str, float | None]


def results(shown: Sequence[StyledRun]) -> None:
    rows = differences([entry.run.experiment for entry in shown])
    results = [figures(runs_access.curves(entry.run)) for entry in shown]
    is_wide = len(rows) > MAX_COLUMNS
    settings = [] if is_wide else list(rows)
    st.html(_table(shown, settings, results, _order(settings, results)))
    if not rows and len(shown) > 1:
        st.caption(_("These runs have identical settings."))
    if is_wide:
        words = _("All {n} settings that differ", n=len(rows))
        with st.expander(words, icon=":material/difference:"):
            st.html(_settings(shown, rows))


@dataclass(frozen=True, slots=True)
class RowOrder:
    """The sort column ("" for the chosen order), its direction, and the row order."""

    column: str
    is_falling: bool
    numbers: tuple[int, ...]


def _order(settings: Sequence[Difference], results: Sequence[Figures]) -> RowOrder:
    everything = tuple(range(len(results)))
    if len(results) < _MIN_SORTED:
        return RowOrder("", False, everything)
    values: dict[str, Sequence[object]] = {row.field: row.values for row in settings}
    labels = {row.field: _(row.label) for row in settings}
    for column in _shown_columns(results):
        values[column.field] = [result[column.field] for result in results]
        labels[column.field] = _(column.head)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        wanted = st.selectbox(
            _("Order of the runs"),
            ["", *values],
            format_func=lambda field: (
                _("Sort by {column}", column=labels[field]) if field else _("Keep the chosen order")
            ),
            key="compare-sort",
            label_visibility="collapsed",
            persist_state="session",
            width=340,
        )
        if not wanted:
            return RowOrder("", False, everything)
        is_falling = st.toggle(_("Largest first"), key="compare-falling", persist_state="session")
    return RowOrder(wanted, is_falling, ordered(values[wanted], is_falling=is_falling))


def ordered(values: Sequence[object], *, is_falling: bool) -> tuple[int, ...]:
    """Return indices in sorted order, numbers numerically; None comes last."""
    present = [number for number, value in enumerate(values) if value is not None]

    def key(number: int) -> tuple[int, float, str]:
        value = values[number]
        if isinstance(value, int | float):
            return 0, float(value), ""
        return 1, 0.0, str(value).casefold()

    present.sort(key=key, reverse=is_falling)
    return (*present, *(number for number, value in enumerate(values) if value is None))


def _shown_columns(results: Sequence[Figures]) -> list[ResultColumn]:
    return [column for column in _COLUMNS if any(column.said(result) for result in results)]


def _table(
    shown: Sequence[StyledRun],
    settings: Sequence[Difference],
    results: Sequence[Figures],
    order: RowOrder,
) -> str:
    columns = _shown_columns(results)
    heads = {"": _("Run")} | {row.field: _(row.label) for row in settings}
    heads |= {column.field: _(column.head) for column in columns} | {"trained": _("Trained")}
    lines = []
    for number in order.numbers:
        entry = shown[number]
        cells = [_(row.texts[number]) for row in settings]
        cells += [column.said(results[number]) or "–" for column in columns]
        cells.append(_trained(entry))
        lines.append(
            f"<tr>{_name(entry)}{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        )
    return _framed(heads, lines, order)


def _settings(shown: Sequence[StyledRun], rows: Sequence[Difference]) -> str:
    heads = {"": _("Setting"), **{entry.run.id: entry.name for entry in shown}}
    lines = [
        f'<tr><th scope="row">{escape(_(row.label))}</th>'
        + "".join(f"<td>{escape(_(said))}</td>" for said in row.texts)
        + "</tr>"
        for row in rows
    ]
    return _framed(heads, lines)


def _framed(heads: Mapping[str, str], lines: Sequence[str], order: RowOrder | None = None) -> str:
    """Return an HTML table. heads: column heads by field."""
    top = "".join(_head(field, head, order) for field, head in heads.items())
    return (
        f'<div class="compared" tabindex="0" role="region" aria-label="{escape(_("Figures"))}">'
        f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _head(field: str, head: str, order: RowOrder | None) -> str:
    if order is None or not field or field != order.column:
        return f'<th scope="col">{escape(head)}</th>'
    way, mark = ("descending", "▼") if order.is_falling else ("ascending", "▲")
    return f'<th scope="col" aria-sort="{way}">{escape(head)} {mark}</th>'


def _name(entry: StyledRun) -> str:
    address = escape(state.address("train", {"run": entry.run.id}))
    opens = escape(_("Open {name}", name=entry.run.meta.name))
    style = style_of(entry.slot)
    line = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}">'
        f'<line x1="1" x2="{_WIDTH - 1}" y1="5" y2="5" stroke="{style.colour}" stroke-width="3" '
        f'stroke-dasharray="{style.svg_dash}"/></svg>'
    )
    swatch = base64.b64encode(line.encode()).decode()
    return (
        f'<th scope="row"><img src="data:image/svg+xml;base64,{swatch}" alt="" width="{_WIDTH}" '
        f'height="{_HEIGHT}"> <a href="{address}" target="_blank" title="{opens}">'
        f"{escape(entry.name)}</a></th>"
    )


def _trained(entry: StyledRun) -> str:
    status = entry.run.status
    words = _(run_words.state_words(status, entry.run.outcome).label)
    if status.state != "finished":
        words += f", {run_words.progress(status)}"
    return f"{words}, {show.duration(status.seconds)}" if status.seconds else words


def _loss(value: float | None) -> str:
    return "" if value is None else f"{value:#.4g}"  # four digits each, 0.004200, too


def _share(value: float | None) -> str:
    return "" if value is None else show.percent(value)


def _at(text: str, step: float | None) -> str:
    return f"{text} ({step:,})" if text and step is not None else text


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column: its key of ``figures``, its head, and its text."""

    field: str
    head: str
    said: Callable[[Figures], str]


_COLUMNS = (
    ResultColumn(
        "n_parameters",
        N_("Parameters"),
        lambda result: f"{n:,}" if (n := result["n_parameters"]) else "",
    ),
    ResultColumn("loss", N_("Validation loss"), lambda result: _loss(result["loss"])),
    ResultColumn(
        "best_loss",
        N_("Lowest (step)"),
        lambda result: _at(_loss(result["best_loss"]), result["best_loss_step"]),
    ),
    ResultColumn("accuracy", N_("Validation accuracy"), lambda result: _share(result["accuracy"])),
    ResultColumn(
        "best_accuracy",
        N_("Highest (step)"),
        lambda result: _at(_share(result["best_accuracy"]), result["best_accuracy_step"]),
    ),
    ResultColumn("sequences", N_("Validation, whole"), lambda result: _share(result["sequences"])),
    ResultColumn(
        "test_accuracy", N_("Test accuracy"), lambda result: _share(result["test_accuracy"])
    ),
    ResultColumn(
        "test_sequences", N_("Test, whole"), lambda result: _share(result["test_sequences"])
    ),
)
