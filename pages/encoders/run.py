"""What the page shows: its view, and the current or newest run that fits."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import streamlit as st

from pages.i18n import N_, _
from pages.ui import state
from pages.ui.address import parameters
from pages.ui.fact_line import fact_line
from pages.ui.navigation import page_table
from pages.ui.runs import run_actions, run_time, run_words, shown_run
from pages.ui.typed import escape
from tfm_core.config import Experiment
from tfm_core.presets import PRESETS
from tfm_core.runs.run import Run

TICK = 2.0
"""Seconds between polls of a training run."""

Draw = Callable[[Run], None]
VIEW = parameters.named(
    "view",
    {
        "sentiment": N_("Sentiment"),
        "blanks": N_("Fill in the blank"),
        "patches": N_("CLS and patches"),
    },
    key="encoders-view",
)


def show_with(
    preset: str, fits: Callable[[Experiment], bool], draw: Draw, recorded_first: str = ""
) -> None:
    """Draw with a run that fits, polling while it trains, or offer to train one."""
    run = shown_run.fitting_run(fits, recorded_first)
    if run is None:
        with st.container(border=True, horizontal_alignment="center", gap="medium"):
            st.markdown(_(PRESETS[preset].learns), width="content")
            st.markdown(_("No model here has learned this yet."), width="content")
            _train(preset)
        return
    is_live = run.status.is_active
    if run.meta.recorded:
        facts, choices = fact_line(f"encoders-{preset}")
        facts.caption(shown_run.facts_of(run, _("step {step}", step=f"{run.status.step:,}")))
        with choices:
            shown_run.recorded_note(run, key=f"encoders-{preset}")
    st.fragment(_look, run_every=TICK if is_live else None)(run, draw, is_live, preset)


def _look(run: Run, draw: Draw, was_live: bool, preset: str) -> None:
    status = run.status
    if was_live and not status.is_active:
        state.draw_anew()  # once: redrawn, it no longer polls
    if not run.meta.recorded:
        words = _("Read by **{name}**", name=escape(run.meta.name))
        st.markdown(f"{words} {run_words.badge(status)}")
    if run.has_checkpoint:
        draw(run)
        st.page_link(
            page_table.path_of("attention"),
            label=_("Open all maps"),
            icon=":material/visibility:",
            query_params={"run": run.id},
        )
    else:
        shown_run.no_weights(run, key="encoders")
        if not status.is_active:
            _train(preset)


def _train(name: str) -> None:
    preset = PRESETS[name]
    time = run_time.takes(preset.experiment)
    words = _("Train it and watch, {time}", time=time)
    if st.button(words, type="primary", icon=":material/play_arrow:", key=f"encoders-train-{name}"):
        run = run_actions.start(preset.experiment, name=_(preset.label), preset=name)
        if run is not None:
            state.set_current_run(run.id)
            st.rerun()


def sentence(
    label: str, examples: Sequence[str], words: Sequence[str], *, key: str, buttons: str
) -> str:
    """Ask for a sentence, stored under ``key``, with examples and known words to insert."""
    pressed = f"{buttons}-words"

    def take(example: str) -> None:
        st.session_state[key] = example

    def put() -> None:
        word = st.session_state[pressed]
        st.session_state[pressed] = None
        if word is not None:
            st.session_state[key] = with_word(str(st.session_state[key]), word, words)

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        text = st.text_input(label, key=key, help=_("Use the task's words, then press Enter."))
        with st.popover(_("Examples"), icon=":material/format_quote:"):
            for index, example in enumerate(examples):
                st.button(example, key=f"{buttons}-{index}", on_click=take, args=(example,))
        with st.popover(_("Add a word"), icon=":material/dictionary:"):
            st.pills(_("Words of the task"), sorted(words), key=pressed, on_change=put)
    return text


def with_word(text: str, word: str, vocabulary: Sequence[str]) -> str:
    """Replace the first unknown word of a text, or append the word."""
    for match in re.finditer(r"[^\W\d_]+(?:[’'][^\W\d_]+)?", text):
        if match[0].lower() not in vocabulary and not re.search("[’']", match[0]):
            return text[: match.start()] + word + text[match.end() :]
    return f"{text.rstrip(' .')} {word}".lstrip()
