"""Runs as rows: what they are, how far they are, and what can be done with them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.files import take_away
from pages.app.runs import comparison, run_actions, run_dialogs, run_words, runs_access, shown_run
from pages.app.runs.run_words import sparkline
from pages.app.typed import escape
from pages.i18n import _, ngettext
from tfm_core.choices.config import TunedConfig
from tfm_core.runs.run import Run
from tfm_core.runs.status import State, Status

logger = logging.getLogger(__name__)

TICK = 2.0
"""Seconds between two looks at a run that is training."""

MAX_STEPS = 1_000_000
_MAX_OF_NOTE = 140  # characters that a row shows
_NO_BREAKS = {ord(" "): "\u00a0", ord("-"): "\u2011"}  # a number and its unit, a date: one line


def row(
    run: Run, *, menu: bool, apart: str = "", before: Callable[[Run], None] | None = None
) -> None:
    """Draw a run with its buttons; ``menu`` adds steering, repeating, labels and delete.

    A broken run does not hide others. apart: text after its name. before: draws what precedes it.
    """
    with guarded(run):
        status = run.status
        with st.container(border=True, key=f"run-{run.id}"):
            facts, buttons = st.columns([3, 1] if menu else [6, 1], vertical_alignment="center")
            ticks = run.problem is None and status.is_active
            with facts, st.container(horizontal=True, vertical_alignment="center", gap="small"):
                if before is not None:
                    before(run)
                with st.container(gap="xxsmall", width="stretch"):
                    drawn = st.fragment(_facts, run_every=TICK if ticks else None)
                    drawn(run, status.state, apart)
            with buttons, st.container(horizontal=True, horizontal_alignment="right", gap="small"):
                if run.problem is None:
                    _buttons(run, status, steers=menu)
                if menu:
                    _menu(run)


@contextmanager
def guarded(run: Run) -> Iterator[None]:
    """Show a message if a run cannot be drawn, and log why."""
    try:
        yield
    except Exception:
        logger.exception("The run %s could not be drawn.", run.id)
        message = _("The run {id} cannot be shown; see the server's log.", id=run.id)
        st.caption(f":material/broken_image: {escape(message)}")


def gone(run: Run) -> None:
    """Draw a row in place of a run that was just deleted, to undo that."""
    until = runs_access.store().restorable_until(run.id)
    if until is None:  # its room was needed, or it was brought back meanwhile
        return
    with st.container(
        border=True, horizontal=True, vertical_alignment="center", key=f"gone-{run.id}"
    ):
        message = _(
            "Deleted **{name}**. Undo until {time}, or until the space is needed.",
            name=escape(run.meta.name),
            time=show.clock(until),
        )
        st.markdown(message, width="stretch")
        st.button(
            _named(_("Undo"), run),
            key=f"undo-{run.id}",
            icon=":material/undo:",
            on_click=run_actions.undelete,
            args=(run.id,),
        )


def _facts(run: Run, drawn_as: State, apart: str) -> None:
    with guarded(run):
        _say(run, drawn_as, apart)


def _say(run: Run, drawn_as: State, apart: str) -> None:
    name = f"**{escape(run.meta.name)}**" + (f" {escape(apart)}" if apart else "")
    if run.problem is not None:
        st.markdown(f"{name}  {run_words.badge_of(run)}")
        st.caption(escape(_(run.problem)))
        return
    status, labels = run.status, run.labels
    if status.state != drawn_as:
        state.draw_anew()  # once: the row gets other buttons, and perhaps no longer ticks
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        sparkline(run)
        with st.container(width="stretch", gap="xxsmall"):
            marks = [visitors.badge(run)]
            if labels.group is not None:
                marks.append(f":blue-badge[:material/folder: {escape(labels.group)}]")
            marks += [f":gray-badge[:material/sell: {escape(tag)}]" for tag in labels.tags]
            if not run.meta.recorded:  # these are finished, and their names say where they are from
                marks = [run_words.badge_of(run), shown_run.origin_badge(run), *marks]
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                if st.button(name, key=f"open-{run.id}", type="tertiary"):
                    run_actions.watch(run)
                if any(marks):
                    st.markdown(" ".join(filter(None, marks)), width="content")
            st.caption(_facts_words(run))
    if note := labels.note:
        line = " ".join(note.split())
        line = line if len(line) <= _MAX_OF_NOTE else f"{line[:_MAX_OF_NOTE].rstrip()} …"
        st.caption(f":material/edit_note: {escape(line)}", help=escape(note))
    for sentence in (run_words.reason(run), run.damage, shown_run.origin_words(run)):
        if sentence:
            st.caption(escape(_(sentence)))


def _facts_words(run: Run) -> str:
    """Return task, model, progress, result, time and age; the task only if the name lacks it."""
    experiment, status = run.experiment, run.status
    task = _(experiment.task.facts.label)
    parts = [
        "" if run.meta.name.startswith(task) else escape(task),
        escape(run_words.model(run)),
        run_words.progress(status).translate(_NO_BREAKS),
        escape(run_words.result(run)),
        show.duration(status.seconds).translate(_NO_BREAKS) if status.seconds else "",
        show.ago(run.meta.created).translate(_NO_BREAKS),
    ]
    return " · ".join(filter(None, parts))


def _named(word: str, run: Run) -> str:
    """Return a button's label: a visible word, and the run's name for screen readers."""
    return f"{word} :gray[{escape(run.meta.name)}]"


def _buttons(run: Run, status: Status, *, steers: bool) -> None:
    if run.meta.recorded or visitors.watches(run):
        return
    steers = steers and not (run.problem is None and run.experiment.training is None)
    for ask in run_actions.possible_requests(status) if steers else ():
        st.button(
            _named(_(ask.label), run),
            key=f"{ask.kind}-{run.id}",
            icon=ask.icon,
            help=_(ask.help),
            on_click=run_actions.ask_and_wait,
            args=(run, ask.kind),
        )
    if run.can_resume and st.button(
        _named(_("Resume"), run),
        key=f"resume-{run.id}",
        icon=":material/play_arrow:",
        help=_("Continues from the last checkpoint.")
        if run.has_checkpoint
        else _("Starts over: there is no checkpoint."),
    ):
        run_actions.resume(run)


def _menu(run: Run) -> None:
    is_whole = run.problem is None
    can_change = not run.meta.recorded and not visitors.watches(run)
    if not (is_whole or can_change):
        return
    with st.popover(_named(_("More"), run), key=state.menu_key(f"menu-{run.id}")):
        if runs_access.is_hidden(run):
            st.caption(_("Find its bug for more actions."))
            if can_change:
                _delete(run)
            return
        is_trained = is_whole and run.experiment.training is not None
        has_curves = is_whole and run.status.state != "opened"
        if has_curves and not run.status.is_active:
            take_away.button(run, key=f"take-{run.id}", width="stretch")
        if is_trained:
            is_over = run.has_checkpoint and not run.status.is_active
            if is_over and run.status.step < MAX_STEPS:
                _further(run)
            _beside(run)
        if can_change and is_whole:
            st.button(
                _named(_("Name, tags and note"), run),
                key=f"labels-{run.id}",
                icon=":material/sell:",
                width="stretch",
                on_click=run_dialogs.LABELS_DIALOG.ask,
                args=(run.id,),
            )
        if can_change:
            _delete(run)


def _beside(run: Run) -> None:
    n, why_not = comparison.n_seeds(), visitors.why_not()
    if st.button(
        _named(ngettext("{n} seed", "{n} seeds", n, n=n), run),
        key=f"seeds-{run.id}",
        icon=":material/casino:",
        help=escape(why_not) or _("Trains missing seeds and compares all."),
        width="stretch",
        disabled=bool(why_not),
    ):
        try:
            comparison.train_seeds([comparison.start_like(run)])
        except (ValueError, OSError) as error:
            state.notify(_(error))
            st.rerun()
    if isinstance(run.experiment.task, TunedConfig):
        return
    st.button(
        _named(_("Repeat with a change"), run),
        key=f"twin-{run.id}",
        icon=":material/alt_route:",
        help=escape(why_not) or _("Change settings and compare both runs."),
        width="stretch",
        disabled=bool(why_not),
        on_click=run_dialogs.TWIN_DIALOG.ask,
        args=(run.id,),
    )


def _further(run: Run) -> None:
    done, planned = run.status.step, run.experiment.trained.steps
    steps = st.number_input(
        _("Train a copy up to step"),
        min_value=done + 1,
        max_value=MAX_STEPS,
        value=min(max(2 * planned, done + 1), MAX_STEPS),
        step=100,
        key=f"further-steps-{run.id}",
        help=_("This run stays at {done} steps.", done=f"{done:,}"),
    )
    if st.button(
        _named(_("Train further"), run),
        key=f"further-{run.id}",
        icon=":material/fast_forward:",
        width="stretch",
        disabled=bool(why_not := visitors.why_not()),
        help=escape(why_not) or None,
    ):
        copy = run_actions.train_further(run, int(steps))
        if copy is not None:
            run_actions.watch(copy)


def _delete(run: Run) -> None:
    is_held = run.status.is_alive
    st.button(
        _named(_("Delete"), run),
        key=f"delete-{run.id}",
        icon=":material/delete:",
        width="stretch",
        disabled=is_held,
        help=_("Stop the run first.") if is_held else None,
        on_click=partial(run_actions.delete, run),
    )
