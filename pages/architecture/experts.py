"""Mixture of experts: which token goes where, over the training, and how busy each expert is."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import streamlit as st

from pages.i18n import _, ngettext, paragraph
from pages.ui import show, state
from pages.ui.model.task_panels import example_name
from pages.ui.runs import runs_access, shown_run
from pages.ui.settings.model_choice import Chosen
from tfm_core.inspect import experts
from tfm_core.plots.model import experts as plots
from tfm_core.runs.run import Run

_STEP = "experts-step"


def view(chosen: Chosen) -> None:
    """Show the routes of one example, each expert's share over the steps, and their balance."""
    run = chosen.run
    if run is None:
        st.info(_("Choose a run to see where its tokens go."), icon=":material/info:")
        return
    try:
        steps = run.snapshot_steps()
        names = experts.layers(run.snapshot(steps[-1])) if steps else {}
        if not names:
            st.info(_("This run has no snapshot of its experts yet."), icon=":material/info:")
            return
        _routes(run, steps, names)
    except ValueError as error:
        show.problem(error)
        return
    _balance(run)


def _routes(run: Run, steps: list[int], names: Mapping[str, str]) -> None:
    items = run.probe().attended
    with st.container(horizontal=True, vertical_alignment="bottom"):
        module = st.selectbox(
            _("Layer"), list(names), format_func=lambda name: _(names[name]), key="experts-layer"
        )
        index = st.selectbox(
            _("Example"),
            range(len(items)),
            format_func=lambda n: example_name(run.experiment, items[n], n + 1),
            key="experts-example",
        )
        step = shown_run.snapshot_step(steps, key=_STEP)
    module, index = module or next(iter(names)), index or 0
    snapshot = run.snapshot(step)
    gates = snapshot.routing[module]
    routed = experts.routed(run.experiment, items[index], gates[min(index, len(gates) - 1)], module)
    show.figure(
        plots.routes(*routed, state.theme()),
        _("Step {n}: the share of each expert in each token.", n=f"{step:,}"),
        key="experts-routes",
    )
    loads, n_tokens = experts.loads(run, module, steps)
    _dead(loads.columns[loads.loc[step] == 0].tolist(), n_tokens)
    show.figure(
        plots.loads(loads.index.tolist(), loads.to_numpy(), step),
        _("How many of the examples’ tokens each expert gets, over the training."),
        key="experts-loads",
    )


def _dead(numbers: list[int], n_tokens: int) -> None:
    """Say which experts no token passes."""
    if not numbers:
        st.caption(_("Every expert gets some of the {n} tokens.", n=f"{n_tokens:,}"))
        return
    words = ngettext(
        "Dead at this step: expert {names} gets none of the {tokens} tokens.",
        "Dead at this step: experts {names} get none of the {tokens} tokens.",
        len(numbers),
        names=", ".join(map(str, numbers)),
        tokens=f"{n_tokens:,}",
    )
    st.caption(f":orange[:material/warning: {words}]")


def _balance(run: Run) -> None:
    """Show how unequally the batches were spread, step by step."""
    series = runs_access.curves(run).steps
    balance = series["balance"]
    known = np.isfinite(balance)
    if not known.any():
        return
    total = run.experiment.training.steps
    figure = plots.balance(series["step"][known], balance[known], total)
    weight = getattr(run.experiment.model, "balance_weight", 0.0)
    words = paragraph("architecture/balance", weight=f"{weight:g}")
    show.figure(figure, words, key="experts-balance")
