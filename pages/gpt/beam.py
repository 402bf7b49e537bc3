"""Beam search: the likeliest texts so far, after each token."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from pages.i18n import _
from tfm_core.config import CorpusTaskConfig
from tfm_core.inspect.attention import trained
from tfm_core.inspect.text import gpt_writing
from tfm_core.inspect.text.gpt_writing import Hypothesis, Ids
from tfm_core.plots.language import visible
from tfm_core.runs.run import Run
from tfm_core.variants.units import UNITS


def part(run: Run, prompt: Ids) -> None:
    """Ask for width and length; show the beam after each token."""
    left, middle, right = st.columns(3)
    with left:
        width = st.number_input(
            _("Width"), 1, 16, 4, key="gpt-width", persist_state="session",
            help=_("Texts that stay in the running; 1 is greedy."),
        )  # fmt: skip
    with middle:
        length = st.number_input(
            _("Tokens to write"), 1, 100, 20, key="gpt-beam-length", persist_state="session"
        )
    searched = _search(
        str(run.folder), trained.checkpoint_mark(run), prompt, int(width), int(length), run
    )
    if not searched:
        st.caption(_("The prompt has ended already."))
        return
    with right:
        step = len(searched)
        if step > 1:
            step = st.slider(_("After token"), 1, len(searched), len(searched), key="gpt-beam-step")
    gap = UNITS[run.experiment.task_as(CorpusTaskConfig).unit].separator
    st.dataframe(_table(searched[step - 1], gap), hide_index=True, width="stretch")
    st.caption(
        _(
            "Best first. The score is the sum of ln p over what was written; a text that ended "
            "keeps its score. The likeliest text is often dull, or repeats itself: that is why "
            "language models are sampled (Holtzman et al. 2020)."
        )
    )


def _table(beams: list[Hypothesis], gap: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            _("Text"): [gap.join(visible(token) for token in beam.tokens) for beam in beams],
            _("Score (ln p)"): [round(beam.score, 3) for beam in beams],
            _("Probability"): [f"{math.exp(beam.score):.3g}" for beam in beams],
            _("Ended"): ["✓" if beam.is_done else "" for beam in beams],
        }
    )


@st.cache_data(show_spinner=False, max_entries=32)
def _search(
    folder: str, mark: int, prompt: Ids, width: int, length: int, _run: Run
) -> list[list[Hypothesis]]:
    return gpt_writing.search(_run, prompt, width=width, n=length)
