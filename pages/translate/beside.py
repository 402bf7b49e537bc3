"""Teacher forcing and free running side by side, and where they part."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.i18n import _
from pages.translate import choice, how
from pages.translate.link import GREEDY, TEXT
from pages.ui import sentence_field, show
from pages.ui.typed import escape
from tfm_core.config import SequenceTaskConfig
from tfm_core.data.text import text_task
from tfm_core.data.text.task import missing_examples
from tfm_core.inspect.writing import steps
from tfm_core.inspect.writing.beside import BesideTruth, beside_truth
from tfm_core.inspect.writing.source import Source
from tfm_core.inspect.writing.steps import in_nats
from tfm_core.plots.writing import beside_table


def part(source: Source, row: DeltaGenerator) -> None:
    """Write greedily, and set what is written beside the truth, place by place."""
    with row:
        sampling, seed, n = how.sampling(source, GREEDY)
    writing = steps.write(source, sampling, seed=seed, n=n, forced=dict(choice.forced()))
    found = beside_truth(writing)
    if found is None:
        _no_truth(source)
        return
    st.markdown(_summary(found))
    words = {
        "place": _("Token"),
        "truth": _("Truth"),
        "taught": _("Teacher forcing: after the true tokens it says"),
        "free": _("Free running: after its own tokens it writes"),
        "parts": _("here they part"),
    }
    st.html(beside_table(found, words))
    st.caption(
        _(
            "In training the decoder reads the true tokens (teacher forcing), so one mistake does "
            "not spoil what follows. When it writes it reads its own: after the first wrong token "
            "it stands where it never stood in training (exposure bias, Bengio et al. 2015). "
            "ln p of the truth: {truth}; of what it writes: {free}.",
            truth=in_nats(found.truth_score),
            free=in_nats(found.free_score),
        )
    )


def _summary(found: BesideTruth) -> str:
    at = found.parts_at
    counts = _(
        "Teacher forcing: {taught} of {n} tokens right; free running: {free} of {n}.",
        taught=found.n_taught_right,
        free=found.n_free_right,
        n=found.n_true,
    )
    if at is None:
        return f"{_('**They never part**: what it writes is the truth.')} {counts}"
    place = found.places[at]
    words = _("**They part at token {n}**: the truth has {truth}, running free wrote {free}.")
    said = words.format(
        n=at + 1,
        truth=f"“{escape(place.truth.token)}”" if place.truth else _("nothing more"),
        free=f"“{escape(place.free.token)}”" if place.free else _("nothing more"),
    )
    return f"{said} {counts}"


def _no_truth(source: Source) -> None:
    """Say that nobody knows what is right, and offer a sentence of which one does."""
    task = text_task(source.experiment.task_as(SequenceTaskConfig))
    if (missing := missing_examples(task)) is not None:
        show.problem(missing)
        return
    st.info(
        _(
            "This is no sentence that the task could ask for, so nobody can say what is right. "
            "Take one that it can:"
        ),
        icon=":material/help:",
    )
    with st.container(horizontal=True, gap="small"):
        for seed in range(3):
            text = sentence_field.drawn_text(task, seed)
            st.button(text, key=f"translate-known-{seed}", on_click=_take, args=(text,))


def _take(text: str) -> None:
    st.session_state[TEXT.key] = text
    choice.begin_anew()
