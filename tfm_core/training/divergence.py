"""A training whose loss is no longer a number: the error, and how it is told from others."""

from __future__ import annotations

from tfm_core.sentences import N_, Sentence, StudentError

NO_NUMBER = N_(
    "The loss became {loss} at step {step}: the learning rate {learning_rate:g} is probably too "
    "high; try {lower:g}."
)


class TrainingDiverged(StudentError):
    """The loss is no longer a number; the message says what would help."""


def is_of_divergence(reason: str | None) -> bool:
    """Say whether the reason of a failed run is that its loss was no longer a number."""
    return isinstance(reason, Sentence) and reason.template == NO_NUMBER.template
