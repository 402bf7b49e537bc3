"""The run that a page shows, notes on recorded runs, and buttons that train a preset."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import streamlit as st

from pages.app import show, state
from pages.app.accounts import visitors
from pages.app.navigation import page_table
from pages.app.runs import run_actions, run_time, runs_access
from pages.app.typed import escape
from pages.i18n import N_, _, paragraph
from tfm_core.choices.config import Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.data.user_data import sets
from tfm_core.inspect.attention.trained import no_checkpoint
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
                preset_button(name, key=f"{key}-{name}", is_first=not index)
            if others is not None:
                others()


def preset_button(
    name: str,
    *,
    key: str,
    label: str = "",
    help: str = "",
    is_first: bool = False,
    width: Literal["content", "stretch"] = "content",
) -> None:
    """Draw the button that trains a preset and opens its run. is_first: it stands out."""
    words = _("Train “{name}” ({time})", name=_(PRESETS[name].label), time=preset_time(name))
    if st.button(
        label or words,
        type="primary" if is_first else "secondary",
        icon=":material/play_arrow:",
        key=key,
        width=width,
        **visitors.allowed(help),
    ):
        run_actions.start_preset(name)


def preset_time(name: str) -> str:
    return run_time.estimate_text(PRESETS[name].experiment)


def current_run() -> Run | None:
    """Return the current run, or None if there is none, or it is damaged, or maps alone."""
    run_id = state.current_run_id()
    run = None if run_id is None else runs_access.store().get(run_id)
    if run is None or run.problem is not None or not run.experiment.task.has_model:
        return None
    return run


@dataclass(frozen=True, slots=True)
class Needs:
    """What a page needs of the run that it shows.

    what: in words, such as "a model that writes". fits: by its experiment; is_ready: whether it has
    what is shown. first: the recorded run that this page prefers. presets: what to train without.
    """

    what: str
    fits: Callable[[Experiment], bool]
    first: str
    presets: tuple[str, ...]
    is_ready: Callable[[Run], bool] = lambda run: run.has_checkpoint


MODELS = Needs(
    N_("a trained model"),
    lambda experiment: experiment.task.has_model,
    first="recorded-korean",
    presets=("translate", "vit-digits"),
)
"""What a page needs that shows any model."""


def run_to_show(needs: Needs) -> Run | None:
    """Return the run that a page shows; it may not fit.

    It is the one in the address, else the last chosen, else the newest finished one of the
    visitor's that fits, else a recorded one, else any that fits.
    """
    run_id = state.current_run_id()
    if run_id is not None:
        return runs_access.store().get(run_id)
    found = next(iter(fitting(needs)), None)
    if found is not None:
        state.show_default_run(found.id)
    return found


def fitting(needs: Needs) -> list[Run]:
    """Return the runs that fit a page, the first to show first; trials of searches come last."""
    searches = _searches()
    visitor = visitors.visitor()

    def rank(run: Run) -> tuple[int, bool]:
        if run.meta.recorded:
            return 1, run.id != needs.first
        is_finished = run.status.state == "finished" and run.labels.group not in searches
        return 0 if is_finished and visitor.began(run) else 2, False

    able = [
        one
        for one in visitors.available_runs()
        if one.problem is None and needs.fits(one.experiment)
    ]
    return sorted(filter(needs.is_ready, able), key=rank)


def _searches() -> set[str]:
    """Return the names of all searches, which are the groups of their trials."""
    from tfm_core.sweeps.store import SweepStore

    names = set()
    for sweep in SweepStore(runs_access.store().root).list():
        with suppress(ValueError, OSError):
            names.add(sweep.plan().name)
    return names


def why_shown(run: Run) -> str:
    """Return why the page shows a run that nobody chose, else ""."""
    if not state.is_default_run(run.id):
        return ""
    if not run.meta.recorded:
        return _("The newest run that fits this page.")
    if any(not other.meta.recorded for other in visitors.listed()):
        return _("A recorded run, because none of yours fits this page.")
    return _("A recorded run, because you have no runs yet.")


def no_weights(run: Run) -> None:
    """Say that a run has no weights: not yet, or not at all. The head looks again."""
    name = run.meta.name
    if run.status.is_active:
        words = _("“{name}” has not saved weights yet.", name=escape(name))
        st.info(words, icon=":material/hourglass_empty:")
    elif run.experiment.task.has_model:
        show.problem(_("“{name}” ended without saving weights.", name=name))
    else:
        show.problem(no_checkpoint(run))


def run_without_model(page: page_table.PageFacts) -> Run | None:
    """Return the current run where a page needs its model and there is none, else None."""
    run_id = state.current_run_id()
    if run_id is None or not page.needs_model:
        return None
    run = runs_access.store().get(run_id)
    return run if run.problem is None and not run.experiment.task.has_model else None


def turn_away(page: page_table.PageFacts, run: Run) -> None:
    """Say why a page shows nothing of a run, and where to go."""
    show.header(page.name)
    st.info(_(run.experiment.task.without_data), icon=":material/info:")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for name in ("train", "attention"):
            show.link(name, query=state.run_query(name, run.id))
        if st.button(_("Show another model"), icon=":material/swap_horiz:", key="foreign-other"):
            state.set_current_run(None)
            st.rerun()
