"""Words into tensors: tokens, ids, batches, embeddings and patches."""

from __future__ import annotations

import streamlit as st

from pages.i18n import _, paragraph
from pages.ui import show
from pages.ui.address import view_link
from pages.ui.navigation import page_table
from pages.ui.runs import shown_run
from pages.ui.typed import escape
from pages.words import embeddings, tokens
from pages.words.link import VIEW
from tfm_core.config import Experiment
from tfm_core.inspect.text import beside_pictures
from tfm_core.presets import PRESETS


def page() -> None:
    show.header("words")
    views = {
        "tokens": tokens.view,
        "batch": tokens.batch_view,
        "embeddings": embeddings.view,
        "moving": embeddings.moving,
        "patches": _patches,
    }
    views[view_link.choice(_("Step"), VIEW, is_labelled=False)]()


def _patches() -> None:
    show.prose(paragraph("words/patches"))
    language, words = _side("translate", is_words=True)
    vision, pixels = _side("vit-digits", is_words=False)
    rows = beside_pictures.aspects(language, vision)
    show.facts([[_(text) for text in row] for row in rows], ["", words, pixels])
    for page, label in (
        ("encoders", _("What CLS and patches learn")),
        ("positions", _("Positions, fixed and learned")),
    ):
        query = {"view": "patches"} if page == "encoders" else {}
        st.page_link(page_table.path_of(page), label=label, query_params=query)


def _side(preset: str, *, is_words: bool) -> tuple[Experiment, str]:
    """Return the current run's experiment and name if it fits, else a preset's."""
    fits = beside_pictures.reads_words if is_words else beside_pictures.reads_pixels
    run = shown_run.current_run()
    if run is not None and fits(run.experiment):
        return run.experiment, escape(run.meta.name)
    return PRESETS[preset].experiment, _("preset “{name}”", name=_(PRESETS[preset].label))


page()
