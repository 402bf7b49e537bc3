"""What differs, and how far each run came: a row a run, a column for each setting that differs."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from html import escape

import streamlit as st

from pages.compare.names import Drawn
from pages.i18n import N_, _
from pages.ui import run_words, runs_access, show, state
from tfm_core.inspect.compare.curves import Figures, figures
from tfm_core.inspect.compare.differences import Difference, differences
from tfm_core.plots.comparison import look

MOST_COLUMNS = 5
"""Settings that stand in the table of figures; more have a table of their own."""
_WIDTH, _HEIGHT = 46, 10


def part(shown: Sequence[Drawn]) -> None:
    """Show the figures of the runs beside what differs between them."""
    rows = differences([one.run.experiment for one in shown])
    found = [figures(runs_access.curves(one.run)) for one in shown]
    is_wide = len(rows) > MOST_COLUMNS
    settings = [] if is_wide else list(rows)
    st.html(_table(shown, settings, found))
    if not rows and len(shown) > 1:
        st.caption(_("These runs have the same settings, all of them."))
    if is_wide:
        words = _("All {n} settings that differ").format(n=len(rows))
        with st.expander(words, icon=":material/difference:"):
            st.html(_settings(shown, rows))


def _table(shown: Sequence[Drawn], settings: Sequence[Difference], found: Sequence[Figures]) -> str:
    columns = [column for column in _COLUMNS if any(column[1](one) for one in found)]
    heads = [_("Run"), *(_(row.label) for row in settings), *(_(head) for head, _said in columns)]
    heads += [_("Trained")]
    lines = []
    for number, one in enumerate(shown):
        cells = [_(row.said[number]) for row in settings]
        cells += [said(found[number]) or "–" for _head, said in columns]
        cells.append(_trained(one))
        lines.append(
            f"<tr>{_name(one)}{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
        )
    return _framed(heads, lines)


def _settings(shown: Sequence[Drawn], rows: Sequence[Difference]) -> str:
    """Return all settings that differ, a row each; a column a run."""
    heads = [_("Setting"), *(one.name for one in shown)]
    lines = [
        f'<tr><th scope="row">{escape(_(row.label))}</th>'
        + "".join(f"<td>{escape(_(said))}</td>" for said in row.said)
        + "</tr>"
        for row in rows
    ]
    return _framed(heads, lines)


def _framed(heads: Sequence[str], lines: Sequence[str]) -> str:
    top = "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
    return (
        f'<div class="compared" tabindex="0" role="region" aria-label="{escape(_("Figures"))}">'
        f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _name(one: Drawn) -> str:
    """Return the cell of a run: its line, and its name, which opens it in another tab."""
    address = escape(state.address("train", {"run": one.run.id}))
    opens = escape(_("Open {name}").format(name=one.run.meta.name))
    return (
        f'<th scope="row"><img src="{swatch(one.slot)}" alt="" width="{_WIDTH}" '
        f'height="{_HEIGHT}"> <a href="{address}" target="_blank" title="{opens}">'
        f"{escape(one.name)}</a></th>"
    )


def swatch(slot: int) -> str:
    """Return the line of a run as the address of a picture."""
    own = look(slot)
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


_COLUMNS: tuple[tuple[str, Callable[[Figures], str]], ...] = (
    (N_("Parameters"), lambda one: "" if not one.n_parameters else f"{one.n_parameters:,}"),
    (N_("Validation loss"), lambda one: _number(one.loss)),
    (N_("Lowest (step)"), lambda one: _at(_number(one.best_loss), one.best_loss_step)),
    (N_("Validation accuracy"), lambda one: _share(one.accuracy)),
    (N_("Highest (step)"), lambda one: _at(_share(one.best_accuracy), one.best_accuracy_step)),
    (N_("Whole sequences"), lambda one: _share(one.sequences)),
    (N_("Test accuracy"), lambda one: _share(one.test_accuracy)),
    (N_("Test, whole"), lambda one: _share(one.test_sequences)),
)
