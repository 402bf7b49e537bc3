"""Parameters: where they are, what they cost, and how two models differ."""

import streamlit as st

from pages.architecture import activation as activation_view
from pages.architecture import costs, table
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
counts, compute, weights, activation = st.tabs(  # only what is open is computed and drawn
    [_("Parameters"), _("Compute and memory"), _("Weights"), _("Activation")],
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
