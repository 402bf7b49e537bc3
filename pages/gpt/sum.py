"""Addition digit by digit: what a GPT gives each digit, beside the true sum."""

from __future__ import annotations

import streamlit as st

from pages.gpt import lens
from pages.i18n import _
from pages.ui import show, state, typed
from pages.ui.typed import escape
from tfm_core.config import TextTaskConfig
from tfm_core.inspect.attention import trained
from tfm_core.inspect.text.gpt_reading import Digits, sum_of
from tfm_core.plots.gpt import digit_map
from tfm_core.runs.run import Run


def part(run: Run) -> None:
    n = run.experiment.task_as(TextTaskConfig).size
    key = f"gpt-sum-{run.id}"
    st.session_state.setdefault(key, f"{'8' * n}+{'1' * (n - 1)}7")
    text = st.text_input(
        _("A sum"),
        key=key,
        help=_("Two numbers of up to {n} digits, such as 12+34.", n=n),
    )
    text = typed.within(text, 40)
    digits = _sum(str(run.folder), trained.checkpoint_mark(run), text, run)
    _verdict(digits)
    show.figure(
        digit_map(digits, state.theme()),
        _("Framed and ✓: the true digit. Carries come from the right, not yet written."),
        key="gpt-digits",
    )
    st.header(_("Logit lens"), anchor=False)
    lens.figure(run, text)


def _verdict(digits: Digits) -> None:
    said = "".join(token for token in digits.answer if token != "<eos>")
    with st.container(border=True, horizontal=True, gap="medium", vertical_alignment="center"):
        for who, what in (
            (_("Sum"), digits.source),
            (_("Model"), said or "–"),
            (_("Truth"), "".join((digits.truth or ())[:-1]) or "–"),
        ):
            st.markdown(f":grey[{who}]  \n**{escape(what)}**", width="content")
        is_right = digits.answer == digits.truth
        colour, icon = ("green", "check") if is_right else ("orange", "close")
        words = _("right") if is_right else _("wrong")
        st.markdown(f":{colour}-badge[:material/{icon}: {words}]", width="content")
        sure = float(digits.chances.max(1).prod())
        st.markdown(
            _(":grey[Probability of this answer]  \n**{p}**", p=show.percent(sure)),
            width="content",
        )


@st.cache_data(show_spinner=False, max_entries=32)
def _sum(folder: str, mark: int, text: str, _run: Run) -> Digits:
    return sum_of(_run, text)
