"""What each head is worth: the model without it alone, head by head, as colours and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.i18n import _, paragraph
from pages.knockouts import outcome, state
from pages.knockouts.outcome import Asked
from tfm_core.inspect.knockouts import measure
from tfm_core.inspect.knockouts.measure import Importance
from tfm_core.inspect.knockouts.parts import STACKS, SUBLAYERS, Part, heads_of, name_of
from tfm_core.runs.run import Run

_TABLE = "knockouts-table"


def has_heads(run: Run) -> bool:
    """Return whether the model of a run has heads at all."""
    return bool(heads_of(run.experiment))


def measured_heads(run: Run, asked: Asked, place: DeltaGenerator) -> dict[Part, Importance]:
    """Return what each head is worth, with a bar in its place while that is measured."""
    n_heads = len(heads_of(run.experiment))
    worth: dict[Part, Importance] = {}
    for done, each in enumerate(measure.importances(run, asked.how, asked.n), 1):
        worth[each.part] = each
        words = _("Head {done} of {all}, on {n} examples …", done=done, all=n_heads, n=asked.n)
        place.progress(done / n_heads, words)
    place.empty()
    return worth


def offer(run: Run, asked: Asked, *, is_measured: bool) -> None:
    """Offer to measure every head, or say what the colours mean."""
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
            on_click=state.ask_heads,
            args=(asked.of(run),),
        )
        st.caption(_("Numbers are heads; “skip” is a residual connection."), width="content")


def table(run: Run, off: Sequence[Part], asked: Asked, worth: Mapping[Part, Importance]) -> None:
    """Show every head in a row, the one that is missed most first, beside its gradient."""
    if not has_heads(run):
        st.info(_("A recurrent network has no heads."))
        return
    if not worth and run.meta.recorded and not asked.is_all:
        return  # it is being measured, and a bar says so
    if not worth:
        st.info(_("Press “Measure every head” first."))
        return
    slopes = measure.gradient_importances(run, asked.n)
    steepest = max(slopes.values()) or 1.0
    ordered = sorted(worth.values(), key=lambda each: -each.rise)
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
                _("Loss rises by"),
                format="%.4f",
                help=_("Below 0, the head does harm."),
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
    st.caption(paragraph("knockouts/heads-alone", n=f"{asked.n:,}"))
    _chosen(run, [each.part for each in ordered], off)


def _chosen(run: Run, parts: list[Part], off: Sequence[Part]) -> None:
    """Lead from a chosen row to its head, and switch it off by one press."""
    chosen = st.session_state[_TABLE].selection.rows
    part = parts[chosen[0]] if chosen and chosen[0] < len(parts) else parts[0]
    name = _(name_of(part))
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            _("Switch on again: {part}", part=name)
            if part in off
            else _("Switch off: {part}", part=name),
            icon=":material/power_settings_new:",
            key="knockouts-switch",
            on_click=state.switch,
            args=(part.code,),
        )
        outcome.attention_link(run, part)
