"""Of which examples a run keeps the attention, said where they are chosen."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import show
from tfm_core.facts.storage import HALF, attention_numbers
from tfm_core.probe.types import Probe
from tfm_core.runs.run import Run


def say(run: Run, probe: Probe) -> None:
    """Say why some examples of a run have predictions and no maps; nothing where all have."""
    n = len(probe.attended)
    if n == len(probe.items):
        return
    numbers = attention_numbers(run.experiment)
    st.caption(
        _(
            "Snapshots save the attention of {n} of the {all} examples: all heads of all layers "
            "have {numbers} weights per example, {size} per snapshot. Predictions are saved for "
            "all.",
            n=n,
            all=len(probe.items),
            numbers=show.count(numbers),
            size=show.size(HALF * numbers),
        )
    )
