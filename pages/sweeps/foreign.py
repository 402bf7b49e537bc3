"""An imported Optuna study: upload and view."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import streamlit as st

from pages.i18n import _
from pages.sweeps import actions, choice, leaderboard
from pages.ui import show
from pages.ui.files import file_drop
from pages.ui.typed import escape
from tfm_core.plots.training import sweeps as plots
from tfm_core.sweeps import foreign, space
from tfm_core.sweeps.foreign import ForeignStudy, ForeignTrial
from tfm_core.sweeps.plan import SweepDamaged
from tfm_core.sweeps.store import Sweep

_HEIGHT = 300
_MEGABYTES = foreign.MAX_BYTES // 2**20


def import_area() -> None:
    file_drop.file_drop(
        _("Import an Optuna study"),
        _("Drop or choose a JournalStorage file"),
        key="sweeps-bring",
        megabytes=_MEGABYTES,
        help=_("View only. No code in it runs."),
        take=lambda file: choice.open_sweep(actions.import_study(file.getvalue(), file.name).id),
    )


def imported_study(sweep: Sweep) -> None:
    try:
        studies = _studies(str(sweep.folder), sweep.journal.stat().st_mtime_ns)
    except (foreign.NotAStudy, SweepDamaged, OSError) as error:
        show.problem(error)
        if actions.may_delete(sweep):
            choice.deletion(sweep)
        return
    index = 0
    if len(studies) > 1:
        names = [study.name for study in studies]
        index = st.selectbox(
            _("Study"), range(len(studies)), format_func=names.__getitem__,
            key=f"sweeps-study-{sweep.id}",
        ) or 0  # fmt: skip
    _draw(studies[index])
    if actions.may_delete(sweep):
        choice.deletion(sweep)


def _draw(study: ForeignStudy) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.header(escape(study.name), anchor=False, width="content")
        badge = _("imported")
        st.markdown(f":blue-badge[:material/move_to_inbox: {badge}]", width="content")
        n, n_all = len(study.complete), len(study.trials)
        words = _("{n} of {all} trials have a value. View only.", n=n, all=n_all)
        st.caption(words, width="stretch")
    figures = plots.of_foreign(study)
    left, right = st.columns([11, 9], gap="medium")
    with left:
        rest = [trial for trial in study.trials if trial.value is None]
        st.dataframe(
            pd.DataFrame([_row(study, trial) for trial in [*study.complete, *rest]]),
            hide_index=True,
            height=_HEIGHT,
            key="sweeps-foreign-board",
        )
        best = study.complete[0]
        st.markdown(f"**{_('Best: trial {n}', n=best.number)}** · {escape(_words(best))}")
    with right:
        show.live_figure(
            figures["history"], _("Result of each trial, and the best so far."),
            key="sweeps-foreign-history",
        )  # fmt: skip
    captions = {
        "parallel": _("Each line is a trial; thick lines did best."),
        "importance": _("Importance of each setting (PED-ANOVA)."),
    }
    there = [name for name in captions if name in figures]
    for column, name in zip(st.columns(len(there) or 1), there, strict=False):
        with column:
            show.live_figure(figures[name], captions[name], key=f"sweeps-foreign-{name}")
    if len(there) < len(captions):
        st.caption(_("Importance needs {n} trials with common settings.", n=plots.ENOUGH))


def _row(study: ForeignStudy, trial: ForeignTrial) -> dict[str, object]:
    figure = "–" if trial.value is None else f"{trial.value:.4g}"
    return {
        _("Trial"): trial.number,
        _(study.looks_for.label): figure,
        **{name: _(space.shown(value)) for name, value in trial.values.items()},
        _("State"): _(leaderboard.STATES[trial.state]),
    }


def _words(trial: ForeignTrial) -> str:
    return ", ".join(f"{name} {_(space.shown(value))}" for name, value in trial.values.items())


@st.cache_resource(show_spinner=False, max_entries=8)
def _studies(folder: str, when: int) -> list[ForeignStudy]:
    return foreign.read_studies(Path(folder))
