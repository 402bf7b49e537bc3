"""Results of earlier runs here with different values of one setting."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import streamlit as st

from pages.i18n import _, ngettext
from pages.ui import show
from pages.ui.accounts import visitors
from pages.ui.runs import runs_access
from pages.ui.settings import drafts
from pages.ui.settings.fields import Setting
from pages.ui.typed import escape
from tfm_core.config import Experiment
from tfm_core.runs.record.past_results import Ended, Reached, alike, ended, reached, settings_of
from tfm_core.runs.run import Run

_WHOLE = ("sequence", "blanks")
"""Answers for which whole sequences are counted."""


def words(experiment: Experiment, setting: Setting, values: Iterable[Any]) -> str:
    """Return results of runs that differ only in one setting, by value; empty without any.

    For example ``**97.1 %** with 8 (median of 3 runs) · **96.8 %** with 4 (1 run)``.
    """
    settings = settings_of(experiment)
    by_value: dict[str, tuple[list[float | None], int]] = {}
    for run, ended_run in _ended().of(runs_access.store().kept()):
        if not alike(settings, ended_run.settings, setting.path) or not visitors.lists(run):
            continue
        value = repr(ended_run.settings[setting.path])
        shares, n_diverged = by_value.get(value, ([], 0))
        shares = shares if ended_run.diverged else [*shares, _share(run)]
        by_value[value] = (shares, n_diverged + ended_run.diverged)
    groups = [(value, reached(*by_value.get(repr(value), ([], 0)))) for value in values]
    if not any(group.n or group.n_diverged for _value, group in groups):
        return ""
    parts = [
        _result_words(escape(drafts.format_value(setting, value)), group) for value, group in groups
    ]
    listed, answer = " · ".join(parts), experiment.task.facts.answer
    if answer in _WHOLE:
        return _("Earlier runs, whole sequences right: {parts}", parts=listed)
    if answer == "text":
        return _("Earlier runs, tokens right: {parts}", parts=listed)
    return _("Earlier runs, right answers: {parts}", parts=listed)


def _share(run: Run) -> float | None:
    """Return the share of correct answers, on the test set if it was measured."""
    curves = runs_access.curves(run)
    column = "sequence_accuracy" if run.experiment.task.facts.answer in _WHOLE else "accuracy"
    tested = curves.test.last(column)
    return curves.unseen.last(column) if tested is None else tested


def _result_words(value: str, reached: Reached) -> str:
    parts = []
    if reached.median is not None:
        words = ngettext(
            "**{share}** with {value} ({n} run)",
            "**{share}** with {value} (median of {n} runs)",
            reached.n,
            share=show.percent(reached.median),
            value=value,
            n=reached.n,
        )
        parts.append(words)
    if reached.n_diverged:
        words = ngettext(
            "{n} run with {value} diverged",
            "{n} runs with {value} diverged",
            reached.n_diverged,
            n=reached.n_diverged,
            value=value,
        )
        parts.append(words)
    return ", ".join(parts) or _("no run yet with {value}", value=value)


class _EndedRuns:
    """The settings of ended runs, each read once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[Path, tuple[int, Ended | None]] = {}

    def of(self, runs: Iterable[Run]) -> list[tuple[Run, Ended]]:
        with self._lock:
            seen = [(run, self._look(run)) for run in runs]
            self._known = {run.folder: look for run, look in seen}
            return [
                (run, ended_run) for run, (_changed, ended_run) in seen if ended_run is not None
            ]

    def _look(self, run: Run) -> tuple[int, Ended | None]:
        """Return the settings of a run and the modification time of its status."""
        try:
            changed = (run.folder / "status.json").stat().st_mtime_ns
        except OSError:
            changed = 0
        cached = self._known.get(run.folder)
        return cached if cached is not None and cached[0] == changed else (changed, ended(run))


@st.cache_resource(show_spinner=False)
def _ended() -> _EndedRuns:
    return _EndedRuns()
