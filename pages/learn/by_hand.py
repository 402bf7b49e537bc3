"""Attention by hand: every number from a few short vectors to the output, and back."""

from __future__ import annotations

import streamlit as st

from pages.ui import by_hand_matrices, by_hand_stages, by_hand_words, linked, run_words, show
from pages.ui.words import _, content

STAGES = {
    "one-hot": (_("Words"), by_hand_stages.one_hot),
    "projections": (_("Projections"), by_hand_stages.projections),
    "heads": (_("Heads"), by_hand_stages.heads),
    "forms": (_("Five ways"), by_hand_stages.forms),
}


def page() -> None:
    """Show one stage; the link holds which, the words and their vectors."""
    show.header("by_hand")
    stage = linked.choice(
        _("Stage"),
        {name: label for name, (label, _view) in STAGES.items()},
        key="hand-stage",
        query="stage",
        old="stage",
        is_labelled=False,
    )
    st.markdown(content(f"by_hand_{stage.replace('-', '_')}"))
    by_hand_matrices.out_of_link(stage)
    try:
        given = by_hand_words.given(stage)
        STAGES[stage][1](given)
    except ValueError as error:
        show.problem(run_words.escape(str(error)))


page()
