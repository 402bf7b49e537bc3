"""What differs, and how far each run came: a row a run, a column for each setting that differs."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import streamlit as st

from pages.compare.names import Drawn
from pages.i18n import N_, _
from pages.ui import run_words, runs_access, show, state
from tfm_core.inspect.compare.curves import Figures, figures
from tfm_core.inspect.compare.differences import Difference, differences
from tfm_core.plots.comparison import style_of

MAX_COLUMNS = 5
"""Settings that stand in the table of figures; more have a table of their own."""
_WIDTH, _HEIGHT = 46, 10
_MIN_SORTED = 3


def part(shown: Sequence[Drawn]) -> None:
    """Show the figures of the runs beside what differs between them."""
    rows = differences([one.run.experiment for one in shown])
    found = [figures(runs_access.curves(one.run)) for one in shown]
    is_wide = len(rows) > MAX_COLUMNS
    settings = [] if is_wide else list(rows)
    st.html(_table(shown, settings, found, _order(settings, found)))
    if not rows and len(shown) > 1:
        st.caption(_("These runs have identical settings."))
    if is_wide:
        words = _("All {n} settings that differ", n=len(rows))
        with st.expander(words, icon=":material/difference:"):
            st.html(_settings(shown, rows))


@dataclass(frozen=True, slots=True)
class Order:
    """By which column the rows stand, "" as they were chosen, and in which order of the runs."""

    column: str
    is_falling: bool
    numbers: tuple[int, ...]


def _order(settings: Sequence[Difference], found: Sequence[Figures]) -> Order:
    """Ask by which column the rows stand, where there are enough of them to ask."""
    everything = tuple(range(len(found)))
    if len(found) < _MIN_SORTED:
        return Order("", False, everything)
    values: dict[str, Sequence[object]] = {row.field: row.values for row in settings}
    labels = {row.field: _(row.label) for row in settings}
    for column in _shown_columns(found):
        values[column.field] = [getattr(one, column.field) for one in found]
        labels[column.field] = _(column.head)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        wanted = st.selectbox(
            _("Order of the runs"),
            ["", *values],
            format_func=lambda field: (
                _("sorted by: {column}", column=labels[field])
                if field
                else _("in the order of the choice")
            ),
            key="compare-sort",
            label_visibility="collapsed",
            persist_state="session",
            width=340,
        )
        if not wanted:
            return Order("", False, everything)
        is_falling = st.toggle(_("largest first"), key="compare-falling", persist_state="session")
    return Order(wanted, is_falling, ordered(values[wanted], is_falling=is_falling))


def ordered(values: Sequence[object], *, is_falling: bool) -> tuple[int, ...]:
    """Return the places of values in their order, numbers as numbers; None stands last."""
    known = [number for number, value in enumerate(values) if value is not None]

    def key(number: int) -> tuple[int, float, str]:
        value = values[number]
        if isinstance(value, int | float):
            return 0, float(value), ""
        return 1, 0.0, str(value).casefold()

    known.sort(key=key, reverse=is_falling)
    return (*known, *(number for number, value in enumerate(values) if value is None))


def _shown_columns(found: Sequence[Figures]) -> list[Column]:
    return [column for column in _COLUMNS if any(column.said(one) for one in found)]


def _table(
    shown: Sequence[Drawn],
    settings: Sequence[Difference],
    found: Sequence[Figures],
    order: Order,
) -> str:
    columns = _shown_columns(found)
    heads = {"": _("Run")} | {row.field: _(row.label) for row in settings}
    heads |= {column.field: _(column.head) for column in columns} | {"trained": _("Trained")}
    lines = []
    for number in order.numbers:
        one = shown[number]
        cells = [_(row.said[number]) for row in settings]
        cells += [column.said(found[number]) or "–" for column in columns]
        cells.append(_trained(one))
        lines.append(
            f"<tr>{_name(one)}{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        )
    return _framed(heads, lines, order)


def _settings(shown: Sequence[Drawn], rows: Sequence[Difference]) -> str:
    """Return all settings that differ, a row each; a column a run."""
    heads = {"": _("Setting"), **{one.run.id: one.name for one in shown}}
    lines = [
        f'<tr><th scope="row">{escape(_(row.label))}</th>'
        + "".join(f"<td>{escape(_(said))}</td>" for said in row.said)
        + "</tr>"
        for row in rows
    ]
    return _framed(heads, lines)


def _framed(heads: Mapping[str, str], lines: Sequence[str], order: Order | None = None) -> str:
    """Return a table. heads: by the field of their column, the order's among them."""
    top = "".join(_head(field, head, order) for field, head in heads.items())
    return (
        f'<div class="compared" tabindex="0" role="region" aria-label="{escape(_("Figures"))}">'
        f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _head(field: str, head: str, order: Order | None) -> str:
    if order is None or not field or field != order.column:
        return f'<th scope="col">{escape(head)}</th>'
    way, mark = ("descending", "▼") if order.is_falling else ("ascending", "▲")
    return f'<th scope="col" aria-sort="{way}">{escape(head)} {mark}</th>'


def _name(one: Drawn) -> str:
    """Return the cell of a run: its line, and its name, which opens it in another tab."""
    address = escape(state.address("train", {"run": one.run.id}))
    opens = escape(_("Open {name}", name=one.run.meta.name))
    return (
        f'<th scope="row"><img src="{swatch(one.slot)}" alt="" width="{_WIDTH}" '
        f'height="{_HEIGHT}"> <a href="{address}" target="_blank" title="{opens}">'
        f"{escape(one.name)}</a></th>"
    )


def swatch(slot: int) -> str:
    """Return the line of a run as the address of a picture."""
    own = style_of(slot)
    picture = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}">'
        f'<line x1="1" x2="{_WIDTH - 1}" y1="5" y2="5" stroke="{own.colour}" stroke-width="3" '
        f'stroke-dasharray="{own.svg_dash}"/></svg>'
    )
    return f"data:image/svg+xml;base64,{base64.b64encode(picture.encode()).decode()}"


def _trained(one: Drawn) -> str:
    status = one.run.status
    words = _(run_words.said(status, one.run.outcome).label)
    if status.state != "finished":
        words += f", {run_words.progress(status)}"
    return f"{words}, {show.duration(status.seconds)}" if status.seconds else words


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _share(value: float | None) -> str:
    return "" if value is None else show.percent(value)


def _at(said: str, step: int | None) -> str:
    return f"{said} ({step:,})" if said and step is not None else said


@dataclass(frozen=True, slots=True)
class Column:
    """A figure: the field of ``Figures`` by which it is sorted, its head, and how it is said."""

    field: str
    head: str
    said: Callable[[Figures], str]


_COLUMNS = (
    Column(
        "n_parameters",
        N_("Parameters"),
        lambda one: "" if not one.n_parameters else f"{one.n_parameters:,}",
    ),
    Column("loss", N_("Validation loss"), lambda one: _number(one.loss)),
    Column(
        "best_loss",
        N_("Lowest (step)"),
        lambda one: _at(_number(one.best_loss), one.best_loss_step),
    ),
    Column("accuracy", N_("Validation accuracy"), lambda one: _share(one.accuracy)),
    Column(
        "best_accuracy",
        N_("Highest (step)"),
        lambda one: _at(_share(one.best_accuracy), one.best_accuracy_step),
    ),
    Column("sequences", N_("Validation, whole"), lambda one: _share(one.sequences)),
    Column("test_accuracy", N_("Test accuracy"), lambda one: _share(one.test_accuracy)),
    Column("test_sequences", N_("Test, whole"), lambda one: _share(one.test_sequences)),
)
