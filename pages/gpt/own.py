"""Your own text: paste it, choose its tokens, train."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _, ngettext, paragraph
from pages.ui import show, state
from pages.ui.runs import run_actions
from pages.ui.settings import own_choice
from tfm_core.config import Experiment
from tfm_core.config.corpus_tasks import text_problem
from tfm_core.data.corpus.task import read_text
from tfm_core.data.own.tokens import learned_from_text
from tfm_core.presets import PRESETS
from tfm_core.variants.units import UNITS

_TEXT, _UNIT = "gpt-own-text", "gpt-own-unit"


def part() -> None:
    show.prose(paragraph("gpt/own-text"))
    st.session_state.setdefault(_TEXT, state.own_text())
    text = st.text_area(
        _("Training text"),
        key=_TEXT,
        height=240,
        placeholder=read_text()[:600] + " …",
        on_change=lambda: state.set_own_text(st.session_state[_TEXT]),
        persist_state="session",
    )
    unit = st.segmented_control(
        _("Tokens"),
        list(UNITS),
        format_func=lambda name: _(UNITS[name].label),
        default="characters",
        required=True,
        key=_UNIT,
        persist_state="session",
        help=_("Words need much more text than characters."),
    )
    read = text or read_text()
    tokens = learned_from_text(str(unit), read).cut_text(read)
    st.caption(
        ngettext(
            "{n} token, {different} distinct.",
            "{n} tokens, {different} distinct.",
            len(tokens),
            n=f"{len(tokens):,}",
            different=f"{len(set(tokens)):,}",
        )
    )
    problem = text_problem(text, str(unit)) if text else None
    if problem is not None:
        show.problem(problem)
    if st.button(
        _("Train on this text"),
        type="primary",
        icon=":material/play_arrow:",
        disabled=problem is not None,
        key="gpt-own-train",
    ):
        _train(text, str(unit))
    st.caption(_("Saved as a data set; manage it on Own data."))


def _train(text: str, unit: str) -> None:
    values = PRESETS["gpt-text"].experiment.model_dump()
    try:
        data = own_choice.keep_text(text, unit).id if text else ""
    except (ValueError, OSError) as error:
        show.problem(error)
        return
    values["task"] |= {"data": data, "unit": unit}
    name = _("My text") if text else "Alice"
    run = run_actions.start(Experiment.parse(values), name=f"{name}, {_(UNITS[unit].label)}")
    if run is not None:
        run_actions.watch(run)
