"""What each head is worth: the model without it alone, head by head, as colours and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.i18n import _
from pages.knockouts import outcome, state
from pages.knockouts.outcome import Asked
from tfm_core.inspect.knockouts import measure
from tfm_core.inspect.knockouts.measure import Importance
from tfm_core.inspect.knockouts.parts import STACKS, SUBLAYERS, KnockedPart, heads_of, name_of
from tfm_core.runs.run import Run

_TABLE = "knockouts-table"


def has_heads(run: Run) -> bool:
    """Return whether the model of a run has heads at all."""
    return bool(heads_of(run.experiment))


def measured_heads(run: Run, asked: Asked, place: DeltaGenerator) -> dict[KnockedPart, Importance]:
    """Return what each head is worth, with a bar in its place while that is measured."""
    heads = heads_of(run.experiment)
    found: dict[KnockedPart, Importance] = {}
    for done, each in enumerate(measure.importances(run, asked.how, asked.n), 1):
        found[each.part] = each
        words = _("Head {done} of {all}, on {n} examples …")
        said = words.format(done=done, all=len(heads), n=f"{asked.n:,}")
        place.progress(done / len(heads), said)
    place.empty()
    return found


def offer(run: Run, asked: Asked, *, is_measured: bool) -> None:
    """Offer to measure every head, or say what the colours mean."""
    heads = heads_of(run.experiment)
    if not heads:
        st.caption(
            _(
                "A recurrent network has no heads, residual connections or causal mask. You can "
                "switch off the output of its attention, the summary that the decoder starts "
                "with, and reading backwards."
            )
        )
        return
    if is_measured:
        st.caption(
            _(
                "Numbers are heads; the stronger the colour, the more the loss rises without that "
                "head alone. "
                "“skip” is a residual connection."
            )
        )
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            _("Measure every head ({n})", n=len(heads)),
            type="primary",
            icon=":material/grid_view:",
            key="knockouts-measure",
            on_click=state.ask_heads,
            args=(asked.of(run),),
            help=_(
                "The model without each head alone, on the same {n} validation examples.",
                n=f"{asked.n:,}",
            ),
        )
        st.caption(_("Numbers are heads; “skip” is a residual connection."), width="content")


def table(
    run: Run, off: Sequence[KnockedPart], asked: Asked, worth: Mapping[KnockedPart, Importance]
) -> None:
    """Show every head in a row, the one that is missed most first, beside its gradient."""
    if not has_heads(run):
        st.info(_("A recurrent network has no heads; switch off its parts above."))
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
                help=_("Loss without this head minus loss with all; below 0 the head does harm."),
            ),
            "loss": st.column_config.NumberColumn(_("Loss without it"), format="%.4f"),
            "accuracy": st.column_config.NumberColumn(_("Right without it"), format="percent"),
            "gradient": st.column_config.ProgressColumn(
                _("By its gradient"),
                format="percent",
                min_value=0,
                max_value=1,
                help=_(
                    "The mean of |∂L/∂ξ| over the same examples, where L is the mean loss of one "
                    "example and ξ multiplies the head's output (Michel et al. 2019, Eq. 3), as a "
                    "share of the largest: all heads in one backward pass, a linear estimate. The "
                    "two orders differ where a head is missed little because others step in, or "
                    "much because zeros are far from its usual output."
                ),
            ),
        },
    )
    words = _(
        "Each head switched off alone ({how}), on {n} validation examples. Don't add rows up: "
        "two heads with the same job look worthless alone."
    )
    how = _("zero in its place") if asked.how == "zero" else _("its mean in its place")
    st.caption(words.format(how=how, n=f"{asked.n:,}"))
    _chosen(run, [each.part for each in ordered], off)


def _chosen(run: Run, parts: list[KnockedPart], off: Sequence[KnockedPart]) -> None:
    """Lead from a chosen row to its head, and switch it off by one press."""
    chosen = st.session_state[_TABLE].selection.rows
    part = parts[chosen[0]] if chosen and chosen[0] < len(parts) else parts[0]
    words = _("Switch on again: {part}") if part in off else _("Switch off: {part}")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            words.format(part=_(name_of(part))),
            icon=":material/power_settings_new:",
            key="knockouts-switch",
            help=_("Choose another head by its row in the table."),
            on_click=state.switch,
            args=(part.code,),
        )
        outcome.attention_link(run, part)
