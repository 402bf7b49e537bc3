"""Attention by hand: every number from a few short vectors to the output, and back."""

from __future__ import annotations

import streamlit as st

from pages.by_hand import matrices, stages, words
from pages.i18n import N_, _, content
from pages.ui import run_words, show, url_choice

STAGES = {
    "one-hot": (N_("Words"), stages.one_hot),
    "projections": (N_("Projections"), stages.projections),
    "heads": (N_("Heads"), stages.heads),
    "forms": (N_("Five ways"), stages.forms),
}


def page() -> None:
    """Show one stage; the link holds which, the words and their vectors."""
    show.header("by_hand")
    stage = url_choice.choice(
        _("Stage"),
        {name: label for name, (label, _view) in STAGES.items()},
        key="hand-stage",
        query="stage",
        old="stage",
        is_labelled=False,
    )
    st.markdown(content(f"by_hand_{stage.replace('-', '_')}"))
    matrices.out_of_link(stage)
    try:
        given = words.given(stage)
        STAGES[stage][1](given)
    except ValueError as error:
        show.problem(run_words.escape(_(error)))


page()
