"""Activation functions, and the inputs of a run's activation."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _, paragraph
from pages.ui import show
from pages.ui.settings.model_choice import Chosen
from tfm_core.inspect import activations
from tfm_core.plots.model import architecture as plots
from tfm_core.runs.run import Run
from tfm_core.sentences import whole_percent
from tfm_core.variants.activations import ACTIVATIONS


def view(chosen: Chosen) -> None:
    """Show every activation with its slope, this model's thick, and where its numbers lie."""
    name = getattr(chosen.model, "activation", None)
    if name is None:
        st.info(_("This model has no feed-forward layer, so no activation."))
        return
    label = _(ACTIVATIONS[name].label)
    show.prose(paragraph("architecture/activation", name=label))
    curves = {each: activations.curve(each) for each in ACTIVATIONS}
    left, right = st.columns(2)
    for column, place, title, words, key in (
        (left, 1, _("output"), _("This model's curve is thick."), "curve"),
        (right, 2, _("slope"), _("The slopes: what a gradient is multiplied by."), "slope"),
    ):
        with column:
            series = {
                each: (_label(each), curve[0], curve[place]) for each, curve in curves.items()
            }
            show.figure(plots.lines(series, name, title), words, key=f"activation-{key}")
    if chosen.run is not None:
        _own(chosen.run, label)
    else:
        st.caption(_("Choose a run to see its inputs."))


def _label(name: str) -> str:
    activation = ACTIVATIONS[name]
    return (
        _("SiLU, in {name}", name=_(activation.label))
        if activation.is_gated
        else _(activation.label)
    )


def _own(run: Run, label: str) -> None:
    try:
        layers = activations.given(run)
    except ValueError as error:
        st.info(_(error), icon=":material/info:")
        return
    show.figure(
        plots.histogram({layer.layer: layer.shares for layer in layers}, activations.edges()),
        _(
            "Inputs of {name} over all {n} examples; the outer bars hold everything beyond.",
            name=label,
            n=len(run.probe().items),
        ),
        key="activation-given",
    )
    show.facts(
        [
            (layer.layer, f"{layer.n:,}", whole_percent(layer.below), f"{layer.slope:.2f}")
            for layer in layers
        ],
        [_("layer"), _("numbers"), _("below 0"), _("mean slope")],
    )
