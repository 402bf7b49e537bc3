"""The logit lens: what the model would answer if it stopped after each layer."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import show, state, typed
from tfm_core.inspect.attention import trained
from tfm_core.inspect.compare.conclusions import settled
from tfm_core.inspect.text.gpt_reading import LensReading, lens_logits, look_through
from tfm_core.inspect.text.surprisal import example_text
from tfm_core.plots.gpt import lens_map
from tfm_core.runs.run import Run

MAX_SHOWN = 24  # columns whose tokens can be read


def part(run: Run) -> None:
    """Ask for a short text and show the lens on it."""
    key = f"gpt-lens-{run.id}"
    st.session_state.setdefault(key, example_text(run, 16))
    text = st.text_input(
        _("A short text"),
        key=key,
        help=_("The first {n} tokens are shown.", n=MAX_SHOWN - 1),
    )
    figure(run, typed.within(text, 200))
    show.code(lens_logits)


def figure(run: Run, text: str) -> None:
    """Draw the lens on a text, of an adder on the answer to a source."""
    looked = _look(str(run.folder), trained.checkpoint_mark(run), text, run)
    show.figure(
        lens_map(looked, state.theme(), most=MAX_SHOWN),
        _(
            "Read a row from left to right: layer by layer a token's vector turns into a "
            "prediction of the next token. Look for the depth at which the answer "
            "appears, and for guesses on the way. The last column is the model’s answer."
        ),
        key="gpt-lens-map",
    )
    st.markdown(_(settled([row[:MAX_SHOWN] for row in looked.says])))


@st.cache_data(show_spinner=False, max_entries=32)
def _look(folder: str, mark: int, text: str, _run: Run) -> LensReading:
    return look_through(_run, text)
