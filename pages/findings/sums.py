"""Sums: those that a model knows long after others, and a model so small that all of it is read."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.app import show
from pages.components.live_figure import live_figure
from pages.findings import recipe
from pages.i18n import N_, _, paragraph
from tfm_core.inspect.attention.trained import checkpoint_mark
from tfm_core.plots.chart import bands_of, cells, chart, name_colours
from tfm_core.plots.kinds import pale
from tfm_core.plots.model.walk import tensor_map
from tfm_core.plots.palette import BLUE, GREEN, GREY, VERMILION
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import whole_percent
from tfm_core.studies import adder, grokking
from tfm_core.studies.phenomenon import KNOWN, Phenomenon, first, over_runs
from tfm_core.studies.study import StudyRuns

_TABLE = 440  # pixels
_STATES = {  # of a sum; the trained ones are darker
    N_("new, wrong"): pale(GREY, 0.3),
    N_("new, right"): pale(GREEN, 0.5),
    N_("trained, wrong"): GREY,
    N_("trained, right"): GREEN,
}
_IN_A_ROW = 3  # maps
_ROW, _AROUND = 26, 90  # pixels


def draw_grokking(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Show the curves, the table of all sums, and the frequencies that the model adds with."""
    run = recipe.shown_run(chosen, trained)
    left, right = st.columns(2, gap="medium")
    with left:
        recipe.curves(chosen, trained)
        _known(chosen, trained)
    if run is None:
        return
    with right:
        if run.has_checkpoint:
            _table_of_sums(run)
    if len(run.snapshot_steps()) < 2:
        return
    st.markdown(_("**Frequencies of the embedding** over the training"))
    steps, shares = grokking.power_over_time(run)
    figure = cells(
        shares.T,
        "share",
        (0, float(shares.max(initial=0))),
        height=recipe.HEIGHT,
        says=_(
            "step {step}, frequency {k}: {share}",
            step="%{x}",
            k="%{y}",
            share="%{z:.1%}<extra></extra>",
        ),
        gap=0,
        x={"title": _("step"), "range": [int(steps[0]), int(steps[-1])]},
        y={"title": _("frequency"), "autorange": True},
        trace={"x": steps, "y": np.arange(1, shares.shape[1] + 1)},
    )
    live_figure(figure, key="discover-frequencies", name=_("Power of each frequency"))
    if recipe.is_done(run):
        _without(run)


def _known(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Show when each training knows the trained sums, and the new ones."""
    rows = []
    for arm in chosen.arms:
        curves = [
            recipe.ended(trained, arm, metric) for metric in ("accuracy", "validation-accuracy")
        ]
        if all(curves):
            steps = [
                [first(x, right >= KNOWN) for x, right in by_seed.values()] for by_seed in curves
            ]
            rows.append([_(arm.label), *map(over_runs, steps)])
    if rows:
        st.markdown(_("**Shown:** the step at which the sums are learned."))
        show.facts(rows, [_("Training"), _("Trained sums"), _("New sums")])
        st.caption(paragraph("discover/grokking-rule", share=whole_percent(KNOWN)))


def _table_of_sums(run: Run) -> None:
    steps = grokking.table_steps(run)
    step = recipe.step(N_("Step"), steps, "sums", look={"label_visibility": "collapsed"})
    is_right, is_trained = grokking.sum_table(run, step)
    st.markdown(
        _(
            "**Step {step}:** {trained} of the trained sums are right, {new} of the others.",
            step=f"{step:,}",
            trained=show.percent(float(is_right[is_trained].mean())),
            new=show.percent(float(is_right[~is_trained].mean())),
        )
    )
    states, colours = [_(name) for name in _STATES], list(_STATES.values())
    state_of = 2 * is_trained.astype(np.int8) + is_right
    figure = cells(
        state_of,
        bands_of(colours),
        (-0.5, len(states) - 0.5),
        height=_TABLE,
        top=30,
        says=_("{a} + {b}: {state}", a="%{y}", b="%{x}", state="%{customdata}<extra></extra>"),
        gap=0,
        x={"title": _("b"), "constrain": "domain"},
        y={"title": _("a"), "scaleanchor": "x"},
        trace={"customdata": np.array(states, object)[state_of]},
    )
    name_colours(figure, dict(zip(states, colours, strict=True)))
    live_figure(figure, key="discover-sums", name=_("All sums a + b"))


def _without(run: Run) -> None:
    keys = grokking.keys_of(run)
    chosen: list[int] = []
    if keys:
        chosen = st.pills(
            _("Key frequencies to project"),
            keys,
            default=keys,
            selection_mode="multi",
            key=f"discover-keys-{run.id}-{checkpoint_mark(run)}",
        )
    results = grokking.projected(run, tuple(sorted(chosen)))
    left, right = st.columns(2, gap="medium")
    with left:
        rows = {
            _("unchanged"): "whole",
            _("only these frequencies"): "only",
            _("without these frequencies"): "without",
        }
        show.facts(
            [[label, show.percent(results[name])] for label, name in rows.items()],
            [_("Embedding"), _("New sums right")],
        )
    with right:
        losses = {
            _("new sums, restricted"): ("whole_loss", "restricted"),
            _("trained sums, excluded"): ("trained_loss", "excluded"),
        }
        show.facts(
            [
                [label, *(f"{results[name]:.3f}" for name in names)]
                for label, names in losses.items()
            ],
            [_("Logits"), _("Loss"), _("Changed")],
        )
    st.caption(paragraph("discover/grokking-restricted"))


def draw_adder(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Show when the carry is learned, what it does, and every weight."""
    run = recipe.shown_run(chosen, trained)
    left, right = st.columns(2, gap="medium")
    with left:
        recipe.curves(chosen, trained)
    with right:
        _sizes(chosen, trained)
    if not recipe.is_done(run):
        return
    left, right = st.columns(2, gap="medium")
    with left:
        _carry(run)
    with right:
        _set_by_hand(run)
    _steps(run)
    st.markdown(_("**All {n} weights**", n=adder.n_parameters(run.experiment)))
    weights = adder.weights_of(run)
    for start in range(0, len(weights), _IN_A_ROW):
        for number, column in enumerate(st.columns(_IN_A_ROW), start):
            if number == len(weights):
                break
            name, values, *axes, caption = weights[number]
            with column:
                st.markdown(f"{_(name)} · {values.shape[0]} × {values.shape[1]}")
                rows, columns = ([str(_(label)) for label in labels] for labels in axes)
                _map(values, rows, columns, key=f"discover-weights-{number}", name=_(name))
                st.caption(_(caption))


def _sizes(chosen: Phenomenon, trained: StudyRuns) -> None:
    """Show the results of each model by seed."""
    rows = []
    for arm in chosen.arms:
        runs = list(filter(recipe.is_done, trained.by_arm[arm.name].values()))
        if not runs:
            continue
        when = [adder.learned(adder.history(run)) for run in runs]
        rows.append(
            [
                _(arm.label),
                f"{adder.n_parameters(runs[0].experiment)}",
                ", ".join(show.percent(adder.exact(run)) for run in runs),
                ", ".join("–" if step is None else f"{step:,}" for step in when),
            ]
        )
    if rows:
        show.facts(
            rows, [_("Model"), _("Parameters"), _("New sums right"), _("Carry learned by step")]
        )
        st.caption(paragraph("discover/adder-rule", share=whole_percent(adder.LEARNED)))


def _carry(run: Run) -> None:
    carry = adder.carry_of(run)
    st.markdown(
        _(
            "**The carry:** a linear probe reads it right in {share} of the columns.",
            share=show.percent(adder.read_right(carry)),
        )
    )
    figure = chart(
        adder.dots(carry),
        "points",
        x="before",
        y="read",
        colour="has",
        looks={
            False: {"name": _("no carry"), "colour": BLUE, "size": 5},
            True: {"name": _("carry"), "colour": VERMILION, "size": 5},
        },
        reference={"y": 0.5, "words": _("threshold")},
        height=recipe.HEIGHT,
    )
    live_figure(figure, key="discover-carry", name=_("The carry of each column"))


def _set_by_hand(run: Run) -> None:
    other, same = adder.set_by_hand(run)
    st.markdown(_("**Set the carry by hand:** the bit of the sum should flip."))
    show.facts(
        [
            [_("of a sum with the other carry"), show.percent(other)],
            [_("of a sum with the same carry"), show.percent(same)],
        ],
        [_("Output of attention"), _("Bit flips")],
    )
    st.caption(paragraph("discover/adder-by-hand"))


def _steps(run: Run) -> None:
    """Show what happens at the second bit of a column, from attention to the answer."""
    looks, arrives, explained, outputs, answer = adder.steps_of(run)
    st.markdown(_("**At the second bit of a column, b**, on average"))
    heads = [_("head {n}", n=n + 1) for n in range(len(looks))]
    stream = [f"x{n + 1}" for n in range(arrives.shape[1])]
    neurons = [f"n{n + 1}" for n in range(len(outputs))]
    totals = [str(total) for total in adder.TOTALS]
    places = [str(_(place)) for place in adder.PLACES]
    maps = (
        (_("1. Where the heads look"), looks.T, places, heads),
        (
            _("2. What a 1 adds to the stream ({share} explained)", share=show.percent(explained)),
            arrives,
            places[:-1],
            stream,
        ),
        (_("3. Neurons, by a + b + carry"), outputs, neurons, totals),
        (_("4. Logit of 1 minus 0, by a + b + carry"), answer[None], ["1 − 0"], totals),
    )
    for column, (title, values, rows, columns) in zip(st.columns(4), maps, strict=True):
        with column:
            st.caption(title)
            _map(values, rows, columns, key=f"discover-step-{title}", name=title)
    st.caption(paragraph("discover/adder-steps"))


def _map(values: Floats, rows: list[str], columns: list[str], *, key: str, name: str) -> None:
    """Show a few numbers (rows, columns) as a map that carries them, without a scale."""
    figure = tensor_map(values, rows, columns, row_title="", column_title="")
    figure.update_traces(showscale=False)
    margin = {"l": 4, "r": 4, "t": 4, "b": 4}
    figure.update_layout(height=_AROUND + _ROW * len(rows), margin=margin)
    live_figure(figure, key=key, name=name)
