"""Parameters: where they are, what they cost, and how two models differ."""

import streamlit as st

from pages.architecture import activation as activation_view
from pages.architecture import costs, experts, table
from pages.i18n import _
from pages.ui import show
from pages.ui.address import view_link
from pages.ui.settings import model_choice, names_choice

show.header("parameters")
chosen, place, choices = model_choice.line("parameters")
with choices, view_link.warnings_in(place):
    scheme = names_choice.choice()
    other = model_choice.compared()
with place:
    table.metrics(chosen)
if other is not None:
    table.compare(chosen, other)
names = [_("Parameters"), _("Compute and memory"), _("Weights"), _("Activation")]
has_experts = getattr(chosen.model, "has_experts", False)
counts, compute, weights, activation, *routes = st.tabs(  # only what is open is computed and drawn
    [*names, *([_("Experts")] if has_experts else [])],
    key="parameters-tab",
    on_change="rerun",
)
if counts.open:
    with counts:
        table.table(chosen, scheme)
if compute.open:
    with compute:
        costs.page(chosen)
if weights.open:
    with weights:
        table.weights(chosen)
if activation.open:
    with activation:
        activation_view.view(chosen)
for tab in routes:
    if tab.open:
        with tab:
            experts.view(chosen)
