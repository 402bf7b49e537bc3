"""Which side wins? A guess, before a comparison shows what was measured."""

from __future__ import annotations

from pages.i18n import N_
from pages.speed import words
from pages.ui import question
from tfm_core.inspect.speed.report import SpeedReport
from tfm_core.inspect.walk.steps import Question

_ALIKE = N_("No noticeable difference")


def is_made(name: str, report: SpeedReport | None) -> bool:
    """Ask which side is fastest; return whether the result may be shown.

    report: what was measured; None before that. A comparison with one side asks nothing.
    """
    case = report.timed[0] if report is not None and report.timed else None
    if case is None or len(case.sides) < 2:
        return True
    labels = {side: words.side_label(name, side) for side in case.sides}
    fastest = min(case.sides, key=lambda side: case.time(side).median)
    gains = [case.gain(side) for side in case.sides[1:]]
    alike = all(words.is_nothing(gain) for gain in gains)
    asked = Question(
        N_("Which one is fastest?"),
        _ALIKE if alike else labels[fastest],
        "",
        (*labels.values(), _ALIKE),
    )
    return question.guess(asked, f"speed {name}")
