"""Start: what the experiment needs, where it trains, and the button."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.lessons import open_lesson
from pages.app.runs import comparison, run_actions, run_time
from pages.app.runs.run_actions import Start
from pages.app.settings import controls, drafts
from pages.app.settings.drafts import CheckedDraft
from pages.app.settings.fields import KINDS, Setting
from pages.app.typed import escape
from pages.i18n import _, ngettext, paragraph
from tfm_core import settings
from tfm_core.choices.config import Experiment
from tfm_core.choices.config.advice import advice_on
from tfm_core.facts import storage
from tfm_core.inspect.differences import change_text
from tfm_core.runs.run import Run

_NAME = "start-name"


def bar(checked: CheckedDraft, preset: str | None) -> None:
    """Draw the Start button and what the run needs, or why it cannot start."""
    experiment, original = checked.experiment, run_actions.repeated()
    locked = open_lesson.refusal(experiment)
    is_off, why_not = experiment is None, visitors.why_not() or locked
    if original is not None and experiment is not None:
        what = change_text(original.experiment, experiment)
        is_off = not what
        if what:
            st.markdown(_("Train a copy with **{what}** and compare.", what=escape(_(what))))
        else:
            st.caption(_("Nothing differs yet: the curve would be the same."))
    with st.container(horizontal=True, vertical_alignment="center", gap="medium", key="start-bar"):
        pressed = st.button(
            _("Start") if original is None else _("Train the copy"),
            type="primary",
            icon=":material/play_arrow:",
            disabled=is_off or bool(why_not),
            key="start",
            help=escape(why_not) or _("Training goes on when you leave this page."),
        )
        comparison.seed_button(
            lambda: [_requested(experiment, preset)] if experiment else [],
            key="start",
            disabled=experiment is None or bool(locked),
            on_refused=show.problem,
        )
        device = show.device(state.device())
        with st.popover(device, icon=":material/memory:", key="start-device-choice"):
            _device()
        if experiment is None:
            _problems(checked)
        else:
            with st.container(gap=None, width="stretch"):
                if why_not:
                    st.markdown(f":material/lock: **{escape(why_not)}**")
                needs(experiment)
                _warning(checked)
    if pressed and experiment is not None:
        _start(_requested(experiment, preset), original)


def seed_and_name(seed: Sequence[Setting], checked: CheckedDraft) -> None:
    with st.container(border=True):
        st.header(_("Seed and name"), anchor=False)
        for setting in seed:
            controls.control(setting, checked)
        st.text_input(
            _("Run name"),
            key=_NAME,
            max_chars=80,
            placeholder=_("task name"),
            persist_state="session",
        )


def _warning(checked: CheckedDraft) -> None:
    warnings = [warning for warning in checked.advice if warning.is_warning]
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="start-doctor"
    ):
        for warning in warnings[:1]:
            more = len(warnings) - 1
            label = checked.label(warning.field)
            message = f"**{label}:** {escape(_(warning.sentence))}"
            if more:
                message += " " + ngettext(
                    "{n} more warning above.", "{n} more warnings above.", more, n=more
                )
            st.markdown(f":orange[:material/stethoscope: {message}]", width="stretch")
            if warning.better is not None:
                st.button(
                    _("Set to {value} :gray[{label}]", value=f"{warning.better:g}", label=label),
                    icon=":material/healing:",
                    key="start-cure",
                    on_click=_apply_advice,
                    args=(warning.field, warning.better, checked.draft.edition),
                )


def _apply_advice(path: str, value: float, edition: tuple[int, int, int]) -> None:
    """Apply the advice, unless the button belongs to an older draft."""
    draft = state.current_draft()
    if draft.edition == edition:
        state.set_draft(drafts.chosen(draft.values, path, value), base=draft.baseline)


def _problems(checked: CheckedDraft) -> None:
    problems = checked.problems
    labels = dict.fromkeys(checked.label(each.field) or _("Configuration") for each in problems)
    sentence = _("Can't start yet: fix {places}.", places=", ".join(labels))
    with st.container(gap=None, width="stretch"):
        st.markdown(f":red[:material/error: **{escape(sentence)}**]")
        for problem in problems:
            if problem.field not in {*checked.settings, *KINDS}:  # those show it beside the control
                st.caption(escape(_(problem.sentence)))


def needs(experiment: Experiment) -> None:
    """Show what the run needs once known."""
    if _is_measured():
        future: Future[Any] = run_time.estimate(experiment, state.device())
    else:
        future = run_time.sizes(experiment)

    def line() -> None:
        if future.done():
            _show_needs(experiment, future)
        else:
            st.caption(_("Estimating …"))

    run_time.until_known([future], line)


def _is_measured() -> bool:
    """Return whether a step is timed on the device: not on the CPU, nor on a remote GPU."""
    return state.device() != "cpu" and settings.read().ray_address is None


def _show_needs(experiment: Experiment, future: Future[Any]) -> None:
    try:
        estimate = run_time.result(future)
    except ValueError as error:
        st.markdown(f":red[:material/error: {escape(_(error))}]")
        return
    except Exception:  # a failed estimate must not prevent the start
        st.markdown(_("No estimate for these settings."))
        return
    assert estimate is not None
    limits = settings.read().limits
    disk = storage.run_bytes(
        experiment, estimate.n_parameters, limits.max_attention, limits.max_weights
    )
    needs = paragraph(
        "train/needs",
        n=show.count(estimate.n_parameters),
        memory=show.size(estimate.memory_bytes),
        time=run_time.estimate_text_now(
            experiment,
            device=state.device(),
            threads=state.threads(),
            measured=estimate.seconds if _is_measured() else None,
        ),
        disk=show.size(disk),
    )
    about = paragraph(
        "train/needs-help",
        steps=f"{experiment.trained.steps:,}",
        step=show.size(estimate.step_bytes),
        basis=run_time.estimate_source(),
    )
    why = advice_on(state.device(), experiment.trained)
    slow = f"  \n:orange[:material/warning: {_(why)}]" if why else ""
    st.markdown(needs + slow, help=about)


def _device() -> None:
    future, shown = run_time.devices(), state.device()

    def choice() -> None:
        if not future.done():
            st.selectbox(_("Device"), [show.device(state.device())], disabled=True)
            st.caption(_("Looking for GPUs …"))
            return
        try:
            devices = run_time.result(future) or []
        except Exception:  # the CPU is always there; the server's log has the reason
            devices = []
            st.caption(_("Other devices could not be listed."))
        usable = {device.name: device for device in devices if device.available}
        names = list(usable) or ["cpu"]
        st.session_state[state.DEVICE] = state.device() if state.device() in names else names[0]
        st.selectbox(
            _("Device"),
            names,
            format_func=lambda name: _device_label(name, usable.get(name)),
            key=state.DEVICE,
            help=_("A GPU pays off from a few million parameters."),
            persist_state="session",
        )
        if state.device() != shown:
            state.rerun()
        for device in devices:
            if not device.available:
                why = _(device.reason)
                st.caption(f":material/block: {_(device.label)} ({device.name}): {why}")
        choices = usable[names[0]].thread_choices if usable else ()
        _threads(state.device(), choices)

    run_time.until_known([future], choice)


def _threads(device: str, choices: Sequence[int]) -> None:
    if device != "cpu" or len(choices) < 2:
        return
    if st.session_state.get(state.THREADS) not in choices:
        st.session_state[state.THREADS] = choices[0]
    st.segmented_control(
        _("CPU threads"),
        list(choices),
        required=True,
        key=state.THREADS,
        help=_("One is fastest for small models."),
        persist_state="session",
    )


def _start(start: Start, original: Run | None) -> None:
    """Start a run and show it, beside its original if it is a copy."""
    name, group = start.name, None
    if original is not None:
        name, group = name or original.meta.name, original.labels.group
    run = run_actions.start(
        start.experiment, name=name, preset=start.preset, threads=start.threads, group=group
    )
    if run is None:
        return
    drafts.clear_link()
    if original is not None:
        comparison.open_comparison([original.id, run.id])
    run_actions.watch(run)


def _requested(experiment: Experiment, preset: str | None) -> Start:
    return Start(
        experiment,
        state.device(),
        (st.session_state.get(_NAME) or "").strip() or None,
        preset,
        state.threads(),
    )


def _device_label(name: str, device: Any) -> str:
    if device is None:
        return name.upper()
    if device.memory_free is None:
        return str(_(device.label))
    return _("{label}, {free} free", label=_(device.label), free=show.size(device.memory_free))
