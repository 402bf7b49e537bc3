"""Importance of each head: colours, table and pruning curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.i18n import _, paragraph
from pages.knockouts import outcome, state
from pages.knockouts.link import DRAWN
from pages.knockouts.outcome import Measurement
from pages.ui import show
from pages.ui.address import view_link
from tfm_core.inspect.knockouts import measure
from tfm_core.inspect.knockouts.measure import Importance
from tfm_core.inspect.knockouts.parts import STACKS, SUBLAYERS, Part, heads_of, name_of
from tfm_core.plots.heads import knockouts as plots
from tfm_core.runs.run import Run

_TABLE = "knockouts-table"


def has_heads(run: Run) -> bool:
    return bool(heads_of(run.experiment))


def measured_heads(
    run: Run, measurement: Measurement, place: DeltaGenerator
) -> dict[Part, Importance]:
    """Return the importance of each head; show progress in ``place``."""
    n_heads = len(heads_of(run.experiment))
    importances: dict[Part, Importance] = {}
    for done, each in enumerate(measure.importances(run, measurement.how, measurement.n), 1):
        importances[each.part] = each
        words = _(
            "Head {done} of {all}, on {n} examples …", done=done, all=n_heads, n=measurement.n
        )
        place.progress(done / n_heads, words)
    place.empty()
    return importances


def offer(run: Run, measurement: Measurement, *, is_measured: bool) -> None:
    heads = heads_of(run.experiment)
    if not heads:
        st.caption(paragraph("knockouts/recurrent"))
        return
    if is_measured:
        st.caption(paragraph("knockouts/numbers-and-loss"))
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            _("Measure every head ({n})", n=len(heads)),
            type="primary",
            icon=":material/grid_view:",
            key="knockouts-measure",
            on_click=state.enqueue,
            args=("heads", measurement.of(run)),
        )
        st.caption(_("Numbers are heads."), width="content")


def table(
    run: Run,
    off: Sequence[Part],
    measurement: Measurement,
    importances: Mapping[Part, Importance],
) -> None:
    """Show every head in a row, the most important first, beside its gradient."""
    if not importances:
        if measurement.is_all or not run.meta.recorded:  # else a bar shows the measurement
            st.info(_("Measure every head first."))
        return
    slopes = measure.gradient_importances(run, measurement.n)
    steepest = max(slopes.values()) or 1.0
    ordered = sorted(importances.values(), key=lambda each: -each.rise)
    rows = [
        {
            "stack": _(STACKS[each.part.stack]),
            "attention": _(SUBLAYERS[each.part.sublayer][1]),
            "layer": (each.part.layer or 0) + 1,
            "head": (each.part.head or 0) + 1,
            "rise": each.rise,
            "loss": each.score.loss,
            "accuracy": each.score.accuracy,
            "gradient": slopes[each.part] / steepest,
        }
        for each in ordered
    ]
    frame = pd.DataFrame(rows)
    st.dataframe(
        frame,
        key=_TABLE,
        hide_index=True,
        on_select="rerun",
        selection_mode="single-row",
        height=min(420, 38 + 35 * len(rows)),
        column_config={
            "stack": _("Stack"),
            "attention": _("Attention"),
            "layer": st.column_config.NumberColumn(_("Layer"), width="small"),
            "head": st.column_config.NumberColumn(_("Head"), width="small"),
            "rise": st.column_config.NumberColumn(
                _("Loss rises by"), format="%.4f", help=_("Below 0, the head does harm.")
            ),
            "loss": st.column_config.NumberColumn(_("Loss without it"), format="%.4f"),
            "accuracy": st.column_config.NumberColumn(_("Right without it"), format="percent"),
            "gradient": st.column_config.ProgressColumn(
                _("By its gradient"),
                format="percent",
                min_value=0,
                max_value=1,
                help=paragraph("knockouts/by-gradient"),
            ),
        },
    )
    st.caption(paragraph("knockouts/heads-alone", n=f"{measurement.n:,}"))
    _chosen(run, [each.part for each in ordered], off)


def _chosen(run: Run, parts: list[Part], off: Sequence[Part]) -> None:
    """Offer to switch off the head of the chosen row, and to open it."""
    chosen = st.session_state[_TABLE].selection.rows
    part = parts[chosen[0]] if chosen and chosen[0] < len(parts) else parts[0]
    name = _(name_of(part))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            _("Switch on {part}", part=name) if part in off else _("Switch off {part}", part=name),
            icon=":material/power_settings_new:",
            key="knockouts-switch",
            on_click=state.switch,
            args=(part.code,),
        )
        outcome.attention_link(run, part)


def pruning(run: Run, measurement: Measurement) -> None:
    heads = heads_of(run.experiment)
    question = measurement.of(run)
    if not state.is_requested("pruning", question):
        show.prose(
            paragraph(
                "knockouts/remove-heads",
                orders=measure.RANDOM_ORDERS,
                measurements=len(heads) + measure.n_measurements(len(heads)),
                n=f"{measurement.n:,}",
            )
        )
        st.button(
            _("Remove the heads"),
            type="primary",
            icon=":material/content_cut:",
            key="knockouts-prune",
            on_click=state.enqueue,
            args=("pruning", question),
        )
        return
    curves = _measured(run, measurement)
    shown = view_link.choice(_("What is drawn"), DRAWN, is_labelled=False)
    show.figure(
        plots.pruning_curve(curves, shown),
        _words(curves),
        key=f"knockouts-pruning-{run.id}",
    )


def _measured(run: Run, measurement: Measurement) -> pd.DataFrame:
    place = st.empty()
    n_heads = len(heads_of(run.experiment))
    total = n_heads + measure.n_measurements(n_heads)

    def progress(done: int) -> None:
        words = _("Measurement {done} of {all} …", done=done, all=total)
        place.progress(min(1.0, done / total), words)

    importances = []
    for done, each in enumerate(measure.importances(run, measurement.how, measurement.n), 1):
        importances.append(each)
        progress(done)
    curves = None
    for step in measure.pruned(
        run, measure.least_first(importances), measurement.how, measurement.n
    ):
        if isinstance(step, int):
            progress(n_heads + step)
        else:
            curves = step
    place.empty()
    assert curves is not None
    return curves


def _words(curves: pd.DataFrame) -> str:
    """Return how many heads go before accuracy falls a point, in order and at random."""
    spare, *random = measure.heads_to_spare(curves)
    by_chance = sorted(random)
    return paragraph(
        "knockouts/heads-to-spare",
        n=curves["removed"].max(),
        spare=spare,
        accuracy=show.percent(curves["accuracy"].iloc[0]),
        orders=len(by_chance),
        by_chance="–".join(str(n) for n in dict.fromkeys((by_chance[0], by_chance[-1]))),
        examples=f"{curves['n'].iloc[0]:,}",
    )
