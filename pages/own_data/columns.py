"""The columns of a file: their roles, and whether there is a header."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.i18n import _
from tfm_core.data.own.layout import ColumnLayout
from tfm_core.data.own.records import INSTRUCTION
from tfm_core.data.own.report import Report

_ROLES = ("first", "second")
_MAX_UNUSED = 20
"""Unused columns shown at most."""


def chosen(data: str) -> ColumnLayout | None:
    """Return the chosen layout, or None before a choice."""
    first, second, header = (st.session_state.get(_key(data, name)) for name in (*_ROLES, "header"))
    if not isinstance(first, int) or not isinstance(second, int) or first == second:
        return None
    return ColumnLayout(first, second, bool(header))


def picker(report: Report, data: str) -> None:
    layout = report.layout
    if layout is None or not report.sample:
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        for name, role in zip(_ROLES, report.columns, strict=True):
            st.selectbox(
                _("Column: {role}", role=_(role)),
                range(len(report.sample[0])),
                index=getattr(layout, name),
                format_func=lambda at: _name(report, at),
                key=_key(data, name),
                width=220,
                on_change=_swap,
                args=(data, name, layout),
            )
        st.toggle(
            _("First row is a header"),
            value=layout.has_header,
            key=_key(data, "header"),
            disabled=not layout.has_header and bool(report.names),
        )
    roles = {layout.first: _(report.columns[0]), layout.second: _(report.columns[1])}
    order = [layout.first, layout.second]
    order += [at for at in range(len(report.sample[0])) if at not in order][:_MAX_UNUSED]
    heads = {at: f"{roles.get(at, _('not used'))} · {_name(report, at)}" for at in order}
    table = pd.DataFrame({heads[at]: [row[at] for row in report.sample] for at in order})
    st.dataframe(table, hide_index=True, height=210, key=f"own-data-sample-{report.kind}")


def unused(report: Report) -> list[str]:
    if report.layout is None or not report.sample:
        return []
    used = [_name(report, at) for at in (report.layout.first, report.layout.second)]
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


def _swap(data: str, name: str, layout: ColumnLayout) -> None:
    """If both roles have the same column, give the other role the previous one."""
    first, second = (st.session_state[_key(data, role)] for role in _ROLES)
    if first == second:
        other = _ROLES[1 - _ROLES.index(name)]
        st.session_state[_key(data, other)] = getattr(layout, name)


def _key(data: str, name: str) -> str:
    return f"own-data-column-{name}-{data}"
