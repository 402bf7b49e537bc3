"""Runs as rows: what they are, how far they came, and what can be done with them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

import streamlit as st

from pages.i18n import _
from pages.ui import recorded, run_actions, run_words, show, state, visitors
from pages.ui.sparkline import sparkline
from pages.ui.typed import escape
from tfm_core.runs.run import MAX_NAME, Run

logger = logging.getLogger(__name__)

TICK = 2.0
"""Seconds between two looks at a run that is training."""

MOST_STEPS = 1_000_000
_NO_BREAK = "\u00a0"  # a number and its unit stay on one line


def row(run: Run, *, menu: bool) -> None:
    """Show a run with its buttons; ``menu`` adds training further, renaming and deleting.

    Whatever is wrong with a run, it takes no other from the list.
    """
    with guarded(run):
        _row(run, menu=menu)


@contextmanager
def guarded(run: Run) -> Iterator[None]:
    """Say in a sentence where a run cannot be drawn, and go on behind it; the log says why."""
    try:
        yield
    except Exception:
        logger.exception("The run %s could not be drawn.", run.id)
        words = _("The run {id} cannot be shown; the server's log says why.")
        st.caption(f":material/broken_image: {escape(words.format(id=run.id))}")


def _row(run: Run, *, menu: bool) -> None:
    is_active = run.problem is None and run.status.is_active
    with st.container(border=True, key=f"run-{run.id}"):
        facts, buttons = st.columns([5, 3] if menu else [6, 1], vertical_alignment="center")
        with facts, st.container(gap="xxsmall"):
            st.fragment(_facts, run_every=TICK if is_active else None)(run, was_active=is_active)
        with buttons, st.container(horizontal=True, horizontal_alignment="right", gap="small"):
            if run.problem is None:
                _buttons(run)
            if menu:
                _menu(run)


def _facts(run: Run, *, was_active: bool) -> None:
    with guarded(run):
        _say(run, was_active=was_active)


def _say(run: Run, *, was_active: bool) -> None:
    name = f"**{escape(run.meta.name)}**"
    if run.problem is not None:
        st.markdown(f"{name}  :red-badge[:material/broken_image: {_('Damaged')}]")
        st.caption(escape(_(run.problem)))
        return
    status = run.status
    if was_active and not status.is_active:
        state.draw_anew()  # once: the row gets other buttons, and this no longer ticks
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        sparkline(run)
        with st.container(width="stretch", gap="xxsmall"):
            badges = f"{run_words.badge(status)} {recorded.badge(run)} {visitors.badge(run)}"
            st.markdown(f"{name}  {badges}")
            st.caption(" · ".join(_numbers(run)))
    for sentence in (status.reason, run.damage):
        if sentence:
            st.caption(escape(_(sentence)))


def _numbers(run: Run) -> list[str]:
    status, reached = run.status, run_words.accuracy(run)
    numbers = [run_words.progress(status)]
    if reached is not None:
        share, where = reached
        numbers.append(_("{share} right ({where})").format(share=show.percent(share), where=where))
    if status.seconds:
        numbers.append(_("trained {time}").format(time=show.duration(status.seconds)))
    numbers.append(show.ago(run.meta.created))
    whole = [number.replace(" ", _NO_BREAK) for number in numbers]
    return [escape(run_words.learns(run)), *whole]


def _buttons(run: Run) -> None:
    if st.button(_("Open"), key=f"open-{run.id}", icon=":material/open_in_full:"):
        run_actions.watch(run)
    if run.meta.recorded or not run.status.can_resume or visitors.watches(run):
        return
    if st.button(
        _("Resume"),
        key=f"resume-{run.id}",
        icon=":material/play_arrow:",
        help=_("Goes on from its last checkpoint, as if it had never stopped.")
        if run.has_checkpoint
        else _("It ended before its first checkpoint, so it starts again."),
    ):
        run_actions.resume(run)


def _menu(run: Run) -> None:
    can_go_on = run.problem is None and run.has_checkpoint and not run.status.is_active
    can_change = not run.meta.recorded and not visitors.watches(run)
    if not (can_go_on or can_change):
        return
    with st.popover(_("More"), key=f"menu-{run.id}"):
        if can_go_on and run.status.step < MOST_STEPS:
            _further(run)
        if can_change:
            _rename_and_delete(run)


def _further(run: Run) -> None:
    done, planned = run.status.step, run.experiment.training.steps
    steps = st.number_input(
        _("Train a copy further, to step"),
        min_value=done + 1,
        max_value=MOST_STEPS,
        value=min(max(2 * planned, done + 1), MOST_STEPS),
        step=100,
        key=f"further-steps-{run.id}",
        help=_("It has done {done} steps. This run stays as it is.").format(done=f"{done:,}"),
    )
    if st.button(
        _("Train further"), key=f"further-{run.id}", icon=":material/fast_forward:", width="stretch"
    ):
        copy = run_actions.train_further(run, int(steps))
        if copy is not None:
            run_actions.watch(copy)


def _rename_and_delete(run: Run) -> None:
    if run.problem is None:
        key = f"name-{run.id}"
        st.text_input(_("Name"), value=run.meta.name, max_chars=MAX_NAME, key=key)
        st.button(
            _("Rename"),
            key=f"rename-{run.id}",
            icon=":material/edit:",
            width="stretch",
            on_click=lambda: run_actions.rename(run.id, st.session_state[key]),
        )
    is_held = run.status.is_alive
    st.button(
        _("Delete"),
        key=f"delete-{run.id}",
        icon=":material/delete:",
        width="stretch",
        disabled=is_held,
        help=_("It is training; stop it first.") if is_held else None,
        on_click=partial(run_actions.delete, run),
    )
