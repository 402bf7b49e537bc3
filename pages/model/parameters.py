"""Parameters: where they are, what they cost, and how two models differ."""

import streamlit as st

from pages.ui import model_choice, model_costs, model_table, show
from pages.ui.words import _

show.header("parameters")
left, right = st.columns(2)
with left:
    chosen = model_choice.chosen()
with right:
    other = model_choice.other()
model_table.metrics(chosen)
if other is not None:
    model_table.compare(chosen, other)
counts, compute, weights = st.tabs(  # only what is open is computed and drawn
    [_("Parameters"), _("Compute and memory"), _("Weights")],
    key="parameters-tab",
    on_change="rerun",
)
if counts.open:
    with counts:
        model_table.table(chosen)
if compute.open:
    with compute:
        model_costs.page(chosen)
if weights.open:
    with weights:
        model_table.weights(chosen)
