"""Questions before a measurement is shown, answered by the measurement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tfm_core.inspect.questions import Question, choice_question
from tfm_core.inspect.speed.paired import TimeRange
from tfm_core.inspect.speed.report import CaseReport, Equality
from tfm_core.sentences import N_

TIE = N_("No noticeable difference")


def about_equality(equalities: Sequence[Equality]) -> Question:
    """Ask whether the ways compute the same numbers."""
    exactly, rounding, other = (
        N_("Yes, bit for bit"),
        N_("Yes, up to rounding"),
        N_("No, they differ by more"),
    )
    worst = max(equality.difference for equality in equalities)
    allowed = max(equality.tolerance for equality in equalities)
    answer = other
    if all(equality.is_equal for equality in equalities):
        answer = exactly if worst == 0 else rounding
    return choice_question(
        N_("Do all ways compute the same numbers?"),
        answer,
        {
            exactly: N_("Another order of additions rounds differently."),
            rounding: N_(
                "They differ by {worst:.2g}; rounding explains {allowed:.2g}.",
                worst=worst,
                allowed=allowed,
            ),
            other: N_("All are the same formula in exact arithmetic."),
        },
        N_("The largest difference is {worst:.2g}.", worst=worst),
    )


def about_fastest(
    case: CaseReport, labels: Mapping[str, str], is_tie: Callable[[TimeRange], bool]
) -> Question:
    """Ask which side is fastest. labels: by side. is_tie: of a side's ratio to the reference."""
    fastest = min(case.sides, key=lambda side: case.time(side).median)
    best = case.time(fastest).median
    tied = all(is_tie(case.gain(side)) for side in case.sides[1:])
    why = {
        labels[side]: N_(
            "It took {times:.2f} times as long as the fastest.",
            times=case.time(side).median / best,
        )
        for side in case.sides
    }
    why[TIE] = N_("The rounds tell them apart.")
    if tied:
        why = dict.fromkeys(why, N_("The rounds cannot tell it from the others."))
    return choice_question(
        N_("Which one is fastest?"),
        TIE if tied else labels[fastest],
        why,
        N_("As measured below."),
    )
