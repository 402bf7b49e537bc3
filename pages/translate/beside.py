"""Teacher forcing and free running side by side, and where they part."""

from __future__ import annotations

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.i18n import _, paragraph
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
from tfm_core.plots.beside_truth import beside_table


def part(source: Source, row: DeltaGenerator) -> None:
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
        "taught": _("Teacher forcing, given the true tokens"),
        "free": _("Free running, given its own tokens"),
        "parts": _("they diverge here"),
    }
    st.html(beside_table(found, words))
    st.caption(
        paragraph(
            "translate/beside-truth",
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
    task = text_task(source.experiment.task_as(SequenceTaskConfig))
    if (missing := missing_examples(task)) is not None:
        show.problem(missing)
        return
    st.info(
        _("The task has no answer for this sentence. Choose one it has:"),
        icon=":material/help:",
    )
    with st.container(horizontal=True, gap="small"):
        for seed in range(3):
            text = sentence_field.drawn_text(task, seed)
            st.button(text, key=f"translate-known-{seed}", on_click=_take, args=(text,))


def _take(text: str) -> None:
    st.session_state[TEXT.key] = text
    choice.begin_anew()
