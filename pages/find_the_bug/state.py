"""What a session has asked and guessed of each pair."""

from __future__ import annotations

from dataclasses import dataclass, field

import streamlit as st

from pages.ui import suspects, visitors
from tfm_core.inspect.bugs.round import ComparedMeasurement, Twins

_ROUNDS = "find-the-bug-rounds"
_SOLVED = "find-the-bug-solved"


@dataclass
class Round:
    """answers: of each probe that was pressed, the newest last; wanted: those still to be asked.

    wrong: the guesses that were; hint: on the last of them, or what kept a probe from an answer.

    is_over: the mistake was named, or shown; is_won: it was named.
    """

    answers: dict[str, tuple[ComparedMeasurement, ...]] = field(default_factory=dict)
    wanted: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    hint: str = ""
    is_over: bool = False
    is_won: bool = False


def round_of(pair: Twins) -> Round:
    """Return the round that is played on a pair."""
    rounds: dict[str, Round] = st.session_state.setdefault(_ROUNDS, {})
    return rounds.setdefault(pair.twin.id, Round())


def end(pair: Twins, played: Round, name: str, *, is_won: bool) -> None:
    """End a round, whose mistake is not hidden again before the others were.

    Raises OSError where it could not be noted that the twin hides nothing any more.
    """
    suspects.reveal(pair.twin, may_change=not visitors.watches(pair.twin))
    played.is_over, played.is_won, played.hint = True, is_won, ""
    if name not in seen():
        seen().append(name)


def seen() -> list[str]:
    """Return the mistakes that this session has looked for to the end."""
    found: list[str] = st.session_state.setdefault(_SOLVED, [])
    return found


def n_won() -> int:
    """Return how many mistakes were named."""
    rounds: dict[str, Round] = st.session_state.get(_ROUNDS, {})
    return sum(played.is_won for played in rounds.values())
