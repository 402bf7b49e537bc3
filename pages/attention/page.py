"""Attention: which token looks at which, in every head, at every saved snapshot."""

from __future__ import annotations

from contextlib import nullcontext

import streamlit as st

from pages.attention import animation as attention_animation
from pages.attention import (
    controls,
    deeper,
    figures,
    heads,
    own,
    patches,
    selection,
    selection_link,
)
from pages.attention.animation import Film
from pages.attention.selection_link import OWN, Offer, Selection
from pages.components.effects import reveal
from pages.i18n import _
from pages.ui import show, state
from pages.ui.accounts import visitors
from pages.ui.address import view_link
from pages.ui.model import answer, walk_steps
from pages.ui.navigation import page_table
from pages.ui.runs import runs_access, shown_run
from tfm_core.inspect.attention.example import Example, example_of
from tfm_core.probe.types import Probe
from tfm_core.runs.run import Run

TICK = 2.0  # seconds between refreshes while a run trains
FIRST_RECORDED = "recorded-korean"
MANY_HEADS = 4  # more of them side by side need the width


def page() -> None:
    """Show the current run, or the first there is to look into."""
    show.header("attention")
    run_id = state.current_run_id()
    run: Run | None
    if run_id is not None:
        run = runs_access.store().get(run_id)
    else:
        able = [one for one in visitors.listed() if not one.problem and one.snapshot_steps()]
        run = shown_run.first_to_show(able, FIRST_RECORDED)
    if run is None:
        show.empty(_("No run to show yet."), _("Train a model"), "home")
        return
    is_live = run.status.is_active
    every = TICK if is_live else None
    if selection.playing_since() is not None:
        every = controls.FRAME_SECONDS
    st.fragment(_view, run_every=every)(run, is_live)


def _view(run: Run, was_live: bool) -> None:
    is_live = run.status.is_active
    if was_live and not is_live:
        state.draw_anew()  # once: the page then makes a fragment that does not tick
    if run.problem:
        show.problem(run.problem)
        st.page_link(page_table.path_of("runs"), label=_("See all runs"), icon=":material/list:")
        return
    try:
        probe = run.probe()
    except ValueError as error:
        _not_yet(_(error), is_live)
        return
    offer = controls.offer_of(run, probe)
    chosen, problems = selection.current(run.id, offer)
    if selection.playing_since() is not None and chosen.example is not None:
        if controls.play_on(run, chosen, offer.steps):
            st.rerun()
        chosen, problems = selection.current(run.id, offer)
    for sentence in problems:
        view_link.warn(sentence)
    with st.container(
        key="attention-controls", horizontal=True, vertical_alignment="center", gap="small"
    ):
        top = controls.line(run, probe, chosen, offer)
    film = place = None
    if chosen.example is not None:
        film, example = _of_run(run, probe, chosen, offer, is_live=is_live)
    elif chosen.source == OWN and own.is_picture(run):
        beside, place = st.columns([3, 8], gap="medium")
        with beside:
            example = own.own(run, probe, chosen)
    else:
        example = own.own(run, probe, chosen)
    if example is not None:
        with place or nullcontext():
            _draw(run, probe, example, chosen, offer, film, top)


def _of_run(
    run: Run, probe: Probe, chosen: Selection, offer: Offer, *, is_live: bool
) -> tuple[Film | None, Example | None]:
    """Return the film of the chosen example, if it is small enough, and the example at its step."""
    assert chosen.example is not None
    if not offer.steps:
        none = (
            _("This run has no snapshot yet.")
            if is_live
            else _("This run has no readable snapshot.")
        )
        _not_yet(none, is_live)
        return None, None
    step = selection_link.nearest_step(chosen.step, offer.steps)
    film = attention_animation.film_of(run, probe, chosen, offer.steps, step)
    if film is None:
        step = controls.scrubber(run, chosen, offer.steps, live=is_live)
    elif is_live:
        controls.follow(run, chosen, step)
    try:
        return film, example_of(run.experiment, probe, run.snapshot(step), chosen.example)
    except ValueError as error:
        show.problem(_("{why} Choose another step.", why=_(error)))
        return film, None


def _draw(
    run: Run,
    probe: Probe,
    example: Example,
    chosen: Selection,
    offer: Offer,
    film: Film | None,
    top: float | None,
) -> None:
    animation = None if film is None else film.animation
    name = "" if animation is None else animation.name
    examples = (example,) if film is None else film.examples
    is_beside = chosen.source == OWN and example.probabilities is not None  # with its answer
    if not is_beside:
        answer.verdict(run.experiment, examples, example.step, name=name)
    try:
        labels = heads.labels(run, example, chosen.kind, is_own=chosen.example is None)
        frames = [(example.step, labels.whole)]
        if film is not None:
            frames = [
                (each.step, words.whole)
                for each, words in zip(film.examples, film.labels, strict=True)
            ]
        figures.stretch_picker(run, example, chosen)
        is_narrow = is_beside or offer.n_heads > MANY_HEADS
        columns = st.columns([3, 2] if is_narrow else [5, 4, 4], gap="medium")
        with columns[0]:
            figures.heads(
                run,
                example,
                chosen,
                offer,
                top=top,
                animation=animation,
                labels=labels,
                dim=heads.faded(run, chosen, example.step),
            )
            if example.probabilities is not None and not is_beside:
                answer.details(run.experiment, examples, example.step, name=name)
        with columns[1], st.container(key="attention-one", gap="small"):
            figures.title(chosen, frames, example.step, offer.n_heads, name=name)
            if chosen.kind == "patches" and example.picture is not None:
                patches.patches(run, example, chosen, offer)
            else:
                figures.one_map(run, example, chosen, top=top)
        with columns[-1]:
            if chosen.kind == "patches":
                figures.patch_by_patch(run, example, chosen, top=top)
            else:
                figures.one_as_lines(run, example, chosen)
            figures.in_words(run, example, chosen)
            if run.experiment.task.has_model:
                st.page_link(
                    page_table.path_of("walk"),
                    label=_("How this map is computed"),
                    icon=":material/footprint:",
                    query_params=walk_steps.map_link(run, chosen.kind, chosen.layer),
                )
        if chosen.kind == "picture":
            patches.words(run, example, chosen)
        with st.container(key="attention-questions"):
            deeper.deeper(run, probe, example, chosen, offer, film, top=top)
        opened = f"cell {chosen.cell}" if chosen.view == "arithmetic" else chosen.deeper
        shown = f"{chosen.kind} {chosen.layer} {chosen.head}"
        reveal({"attention-questions": opened, "attention-one": shown}, key="attention-reveal")
    except ValueError as error:
        show.problem(error)


def _not_yet(sentence: str, is_live: bool) -> None:
    if is_live:
        st.info(
            _("{why} The first one appears as soon as it is saved.", why=sentence),
            icon=":material/hourglass_empty:",
        )
    else:
        show.problem(sentence)


page()
