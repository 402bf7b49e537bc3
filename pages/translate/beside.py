"""Two other ways to write: beam search, and teacher forcing beside free running."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.i18n import _, paragraph
from pages.translate import choice, how
from pages.translate.link import GREEDY, TEXT
from pages.ui import show
from pages.ui.model import beam_view, sentence_field
from pages.ui.typed import escape
from tfm_core.config import SequenceTaskConfig
from tfm_core.data.tasks import text_task
from tfm_core.data.text.task import missing_examples
from tfm_core.inspect.writing import beams, steps
from tfm_core.inspect.writing.beams import BeamComparison, BeamSettings
from tfm_core.inspect.writing.beside import beside_truth, parts_at
from tfm_core.inspect.writing.source import Source
from tfm_core.inspect.writing.steps import in_nats
from tfm_core.plots.texts.writing import beside_table
from tfm_core.runs.run import Run


def part(source: Source, row: DeltaGenerator) -> None:
    with row:
        sampling, seed, n = how.sampling(source, GREEDY)
    writing = steps.write(source, sampling, seed=seed, n=n, forced=dict(choice.forced()))
    found = beside_truth(writing)
    if found is None:
        _no_truth(source)
        return
    places, truth_score = found
    st.markdown(_summary(places))
    words = {
        "place": _("Token"),
        "truth": _("Truth"),
        "taught": _("Teacher forcing, given the true tokens"),
        "free": _("Free running, given its own tokens"),
        "parts": _("they diverge here"),
    }
    st.html(beside_table(places, words))
    scores = _(
        "ln p of the truth: {truth}; of the generated text: {free}.",
        truth=in_nats(truth_score),
        free=in_nats(writing.score),
    )
    st.caption(scores, help=paragraph("translate/beside-truth"))


def _summary(places: pd.DataFrame) -> str:
    at = parts_at(places)
    is_true = places["truth"].notna()
    counts = _(
        "Right: {taught} of {n} with teacher forcing, {free} running free.",
        taught=int((places["taught_right"] & is_true).sum()),
        free=int((places["free_right"] & is_true).sum()),
        n=int(is_true.sum()),
    )
    if at is None:
        return f"{_('**They never diverge**: its text is the truth.')} {counts}"
    truth, free = (
        f"“{escape(token)}”" if token is not None else "∅"
        for token in places.loc[at, ["truth", "free"]]
    )
    words = _(
        "**They diverge at token {n}**: {truth} is true, {free} was written.",
        n=at + 1,
        truth=truth,
        free=free,
    )
    return f"{words} {counts}"


def _no_truth(source: Source) -> None:
    task = text_task(source.experiment.task_as(SequenceTaskConfig))
    if (missing := missing_examples(task)) is not None:
        show.problem(missing)
        return
    st.info(_("The task has no answer for this sentence. Try:"), icon=":material/help:")
    with st.container(horizontal=True, gap="small"):
        for seed in range(3):
            text = sentence_field.drawn_text(task, seed)
            st.button(text, key=f"translate-known-{seed}", on_click=_take, args=(text,))


def _take(text: str) -> None:
    st.session_state[TEXT.key] = text
    choice.begin_anew()


def search(source: Source, run: Run, row: DeltaGenerator) -> None:
    with row:
        settings = how.beam(source)
    forced = choice.forced()
    if forced:
        tokens = ", ".join(
            f"“{escape(source.vocabulary.token(id))}” ({place + 1})" for place, id in forced
        )
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(
                _("Tokens in every text (position): {tokens}", tokens=tokens), width="content"
            )
            st.button(_("Clear tokens"), key="translate-free", on_click=choice.begin_anew)
    comparison = _compare(f"{run.id} {source.mark}", settings, forced, source)
    if comparison is None:
        st.caption(_("The text has ended."))
        return
    st.markdown(beam_view.conclusion(comparison, _join(source)))
    if source.longest > how.MAX_SEARCHED and not all(text.is_done for text in comparison.steps[-1]):
        st.caption(_("Beams stop at {n} tokens.", n=how.MAX_SEARCHED))
    left, right = st.columns([3, 2], gap="medium")
    with left:
        beam_view.tree(comparison, key="translate-tree")
    with right:
        beam_view.ranking(comparison.steps[-1], comparison, _join(source), key="translate-beams")
    st.header(_("Other methods"), anchor=False)
    beam_view.others(comparison, _join(source), key="translate-others")


def _join(source: Source) -> beam_view.Join:
    def join(tokens: Sequence[str]) -> str:
        return source.text(tokens) or "–"

    return join


@st.cache_data(show_spinner=False, max_entries=32)
def _compare(
    mark: str, settings: BeamSettings, forced: tuple[tuple[int, int], ...], _source: Source
) -> BeamComparison | None:
    return beams.compare(_source, settings, dict(forced))
