"""What a page says of a recorded run that it shows: that it is one, and how to train one's own."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import streamlit as st

from pages.i18n import N_, _
from pages.ui import offers, run_actions, show, visitors
from pages.ui.typed import escape
from tfm_core.data.own import sets
from tfm_core.presets import PRESETS
from tfm_core.runs.run import Run

WITH_DATA = N_("Include your data set that it learned from")
"""What is ticked to take a set along with its run."""


def badge(run: Run) -> str:
    """Return a badge in markdown for a run that is recorded or was brought here, else nothing."""
    if run.meta.recorded:
        return f":violet-badge[:material/inventory_2: {_('Recorded')}]"
    if run.origin is not None:
        return f":blue-badge[:material/move_to_inbox: {_('Imported')}]"
    return ""


def origin_words(run: Run) -> str:
    """Say where a run was trained that was brought from elsewhere, and by what; else nothing."""
    origin = run.origin
    if origin is None:
        return ""
    words = _("Trained elsewhere on {device}, {when}, by {versions}.")
    made_by = ", ".join(f"{name} {version}" for name, version in origin.versions.items())
    said = words.format(
        device=show.device(origin.device), when=show.ago(origin.created), versions=made_by
    )
    return f"{said} {_without_data(run, origin.data)}".strip()


def _without_data(run: Run, name: str) -> str:
    """Say which set did not come along with a run, and how it is brought; else nothing."""
    set_id = "" if run.problem is not None else sets.added_of(run.experiment.task)
    if not set_id or sets.folder_of(set_id) is not None:
        return ""
    words = _(
        "This import lacks its data set, {name}. To train it further, export it again where it "
        "was trained with “{tick}” ticked and import that zip, or add the same data under the "
        "same name."
    )
    return words.format(name=f"“{name}” ({set_id})" if name else set_id, tick=_(WITH_DATA))


def are_all(runs: Iterable[Run]) -> bool:
    """Return whether all runs of a comparison come with the app."""
    return all(run.meta.recorded for run in runs)


def comparison_note(runs: Collection[Run]) -> None:
    """Say of a comparison of recorded runs that it is one; else nothing."""
    if are_all(runs):
        words = _("These runs come with the app.")
        st.caption(f"{badge(next(iter(runs)))} {words}")


def note(run: Run, *, key: str) -> None:
    """Say of a recorded run what that is, beside a button that trains its preset; else nothing.

    key: begins the button's.
    """
    if not run.meta.recorded:
        return
    name = run.meta.preset
    with st.container(horizontal=True, vertical_alignment="center"):
        words = _("This model comes with the app, already trained.")
        st.caption(f"{badge(run)} {words}", width="content")
        if name not in PRESETS:
            return
        label = _("Train your own, {time}", time=offers.takes(name))
        if st.button(
            label,
            icon=":material/play_arrow:",
            key=f"{key}-own",
            disabled=bool(why_not := visitors.why_not()),
            help=escape(why_not) or None,
        ):
            run_actions.start_preset(name)
