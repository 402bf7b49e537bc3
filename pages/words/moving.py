"""Embeddings while they are learned: words move, the axes stay."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _
from pages.ui import show, view_link
from pages.words.embeddings import table_to_show
from pages.words.link import DIMENSIONS
from tfm_core.facts.storage import MAX_EMBEDDED
from tfm_core.inspect.text import embeddings
from tfm_core.plots import embeddings as plots


def view() -> None:
    """Project the table of the current run onto the components of its last state, and play."""
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
                "The snapshots of this run hold no table (it is older than they are, or larger "
                "than {most} numbers), so only the first and the last state can be shown.",
                most=f"{MAX_EMBEDDED:,}",
            ),
            icon=":material/info:",
        )
    name = f"words-moving-{table.name}-{in_space}-{has_labels}"
    show.live_figure(
        plots.projected(table, projection, in_space=in_space == "3", has_labels=bool(has_labels)),
        _(
            "Press Play. At step 0 all words lie in one random cloud; see which classes "
            "separate first. Axes: the {n} directions of most variance at the last step "
            "({share} of it together), the same in every frame, so that only the words "
            "move. A word that would cover another shows when you point at it.",
            n=in_space,
            share=show.percent(float(projection.explained[: int(in_space)].sum())),
        ),
        key=name,
    )
    show.code(embeddings.principal)
