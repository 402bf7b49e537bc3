"""Attention over the picture, per patch or word, and learned patch positions."""

from __future__ import annotations

import streamlit as st

from pages.attention import selection as chosen
from pages.attention.controls import MEAN
from pages.attention.selection_link import Offer, Selection
from pages.components import live_figure
from pages.i18n import _, paragraph
from pages.ui import show, state
from pages.ui.navigation import page_table
from tfm_core.config import Experiment, built
from tfm_core.inspect.attention.example import Example
from tfm_core.inspect.positions.similarity import geometry, tiles_of
from tfm_core.plots.heads import patches as patch_plots
from tfm_core.plots.heads.captions import caption_strip
from tfm_core.plots.model.positions import position_tiles
from tfm_core.probe.labels import CLS, axes, modules_by_kind, patches_per_side
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run
from tfm_core.variants.positions import POSITIONS

_HIGH = 340  # pixels: the picture fits the first screen


def words(run: Run, example: Example, selection: Selection) -> None:
    """Show the picture once for each word, with where the head looks while it is written."""
    assert example.picture is not None
    module = modules_by_kind(run.experiment)[selection.kind][selection.layer]
    weights = example.maps([module])[0, selection.head]  # (Q, patches)
    side = patches_per_side(run.experiment)
    st.markdown(
        _(
            "**Layer {layer}, head {head}, over the picture**",
            layer=selection.layer + 1,
            head=selection.head + 1,
        )
    )
    figure = caption_strip(
        weights.reshape(len(weights), side, side),
        example.picture,
        [*example.item["tgt"], "<eos>"],
        [*example.item["boxes"], None],
        state.theme(),
    )
    show.figure(figure, paragraph("attention/words"), key="attention-words")
    st.page_link(
        page_table.path_of("captions"), label=_("Compose a picture"), icon=":material/image_search:"
    )


def patches(run: Run, example: Example, selection: Selection, offer: Offer) -> None:
    """Show what a patch attends to, over the picture; a click on a patch chooses it."""
    assert example.picture is not None
    experiment = run.experiment
    module = modules_by_kind(experiment)[selection.kind][selection.layer]
    names = axes(experiment, {}, module).query
    query = None if selection.patch == MEAN else names.index(selection.patch)
    weights = example.maps([module])[0, selection.head]
    _patch_picker(run, selection, offer)
    side_weights = patch_plots.patch_weights(weights, query, has_cls=experiment.has_cls)
    first = int(experiment.has_cls)
    patch = None if query is None or query < first else divmod(query - first, len(side_weights))
    figure = patch_plots.patch_overlay(
        side_weights, example.picture, theme=state.theme(), chosen=patch
    ).update_layout(height=_HIGH)

    def picked(row: int, column: int) -> None:
        name = names[row * len(side_weights) + column + first]
        chosen.choose(run.id, patch=MEAN if name == selection.patch else name)

    live_figure.live_figure(
        figure,
        key="attention-patches",
        on_pick=picked,
        name=_("Attention over the picture: arrow keys move, Enter picks the query"),
    )
    st.caption(_patch_words(experiment, weights, selection.patch, query))


def _patch_picker(run: Run, selection: Selection, offer: Offer) -> None:
    key = "attention-patch"
    st.session_state[key] = selection.patch
    names = {MEAN: _("Mean of all patches"), CLS: _("The CLS token")}
    st.selectbox(
        _("Attention of which patch"),
        offer.patches,
        format_func=lambda name: names.get(name) or _("Patch {place}", place=name),
        key=key,
        on_change=lambda: chosen.choose(run.id, patch=st.session_state[key]),
        help=_("Or click a patch; again for the average. 1,1 is top left."),
        label_visibility="collapsed",
    )


def _patch_words(experiment: Experiment, weights: Floats, patch: str, query: int | None) -> str:
    if query is None:
        words = _("Mean attention per patch. Look for strokes that many patches read.")
    elif patch == CLS:
        words = _("Where CLS, which the classifier reads, looks.")
    else:
        words = _("Where the outlined patch looks: the same stroke, or its neighbours?")
    if not experiment.has_cls:
        return words
    row = weights.mean(0) if query is None else weights[query]
    share = show.percent(float(row[0]))
    return words + " " + _("CLS, outside the picture, gets {share}.", share=share)


def positions_are_learned(experiment: Experiment) -> bool:
    if not experiment.patches_per_side:
        return False
    return POSITIONS[built(experiment.model).position].has_table


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
    show.prose(
        paragraph(
            "attention/share-a-line",
            now=f"{geometry(tiles):+.3f}",
            step=f"{step:,}",
            first_step=f"{steps[0]:,}",
            then=f"{geometry(first):+.3f}",
        )
    )
