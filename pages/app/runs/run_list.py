"""Runs as rows, and what can be done with a run, as buttons: in its row, and on its own page."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.runs import (
    comparison,
    run_actions,
    run_time,
    run_words,
    runs_access,
    shown_run,
    take_away,
)
from pages.app.settings import controls
from pages.app.typed import escape
from pages.components.buttons import counted_button
from pages.i18n import N_, _, ngettext, paragraph
from tfm_core.choices.config import TunedConfig
from tfm_core.choices.config.training import LOW, TrainingConfig
from tfm_core.runs.labels import MAX_GROUP, MAX_NAME, MAX_NOTE, MAX_TAG, MAX_TAGS
from tfm_core.runs.process.requests import RequestKind
from tfm_core.runs.run import Run
from tfm_core.runs.status import State, Status
from tfm_core.runs.store import RunNotFound

MAX_STEPS = 1_000_000
_SKIP = "M6 18l8.5-6L6 6v12zM16 6v12h2V6h-2z"
_JUMP = 2  # from this ratio on, a rise of the rate is mentioned
_REFUSED = "labels-refused"
_MAX_OF_NOTE = 140  # characters that a row shows
_NO_BREAKS = {ord(" "): "\u00a0", ord("-"): "\u2011"}  # a number and its unit, a date: one line

logger = logging.getLogger(__name__)


class _Request(NamedTuple):
    """A request to a worker, and the states in which it makes sense."""

    kind: RequestKind
    label: str
    icon: str
    help: str
    states: tuple[State, ...]


_REQUESTS = (
    _Request("pause", N_("Pause"), ":material/pause:", N_("Nothing is lost."), ("running",)),
    _Request("resume", N_("Resume"), ":material/play_arrow:", "", ("paused",)),
    _Request(
        "stop",
        N_("Stop"),
        ":material/stop:",
        N_("You can resume it later."),
        ("starting", "running", "paused"),
    ),
    _Request(
        "stop",
        N_("Cancel"),
        ":material/close:",
        N_("Removes the run from the queue. You can resume it later."),
        ("queued",),
    ),
)


@dataclass(frozen=True, slots=True)
class RunButtons:
    """The buttons of a run that apply in its state and that this visitor may press.

    is_row: in a list of runs, where each label ends with the run's name, for screen readers.
    """

    run: Run
    status: Status
    is_row: bool = False

    def _key(self, name: str) -> str:
        return f"{name}-{self.run.id}" if self.is_row else f"run-{name}"

    def _label(self, word: str) -> str:
        return f"{word} :gray[{escape(self.run.meta.name)}]" if self.is_row else word

    def _button(self, name: str, label: str, icon: str, **more: Any) -> bool:
        return st.button(self._label(label), key=self._key(name), icon=icon, **more)

    @property
    def _is_changeable(self) -> bool:
        return not self.run.meta.recorded and not visitors.watches(self.run)

    @property
    def _is_ours(self) -> bool:
        """Whether it was trained by this app, so that it can train here."""
        return self.run.problem is None and self.run.experiment.training is not None

    def steering(self) -> None:
        """Draw the requests to the worker that make sense now."""
        run = self.run
        if not (self._is_ours and self._is_changeable):
            return
        for request in _REQUESTS:
            if self.status.state not in request.states:
                continue
            is_resume = request.kind == "resume"
            self._button(
                request.kind,
                _(request.label),
                request.icon,
                help=_(request.help) if request.help else None,
                type="primary" if is_resume and not self.is_row else "secondary",
                on_click=run_actions.ask_and_wait,
                args=(run, request.kind),
            )
            if is_resume and not self.is_row:
                counted_button(
                    _("Train one step"),
                    help=_("Trains on one batch and pauses again."),
                    path=_SKIP,
                    on_press=partial(run_actions.ask_and_wait, run, "step"),
                    key="run-step",
                )

    def resume(self) -> None:
        """Draw the button that resumes a run which ended early: a row opens it, too."""
        run = self.run
        if not (run.can_resume and self._is_changeable):
            return
        words, icon = _("Resume"), ":material/play_arrow:"
        if self.is_row:
            restarts = _("Starts over, because there is no checkpoint.")
            help = None if run.has_checkpoint else restarts
            if self._button("resume", words, icon, help=help):
                run_actions.resume(run, opens=True)
            return
        repeats = run.outcome is not None and run.outcome.repeats
        self._button(
            "again",
            words,
            icon,
            type="secondary" if repeats else "primary",
            on_click=run_actions.resume,
            args=(run,),
        )
        others = [name for name in run_time.device_choices(run) if name != run.meta.device]
        if not others:
            return
        with st.popover(_("Resume on …"), icon=":material/memory:", key=state.menu_key("run-move")):
            device = run_time.choose_device(run, others, key="run-device")
            st.button(
                _("Resume on {device}", device=show.device(device)),
                key="run-again-there",
                type="primary",
                on_click=run_actions.resume,
                args=(run, device),
            )

    def further(self) -> None:
        """Ask how a copy trains further, and start it."""
        run, status = self.run, self.status
        if status.is_active or not run.has_checkpoint:
            return
        more = st.number_input(
            _("More steps"),
            min_value=1,
            max_value=MAX_STEPS,
            value=max(1, status.total_steps),
            step=100,
            key=f"run-more-{run.id}",
        )
        done = run.checkpoint_step or status.step
        steps = done + int(more)
        device: str | None = None
        stays_low = False
        if not self.is_row:  # a menu has no room, and a list looks for no GPUs: that loads torch
            stays_low = st.toggle(
                _("Keep the learning rate low"),
                key=f"run-low-{run.id}",
                help=_("Constant, {share:.0%} of the peak.", share=LOW),
            )
            st.caption(_rate_words(run.experiment.trained, done, steps, stays_low=stays_low))
            names = run_time.device_choices(run)
            device = names[0]
            if names != [run.meta.device]:
                device = run_time.choose_device(run, names, key="run-further-on")
        if self._button(
            "further",
            _("Train a copy"),
            ":material/fast_forward:",
            type="secondary" if self.is_row else "primary",
            width="stretch" if self.is_row else "content",
            **visitors.allowed(),
        ):
            copy = run_actions.train_further(run, steps, device=device, stays_low=stays_low)
            if copy is not None:
                run_actions.watch(copy)

    def new_run(self) -> None:
        is_tuned = isinstance(self.run.experiment.task, TunedConfig)
        if self._button(
            "new",
            _("Start a new run"),
            ":material/add:",
            help=None if is_tuned else _("Opens Train with these settings."),
        ):  # no setting of Train names the weights of a fine-tuned one
            run_actions.configure(None if is_tuned else self.run.experiment)

    def repeat(self) -> None:
        """Draw the button that opens Train to change something and compare both runs."""
        if isinstance(self.run.experiment.task, TunedConfig):
            return
        if self._button(
            "twin",
            _("Repeat with a change"),
            ":material/alt_route:",
            width="stretch" if self.is_row else "content",
            **visitors.allowed(_("Change settings, then compare both runs.")),
        ):
            run_actions.configure(self.run.experiment, beside=self.run)

    def stage(self) -> None:
        """Draw all of them on the run's own page."""
        run = self.run
        self.steering()
        self.resume()
        if run.has_checkpoint and not self.status.is_active:
            with st.popover(_("Train further"), icon=":material/fast_forward:"):
                self.further()
        with st.popover(_("More"), icon=":material/more_horiz:", key=state.menu_key("run-more")):
            if not self.status.is_active:
                take_away.button(run, key="run-take")
            if self._is_ours:
                self.new_run()
                self.repeat()
            if st.button(_("Compare with …"), icon=":material/compare_arrows:", key="run-compare"):
                comparison.open_comparison([run.id])
            if self._is_ours:
                comparison.seed_button(lambda: [comparison.start_like(run)], key="run")
        run_actions.link_back(run.id)

    def row(self, *, has_menu: bool) -> None:
        """Draw them in the run's row. has_menu: also what steers, repeats and deletes it."""
        run, is_whole = self.run, self.run.problem is None
        if is_whole:
            if has_menu:
                self.steering()
            self.resume()
        if not has_menu or not (is_whole or self._is_changeable):
            return
        with st.popover(self._label(_("More")), key=state.menu_key(f"menu-{run.id}")):
            if runs_access.is_hidden(run):
                st.caption(_("Find the bug to unlock more actions."))
            elif is_whole:
                self._whole()
            if self._is_changeable:
                is_alive = self.status.is_alive
                self._button(
                    "delete",
                    _("Delete"),
                    ":material/delete:",
                    width="stretch",
                    disabled=is_alive,
                    help=_("Stop the run first.") if is_alive else None,
                    on_click=partial(run_actions.delete, run),
                )

    def _whole(self) -> None:
        """Draw in a row's menu what needs a run that can be read."""
        run = self.run
        if self.status.state != "opened" and not self.status.is_active:
            take_away.button(run, key=f"take-{run.id}", width="stretch")
        if self._is_ours:
            self.further()
            n = comparison.n_seeds()
            if self._button(
                "seeds",
                ngettext("{n} seed", "{n} seeds", n, n=n),
                ":material/casino:",
                width="stretch",
                **visitors.allowed(_("Trains missing seeds and compares all.")),
            ):
                comparison.train_seeds([comparison.start_like(run)])
            self.repeat()
        if self._is_changeable:
            self._button(
                "labels",
                _("Name, tags and note"),
                ":material/sell:",
                width="stretch",
                on_click=open_labels,
                args=([run.id],),
            )


def row(
    run: Run, *, menu: bool, apart: str = "", before: Callable[[Run], None] | None = None
) -> None:
    """Draw a run with its buttons; ``menu`` adds steering, repeating, labels and delete.

    A broken run does not hide others. apart: text after its name. before: draws what precedes it.
    """
    with guarded(run):
        status = run.status
        with st.container(border=not menu, key=f"run-{run.id}"):
            facts, buttons = st.columns([3, 1] if menu else [6, 1], vertical_alignment="center")
            ticks = run.problem is None and status.is_active
            with facts, st.container(horizontal=True, vertical_alignment="center", gap="small"):
                if before is not None:
                    before(run)
                with st.container(gap="xxsmall", width="stretch"):
                    drawn = st.fragment(_facts, run_every=comparison.TICK if ticks else None)
                    drawn(run, status.state, apart)
            with buttons, st.container(horizontal=True, horizontal_alignment="right", gap="small"):
                RunButtons(run, status, is_row=True).row(has_menu=menu)


@contextmanager
def guarded(run: Run) -> Iterator[None]:
    """Show a message if a run cannot be drawn, and log why."""
    try:
        yield
    except Exception:
        logger.exception("The run %s could not be drawn.", run.id)
        message = _("The run {id} can't be shown; see the server's log.", id=run.id)
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
            "Deleted **{name}**. You can undo this until {time}, or until space runs out.",
            name=escape(run.meta.name),
            time=show.clock(until),
        )
        st.markdown(message, width="stretch")
        st.button(
            f"{_('Undo')} :gray[{escape(run.meta.name)}]",  # the name for screen readers
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
        state.rerun()  # once: the row gets other buttons, and perhaps no longer ticks
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        run_words.sparkline(run)
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


def _rate_words(training: TrainingConfig, done: int, steps: int, *, stays_low: bool) -> str:
    """Return what the learning rate of a copy that trains further does."""
    try:
        further = training.further(steps, stays_low=stays_low)
    except ValueError as error:  # too many steps
        return escape(_(error))
    before, after = training.rate(done), further.rate(done + 1)
    rates = {"before": before, "after": after, "done": f"{done:,}"}
    if stays_low:
        return _(
            "Learning rate: {before:.2g} at step {done}, then constant at {after:.2g}.", **rates
        )
    if after < _JUMP * before:
        return _(
            "Learning rate: {before:.2g} at step {done}, {after:.2g} at the next step.", **rates
        )
    return paragraph("train/rate-jumps", steps=f"{steps:,}", **rates)


def open_labels(run_ids: Sequence[str]) -> None:
    """Open the dialog on the labels of runs at the next rerun."""
    st.session_state.pop(_REFUSED, None)
    state.open_dialog(run_ids)
    state.close_menus()


def _close_labels() -> None:
    st.session_state.pop(_REFUSED, None)
    state.close_dialog()


def labels_dialog() -> None:
    """Draw the dialog on labels if it is open; once a page, in no fragment."""
    runs = []
    for run_id in state.dialog_runs():
        with suppress(RunNotFound):
            runs.append(runs_access.store().get(run_id))
    if not runs:
        state.close_dialog()
        return
    dialog = st.dialog(_("Name and labels"), icon=":material/sell:", on_dismiss=_close_labels)
    dialog(_labels)(runs)


def _labels(runs: list[Run]) -> None:
    """Ask for the labels of runs, and of a single one for its name and a note."""
    own = [run for run in runs if not run.meta.recorded and not visitors.watches(run)]
    if len(own) < len(runs):
        st.caption(_("You can't label recorded runs or other visitors' runs."))
    one = runs[0] if len(runs) == 1 else None
    of = "picked" if one is None else one.id
    name: str | None = None
    note: str | None = None
    if one is not None:
        name = st.text_input(_("Name"), value=one.meta.name, max_chars=MAX_NAME, key=f"name-{of}")
    groups = {run.labels.group or "" for run in own}
    before = groups.pop() if len(groups) == 1 else ""
    group = st.text_input(
        _("Group"),
        value=before,
        max_chars=MAX_GROUP,
        key=f"group-{of}",
        placeholder=_("Leave empty to remove the group") if before else None,
    )
    tags = st.text_input(
        _("Tags") if one is not None else _("Add tags"),
        value="" if one is None else ", ".join(one.labels.tags),
        max_chars=MAX_TAGS * (MAX_TAG + 2),
        key=f"tags-{of}",
        placeholder=_("baseline to repeat"),
        help=_("Separate with commas."),
    )
    if one is not None:
        note = st.text_area(
            _("Note"), value=one.labels.note, max_chars=MAX_NOTE, key=f"note-{of}", height=110
        )
    if st.button(
        _("Save"),
        key=f"label-{of}",
        type="primary",
        icon=":material/check:",
        width="stretch",
        disabled=not own,
    ):
        st.session_state.pop(_REFUSED, None)
        try:
            run_actions.label(
                [run.id for run in own],
                name=name,
                group=None if group == before else group,
                tags=[tags],
                note=note,
                adds_tags=one is None,
            )
        except (ValueError, OSError) as error:
            st.session_state[_REFUSED] = _(error)
        else:
            _close_labels()
            st.rerun()
    if refused := st.session_state.get(_REFUSED):
        controls.error_text(refused)
