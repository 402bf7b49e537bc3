"""A text coloured by how much each token surprises the model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from pages.i18n import _
from pages.ui import show, typed
from pages.ui.model import question, sentence_field
from pages.ui.typed import escape
from tfm_core.config import CorpusTaskConfig
from tfm_core.data.tasks import text_task
from tfm_core.inspect.attention import trained
from tfm_core.inspect.text import questions
from tfm_core.inspect.text.surprisal import BITS, example_text, surprisals
from tfm_core.plots.texts import gpt as plots
from tfm_core.plots.texts.writing import surprise_text
from tfm_core.runs.run import Run
from tfm_core.variants.units import UNITS

_MAX = 6000  # characters


def part(run: Run) -> None:
    key = f"gpt-read-{run.id}"
    st.session_state.setdefault(key, example_text(run))
    text = st.text_area(_("Text"), key=key, height=68, help=_("At first an unseen passage."))
    reading = surprisals(run, typed.within(text, _MAX))
    sentence_field.mark_unknown(text_task(run.experiment.task_as(CorpusTaskConfig)), text)
    unit = run.experiment.task_as(CorpusTaskConfig).unit
    n, tokens, nats = len(reading), reading["token"].tolist(), reading["nats"].to_numpy()
    key = f"gpt-read-token-{run.id}-{n}"
    st.session_state.setdefault(key, int(nats.argmax()) + 1)
    picked = st.session_state[key] - 1
    with st.container(border=True):
        st.html(surprise_text(tokens, nats, picked, UNITS[unit].separator, say=_))
    if n > 1:
        st.slider(
            _("Token"),
            1,
            n,
            key=key,
            help=_("Framed in the text; at first the most surprising."),
        )
    _guesses(reading, picked)
    _figures(reading, unit)
    _check(run, reading)


def _figures(reading: pd.DataFrame, unit: str) -> None:
    loss = float(reading["nats"].mean())
    bits = {
        "words": _("Bits per word"),
        "characters": _("Bits per character"),
        "bpe": _("Bits per piece"),
    }
    cards = (
        (
            _("Loss"),
            _("{nats} nats", nats=f"{loss:.3f}"),
            _("Mean surprise of a token, −ln p."),
        ),
        (
            bits[unit],
            f"{loss * BITS:.2f}",
            _("−log₂ p: the cost of compressing this text."),
        ),
        (
            _("Perplexity"),
            f"{np.exp(loss):.2f}",
            _("exp(loss): as unsure as among this many tokens."),
        ),
        (
            _("Expected loss"),
            _("{nats} nats", nats=f"{reading['entropy'].mean():.3f}"),
            _("Mean entropy of the predictions; much lower than the loss: overconfident."),
        ),
    )
    with st.container(horizontal=True, gap="small"):
        for label, value, words in cards:
            st.metric(label, value, help=words, border=True, width=168)


def _guesses(reading: pd.DataFrame, picked: int) -> None:
    token, nats, rank, _entropy, best = reading.iloc[picked]
    st.markdown(
        _(
            "Token {n}, **{token}**: {bits} bits, probability {p}, guess no. {rank}.",
            n=picked + 1,
            token=escape(plots.shown(token)),
            bits=f"{nats * BITS:.2f}",
            p=f"{np.exp(-nats):.3g}",
            rank=f"{rank:,}",
        )
    )
    show.figure(
        plots.guesses(best, token, float(np.exp(-nats)), int(rank)),
        _("Predictions here; the actual token is marked."),
        key="gpt-guesses",
    )


def _check(run: Run, reading: pd.DataFrame) -> None:
    """Ask how the model reads the text backwards."""
    task, every = text_task(run.experiment.task_as(CorpusTaskConfig)), tuple(reading["token"])
    tokens = [token for token in every if token != run.experiment.task.end]
    backwards = task.join_tgt(tokens[::-1])
    if len(tokens) < 2 or tokens == tokens[::-1]:
        return
    mark = trained.checkpoint_mark(run)
    asked = questions.about_order(reading, surprisals(run, backwards))
    question.check({"order": asked}, of=f"{run.id} {mark} {every}")
