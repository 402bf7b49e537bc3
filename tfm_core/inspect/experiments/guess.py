"""What a reader is asked before an experiment shows how it came out."""

from __future__ import annotations

from tfm_core.inspect.experiments.demonstration import Demonstration, Kind
from tfm_core.inspect.walk.steps import Question
from tfm_core.sentences import N_, Paragraph

OUTCOMES: dict[Kind, str] = {
    "better": N_("It gets more right."),
    "faster": N_("It gets as many right, but sooner."),
    "same": N_("No visible difference."),
    "slower": N_("It gets as many right, but later."),
    "worse": N_("It gets fewer right."),
    "diverged": N_("Its loss becomes infinite or NaN."),
    "saved": N_("It trains, and the first diverges."),
    "fooled": N_("Its curves look perfect, but it fails when it generates."),
    "unordered": N_("It writes the right tokens, but in the wrong order."),
    "unsure": N_("It gets as many right, but is less confident."),
    "rougher": N_("It gets as many right, but with much larger gradients."),
}


def question(one: Demonstration) -> Question:
    """Return the question, whose right answers are all outcomes that are expected."""
    first, second = one.arms[0], one.arms[-1]
    right = [words for kind, words in OUTCOMES.items() if kind in one.expected]
    return Question(
        Paragraph("experiments/question", first=first.label, second=second.label),
        right[0],
        one.expects,
        tuple(OUTCOMES.values()),
        also=tuple(right[1:]),
    )
