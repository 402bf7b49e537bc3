"""The operations modulo n of Power et al. 2022 (arXiv 2201.02177), appendix A.1: no torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tfm_core.choices.variants.record import Registry, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation(Variant):
    """What is computed of two numbers modulo n.

    signs: what may stand between them, the written one first. result(a, b, n): the answer.
    divides: whether n must be prime, and b is never 0.
    """

    signs: str
    result: Callable[[int, int, int], int]
    divides: bool = False

    def n_pairs(self, modulus: int) -> int:
        """Return how many pairs of numbers have an answer."""
        return modulus * (modulus - self.divides)


_SOURCE = "Power et al. 2022, appendix A.1"
_ANY = "∘,"
ADD = Operation(name="add", source=_SOURCE, signs="+", result=lambda a, b, n: (a + b) % n)
OPERATIONS = Registry(
    "operation modulo n",
    ADD,
    Operation(name="subtract", source=_SOURCE, signs="−-", result=lambda a, b, n: (a - b) % n),
    Operation(
        name="multiply",
        source="Doshi et al. 2024, arXiv 2406.03495",
        signs="×*·",
        result=lambda a, b, n: a * b % n,
    ),
    Operation(
        name="divide",
        source=_SOURCE,
        signs="÷/",
        result=lambda a, b, n: a * pow(b, -1, n) % n,
        divides=True,
    ),
    Operation(
        name="squares", source=_SOURCE, signs=_ANY, result=lambda a, b, n: (a * a + b * b) % n
    ),
    Operation(
        name="squares-and-product",
        source=_SOURCE,
        signs=_ANY,
        result=lambda a, b, n: (a * a + a * b + b * b) % n,
    ),
    Operation(
        name="cube-and-product",
        source=_SOURCE,
        signs=_ANY,
        result=lambda a, b, n: (a**3 + a * b) % n,
    ),
)


def is_prime(n: int) -> bool:
    """Return whether a number is prime."""
    return n > 1 and all(n % k for k in range(2, int(n**0.5) + 1))
