"""Superposition: five features in two dimensions, at ten sparsities."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np
import pandas as pd
import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.lessons import bar
from pages.app.model import question
from pages.app.typed import escape
from pages.components.live_figure import live_figure
from pages.findings import recipe
from pages.i18n import _, ngettext, paragraph
from tfm_core import settings
from tfm_core.plots.chart import chart
from tfm_core.plots.films import planes
from tfm_core.plots.palette import BLUE, COLOURS, GREY
from tfm_core.probe.types import Floats
from tfm_core.sentences import whole_percent
from tfm_core.studies import superposition as core
from tfm_core.studies.phenomenon import spread
from tfm_core.studies.superposition import KEPT, LABELS, TOLERANCE, ToyTraining

NAME = "superposition"
N_SEEDS = 5
TICK = 0.6
"""Seconds between two looks at a training."""
DENSE = 0
"""Place of the densest features among the sparsities: the control."""


def page() -> None:
    show.header(NAME)
    is_live = bool(core.TRAININGS.n_waiting)
    st.fragment(_draw, run_every=TICK if is_live else None)(is_live)


def _draw(was_live: bool) -> None:
    if was_live and not core.TRAININGS.n_waiting:
        state.draw_anew()  # once: redrawn, it no longer polls
    _buttons()
    _progress()
    if not question.guess(core.QUESTION, NAME):
        return
    st.markdown(_("**Expect:** {words}", words=_(core.QUESTION.because)))
    try:
        _look()
    except Exception as error:  # of the thread: shown once, and the seed can be trained again
        show.problem(error)
    recipe.cite(core.PAPER, core.ADDRESS, core.DIFFERS)


def _buttons() -> None:
    every, why_not = [asked.work for asked in core.begun()], visitors.why_not()
    if settings.read().only_shows:
        why_not = why_not or _("This server only shows trained runs.")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        pressed = None
        if not every and st.button(
            _("Train ten models, about {n}\u00a0s", n=core.SECONDS),
            type="primary",
            icon=":material/play_arrow:",
            key="superposition-start",
            disabled=bool(why_not),
            help=escape(why_not) or None,
        ):
            pressed = [0]
        if len(every) < N_SEEDS and st.button(
            ngettext("{n} seed", "{n} seeds", N_SEEDS, n=N_SEEDS),
            icon=":material/casino:",
            key="superposition-seeds",
            disabled=bool(why_not),
            help=escape(why_not) or _("Trains missing seeds."),
        ):
            pressed = list(range(N_SEEDS))
        done = [one.seconds for one in every if one.seconds is not None]
        if done:
            st.caption(
                _(
                    "Seeds trained on this server: {n}, {seconds:.1f} CPU-s each.",
                    n=len(done),
                    seconds=statistics.mean(done),
                )
            )
        bar.start("discover", _("Tour: eight findings"))
    if pressed is not None:
        core.start(pressed)
        state.draw_anew()


def _progress() -> None:
    if not core.TRAININGS.n_waiting:
        return
    waiting = [asked.work for asked in core.begun() if not asked.future.done()]
    if waiting:
        first = waiting[0]
        words = _("Seed {seed}: step {step}", seed=first.seed, step=f"{first.step:,}")
        st.progress(first.step / core.STEPS, words)
    else:
        st.caption(_("Looking for the lowest possible loss …"))


def _look() -> None:
    """Show the features of the first seed, the loss of all seeds, and what one feature does."""
    every, best = [], core.best_known()
    for asked in core.begun():
        if asked.is_void:
            asked.future.result()  # raises what stopped it
        every.append(asked.work)
    if not every or not every[0].snapshots:
        return
    first = every[0]
    seeds = [one for one in every if one.seconds is not None]
    found = core.found(seeds, best) if seeds and best is not None else None
    if found is not None:
        st.markdown(_verdict(found, len(seeds)))
    left, right = st.columns(2, gap="medium")
    with left:
        _planes(first)
    with right:
        if found is not None:
            _shares(seeds, found["best_share"].to_numpy())
            rule = paragraph("discover/superposition-rule", length=KEPT, degrees=f"{TOLERANCE:.0f}")
            st.caption(rule)
    if found is not None:
        _interference(first)
        _table(found, len(seeds))


def _verdict(found: pd.DataFrame, n: int) -> str:
    """Return what formed where features are sparsest and densest."""
    sparse, dense = found.iloc[-1], found.iloc[DENSE]
    (shape, k), *_rest = sparse["shapes"].items()
    (control, k_control), *_rest = dense["shapes"].items()
    return _(
        "**Shown:** at a sparsity of {sparsity}: {shape}, formed at step {step}, in {k} of {n} "
        "seeds. Dense: {control}, in {k_control} of {n}.",
        sparsity=whole_percent(sparse["sparsity"]),
        shape=_(LABELS[shape]),
        step=spread(sparse["steps"] or [0]),
        k=k,
        n=n,
        control=_(LABELS[control]),
        k_control=k_control,
    )


def _planes(training: ToyTraining) -> None:
    is_done = training.seconds is not None
    shown = training.snapshots if is_done else training.snapshots[-1:]
    steps = np.array([step for step, _vectors, _biases in shown])
    vectors = np.array([vectors for _step, vectors, _biases in shown])
    st.markdown(
        _("**Features as vectors**, by sparsity: seed {seed}", seed=training.seed)
        if is_done
        else _("**Features as vectors**, by sparsity: step {step}", step=f"{steps[-1]:,}")
    )
    figure = planes(steps, vectors, core.SPARSITIES, height=recipe.HEIGHT + 80)
    live_figure(figure, key="superposition-planes", name=_("Features as vectors, by sparsity"))


def _shares(seeds: Sequence[ToyTraining], best: Floats) -> None:
    st.markdown(_("**Loss** as a share of that of keeping nothing"))
    found = np.array([one.shares for one in seeds])
    table = core.SHARES.table(
        {
            "sparsity": [whole_percent(float(one)) for one in core.SPARSITIES],
            "kept": core.loss_of_keeping(2) / core.loss_of_keeping(0),
            "best": best,
            "value": found.mean(0),
            "low": found.min(0),
            "high": found.max(0),
        }
    )
    grey = [{"colour": COLOURS["floor"], "dash": dash} for dash in ("dot", "solid")]
    figure = chart(
        table,
        x="sparsity",
        y={"kept": _("only two kept"), "best": _("lowest known")},
        looks=grey,
        marked=0,
        height=recipe.HEIGHT,
    )
    name = _("found: mean and range, n = {n}", n=len(seeds))
    look = {"name": name, "colour": BLUE, "size": 9}
    ends = ("low", "high")
    means = chart(table, "points", x="sparsity", y="value", ends=ends, looks=[look])
    figure.add_traces(means.data)
    live_figure(figure, key="superposition-shares", name=_("Loss by sparsity"))


def _table(found: pd.DataFrame, n: int) -> None:
    rows = []
    for row in found.itertuples():
        shapes = ", ".join(f"{_(LABELS[shape])} ({k})" for shape, k in row.shapes.items())
        spread = f" ± {row.sd:.3f}" if n > 1 else ""
        rows.append(
            [
                whole_percent(row.sparsity),
                _(LABELS[row.best]),
                shapes,
                f"{row.best_share:.3f}",
                f"{row.mean:.3f}{spread}",
            ]
        )
    with st.expander(_("All sparsities"), icon=":material/table:"):
        show.facts(
            rows,
            [
                _("Sparsity"),
                _("Lowest known: shape"),
                _("Found (seeds)"),
                _("Lowest known: loss"),
                _("Loss found"),
            ],
        )
        st.caption(paragraph("discover/superposition-best"))


def _interference(training: ToyTraining) -> None:
    """Let the visitor set features, and show what a sparse and the dense model answer."""
    st.markdown(_("**Switch features on:** which answers respond?"))
    places = list(range(core.N_SPARSITIES))
    left, middle, right = st.columns(3, gap="medium", vertical_alignment="bottom")
    with left:
        there = st.pills(
            _("Features that are there"),
            [number + 1 for number in range(core.N_FEATURES)],
            selection_mode="multi",
            default=[1],
            key="superposition-there",
        )
    with middle:
        value = st.slider(_("Their value"), 0.0, 1.0, 1.0, step=0.05, key="superposition-value")
    with right:
        chosen = st.select_slider(
            _("Sparsity in training"),
            places,
            value=places[-1],
            format_func=lambda place: whole_percent(float(core.SPARSITIES[place])),
            key="superposition-sparsity",
        )
    given = core.features([number - 1 for number in there], value)
    _step, vectors, biases = training.snapshots[-1]
    for n, (column, place, words) in enumerate(
        zip(
            st.columns(2, gap="medium"),
            (chosen, DENSE),
            (
                _("at a sparsity of {share}", share=whole_percent(float(core.SPARSITIES[chosen]))),
                _("on dense features"),
            ),
            strict=True,
        )
    ):
        answered = core.responses(vectors[place], biases[place], given)
        error = core.squared_error(given, answered)
        with column:
            st.markdown(_("**Trained {how}:** error {error}", how=words, error=f"{error:.3f}"))
            features = [str(n + 1) for n in range(len(given))]
            figure = chart(
                core.SHARES.table({"feature": features, "given": given, "answer": answered}),
                "bars",
                x="feature",
                y={"given": _("given"), "answer": _("answer")},
                looks=[{"colour": GREY}, {"colour": BLUE}],
                labels={"value": ""},
                up={"range": [0, 1.25], "tickformat": None},
                height=recipe.HEIGHT - 80,
            )
            live_figure(figure, key=f"superposition-answers-{n}", name=words)
    st.caption(paragraph("discover/superposition-interference"))


page()
