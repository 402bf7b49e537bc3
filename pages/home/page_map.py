"""The page map: the teaching pages in a sensible order."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from pages.i18n import N_, _
from pages.ui.navigation import page_table
from pages.ui.navigation.page_table import PAGES


@dataclass(frozen=True, slots=True)
class Stretch:
    """A section of the map: its title, and a line per page."""

    title: str
    pages: dict[str, str]


WAY = (
    Stretch(
        N_("Words become numbers"),
        {
            "words": N_("From text to tokens to vectors."),
            "tensors": N_("Shapes, strides and every operation."),
            "positions": N_("How a model knows word order."),
        },
    ),
    Stretch(
        N_("Attention"),
        {
            "by-hand": N_("Every number on one sheet."),
            "masks": N_("Which token may attend to which."),
            "attention": N_("Every head of a trained model."),
        },
    ),
    Stretch(
        N_("The whole model"),
        {
            "build": N_("Diagram, equations and code."),
            "parameters": N_("Where the parameters are."),
            "walk": N_("One forward pass, step by step."),
        },
    ),
    Stretch(
        N_("What models do"),
        {
            "before": N_("Recurrent networks with attention."),
            "encoders": N_("Judge a sentence, fill in blanks."),
            "gpt": N_("Write one token after another."),
            "captions": N_("From a picture to a sentence."),
            "knockouts": N_("Switch off a head, a layer or a mask."),
        },
    ),
    Stretch(
        N_("Use it and break it"),
        {
            "translate": N_("Watch and steer a model that writes."),
            "draw": N_("Your digit, read as you draw."),
            "mistakes": N_("Which errors, and how sure it was."),
            "find-the-bug": N_("Find the mistake in one of two runs."),
        },
    ),
    Stretch(
        N_("Train it well"),
        {
            "training-step": N_("Batch, loss, gradient, update."),
            "speed": N_("What each trick gains, measured."),
            "practice": N_("From pictures to a result you can trust."),
            "experiments": N_("Change one thing, train both, compare."),
            "compare": N_("Settings, curves and answers side by side."),
            "sweeps": N_("Search for the best settings."),
            "own-data": N_("Train on your own pictures and texts."),
        },
    ),
)


def page_map() -> None:
    st.header(_("What you can learn"), anchor=False)
    with st.container(key="page-map"):
        for number, (column, stretch) in enumerate(
            zip(st.columns(len(WAY)), WAY, strict=True), start=1
        ):
            with column, st.container(gap="xsmall"):
                st.subheader(f"{number} · {_(stretch.title)}", anchor=False)
                for name, says in stretch.pages.items():
                    label = f"**{_(PAGES[name].title)}** {_(says)}"  # one element is faster
                    st.page_link(page_table.path_of(name), label=label)
