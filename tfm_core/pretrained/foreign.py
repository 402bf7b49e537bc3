"""A model of somebody else's code: what would need its code says so, in a sentence."""

from __future__ import annotations

from typing import Any, NoReturn

from tfm_core.sentences import Paragraph, StudentError


def load(config: Any, *, seed: int, progress: Any = None) -> NoReturn:
    """Raise StudentError: its data is not here."""
    raise StudentError(Paragraph("pretrained/foreign"))


def shape(experiment: Any) -> NoReturn:
    """Raise StudentError: it cannot be built here."""
    raise StudentError(Paragraph("pretrained/foreign"))
