"""A training whose loss is no longer a number: the error, and how it is told from others."""

from __future__ import annotations

from tfm_core.sentences import Paragraph, Sentence, StudentError

NO_NUMBER = Paragraph("training/diverged")


class TrainingDiverged(StudentError):
    """The loss is no longer a number; the message says what would help."""


def is_of_divergence(reason: str | None) -> bool:
    """Say whether the reason of a failed run is that its loss was no longer a number."""
    return isinstance(reason, Sentence) and reason.template == NO_NUMBER.template
