"""Heads taken away one after the other: how many can go before the model notices?"""

from __future__ import annotations

import streamlit as st

from pages.i18n import _, paragraph
from pages.knockouts import state
from pages.knockouts.link import DRAWN
from pages.knockouts.outcome import Asked
from pages.ui import show, view_link
from tfm_core.inspect.knockouts import measure
from tfm_core.inspect.knockouts.measure import Pruning
from tfm_core.inspect.knockouts.parts import heads_of
from tfm_core.plots import knockouts as plots
from tfm_core.runs.run import Run


def pruning(run: Run, asked: Asked) -> None:
    """Show the curve, or the press that measures it."""
    heads = heads_of(run.experiment)
    if not heads:
        st.info(_("A recurrent network has no heads."))
        return
    question = asked.of(run)
    if not state.pruning_asked(question):
        n_orders = measure.RANDOM_ORDERS
        st.markdown(
            paragraph(
                "knockouts/remove-heads",
                orders=n_orders,
                measurements=len(heads) + measure.n_measurements(len(heads), n_orders),
                n=f"{asked.n:,}",
            )
        )
        st.button(
            _("Remove the heads"),
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


def _measured(run: Run, asked: Asked) -> Pruning:
    place = st.empty()
    n_heads = len(heads_of(run.experiment))
    total = n_heads + measure.n_measurements(n_heads)

    def progress(done: int) -> None:
        words = _("Measurement {done} of {all} …", done=done, all=total)
        place.progress(min(1.0, done / total), words)

    worth = []
    for done, each in enumerate(measure.importances(run, asked.how, asked.n), 1):
        worth.append(each)
        progress(done)
    curves = None
    for step in measure.pruned(run, measure.least_first(worth), asked.how, asked.n):
        if isinstance(step, Pruning):
            curves = step
        else:
            progress(n_heads + step)
    place.empty()
    assert curves is not None
    return curves


def _words(curves: Pruning) -> str:
    """Return how many heads went before the accuracy fell by a point, in order and by chance."""
    by_chance = sorted(set(measure.heads_to_spare_by_chance(curves)))
    return paragraph(
        "knockouts/heads-to-spare",
        n=curves.removed[-1],
        spare=measure.heads_to_spare(curves),
        accuracy=show.percent(curves.ordered[0].accuracy),
        orders=len(curves.by_chance),
        by_chance="–".join(str(n) for n in dict.fromkeys((by_chance[0], by_chance[-1]))),
        examples=f"{curves.ordered[0].n:,}",
    )
