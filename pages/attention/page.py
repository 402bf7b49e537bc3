"""Attention: which token looks at which, in every head, at every saved snapshot."""

from __future__ import annotations

import streamlit as st

from pages.attention import animation as attention_animation
from pages.attention import (
    answer,
    controls,
    deeper,
    figures,
    heads,
    own,
    patches,
    selection,
    selection_link,
    source,
    statistics,
)
from pages.attention.selection_link import Offer, Selection
from pages.components.animation import SnapshotAnimation
from pages.i18n import _
from pages.ui import page_table, runs_access, show, state, view_link, visitors, walk_links
from pages.ui.typed import escape
from tfm_core.inspect.attention.example import Example, example_of
from tfm_core.probe.labels import KINDS, modules_by_kind
from tfm_core.probe.types import Probe
from tfm_core.runs.run import Run

TICK = 2.0  # seconds between two looks at a run that is training


def page() -> None:
    """Show the current run, or how to get one."""
    show.header("attention")
    run_id = state.current_run_id()
    if run_id is None:
        _no_run()
        return
    run = runs_access.store().get(run_id)
    is_live = run.status.is_active
    every = TICK if is_live else None
    if selection.playing_since() is not None:
        every = controls.FRAME_SECONDS
    st.fragment(_look, run_every=every)(run, is_live)


def _look(run: Run, was_live: bool) -> None:
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
    source.source_picker(run, probe, chosen)
    animation = None
    if chosen.example is None:
        example = own.own(run, probe, chosen)
    elif not offer.steps:
        words = _("This run has no snapshot yet.")
        gone = _("This run has no snapshot that can be read; train it again, or open another run.")
        _not_yet(words if is_live else gone, is_live)
        return
    else:
        step = selection_link.nearest_step(chosen.step, offer.steps)
        animation = attention_animation.animation_of(run, probe, chosen, offer.steps, step)
        if animation is None:
            step = controls.scrubber(run, chosen, offer.steps, live=is_live)
        elif is_live:
            controls.follow(run, chosen, step)
        example = _of_step(run, probe, step, chosen.example)
    if example is not None:
        _draw(run, probe, example, chosen, offer, animation)


def _of_step(run: Run, probe: Probe, step: int, index: int) -> Example | None:
    try:
        return example_of(run.experiment, probe, run.snapshot(step), index)
    except ValueError as error:
        show.problem(_("{why} The other steps can still be looked at.").format(why=_(error)))
        return None


def _draw(
    run: Run,
    probe: Probe,
    example: Example,
    chosen: Selection,
    offer: Offer,
    animation: SnapshotAnimation | None,
) -> None:
    answer.verdict(run.experiment, example)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        controls.kind_picker(run, chosen, offer)
        top = 1.0 if controls.full_scale(chosen.kind) else None
    st.caption(_(KINDS[chosen.kind].help))
    modules = modules_by_kind(run.experiment)[chosen.kind]
    labels = statistics.labels_near(run, chosen, modules, example.step, offer.steps)
    number = chosen.layer * offer.n_heads + chosen.head
    try:
        left, right = st.columns(2, gap="medium")
        with left:
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
            answer.details(run.experiment, example)
        with right:
            if example.picture is not None:
                patches.over_picture(run, example, chosen, offer)
            figures.one_head(run, example, chosen, top=top, label=labels[number] if labels else "")
            st.page_link(
                page_table.path_of("walk"),
                label=_("How this map comes about, step by step"),
                icon=":material/footprint:",
                query_params=walk_links.to_map(run, chosen.kind, chosen.layer),
            )
        deeper.deeper(run, probe, example, chosen, offer, top=top, animation=animation)
    except ValueError as error:
        show.problem(error)


def _not_yet(sentence: str, is_live: bool) -> None:
    if is_live:
        st.info(
            _("{why} The page shows the first one as soon as it is there.").format(why=sentence),
            icon=":material/hourglass_empty:",
        )
    else:
        show.problem(sentence)


def _no_run() -> None:
    show.empty(
        _("There is no run to look into yet: train one, or open a recorded one below."),
        _("Train a model"),
        "home",
    )
    runs = [run for run in visitors.at_hand() if not run.problem and run.snapshot_steps()]
    for run in runs[:6]:
        st.button(
            _("Look into “{name}”").format(name=escape(run.meta.name)),
            icon=":material/visibility:",
            key=f"attention-open-{run.id}",
            on_click=state.set_current_run,
            args=(run.id,),
        )


page()
