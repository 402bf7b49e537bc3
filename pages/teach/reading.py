"""One reading of a lesson's pupils for all who look, anew at each tick."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from pages.app import show
from pages.app.lessons.open_lesson import classes
from pages.app.runs import run_words, runs_access
from pages.i18n import N_, _, language
from tfm_core.lessons import attempts
from tfm_core.lessons.attempts import Attempt
from tfm_core.runs.run import Run
from tfm_core.studies.symptoms import SymptomKind

TICK = 3.0
"""Seconds that a reading lasts."""

TROUBLES: dict[SymptomKind, str] = {
    "at-chance": N_("stuck at guessing"),
    "slow": N_("barely learns"),
    "stuck": N_("stopped learning"),
    "diverged": N_("diverged"),
}
"""What a pupil needs help with, by the first symptom of the newest run."""


@dataclass(frozen=True, slots=True)
class PupilRun:
    """A pupil's newest run: its curve as SVG, how it stands, and its trouble in words or ""."""

    id: str
    curve: str
    words: str
    trouble: str
    is_active: bool


@dataclass(frozen=True, slots=True)
class Pupil:
    """A pupil. number: counted in the order of coming. name: as they gave it, "" for none.

    answers: of each task the pupil answered: the answer, and whether it is right.
    """

    number: int
    name: str
    answers: dict[str, tuple[str, bool]]
    n_runs: int
    run: PupilRun | None


def pupils(lesson: str) -> list[Pupil]:
    """Return everybody who works at a lesson, in the order of coming."""
    return _pupils(str(runs_access.store().root), lesson, language())


@st.cache_data(show_spinner=False, ttl=TICK, max_entries=32)
def _pupils(root: str, lesson: str, spoken: str) -> list[Pupil]:
    found = {one.browser: one for one in attempts.attempts(lesson)}
    new = sorted(found, key=lambda browser: _joined_at(found[browser]))
    numbers = classes().admit(lesson, new)  # who has a number keeps it
    return [
        _pupil(number, found.get(browser) or Attempt(lesson, browser))
        for browser, number in numbers.items()
    ]


def forget(lesson: str) -> None:
    """Begin with pupil 1 again."""
    classes().forget(lesson)
    _pupils.clear()


def _joined_at(attempt: Attempt) -> tuple[str, str]:
    """Return when a pupil came, as far as answers and runs tell."""
    times = [answer.at for answer in attempt.answers.values()]
    times += [run.meta.created for run in attempt.trained(runs_access.store())[-1:]]
    return min(times, default="~"), attempt.browser


def _pupil(number: int, attempt: Attempt) -> Pupil:
    runs = attempt.trained(runs_access.store())
    return Pupil(
        number,
        attempt.name or "",
        {name: (one.answer, one.is_right) for name, one in attempt.answers.items()},
        len(runs),
        _run(runs[0]) if runs else None,
    )


def _run(run: Run) -> PupilRun:
    status = run.status
    first = next(iter(run_words.symptoms(run) or ()), None)
    trouble = "" if first is None else _(TROUBLES.get(first.kind))
    share = run_words.success(run)
    words = [] if share is None else [show.percent(share)]
    words.append(
        run_words.progress(status)
        if status.is_active
        else _(run_words.state_words(status, run.outcome).label)
    )
    return PupilRun(
        run.id, run_words.sparkline_svg(run), " · ".join(words), trouble, status.is_active
    )
