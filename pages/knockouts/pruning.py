"""Heads taken away one after the other: how many can go before the model notices?"""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.knockouts import state
from pages.knockouts.link import DRAWN
from pages.knockouts.outcome import Asked
from pages.ui import show, view_link
from tfm_core.inspect.knockouts import measure
from tfm_core.inspect.knockouts.measure import HeadPruning
from tfm_core.inspect.knockouts.parts import heads_of
from tfm_core.plots import knockouts as plots
from tfm_core.runs.run import Run


def pruning(run: Run, asked: Asked) -> None:
    """Show the curve, or the press that measures it."""
    heads = heads_of(run.experiment)
    if not heads:
        st.info(_("A recurrent network has no heads to remove."))
        return
    question = asked.of(run)
    if not state.pruning_asked(question):
        words = _(
            "Removes the least important head, then the next, down to none, and does the same "
            "in {orders} random orders. {measurements} measurements on {n} validation examples."
        )
        n_orders = measure.RANDOM_ORDERS
        st.markdown(
            words.format(
                orders=n_orders,
                measurements=len(heads) + measure.n_measurements(len(heads), n_orders),
                n=f"{asked.n:,}",
            )
        )
        st.button(
            _("Take the heads away"),
            type="primary",
            icon=":material/content_cut:",
            key="knockouts-prune",
            on_click=state.ask_pruning,
            args=(question,),
        )
        return
    curves = _measured(run, asked)
    shown = view_link.choice(_("What is drawn"), DRAWN, is_labelled=False)
    show.figure(
        plots.pruning_curve(curves, shown),
        _words(curves),
        key=f"knockouts-pruning-{run.id}",
    )


def _measured(run: Run, asked: Asked) -> HeadPruning:
    place = st.empty()
    n_heads = len(heads_of(run.experiment))
    whole = n_heads + measure.n_measurements(n_heads)
    words = _("Measurement {done} of {all} …")
    found = []
    for done, each in enumerate(measure.importances(run, asked.how, asked.n), 1):
        found.append(each)
        place.progress(done / whole, words.format(done=done, all=whole))
    curves = None
    for step in measure.pruned(run, measure.least_first(found), asked.how, asked.n):
        if isinstance(step, HeadPruning):
            curves = step
        else:
            done = n_heads + step
            place.progress(min(1.0, done / whole), words.format(done=done, all=whole))
    place.empty()
    assert curves is not None
    return curves


def _words(curves: HeadPruning) -> str:
    """Say how many heads went before the accuracy fell by a point, in order and by chance."""
    first, n = curves.ordered[0], curves.removed[-1]
    kept = measure.heads_to_spare(curves)
    words = _(
        "Of {n} heads, {kept} could go in order of importance before accuracy fell by a point "
        "below {accuracy}; in {orders} random orders {by_chance}. Measured on {examples} "
        "examples; the order is of each head alone, taken once with all others there."
    )
    by_chance = sorted(set(measure.heads_to_spare_by_chance(curves)))
    span = _("{low} to {high}", low=by_chance[0], high=by_chance[-1])
    if len(by_chance) == 1:
        span = str(by_chance[0])
    return words.format(
        n=n,
        kept=kept,
        accuracy=show.percent(first.accuracy),
        orders=len(curves.by_chance),
        by_chance=span,
        examples=f"{first.n:,}",
    )
