"""Counts as formulas: sums of products of named sizes, such as ``3 S d_model d_model``.

S is the number of tokens in the encoder, T in the decoder, A of those that get an answer, Q of
those that ask in the last block of an encoder whose CLS token alone is read. All other names are
sizes of the model, see ``Anatomy.sizes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True, slots=True)
class Formula:
    """A sum of products. terms: a whole number, and the names of the sizes it is multiplied by."""

    terms: tuple[tuple[int, tuple[str, ...]], ...] = ()

    def __add__(self, other: Formula) -> Formula:
        """Return the sum of both."""
        return Formula(self.terms + other.terms)

    def __rmul__(self, n: int) -> Formula:
        """Return ``n`` times as much."""
        return Formula(tuple((n * factor, names) for factor, names in self.terms))

    def __bool__(self) -> bool:
        """Whether anything is counted."""
        return bool(self.terms)

    def __str__(self) -> str:
        """Return it as it is read: ``3·S·d_model·d_model + S·d_model``."""
        terms = (
            "·".join([str(factor)] * (factor != 1 or not names) + list(names))
            for factor, names in self.terms
        )
        return " + ".join(terms) or "0"

    def value(self, sizes: Mapping[str, int]) -> int:
        """Return the number. Raises KeyError for a name without a size."""
        total = 0
        for factor, names in self.terms:
            for name in names:
                factor *= sizes[name]
            total += factor
        return total


NOTHING = Formula()


@lru_cache(maxsize=4096)
def formula(text: str) -> Formula:
    """Return a formula from text: factors separated by spaces, terms by ``+``; "" is 0."""
    return collected(Formula(tuple(_term(term) for term in text.split("+") if term.strip())))


def collected(*formulas: Formula) -> Formula:
    """Return the sum of formulas, with the terms of the same names in one."""
    factors: dict[tuple[str, ...], int] = {}
    for one in formulas:
        for factor, names in one.terms:
            factors[names] = factors.get(names, 0) + factor
    return Formula(tuple((factor, names) for names, factor in factors.items() if factor))


def _term(text: str) -> tuple[int, tuple[str, ...]]:
    factor, names = 1, []
    for part in text.split():
        if part.lstrip("-").isdigit():
            factor *= int(part)
        else:
            names.append(part)
    return factor, tuple(sorted(names))
