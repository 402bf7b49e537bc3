"""Fill in the blank: the model's probabilities beside the exact ones."""

from __future__ import annotations

import random

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.encoders import run as encoders_run
from pages.i18n import _, content
from pages.ui import show, state, typed
from pages.ui.model import question
from pages.ui.runs import run_actions, run_time
from pages.ui.typed import escape
from tfm_core.config import TextTaskConfig
from tfm_core.data.tasks import text_task
from tfm_core.inspect.text import blanks as core
from tfm_core.inspect.text import questions
from tfm_core.inspect.text.blanks import Blank
from tfm_core.plots.texts import reading as plots
from tfm_core.presets import PRESETS
from tfm_core.runs.run import Run

MAX_TEXT = 200
N_WORDS = 8
_METRIC = 168  # pixels: two fit side by side on a phone
GAP = "___"
EXAMPLES = (
    "Yesterday the hungry dog ___ a carrot in the garden.",
    "The teacher ___ the cake.",
    "___ friend comes to the big market daily.",
    "A white ___ sees ___ apple.",
)
_TEXT = "encoders-gaps"
_SPANS = "span-corruption"
_SEED = 8
"""Gives a sentence with two hidden spans."""


def view() -> None:
    st.session_state.setdefault(_TEXT, EXAMPLES[0])
    encoders_run.show_with("masked-words", core.fills_blanks, _draw)
    _spans()


def _spans() -> None:
    st.header(_("T5: hidden spans"), anchor=False, divider="grey")
    with st.expander(_("How it works"), icon=":material/help:"):
        show.prose(content("encoders_spans"))
    preset = PRESETS[_SPANS]
    task = text_task(preset.experiment.task_as(TextTaskConfig))
    pair = task.sample(random.Random(_SEED))
    source, target = escape(task.join_src(pair.src)), escape(task.join_tgt(pair.tgt))
    st.markdown(f"{source}  \n:gray[:material/subdirectory_arrow_right:] **{target}**")
    time = run_time.takes(preset.experiment)
    if st.button(
        _("Train it and watch, {time}", time=time),
        icon=":material/play_arrow:",
        key="encoders-train-spans",
    ):
        run_actions.start_preset(_SPANS)


def _draw(run: Run) -> None:
    text = encoders_run.sentence(
        _("Your sentence, ___ for a hidden word"),
        EXAMPLES,
        core.words_of(run),
        key=_TEXT,
        buttons="encoders-gaps",
    )
    try:
        tokens = _hidden(core.tokens_of(run, typed.within(text, MAX_TEXT)))
        step, blanks = core.fill(run, tokens)
    except ValueError as error:
        show.problem(error)
        return
    if not blanks[0].truth:
        st.info(_("The grammar has no such sentence: no truth to compare."), icon=":material/info:")
    for blank in blanks:
        _blank(run, step, tokens, blank)


def _hidden(tokens: tuple[str, ...]) -> tuple[str, ...]:
    names = [token if token.isalpha() else GAP for token in tokens]
    gaps = [position for position, name in enumerate(names) if name == GAP]
    pressed = st.pills(
        _("Press a word to hide it"),
        list(range(len(tokens))),
        format_func=lambda position: escape(names[position]),
        selection_mode="multi",
        default=gaps,
        key=f"encoders-hide-{' '.join(names)}",
    )
    return core.hide(tokens, pressed)


def _blank(run: Run, step: int, tokens: tuple[str, ...], blank: Blank) -> None:
    words = [token if token.isalpha() else GAP for token in tokens]
    words[blank.position] = "[ ? ]"
    st.header(escape(" ".join(words)), anchor=False, divider="grey")
    left, right = st.columns(2, gap="medium")
    asked = questions.about_gap(blank)
    of = f"{run.id} {step} {tokens} {blank.position}"
    with left:
        is_shown = asked is None or question.guess(asked, "gap", of=of)
    if is_shown:
        _choice(left, step, blank)
    with right:
        show.figure(
            plots.head_rows(blank.heads, [*words], theme=state.theme(), marked=[blank.position]),
            _("Attention of the gap (▸), by head."),
            key=f"encoders-gap-{blank.position}",
        )
    _sure(blank)


def _choice(place: DeltaGenerator, step: int, blank: Blank) -> None:
    """Draw the likeliest words, and the exact probabilities."""
    shown = blank.top(N_WORDS)
    with place:
        truth = [blank.truth.get(word, 0.0) for word in shown]
        show.figure(
            plots.word_choice(
                shown,
                np.array([blank.model.get(word, 0.0) for word in shown]),
                np.array(truth) if blank.truth else None,
            ),
            _("Model at step {step}, and the exact probabilities.", step=f"{step:,}"),
            key=f"encoders-choice-{blank.position}",
        )


def _sure(blank: Blank) -> None:
    cards = [(_("Model's entropy"), f"{blank.model_entropy:.2f}", _("How unsure the model is."))]
    if blank.truth:
        cards += [
            (
                _("True entropy"),
                f"{blank.truth_entropy:.2f}",
                _("How unsure a perfect reader is."),
            ),
            (
                _("Lost"),
                f"{blank.excess:.3f}",
                _("Kullback-Leibler divergence from truth to model."),
            ),
        ]
    with st.container(horizontal=True, gap="small"):
        for label, value, help_text in cards:
            st.metric(label, value, help=help_text, border=True, width=_METRIC)
    st.caption(_("In nats: 0 is sure; ln 8 = 2.08 is eight equal words."))
