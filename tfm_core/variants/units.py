"""What a language model reads and writes one at a time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from tfm_core.sentences import N_
from tfm_core.variants.record import Registry, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit(Variant):
    """cut: a text into tokens; case is kept. is_spaced: a space is written between two of them."""

    cut: Callable[[str], list[str]]
    is_spaced: bool

    @property
    def separator(self) -> str:
        """What is written between two tokens."""
        return " " if self.is_spaced else ""


_WORD = re.compile(r"\w+(?:['’\-]\w+)*|\n|[^\w\s]")

WORDS = Unit(
    name="words",
    label=N_("Words"),
    help=N_("Words, signs and line breaks: few steps, a large vocabulary."),
    source="Bengio et al. 2003",
    cut=_WORD.findall,
    is_spaced=True,
)
CHARACTERS = Unit(
    name="characters",
    label=N_("Characters"),
    help=N_("Letters and signs: a small vocabulary, many steps."),
    source="Sutskever, Martens & Hinton 2011",
    cut=list,
    is_spaced=False,
)

UNITS = Registry("text unit", WORDS, CHARACTERS)
