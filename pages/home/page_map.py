"""What can be understood here: the pages that teach, in the order of a way through them."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from pages.i18n import N_, _
from pages.ui import page_table
from pages.ui.page_table import PAGES


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of the way: its title, and of each page by name what one understands there."""

    title: str
    pages: dict[str, str]


WAY = (
    Stretch(
        N_("Words become numbers"),
        {
            "words": N_("How text is cut into tokens, and tokens become vectors."),
            "tensors": N_("Shapes and strides: every operation that models use."),
            "positions": N_("How a model knows where a word stands."),
        },
    ),
    Stretch(
        N_("Attention"),
        {
            "by-hand": N_("Every number from three words to the output, on one sheet."),
            "masks": N_("Which token may attend to which, and what goes wrong without."),
            "attention": N_("Every head of a trained model, as maps, lines and arithmetic."),
        },
    ),
    Stretch(
        N_("The whole model"),
        {
            "build": N_("Diagram, equations and code of exactly one model."),
            "parameters": N_("Where a model's numbers are, and what they cost."),
            "walk": N_("One forward pass, step by step, with real tensors."),
        },
    ),
    Stretch(
        N_("What models do"),
        {
            "before": N_("Recurrent networks, and why attention replaced them."),
            "encoders": N_("Judge a sentence, fill in blanks: models that read."),
            "gpt": N_("One token after the other: models that write."),
            "captions": N_("A picture goes in, a sentence comes out."),
            "knockouts": N_("Switch off a head, a layer or the mask: what is lost?"),
        },
    ),
    Stretch(
        N_("Use it, and break it"),
        {
            "translate": N_("Watch a model write: step back, replace a word, follow a beam."),
            "draw": N_("Your digit, read at every stroke and at every time of a training."),
            "mistakes": N_("Which errors a model makes, and how sure it is of them."),
            "find-the-bug": N_("One of two runs hides a mistake: measure it and name it."),
        },
    ),
    Stretch(
        N_("Train it well"),
        {
            "training-step": N_("Batch, loss, gradient, update: one step taken apart."),
            "speed": N_("Each trick measured here, equal results first."),
            "practice": N_("From pictures to a number that you can defend."),
            "experiments": N_("Change one thing, train both, compare."),
            "compare": N_("Compare runs: their settings, curves and answers."),
            "sweeps": N_("Try many settings, find the best, see which ones mattered."),
            "own-data": N_("Train on your own pictures and texts."),
        },
    ),
)


def page_map() -> None:
    """Show the way, a column for each part of it."""
    st.header(_("What you can understand here"), anchor=False)
    with st.container(key="page-map"):
        for number, (column, stretch) in enumerate(
            zip(st.columns(len(WAY)), WAY, strict=True), start=1
        ):
            with column, st.container(gap="xsmall"):
                st.subheader(f"{number} · {_(stretch.title)}", anchor=False)
                for name, says in stretch.pages.items():
                    _stop(name, says)


def _stop(name: str, says: str) -> None:
    """Show a page and what is understood there as one link: fewer elements are drawn sooner."""
    label = f"**{_(PAGES[name].title)}** {_(says)}"
    st.page_link(page_table.path_of(name), label=label)
