"""Embeddings while they are learned: words move, the axes stay."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _, paragraph
from pages.ui import show, view_link
from pages.words.embeddings import table_to_show
from pages.words.link import DIMENSIONS
from tfm_core.facts.storage import MAX_EMBEDDED
from tfm_core.inspect.text import embeddings
from tfm_core.plots import embeddings as plots


def view() -> None:
    table = table_to_show()
    if table is None:
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="large"):
        in_space = view_link.choice(_("Dimensions"), DIMENSIONS)
        has_labels = st.toggle(_("Labels"), True, key="words-labels", persist_state="session")
    projection = embeddings.principal(table.values[-1][table.n_special :])
    if not table.is_whole:
        st.info(
            _(
                "Only the first and last state were saved (older run, or above {most} numbers).",
                most=f"{MAX_EMBEDDED:,}",
            ),
            icon=":material/info:",
        )
    name = f"words-moving-{table.name}-{in_space}-{has_labels}"
    show.live_figure(
        plots.projected(table, projection, in_space=in_space == "3", has_labels=bool(has_labels)),
        paragraph(
            "words/moving",
            n=in_space,
            share=show.percent(float(projection.explained[: int(in_space)].sum())),
        ),
        key=name,
    )
    show.code(embeddings.principal)
