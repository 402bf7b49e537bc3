"""Superposition: five features in two dimensions, at ten sparsities."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from pages.app import show
from pages.components.live_figure import live_figure
from pages.components.moving_picture import curves
from pages.findings import recipe
from pages.i18n import _, paragraph
from tfm_core.plots.chart import chart
from tfm_core.plots.films import planes
from tfm_core.plots.palette import BLUE, COLOURS, GREY
from tfm_core.probe.types import Floats
from tfm_core.sentences import whole_percent
from tfm_core.studies import superposition as core
from tfm_core.studies.phenomenon import spread
from tfm_core.studies.superposition import KEPT, LABELS, TOLERANCE

_DENSE = 0
"""Place of the densest features among the sparsities: the control."""


def draw() -> None:
    """Show the features of the first seed, the loss of all seeds, and what one feature does."""
    vectors, biases, best = core.recorded()
    results = core.found(core.SNAPSHOTS, vectors, biases, best)
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown(_("**Features as vectors**, by sparsity: seed {seed}", seed=0))
        height = recipe.HEIGHT + 80
        figure = planes(core.SNAPSHOTS, vectors[0], core.SPARSITIES, height=height)
        live_figure(figure, key="superposition-planes", name=_("Features as vectors, by sparsity"))
    with right:
        _shares(core.shares_of(vectors[:, -1], biases[:, -1]), best[0])
        rule = paragraph("discover/superposition-rule", length=KEPT, degrees=f"{TOLERANCE:.0f}")
        st.caption(rule)
    st.markdown(_result(results, len(vectors)))
    st.fragment(_interference)(vectors[0, -1], biases[0, -1])
    _table(results)


def card() -> dict[str, Any]:
    """Draw where the arrows of the sparsest features went."""
    vectors, _biases, _best = core.recorded()
    return curves(vectors[0, :, -1].transpose(1, 2, 0), isSquare=True)


def _result(results: pd.DataFrame, n: int) -> str:
    """Return what formed where features are sparsest and densest."""
    sparse, dense = results.iloc[-1], results.iloc[_DENSE]
    (shape, k), *_rest = sparse["shapes"].items()
    (control, k_control), *_rest = dense["shapes"].items()
    return _(
        "**Shown:** at a sparsity of {sparsity}, {k} of {n} seeds form this shape at step {step}: "
        "{shape}. With dense features, {k_control} of {n} form {control}.",
        sparsity=whole_percent(sparse["sparsity"]),
        shape=_(LABELS[shape]),
        step=spread(sparse["steps"] or [0]),
        k=k,
        n=n,
        control=_(LABELS[control]),
        k_control=k_control,
    )


def _shares(losses: Floats, best: Floats) -> None:
    st.markdown(_("**Loss** as a share of the loss without any feature"))
    table = core.SHARES.table(
        {
            "sparsity": [whole_percent(float(sparsity)) for sparsity in core.SPARSITIES],
            "kept": core.loss_of_keeping(2) / core.loss_of_keeping(0),
            "best": best,
            "value": losses.mean(0),
            "low": losses.min(0),
            "high": losses.max(0),
        }
    )
    grey = [{"colour": COLOURS["floor"], "dash": dash} for dash in ("dot", "solid")]
    figure = chart(
        table,
        x="sparsity",
        y={"kept": _("two features kept"), "best": _("lowest known")},
        looks=grey,
        marked=0,
        height=recipe.HEIGHT,
    )
    name = _("mean and range of {n} seeds", n=len(losses))
    look = {"name": name, "colour": BLUE, "size": 9}
    ends = ("low", "high")
    means = chart(table, "points", x="sparsity", y="value", ends=ends, looks=[look])
    figure.add_traces(means.data)
    live_figure(figure, key="superposition-shares", name=_("Loss by sparsity"))


def _table(results: pd.DataFrame) -> None:
    rows = []
    for row in results.itertuples():
        shapes = ", ".join(f"{_(LABELS[shape])} ({k})" for shape, k in row.shapes.items())
        rows.append(
            [
                whole_percent(row.sparsity),
                _(LABELS[row.best]),
                shapes,
                f"{row.best_share:.3f}",
                f"{row.mean:.3f} ± {row.sd:.3f}",
            ]
        )
    with st.expander(_("All sparsities"), icon=":material/table:"):
        show.facts(
            rows,
            [
                _("Sparsity"),
                _("Best known shape"),
                _("Shapes (seeds)"),
                _("Lowest known loss"),
                _("Loss (seeds)"),
            ],
        )
        st.caption(paragraph("discover/superposition-best"))


def _interference(vectors: Floats, biases: Floats) -> None:
    """Let the visitor set features, and show what a sparse and the dense model answer.

    vectors: (S, F, 2), biases: (S, F).
    """
    st.markdown(_("**Switch features on:** which answers respond?"))
    places = list(range(core.N_SPARSITIES))
    left, middle, right = st.columns(3, gap="medium", vertical_alignment="bottom")
    with left:
        present = st.pills(
            _("Features present"),
            [number + 1 for number in range(core.N_FEATURES)],
            selection_mode="multi",
            default=[1],
            key="superposition-there",
        )
    with middle:
        value = st.slider(_("Value"), 0.0, 1.0, 1.0, step=0.05, key="superposition-value")
    with right:
        chosen = st.select_slider(
            _("Sparsity in training"),
            places,
            value=places[-1],
            format_func=lambda place: whole_percent(float(core.SPARSITIES[place])),
            key="superposition-sparsity",
        )
    given = core.features([number - 1 for number in present], value)
    sparse = _("at a sparsity of {share}", share=whole_percent(float(core.SPARSITIES[chosen])))
    models = {sparse: chosen, _("on dense features"): _DENSE}
    columns = st.columns(2, gap="medium")
    for n, (column, (training, place)) in enumerate(zip(columns, models.items(), strict=True)):
        answered = core.responses(vectors[place], biases[place], given)
        error = core.squared_error(given, answered)
        with column:
            st.markdown(_("**Trained {how}:** error {error}", how=training, error=f"{error:.3f}"))
            features = [str(n + 1) for n in range(len(given))]
            figure = chart(
                core.SHARES.table({"feature": features, "given": given, "answer": answered}),
                "bars",
                x="feature",
                y={"given": _("input"), "answer": _("answer")},
                looks=[{"colour": GREY}, {"colour": BLUE}],
                labels={"value": ""},
                up={"range": [0, 1.25], "tickformat": None},
                height=recipe.HEIGHT - 80,
            )
            live_figure(figure, key=f"superposition-answers-{n}", name=training)
    st.caption(paragraph("discover/superposition-interference"))
