"""Beam search: the likeliest texts so far, after each token, beside what other ways find."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import beam_view
from tfm_core.config import CorpusTaskConfig
from tfm_core.inspect.attention import trained
from tfm_core.inspect.writing import beams
from tfm_core.inspect.writing.beams import BeamComparison, BeamSettings
from tfm_core.inspect.writing.source import Ids, continuing
from tfm_core.runs.run import Run
from tfm_core.variants.units import UNITS


def part(run: Run, prompt: Ids) -> None:
    left, middle, right = st.columns(3)
    with left:
        width = st.number_input(
            _("Width"), 1, 16, 4, key="gpt-width", persist_state="session",
            help=_("Texts kept per step; 1 is greedy."),
        )  # fmt: skip
    with middle:
        length = st.number_input(
            _("Tokens to write"), 1, 100, 20, key="gpt-beam-length", persist_state="session"
        )
    found = _compare(
        str(run.folder), trained.checkpoint_mark(run), prompt, int(width), int(length), run
    )
    if found is None:
        st.caption(_("The prompt has ended."))
        return
    with right:
        step = len(found.steps)
        if step > 1:
            step = st.slider(_("After token"), 1, step, step, key="gpt-beam-step")
    join = beam_view.joined_by(UNITS[run.experiment.task_as(CorpusTaskConfig).unit].separator)
    st.markdown(beam_view.conclusion(found, join))
    beam_view.ranking(found.steps[step - 1], found, join, key="gpt-beams")
    st.header(_("Other methods"), anchor=False)
    beam_view.others(found, join, key="gpt-beam-others")


@st.cache_data(show_spinner=False, max_entries=32)
def _compare(
    folder: str, mark: int, prompt: Ids, width: int, length: int, _run: Run
) -> BeamComparison | None:
    return beams.compare(continuing(_run, prompt, length), BeamSettings(width, length))
