"""Which mistakes a config can ask for, and which of them exclude each other."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from tfm_core.config.base import CrossError, SomeOf
from tfm_core.mistakes import MISTAKES, made_in
from tfm_core.mistakes.mistake import MistakePlace
from tfm_core.sentences import N_

MISTAKES_HELP = N_("Mistakes that people make in code, made on purpose to see what they do.")


def some_of(*places: MistakePlace) -> SomeOf:
    """Return the annotation of a field that holds mistakes made in some places."""
    return SomeOf(made_in(*places), MISTAKES)


def check_mistakes(config: Any) -> None:
    """Raise CrossError where the mistakes of a config cannot be made, or not together."""
    chosen = [MISTAKES[name] for name in config.mistakes]
    for one, other in combinations(chosen, 2):
        if one.excludes(other):
            raise CrossError(
                "mistakes",
                "“{one}” and “{other}” exclude each other: choose one of them.",
                one=one.label,
                other=other.label,
            )
    for mistake in chosen:
        sentence = mistake.refusal(config) if mistake.refusal is not None else None
        if sentence is not None:
            raise CrossError("mistakes", sentence)
