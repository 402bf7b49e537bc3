"""Beam search: the likeliest texts so far, after each token, beside what other ways find."""

from __future__ import annotations

import math

import pandas as pd
import streamlit as st

from pages.i18n import N_, _
from pages.ui.typed import escape
from tfm_core.config import CorpusTaskConfig
from tfm_core.inspect.attention import trained
from tfm_core.inspect.text import beam_comparison
from tfm_core.inspect.text.beam_comparison import BeamComparison
from tfm_core.inspect.text.gpt_writing import Hypothesis, Ids
from tfm_core.plots.language import visible
from tfm_core.runs.run import Run
from tfm_core.variants.units import UNITS

FOUND_BY = {
    "wider": N_("a beam of width {wider}"),
    "greedy": N_("greedy writing"),
    "sample": N_("a sample"),
}


def part(run: Run, prompt: Ids) -> None:
    """Ask for width and length; show the beam after each token, and whether it missed a text."""
    left, middle, right = st.columns(3)
    with left:
        width = st.number_input(
            _("Width"), 1, 16, 4, key="gpt-width", persist_state="session",
            help=_("Texts kept at each step; 1 is greedy."),
        )  # fmt: skip
    with middle:
        length = st.number_input(
            _("Tokens to write"), 1, 100, 20, key="gpt-beam-length", persist_state="session"
        )
    found = _compare(
        str(run.folder), trained.checkpoint_mark(run), prompt, int(width), int(length), run
    )
    if found is None:
        st.caption(_("The prompt has already ended."))
        return
    with right:
        step = len(found.steps)
        if step > 1:
            step = st.slider(_("After token"), 1, step, step, key="gpt-beam-step")
    gap = UNITS[run.experiment.task_as(CorpusTaskConfig).unit].separator
    st.markdown(_conclusion(found, gap))
    beams = [(_("Beam, width {n}").format(n=found.width), beam) for beam in found.steps[step - 1]]
    st.dataframe(_table(beams, gap), hide_index=True, width="stretch", key="gpt-beams")
    st.caption(
        _(
            "Best first. The score is the sum of ln p over the tokens written; a text "
            "that has ended keeps its score."
        )
    )
    st.header(_("The same prompt, written in other ways"), anchor=False)
    others = [
        (_(FOUND_BY[found_by]).format(wider=found.wider).capitalize(), text)
        for found_by, text in found.others
    ]
    st.dataframe(_table(others, gap), hide_index=True, width="stretch", key="gpt-beam-others")
    st.caption(
        _(
            "Samples are drawn from the model's probabilities, at temperature 1. Likely "
            "texts are often dull or repeat themselves, which is why language models are "
            "sampled (Holtzman et al. 2020)."
        )
    )


def _conclusion(found: BeamComparison, gap: str) -> str:
    """Say whether a likelier text than the beam's best was found, and how."""
    times = found.times_missed
    if times == 1:
        words = _(
            "**No likelier text was found** than the best of width {width}: not by a "
            "beam of width {wider}, by greedy writing, or among {n} samples. Only trying "
            "every text would prove that there is none."
        )
        return words.format(width=found.width, wider=found.wider, n=len(found.samples))
    found_by, text = found.others[0]
    words = _(
        "**Width {width} missed a text {times} times as likely**, which {found_by} found: "
        "“{text}”, ln p {score} instead of {best}. A beam drops beginnings that are unlikely so "
        "far, whatever might follow."
    ).format(
        width=found.width,
        times=_times(times),
        found_by=_(FOUND_BY[found_by]).format(wider=found.wider),
        text=escape(_text(text, gap)),
        score=f"{text.score:.2f}",
        best=f"{found.best.score:.2f}",
    )
    if found_by != "greedy" and found.width > 1 and found.greedy.score > found.best.score + 1e-6:
        words += " " + _(
            "Even greedy writing found a likelier one than this beam: {score}."
        ).format(score=f"{found.greedy.score:.2f}")
    return words


def _times(times: float) -> str:
    """Return a ratio as one says it: 1.3, 40, 5,000."""
    if times < 10:
        return f"{times:.2g}"
    digits = 10 ** (math.floor(math.log10(times)) - 1)
    return f"{round(times / digits) * digits:,}"


def _text(beam: Hypothesis, gap: str) -> str:
    return gap.join(visible(token) for token in beam.tokens)


def _table(found: list[tuple[str, Hypothesis]], gap: str) -> pd.DataFrame:
    return pd.DataFrame(
        {
            _("Found by"): [found_by for found_by, _beam in found],
            _("Text"): [_text(beam, gap) for _by, beam in found],
            _("Score (ln p)"): [round(beam.score, 3) for _by, beam in found],
            _("Probability"): [f"{math.exp(beam.score):.3g}" for _by, beam in found],
            _("Ended"): ["✓" if beam.is_done else "" for _by, beam in found],
        }
    )


@st.cache_data(show_spinner=False, max_entries=32)
def _compare(
    folder: str, mark: int, prompt: Ids, width: int, length: int, _run: Run
) -> BeamComparison | None:
    return beam_comparison.compare(_run, prompt, width=width, n=length)
