"""Parameters: where they are, what they cost, and how two models differ."""

from collections.abc import Callable
from dataclasses import replace

import streamlit as st

from pages.architecture import activation, costs, experts, table
from pages.architecture.link import TAB, TABS
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
views: dict[str, Callable[[], None]] = {
    "counts": lambda: table.table(chosen, scheme),
    "compute": lambda: costs.page(chosen),
    "weights": lambda: table.weights(chosen),
    "activation": lambda: activation.view(chosen),
    "experts": lambda: experts.view(chosen),
}
if not getattr(chosen.model, "has_experts", False):
    del views["experts"]
which = replace(TAB, names=tuple(views))
with view_link.warnings_in(place):
    view_link.warn(view_link.receive(which))
tabs = st.tabs([_(TABS[name]) for name in views], key=TAB.key, on_change="rerun")
for tab, (name, view) in zip(tabs, views.items(), strict=True):
    if tab.open:  # only what is open is computed and drawn
        view_link.say(TAB, name)
        with tab:
            view()
