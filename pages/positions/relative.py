"""Relative positions: rotary, ALiBi and the buckets of T5."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.i18n import N_, _, paragraph
from pages.positions.learned import STEP
from pages.positions.waves import base, length, width
from pages.ui import show, state
from pages.ui.accounts import visitors
from pages.ui.runs import shown_run
from pages.ui.typed import escape
from tfm_core.config import RotaryConfig, built
from tfm_core.config.experiment import sequence_len
from tfm_core.inspect.positions import tables
from tfm_core.plots.model import positions as plots
from tfm_core.runs.run import Run
from tfm_core.variants.positions import Position
from tfm_core.variants.positions.inside import ROTARY, T5_BIAS

_CLOCKS = 6
_SEEDS = (0, 1)
_STACKS = {"encoder": N_("Encoder"), "decoder": N_("Decoder")}


def rotary() -> None:
    """Show pairs of dimensions that turn with position, and scores that know the offset only."""
    first, second, third = st.columns(3)
    with first:
        d_head = width(_("d_head"), 16, "rotary")
    with second:
        chosen_base = base("rotary", _base_of_run())
    with third:
        n = length("rotary", 48)
    position = st.slider(_("Position of the token"), 0, n - 1, min(5, n - 1), key="positions-turn")
    shown = list(range(max(0, position - 3), position + 1))
    turns = tables.turns(shown, d_head, chosen_base)[:, :_CLOCKS]
    show.figure(plots.hands(turns, shown), paragraph("positions/hands"), key="positions-hands")
    left, right = st.columns(2)
    lines, spreads = {}, []
    for seed in (None, *_SEEDS):
        scores = tables.rotary_scores(n, d_head, chosen_base, seed=seed)
        offsets, means, spread = tables.by_offset(scores)
        name = _("equal vectors") if seed is None else _("random pair {n}", n=seed + 1)
        lines[name] = means
        spreads.append(spread)
    with left:
        show.figure(
            plots.lines_by_offset(offsets, lines, _("score"), _("offset (key − query)")),
            paragraph("positions/offsets", spread=f"{max(spreads):.1e}"),
            key="positions-rotary-offset",
        )
    with right:
        show.figure(
            plots.matrix(
                tables.rotary_scores(n, d_head, chosen_base, seed=_SEEDS[0]),
                _("key position"),
                _("query position"),
                state.theme(),
                is_square=True,
            ),
            _("Random pair 1: diagonals have one colour."),
            key="positions-rotary-matrix",
        )
    show.code(tables.source_of("relative:Rotation"))


def _base_of_run() -> float:
    """Return the base of the run that is looked at, else the usual one."""
    run = shown_run.current_run()
    model = None if run is None or run.problem is not None else run.experiment.model
    if not isinstance(model, RotaryConfig) or model.position != ROTARY.name:
        return 10000.0
    return model.rope_theta


def added(kind: Position) -> None:
    """Show each head's bias by distance, and the weights that it leaves of equal scores."""
    assert kind.inside is not None
    first, second = st.columns(2)
    with first:
        n_heads = st.slider(_("Heads"), 1, 16, 8, key="positions-heads", persist_state="session")
    with second:
        n = length(kind.name, 32)
    bias, weights = tables.added_by_distance(kind, n_heads, n)
    names = [_("{n}: {slope}", n=head, slope=f"{-row[1]:.3g}") for head, row in enumerate(bias, 1)]
    left, right = st.columns(2)
    for column, name, lines, title, words in (
        (left, "bias", bias, _("added to the score"), _(kind.inside.by_distance)),
        (
            right,
            "weights",
            weights,
            _("weight"),
            _("The last query's weights for equal scores: steep heads read the last few tokens."),
        ),
    ):
        with column:
            figure = plots.lines_by_offset(
                np.arange(n), dict(zip(names, lines, strict=True)), title, _("distance (tokens)")
            )
            show.figure(figure, words, key=f"positions-{kind.name}-{name}")
    show.code(kind.functions[-1].source)


def buckets() -> None:
    """Show which offsets share a bucket, then the biases of the current run or the newest."""
    n = length("buckets", 48)
    offsets = np.arange(1 - n, n)
    both, causal = (
        tables.bucket_of(offsets, is_causal=is_causal).astype(np.float32)
        for is_causal in (False, True)
    )
    show.figure(
        plots.lines_by_offset(
            offsets,
            {
                _("both directions (encoder)"): both,
                _("backwards only (decoder)"): np.where(offsets <= 0, causal, np.nan),
            },
            _("bucket"),
            _("offset (key − query)"),
        ),
        paragraph("positions/buckets"),
        key="positions-buckets",
    )
    run = _run()
    if run is None:
        show.empty(_("No run has this bias yet."), _("Train one with the T5 bias"), "train")
    else:
        shown_run.recorded_note(run, key="positions")
        try:
            _learned(run)
        except ValueError as error:
            show.problem(error)
    show.code(tables.source_of("relative:bucket"))


def _learned(run: Run) -> None:
    step = shown_run.snapshot_step(run.snapshot_steps(), key=STEP)
    by_stack = tables.learned_biases(run.snapshot(step), sequence_len(run.experiment) - 1)
    for column, (stack, (offsets, biases)) in zip(
        st.columns(len(by_stack)), by_stack.items(), strict=True
    ):
        heads = {_("head {n}", n=i + 1): row for i, row in enumerate(biases)}
        with column:
            show.figure(
                plots.lines_by_offset(
                    offsets, heads, _("added to the score"), _("offset (key − query)")
                ),
                paragraph(
                    "positions/biases",
                    stack=_(_STACKS[stack]),
                    name=escape(run.meta.name),
                    step=f"{step:,}",
                ),
                key=f"positions-biases-{stack}",
            )


def _run() -> Run | None:
    """Return the current run where it has this bias, else the newest that has it and snapshots."""
    current = shown_run.current_run()
    for run in [*([] if current is None else [current]), *visitors.at_hand()]:
        is_known = run.problem is None and not run.experiment.task.is_foreign
        is_biased = is_known and built(run.experiment.model).position == T5_BIAS.name
        if is_biased and run.snapshot_steps():
            return run
    return None
