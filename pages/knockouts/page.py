"""Knock-outs: switch parts of a trained model off, and see at once what that costs."""

from __future__ import annotations

import streamlit as st

from pages.components.thumbnails import Thumbnail, thumbnails
from pages.i18n import _, paragraph
from pages.knockouts import board, example, heads, outcome, state
from pages.knockouts.link import ALL, EXAMPLE, HOW, VIEW
from pages.knockouts.outcome import Measurement
from pages.ui import fitting_run, recorded, runs_access, show, view_link, visitors
from pages.ui.state import current_run_id, draw_anew, set_current_run
from pages.ui.task_panels import example_name
from pages.ui.typed import escape
from tfm_core.inspect.attention.trained import checkpoint_mark, no_checkpoint
from tfm_core.inspect.knockouts import measure
from tfm_core.probe.types import Probe
from tfm_core.runs.run import Run

FIRST_RECORDED = "recorded-korean"
TICK = 2.0
"""Seconds between two looks at a run that has saved no weights yet."""


def page() -> None:
    """Show the board of the current run's model, or of one that comes with the app."""
    show.header("knockouts")
    run = run_to_break()
    if run is not None:
        st.fragment(_view)(run)


def _view(run: Run) -> None:
    try:
        _draw(run)
    except ValueError as error:
        show.problem(error)


def _draw(run: Run) -> None:
    fitting_run.say(run)
    off = state.off(run)
    measurement = controls(run, run.probe())
    question = measurement.of(run)
    left, right = st.columns([13, 9], gap="medium")
    is_next = run.meta.recorded and not measurement.is_all and heads.has_heads(run)
    with left:
        worth = (
            heads.measured_heads(run, measurement, st.empty())
            if state.heads_asked(question)
            else {}
        )
        board.board(run, off, worth)
        bar = st.empty()
        if worth or not is_next:
            heads.offer(run, measurement, is_measured=bool(worth))
    with right:
        outcome.outcome(run, off, measurement)
        example.answers(run, off, measurement)
    view = view_link.choice(_("Look closer"), VIEW, is_labelled=False)
    if view == "heads":
        heads.table(run, off, measurement, worth)
    elif view == "pruning":
        heads.pruning(run, measurement)
    else:
        example.attention(run, off, measurement)
    recorded.note(run, key="knockouts")
    if is_next and not worth:  # what is above is visible meanwhile
        heads.measured_heads(run, measurement, bar)
        state.ask_heads(question)
        draw_anew()


def run_to_break() -> Run | None:
    """Return the run to show; None, after saying why and what would help, where it cannot be."""
    run_id = current_run_id()
    if run_id is None:
        return _first()
    run = runs_access.store().get(run_id)
    if run.problem:
        show.problem(run.problem)
    elif run.has_checkpoint:
        return run
    else:
        st.fragment(_wait, run_every=TICK if run.status.is_active else None)(run)
    _offer_recorded()
    return None


def _first() -> Run | None:
    able = [run for run in visitors.listed() if not run.problem and run.has_checkpoint]
    run = fitting_run.first_to_show(able, FIRST_RECORDED)
    if run is None:
        show.empty(_("No trained model to take apart yet."), _("Train a model"), "home")
    return run


def _wait(run: Run) -> None:
    if run.has_checkpoint:
        draw_anew()
    if run.status.is_active:
        st.info(_(no_checkpoint(run)), icon=":material/hourglass_empty:")
    else:
        show.problem(no_checkpoint(run))


def _offer_recorded() -> None:
    able = {run.id: run for run in visitors.listed() if run.meta.recorded and run.has_checkpoint}
    run = able.get(FIRST_RECORDED)
    if run is not None:
        st.button(
            _("Take “{name}” apart", name=escape(run.meta.name)),
            icon=":material/inventory_2:",
            key="knockouts-recorded",
            on_click=set_current_run,
            args=(run.id,),
        )


def controls(run: Run, probe: Probe) -> Measurement:
    """Choose how parts are switched off, on how many examples that is measured, and the example."""
    n_first, n_most = measure.n_first(run), measure.n_most(run)
    count = len(probe.items)
    with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
        problem = view_link.receive(EXAMPLE)
        st.session_state[EXAMPLE.key] = min(int(st.session_state[EXAMPLE.key]), count - 1)
        index = _example(run, probe)
        how = view_link.choice(_("In its place"), HOW, is_labelled=False)
        with st.popover(_("Zero or mean?"), icon=":material/help:"):
            st.markdown(paragraph("knockouts/zero-or-mean"))
        if n_most > n_first:
            problem = problem or view_link.receive(ALL)
            st.toggle(
                _("All {n} validation examples", n=f"{n_most:,}"),
                key=ALL.key,
                help=_("Off: the first {n}.", n=n_first),
            )
        view_link.warn(problem)
    view_link.say(EXAMPLE, index)
    is_all = n_most > n_first and bool(st.session_state[ALL.key])
    view_link.say(ALL, is_all)
    return Measurement(
        how="mean" if how == "mean" else "zero",
        n=n_most if is_all else n_first,
        is_all=is_all,
        example=index,
        mark=checkpoint_mark(run),
    )


def _example(run: Run, probe: Probe) -> int:
    """Choose one of the run's examples: a picture by itself, a text by its words."""
    if probe.images is None:
        return st.selectbox(
            _("Example"),
            range(len(probe.items)),
            format_func=lambda i: example_name(run.experiment, probe.items[i], i + 1),
            key=EXAMPLE.key,
            label_visibility="collapsed",
            width=360,
        )
    index = int(st.session_state[EXAMPLE.key])
    pictures = zip(probe.images, probe.items, strict=True)
    thumbnails(
        [
            Thumbnail(picture, example_name(run.experiment, item, number))
            for number, (picture, item) in enumerate(pictures, 1)
        ],
        chosen=index,
        label=_("Example"),
        on_pick=lambda picked: st.session_state.update({EXAMPLE.key: picked}),
        key="knockouts-pictures",
    )
    return index


page()
