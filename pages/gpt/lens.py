"""The logit lens, on a text and on a sum: what the model would answer after each layer."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import show, state, typed
from pages.ui.typed import escape
from tfm_core.config import TextTaskConfig
from tfm_core.inspect.compare.conclusions import settled
from tfm_core.inspect.text.gpt_reading import lens_logits, look_through, sum_of
from tfm_core.inspect.text.surprisal import example_text
from tfm_core.plots.texts.gpt import digit_map, lens_map
from tfm_core.runs.run import Run

MAX_SHOWN = 24  # columns with readable tokens


def part(run: Run) -> None:
    key = f"gpt-lens-{run.id}"
    st.session_state.setdefault(key, example_text(run, 16))
    text = st.text_input(_("Text"), key=key, help=_("Shows the first {n} tokens.", n=MAX_SHOWN - 1))
    figure(run, typed.within(text, 200))
    show.code(lens_logits)


def figure(run: Run, text: str) -> None:
    """Draw the lens on a text, or on the answer of an adder."""
    looked = look_through(run, text)
    show.figure(
        lens_map(*looked, state.theme(), most=MAX_SHOWN),
        _("Rows: what the model would predict after each layer."),
        key="gpt-lens-map",
    )
    st.markdown(_(settled([row[:MAX_SHOWN] for row in looked[1]])))


def sum_part(run: Run) -> None:
    n = run.experiment.task_as(TextTaskConfig).size
    key = f"gpt-sum-{run.id}"
    st.session_state.setdefault(key, f"{'8' * n}+{'1' * (n - 1)}7")
    text = st.text_input(_("A sum"), key=key, help=_("Up to {n} digits each, such as 12+34.", n=n))
    text = typed.within(text, 40)
    source, answer, truth, chances = sum_of(run, text)
    with st.container(border=True, horizontal=True, gap="medium", vertical_alignment="center"):
        for who, what in (
            (_("A sum"), source),
            (_("Model"), "".join(token for token in answer if token != "<eos>") or "–"),
            (_("Truth"), "".join((truth or ())[:-1]) or "–"),
        ):
            st.markdown(f":grey[{who}]  \n**{escape(what)}**", width="content")
        st.markdown(show.right_or_wrong(is_right=answer == truth), width="content")
        sure = show.percent(float(chances.to_numpy().max(1).prod()))
        st.markdown(_(":grey[Probability of this answer]  \n**{p}**", p=sure), width="content")
    show.figure(
        digit_map(truth or (), chances, state.theme()),
        _("Framed ✓: the true digit. Carries come from the right."),
        key="gpt-digits",
    )
    st.header(_("Logit lens"), anchor=False)
    figure(run, text)
