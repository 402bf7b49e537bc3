"""The run that a page shows, notes on recorded runs, and buttons that train a preset."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import streamlit as st

from pages.i18n import N_, _, paragraph
from pages.ui import show, state
from pages.ui.accounts import visitors
from pages.ui.fact_line import joined
from pages.ui.runs import run_actions, run_time, runs_access
from pages.ui.typed import escape
from tfm_core.config import Experiment
from tfm_core.data.own import sets
from tfm_core.inspect.attention.trained import no_checkpoint
from tfm_core.presets import PRESETS
from tfm_core.runs.run import Run

WITH_DATA = N_("Include your data set")
"""What is ticked to take a set along with its run."""


def origin_badge(run: Run) -> str:
    """Return a Markdown badge for a recorded or imported run, else ""."""
    if run.meta.recorded:
        return f":violet-badge[:material/inventory_2: {_('Recorded')}]"
    if run.origin is not None:
        return f":blue-badge[:material/move_to_inbox: {_('Imported')}]"
    return ""


def facts_of(run: Run, *more: str) -> str:
    """Return a run's badge and name, and what else a page says of it, as one line of Markdown."""
    return joined(f"{origin_badge(run)} **{escape(run.meta.name)}**".strip(), *more)


def origin_words(run: Run) -> str:
    """Return where and with what an imported run was trained, else ""."""
    origin = run.origin
    if origin is None:
        return ""
    trained = _(
        "Trained elsewhere on {device}, {when}, with {versions}.",
        device=show.device(origin.device),
        when=show.ago(origin.created),
        versions=", ".join(f"{name} {version}" for name, version in origin.versions.items()),
    )
    set_id = "" if run.problem is not None else sets.added_of(run.experiment.task)
    if not set_id or sets.folder_of(set_id) is not None:
        return str(trained)
    name = f"“{origin.data}” ({set_id})" if origin.data else set_id
    return f"{trained} {paragraph('runs/missing-data', name=name, tick=_(WITH_DATA))}"


def recorded_comparison_note(runs: Collection[Run]) -> None:
    """Show a note if all runs of a comparison are recorded."""
    if all(run.meta.recorded for run in runs):
        st.caption(f"{origin_badge(next(iter(runs)))} {_('These runs come with the app.')}")


def recorded_note(run: Run, *, key: str) -> None:
    """Show a note on a recorded run, with a button that trains its preset.

    key: begins the button's.
    """
    if not run.meta.recorded:
        return
    name = run.meta.preset
    with st.container(horizontal=True, vertical_alignment="center"):
        comes = _("This trained model comes with the app.")
        st.caption(f"{origin_badge(run)} {comes}", width="content")
        if name not in PRESETS:
            return
        label = _("Train your own, {time}", time=preset_time(name))
        if st.button(
            label,
            icon=":material/play_arrow:",
            key=f"{key}-own",
            disabled=bool(why_not := visitors.why_not()),
            help=escape(why_not) or None,
        ):
            run_actions.start_preset(name)


def preset_buttons(
    sentence: str, names: Sequence[str], *, key: str, others: Callable[[], None] | None = None
) -> None:
    """Show a message and a button for each preset, the first as primary.

    key: begins the keys of the buttons, which end with the preset's name. others: draws further
    buttons into the same row.
    """
    why_not = visitors.why_not()
    with st.container(border=True, horizontal_alignment="center", gap="medium"):
        st.markdown(_(sentence), width="content")
        if why_not:
            st.caption(f":material/lock: {escape(why_not)}", width="content")
        with st.container(horizontal=True, horizontal_alignment="center"):
            for index, name in enumerate(names):
                label = _(PRESETS[name].label)
                if st.button(
                    _("Train “{name}”, {time}", name=label, time=preset_time(name)),
                    type="secondary" if index else "primary",
                    icon=":material/play_arrow:",
                    key=f"{key}-{name}",
                    disabled=bool(why_not),
                ):
                    run_actions.start_preset(name)
            if others is not None:
                others()


def preset_time(name: str) -> str:
    return run_time.takes(PRESETS[name].experiment)


def preset_time_now(name: str) -> str:
    return run_time.takes_now(PRESETS[name].experiment)


def current_run() -> Run | None:
    """Return the current run, or None if there is none, or it is damaged, or maps alone."""
    run_id = state.current_run_id()
    run = None if run_id is None else runs_access.store().get(run_id)
    if run is None or run.problem is not None or not run.experiment.task.has_model:
        return None
    return run


def fitting_run(fits: Callable[[Experiment], bool], recorded_first: str = "") -> Run | None:
    """Return the current run if it fits, else the newest finished one that does, else any.

    recorded_first: the recorded run that this page prefers to other recorded ones.
    """
    run = current_run()
    if run is not None and fits(run.experiment):
        return run
    ready = runs_with_weights(fits)
    finished = [run for run in ready if run.status.state == "finished"]
    finished.sort(key=lambda run: (run.meta.recorded, run.id != recorded_first))
    first = next(iter([*finished, *ready]), None)
    if first is not None and state.current_run_id() is None:
        state.show_unasked(first.id)
    return first


def first_to_show(ready: Iterable[Run], recorded_first: str) -> Run | None:
    """Return the run to show if none is chosen: the visitor's newest, else a recorded one.

    ready: the newest first. recorded_first: the recorded run that is better than others.
    """
    runs = list(ready)
    own = [run for run in runs if not run.meta.recorded]
    best = [run for run in runs if run.id == recorded_first]
    first = next(iter([*own, *best, *runs]), None)
    if first is not None:
        state.show_unasked(first.id)
    return first


def choose_run(
    label: str, ready: Sequence[Run], *, key: str, describe: Callable[[Run], str], about: str
) -> Run:
    """Draw the choice of a run, which becomes the current one.

    ready: at least one, the first to show first. about: which runs these are.
    """
    by_id = {run.id: run for run in ready}
    current_id = state.current_run_id()
    if current_id in by_id or st.session_state.get(key) not in by_id:
        st.session_state[key] = current_id if current_id in by_id else ready[0].id
    picked = st.selectbox(
        label,
        list(by_id),
        format_func=lambda run_id: describe(by_id[run_id]),
        key=key,
        help=about,
        on_change=lambda: state.set_current_run(st.session_state[key]),
    )
    if current_id is None:
        state.show_unasked(picked)
    return by_id[picked]


def unchosen_caption(run: Run) -> None:
    """Name the run that the page shows because none is chosen."""
    if not state.is_unasked(run.id):
        return
    name = escape(run.meta.name)
    if not run.meta.recorded:
        message = _("**{name}**, the newest run that fits this page.", name=name)
    elif any(not other.meta.recorded for other in visitors.listed()):
        message = _("**{name}**, a recorded run: none of yours fits this page.", name=name)
    else:
        message = _("**{name}**, a recorded run: you have not trained one yet.", name=name)
    st.caption(f"{origin_badge(run)} {message}".strip())


def runs_with_weights(fits: Callable[[Experiment], bool]) -> list[Run]:
    """Return the runs with weights that fit, the newest first."""
    return [
        run
        for run in visitors.at_hand()
        if run.problem is None and run.has_checkpoint and fits(run.experiment)
    ]


def no_weights(run: Run, *, key: str) -> None:
    """Say that a run has no weights: not yet, with a button to look again, or not at all."""
    name = run.meta.name
    if not run.status.is_active:
        if run.experiment.task.has_model:
            show.problem(_("“{name}” ended without saving weights.", name=name))
        else:
            show.problem(no_checkpoint(run))
        return
    words = _("“{name}” has not saved weights yet.", name=escape(name))
    st.info(words, icon=":material/hourglass_empty:")
    st.button(_("Reload"), icon=":material/refresh:", key=f"{key}-look-again")


def snapshot_step(steps: Sequence[int], *, key: str) -> int:
    """Choose one of the steps whose snapshots were saved, at first the last; return it."""
    if st.session_state.get(key) not in steps:
        st.session_state[key] = steps[-1]
    if len(steps) == 1:
        return steps[0]
    return st.select_slider(
        _("Step of the training"), steps, format_func=lambda value: f"{value:,}", key=key
    )
