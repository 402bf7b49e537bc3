"""Statistics of every head, as a table to sort and filter."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from pages.attention import selection as chosen
from pages.attention.selection_link import Offer, Selection
from pages.i18n import _, paragraph
from pages.ui import show
from tfm_core.inspect.attention import alignment, head_labels, head_statistics
from tfm_core.inspect.attention.alignment import AlignmentScore
from tfm_core.inspect.attention.example import Example
from tfm_core.inspect.attention.head_labels import HeadLabels
from tfm_core.inspect.attention.head_roles import ROLES
from tfm_core.inspect.attention.head_statistics import HeadStatistics
from tfm_core.inspect.attention.trained import checkpoint_mark
from tfm_core.probe.labels import KINDS, modules_by_kind
from tfm_core.runs.record.snapshots import snapshot_path
from tfm_core.runs.run import Run

if TYPE_CHECKING:
    from streamlit.elements.lib.column_types import ColumnConfig

    from tfm_core.inspect.attention.validation import ValidationFigures


_FIGURE, _MIN, _ALL = "attention-filter", "attention-least", "attention-all-kinds"
_TABLE, _VALIDATION = "attention-heads-table", "attention-validation"


def table(run: Run, selection: Selection, offer: Offer, step: int) -> None:
    """Show the figures of the heads; a chosen row opens its head."""
    try:
        figures, scores, words = _measured(run, step)
    except ValueError as error:
        show.problem(error)
        return
    frame = head_statistics.table(run.experiment, figures, scores)
    unit = next(iter(figures.values())).unit
    _filter(frame, selection)
    if not st.session_state.get(_ALL) and len(offer.kinds) > 1:
        frame = frame[frame["kind"] == selection.kind]
    frame = frame.dropna(axis=1, how="all").reset_index(drop=True)
    repeated = ["module", "kind"] if frame["kind"].nunique() == 1 else ["module"]  # above, already

    st.dataframe(
        frame.drop(columns=repeated)
        .assign(label=frame["label"].map(_))
        .replace({"kind": {name: _(kind.label) for name, kind in KINDS.items()}}),
        key=_TABLE,
        hide_index=True,
        on_select=partial(open_picked, run, frame, _TABLE),
        selection_mode="single-row",
        height=min(460, 38 + 35 * max(1, len(frame))),
        column_config=_columns(unit),
    )
    st.caption(words)


def open_picked(run: Run, frame: pd.DataFrame, key: str) -> None:
    """Open the head of the row that was picked in a table of heads. key: of the table."""
    rows = st.session_state[key].selection.rows
    if rows and rows[0] < len(frame):
        row = frame.iloc[rows[0]]
        chosen.choose(
            run.id, kind=row["kind"], layer=int(row["layer"]) - 1, head=int(row["head"]) - 1
        )


def _measured(
    run: Run, step: int
) -> tuple[Mapping[str, HeadStatistics], Mapping[str, AlignmentScore], str]:
    """Return figures, alignment scores, and a sentence on where they were measured.

    Raises ValueError.
    """
    if run.has_checkpoint:
        st.toggle(
            _("Use the validation set"),
            key=_VALIDATION,
            help=_("Up to 1,000 validation examples, last checkpoint."),
        )
        if st.session_state.get(_VALIDATION):
            with st.spinner(_("Reading the validation set …")):
                figures = _over_validation(run.folder, checkpoint_mark(run))
            words = paragraph(
                "attention/heads-validation",
                n=f"{figures.n_examples:,}",
                all=f"{figures.n_all:,}",
                step=f"{figures.step:,}",
            )
            return figures.statistics, figures.alignment, words
    statistics = statistics_at(run, step)
    n_examples = next(iter(statistics.values())).n_examples
    words = paragraph("attention/heads-examples", n=n_examples, step=f"{step:,}")
    return statistics, alignments(run, step), words


def faded(run: Run, selection: Selection, step: int) -> list[bool]:
    name = st.session_state.get(_FIGURE)
    least = st.session_state.get(_MIN, 0.0)
    if not name or not least or selection.deeper != "heads":
        return []
    try:
        figures = statistics_at(run, step)
    except ValueError:
        return []
    frame = head_statistics.table(run.experiment, figures)
    if name not in frame:
        return []
    modules = modules_by_kind(run.experiment)[selection.kind]
    shown = frame[frame["module"].isin(modules)].sort_values(["layer", "head"])
    return [not value >= least for value in shown[name]]


def _filter(frame: pd.DataFrame, selection: Selection) -> None:
    shown = frame[frame["kind"] == selection.kind]
    names = [name for name in ("evenness", *ROLES) if name in shown and shown[name].notna().any()]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.selectbox(
            _("Show heads with a high share of"),
            names,
            index=None,
            format_func=lambda name: (
                _("even spread") if name == "evenness" else _(ROLES[name].label)
            ),
            key=_FIGURE,
            placeholder=_("all heads"),
            width=320,
        )
        if st.session_state.get(_FIGURE):
            st.slider(_("at least"), 0.0, 1.0, 0.5, 0.05, key=_MIN, width=260)
        if frame["kind"].nunique() > 1:
            st.toggle(_("All kinds of attention"), key=_ALL)


def _columns(unit: str) -> dict[str, ColumnConfig | str | None]:
    share = partial(st.column_config.ProgressColumn, format="percent", min_value=0, max_value=1)
    columns: dict[str, ColumnConfig | str | None] = {
        "kind": _("Attention"),
        "layer": st.column_config.NumberColumn(_("Layer"), width="small"),
        "head": st.column_config.NumberColumn(_("Head"), width="small"),
        "label": st.column_config.TextColumn(_("What it does"), width="large"),
        "aligned": share(_("On the true source")),
        "aer": None,
        "entropy": st.column_config.NumberColumn(
            _("Entropy (nats)"), format="%.2f", help=_("0: one key per query; log n: about n keys.")
        ),
        "evenness": share(_("Even spread"), help=_("100%: reads everything equally.")),
        "distance": st.column_config.NumberColumn(
            _("Distance ({unit})", unit=unit),
            format="%.2f",
            help=_("Mean distance from query to key."),
        ),
    }
    for name, role in ROLES.items():
        columns[name] = share(_(role.label).capitalize(), help=_(role.help))
    return columns


def statistics_at(run: Run, step: int) -> Mapping[str, HeadStatistics]:
    """Return statistics of every attention module on the run's examples. Raises ValueError."""
    run.snapshot(step)  # raises what is wrong with it
    return head_statistics.of_step(
        run.folder, step, snapshot_path(run.folder, step).stat().st_mtime_ns
    )


def alignments(run: Run, step: int) -> Mapping[str, AlignmentScore]:
    """Return the alignment scores of a step on the same examples; maybe none."""
    run.snapshot(step)
    return alignment.of_step(run.folder, step, snapshot_path(run.folder, step).stat().st_mtime_ns)


def labels(run: Run, example: Example, kind: str, *, is_own: bool = False) -> HeadLabels:
    """Return what each head of a kind of attention does, in the session's language.

    is_own: the example is the visitor's, not one of the run's.
    """
    if is_own:
        measured = head_labels.of_example(run.experiment, example, kind)
    else:
        measured = head_labels.of_step(run, example.step, kind)
    return HeadLabels(
        tuple(map(_, measured.short)), tuple(map(_, measured.whole)), measured.n_examples
    )


@lru_cache(maxsize=8)
def _over_validation(folder: Path, mark: int) -> ValidationFigures:
    from tfm_core.inspect.attention.validation import measured_over_validation

    return measured_over_validation(Run(folder))
