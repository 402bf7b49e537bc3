"""The buttons of a run: those that apply in its current state."""

from __future__ import annotations

from functools import partial

import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.files import take_away
from pages.app.navigation import page_table
from pages.app.runs import comparison, run_actions, run_dialogs, run_time
from pages.app.typed import escape
from pages.components.buttons import counted_button
from pages.i18n import _, paragraph
from tfm_core.choices.config import TunedConfig
from tfm_core.choices.config.training import LOW, TrainingConfig
from tfm_core.runs.run import Run
from tfm_core.runs.status import Status

_SKIP = "M6 18l8.5-6L6 6v12zM16 6v12h2V6h-2z"
_JUMP = 2  # from this ratio on, a rise of the rate is mentioned


def row(run: Run, status: Status) -> None:
    """Draw the buttons that apply now and that this visitor may use."""
    is_ours = run.experiment.training is not None
    if is_ours and not visitors.watches(run):
        _steering(run, status)
    if run.has_checkpoint and not status.is_active:
        _train_further(run, status)
    with st.popover(_("More"), icon=":material/more_horiz:", key=state.menu_key("run-more")):
        if not status.is_active:
            take_away.button(run, key="run-take")
        if is_ours:
            _new_run(run)
        _beside(run, is_ours=is_ours)
    run_actions.link_back(run.id)


def watcher(run: Run) -> None:
    """Say why another visitor's run has no buttons."""
    if visitors.watches(run):
        words = visitors.watchers_words(run, is_active=run.status.is_active)
        st.caption(f":material/visibility: {words}")


def _steering(run: Run, status: Status) -> None:
    for ask in run_actions.possible_requests(status):
        st.button(
            _(ask.label),
            icon=ask.icon,
            help=_(ask.help),
            key=f"run-{ask.kind}",
            type="primary" if ask.kind == "resume" else "secondary",
            on_click=run_actions.ask_and_wait,
            args=(run, ask.kind),
        )
        if status.state == "paused" and ask.kind == "resume":
            counted_button(
                _("Train one step"),
                help=_("One batch, then it pauses again."),
                path=_SKIP,
                on_press=partial(run_actions.ask_and_wait, run, "step"),
                key="run-step",
            )
    outcome = run.outcome
    if status.can_resume and not run.meta.recorded:
        st.button(
            _("Resume"),
            icon=":material/play_arrow:",
            type="secondary" if outcome is not None and outcome.repeats else "primary",
            key="run-again",
            on_click=run_actions.resume_here,
            args=(run,),
        )
        _resume_elsewhere(run)


def _resume_elsewhere(run: Run) -> None:
    others = [name for name in run_time.device_choices(run) if name != run.meta.device]
    if not others:
        return
    with st.popover(_("Resume on …"), icon=":material/memory:", key=state.menu_key("run-move")):
        device = run_time.choose_device(run, others, key="run-device")
        st.button(
            _("Resume on {device}", device=show.device(device)),
            key="run-again-there",
            type="primary",
            on_click=run_actions.resume_here,
            args=(run, device),
        )


def away() -> None:
    with st.container(horizontal=True, gap="small"):
        if st.button(_("Start a new run"), icon=":material/add:", key="run-new", type="primary"):
            state.set_current_run(None)
            st.rerun()
        st.page_link(page_table.path_of("runs"), label=_("All runs"), icon=":material/list:")


def _new_run(run: Run) -> None:
    is_tuned = isinstance(run.experiment.task, TunedConfig)  # no setting of Train names its weights
    pressed = st.button(
        _("Start a new run"),
        icon=":material/add:",
        key="run-new",
        help=None if is_tuned else _("Opens Train with these settings."),
    )
    if pressed:
        if not is_tuned:
            state.set_draft(run.experiment.model_dump())
        state.set_current_run(None)
        st.rerun()


def _beside(run: Run, *, is_ours: bool) -> None:
    has_settings = is_ours and not isinstance(run.experiment.task, TunedConfig)
    if has_settings and st.button(
        _("Repeat with a change"),
        icon=":material/alt_route:",
        key="run-twin",
        help=escape(visitors.why_not()) or _("Change settings and compare both runs."),
        disabled=bool(visitors.why_not()),
    ):
        run_dialogs.TWIN_DIALOG.ask(run.id)
        st.rerun()
    if st.button(_("Compare with …"), icon=":material/compare_arrows:", key="run-compare"):
        comparison.open_comparison([run.id])
    if is_ours:
        comparison.seed_button(lambda: [comparison.start_like(run)], key="run")


def _train_further(run: Run, status: Status) -> None:
    with st.popover(_("Train further"), icon=":material/fast_forward:"):
        more = st.number_input(
            _("More steps"),
            min_value=1,
            max_value=1_000_000,
            value=max(1, status.total_steps),
            step=100,
            key=f"run-more-{run.id}",
            help=_("Trains a copy."),
        )
        done = run.checkpoint_step or status.step
        steps = done + int(more)
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
        if st.button(
            _("Train a copy"),
            type="primary",
            key="run-further",
            disabled=bool(why_not := visitors.why_not()),
            help=escape(why_not) or None,
        ):
            copy = run_actions.train_further(run, steps, device=device, stays_low=stays_low)
            if copy is not None:
                state.set_current_run(copy.id)
                st.rerun()


def _rate_words(training: TrainingConfig, done: int, steps: int, *, stays_low: bool) -> str:
    try:
        further = training.further(steps, stays_low=stays_low)
    except ValueError as error:  # too many steps
        return escape(_(error))
    before, after = training.rate(done), further.rate(done + 1)
    rates = {"before": before, "after": after, "done": f"{done:,}"}
    if stays_low:
        return _(
            "Learning rate: {before:.2g} at step {done}, then {after:.2g} throughout.", **rates
        )
    if after < _JUMP * before:
        return _("Learning rate: {before:.2g} at step {done}, {after:.2g} at the next.", **rates)
    return paragraph("train/rate-jumps", steps=f"{steps:,}", **rates)
