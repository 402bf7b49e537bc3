"""What the positions of a Vision Transformer have learned: which patches are neighbours."""

from __future__ import annotations

import streamlit as st

from pages.i18n import paragraph
from pages.ui import show, state
from tfm_core.config import Experiment
from tfm_core.inspect.positions.similarity import geometry, tiles_of
from tfm_core.plots.positions import position_tiles
from tfm_core.runs.run import Run
from tfm_core.variants.positions import POSITIONS


def are_learned(experiment: Experiment) -> bool:
    """Return whether the model has positions that the training changes."""
    return experiment.patches_per_side > 0 and POSITIONS[experiment.model.position].has_table


def positions(run: Run, steps: tuple[int, ...], step: int) -> None:
    """Show how alike the position of each patch is to those of all others, at a step."""
    try:
        tiles = tiles_of(run.experiment, run.snapshot(step))
        first = tiles_of(run.experiment, run.snapshot(steps[0]))
    except ValueError as error:
        show.problem(error)
        return
    words = paragraph("attention/tiles")
    figure = position_tiles(tiles, state.theme())
    figure.update_layout(margin={"b": 48}).update_xaxes(title={"standoff": 24})
    show.live_figure(figure, words, key="attention-positions")
    st.markdown(
        paragraph(
            "attention/share-a-line",
            now=f"{geometry(tiles):+.3f}",
            step=f"{step:,}",
            first_step=f"{steps[0]:,}",
            then=f"{geometry(first):+.3f}",
        )
    )
