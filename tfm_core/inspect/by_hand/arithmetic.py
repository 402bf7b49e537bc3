"""One number of an attention, written out: what is multiplied, summed, divided and why."""

from __future__ import annotations

from collections.abc import Sequence

from tfm_core.inspect.by_hand.attention import Attended
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_, Sentence

MINUS = "−"


def number(value: float, *, is_whole: bool = False) -> str:
    """Return a number with two digits where they say all of it, else with four.

    is_whole: a whole number stands without digits.
    """
    digits = (
        0 if is_whole and value == round(value) else 2 if abs(value - round(value, 2)) < 1e-6 else 4
    )
    text = f"{value:.{digits}f}"
    if not text.strip("-0."):
        text = text.removeprefix("-")
    return text.replace("-", MINUS)


def product(
    left: Sequence[float] | Floats,
    right: Sequence[float] | Floats,
    total: float,
    *,
    is_whole: bool = False,
) -> str:
    """Return ``0.71 × 1.00 + 0.00 × 2.00 = 0.71``; total: what the computer found."""
    pairs = zip(left, right, strict=True)
    terms = " + ".join(
        f"{_bracket(float(a), is_whole)} × {_bracket(float(b), is_whole)}" for a, b in pairs
    )
    return f"{terms} = {number(total, is_whole=is_whole)}"


def score(attended: Attended, query: int, key: int, names: tuple[str, str]) -> str:
    """Write out the dot product of a query and a key."""
    terms = product(attended.query[query], attended.key[key], float(attended.products[query, key]))
    return f"q({names[0]}) · k({names[1]}) = {terms}"


def scaled(attended: Attended, query: int, key: int) -> str:
    """Write out the division by sqrt(D)."""
    before, after = float(attended.products[query, key]), float(attended.scores[query, key])
    if attended.scale == 1.0:
        return N_("not divided: {value}", value=number(after))
    width = attended.query.shape[1]
    quotient = f"{number(before)} / √{width}"
    return f"{quotient} = {number(before)} / {attended.scale:.4f} = {number(after)}"


def softmaxed(attended: Attended, query: int, key: int) -> tuple[str, ...]:
    """Write out the exponentials of a row, their sum, and one weight; one string a line."""
    allowed = attended.allowed[query]
    if not allowed.any():
        return (N_("The mask forbids the whole row: its weights are zeros, by decision."),)
    row = attended.masked[query][allowed]
    largest = float(row.max())
    exponents = " + ".join(
        f"e^({number(float(value))} {MINUS} {_bracket(largest)})" for value in row
    )
    values = " + ".join(number(float(value)) for value in attended.exponentials[query][allowed])
    total = float(attended.totals[query])
    lines = (_equals(N_("sum"), exponents), f"= {values} = {number(total)}")
    if not allowed[key]:
        return (*lines, N_("this key is forbidden: its weight is exactly 0"))
    mine, weight = float(attended.exponentials[query, key]), float(attended.weights[query, key])
    return (*lines, _equals(N_("weight"), f"{number(mine)} / {number(total)} = {number(weight)}"))


def _equals(name: str, terms: str) -> Sentence:
    return Sentence("{name} = {terms}", {"name": name, "terms": terms})


def summed(attended: Attended, query: int, dimension: int) -> str:
    """Write out one number of the output: the weights of a row times a column of the values."""
    value = float(attended.output[query, dimension])
    return product(attended.weights[query], attended.value[:, dimension], value)


def _bracket(value: float, is_whole: bool = False) -> str:
    text = number(value, is_whole=is_whole)
    return f"({text})" if text.startswith(MINUS) else text
