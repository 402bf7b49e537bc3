"""T5's relative bias: the bucket of every offset, and what the heads of a run learned for each."""

from __future__ import annotations

import numpy as np
import streamlit as st

from pages.i18n import N_, _, paragraph
from pages.positions.learned import step_of
from pages.positions.waves import length
from pages.ui import fitting_run, recorded, show, visitors
from pages.ui.typed import escape
from tfm_core.config.experiment import sequence_len
from tfm_core.inspect.positions import tables
from tfm_core.plots import positions as plots
from tfm_core.runs.run import Run
from tfm_core.variants.positions.t5_bias import T5_BIAS

_STACKS = {"encoder": N_("Encoder"), "decoder": N_("Decoder")}


def view() -> None:
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
                _("only what stands before (decoder)"): np.where(offsets <= 0, causal, np.nan),
            },
            _("bucket"),
            _("offset (key − query)"),
        ),
        paragraph("positions/buckets"),
        key="positions-buckets",
    )
    run = _run()
    if run is None:
        show.empty(
            _("No run has this bias yet."),
            _("Train one with the T5 bias"),
            "train",
        )
    else:
        recorded.note(run, key="positions")
        try:
            _learned(run)
        except ValueError as error:
            show.problem(error)
    show.code(tables.source_of("relative:bucket"))


def _learned(run: Run) -> None:
    step = step_of(run.snapshot_steps())
    found = tables.learned_biases(run.snapshot(step), sequence_len(run.experiment) - 1)
    for column, (stack, (offsets, biases)) in zip(
        st.columns(len(found)), found.items(), strict=True
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
    current = fitting_run.current()
    for run in [*([] if current is None else [current]), *visitors.at_hand()]:
        is_biased = run.problem is None and run.experiment.model.position == T5_BIAS.name
        if is_biased and run.snapshot_steps():
            return run
    return None
