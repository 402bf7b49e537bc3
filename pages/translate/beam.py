"""Beam search over one source: its tree, its texts ranked, and what it missed."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.i18n import _
from pages.translate import choice, how
from pages.ui import beam_view
from pages.ui.typed import escape
from tfm_core.inspect.writing import beams
from tfm_core.inspect.writing.beams import BeamComparison, BeamSettings
from tfm_core.inspect.writing.source import Source
from tfm_core.runs.run import Run


def part(source: Source, run: Run, row: DeltaGenerator) -> None:
    with row:
        settings = how.beam(source)
    forced = choice.forced()
    if forced:
        tokens = ", ".join(
            _("“{token}” at position {n}", token=escape(source.vocabulary.token(id)), n=place + 1)
            for place, id in forced
        )
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown(_("Every text contains {tokens}.", tokens=tokens), width="content")
            st.button(_("Clear tokens"), key="translate-free", on_click=choice.free)
    found = _compare(f"{run.id} {source.mark}", settings, forced, source)
    if found is None:
        st.caption(_("The text has ended."))
        return
    st.markdown(beam_view.conclusion(found, _join(source)))
    if source.longest > how.MAX_SEARCHED and not all(text.is_done for text in found.steps[-1]):
        st.caption(_("Beams stop at {n} tokens.", n=how.MAX_SEARCHED))
    left, right = st.columns([3, 2], gap="medium")
    with left:
        beam_view.tree(found, key="translate-tree")
    with right:
        beam_view.ranking(found.steps[-1], found, _join(source), key="translate-beams")
    st.header(_("Other methods"), anchor=False)
    beam_view.others(found, _join(source), key="translate-others")


def _join(source: Source) -> beam_view.Join:
    def join(tokens: Sequence[str]) -> str:
        return source.text(tokens) or "–"

    return join


@st.cache_data(show_spinner=False, max_entries=32)
def _compare(
    mark: str, settings: BeamSettings, forced: tuple[tuple[int, int], ...], _source: Source
) -> BeamComparison | None:
    return beams.compare(_source, settings, dict(forced))
