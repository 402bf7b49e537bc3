"""The logit lens: what the model would answer if it stopped after each layer."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import show, state, typed
from tfm_core.inspect.attention import trained
from tfm_core.inspect.conclusions import settled
from tfm_core.inspect.text.gpt_reading import LensReading, look_through
from tfm_core.inspect.text.logit_lens import lens_logits
from tfm_core.inspect.text.surprisal import example_text
from tfm_core.plots.gpt import lens_map
from tfm_core.runs.run import Run

MAX_SHOWN = 24  # columns whose tokens can be read


def part(run: Run) -> None:
    key = f"gpt-lens-{run.id}"
    st.session_state.setdefault(key, example_text(run, 16))
    text = st.text_input(_("Text"), key=key, help=_("Shows the first {n} tokens.", n=MAX_SHOWN - 1))
    figure(run, typed.within(text, 200))
    show.code(lens_logits)


def figure(run: Run, text: str) -> None:
    """Draw the lens on a text, or on the answer of an adder."""
    looked = _look(str(run.folder), trained.checkpoint_mark(run), text, run)
    show.figure(
        lens_map(looked, state.theme(), most=MAX_SHOWN),
        _("Each row: what the model would predict after each layer. Where does the answer appear?"),
        key="gpt-lens-map",
    )
    st.markdown(_(settled([row[:MAX_SHOWN] for row in looked.says])))


@st.cache_data(show_spinner=False, max_entries=32)
def _look(folder: str, mark: int, text: str, _run: Run) -> LensReading:
    return look_through(_run, text)
