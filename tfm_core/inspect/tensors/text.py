"""What a user types about a tensor, read by a small parser of our own; nothing is evaluated."""

from __future__ import annotations

import math
import re

from tfm_core.sentences import Paragraph, StudentError

MAX_ELEMENTS = 64
MAX_AXES = 4
MAX_RESULT = 128
_LARGEST = 64
_MAX_INTS = 6
_MAX_DIGITS = 5
_INT = re.compile(r"[-+]?\d+")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)")
_EQUATION = re.compile(r"[a-z]{0,4}(,[a-z]{0,4})?->[a-z]{0,4}")


def ints_of(text: str, what: str) -> tuple[int, ...]:
    """Read whole numbers, as ``2, 3`` or ``(2, 3)`` or ``2 3``; nothing typed is no number.

    Raises ValueError, in a sentence that names ``what``.
    """
    inner = text.strip()
    if inner[:1] in {"(", "["} and inner[-1:] in {")", "]"}:
        inner = inner[1:-1]
    parts = [part for part in re.split(r"[\s,x×]+", inner) if part]
    for part in parts:
        if not _INT.fullmatch(part):
            raise StudentError(
                "{what}: “{part}” is not a whole number, such as 2.", what=what, part=part[:20]
            )
        if len(part) > _MAX_DIGITS:
            raise StudentError(
                "{what}: “{part}” is too long; at most {largest}.",
                what=what,
                part=part[:20],
                largest=_LARGEST,
            )
    numbers = tuple(int(part) for part in parts)
    if len(numbers) > _MAX_INTS:
        raise StudentError(
            "{what}: type at most {most_ints} numbers, not {n_numbers}.",
            what=what,
            n_numbers=len(numbers),
            most_ints=_MAX_INTS,
        )
    for number in numbers:
        if abs(number) > _LARGEST:
            raise StudentError(
                "{what}: {number} is too large; at most {largest}.",
                what=what,
                number=number,
                largest=_LARGEST,
            )
    return numbers


def int_of(text: str, what: str) -> int:
    """Read one whole number. Raises ValueError, in a sentence."""
    numbers = ints_of(text, what)
    if len(numbers) != 1:
        raise StudentError(
            "{what}: type one whole number, not {n_numbers}.", what=what, n_numbers=len(numbers)
        )
    return numbers[0]


def shape_of(text: str, what: str = "Shape") -> tuple[int, ...]:
    """Read a shape of at most 4 axes and 64 elements. Raises ValueError, in a sentence."""
    shape = ints_of(text, what)
    if not 1 <= len(shape) <= MAX_AXES:
        raise StudentError(
            "{what}: type 1 to {most_axes} axes, not {n}.",
            what=what,
            most_axes=MAX_AXES,
            n=len(shape),
        )
    if min(shape) < 1:
        raise StudentError(
            "{what}: an axis of {shape} is too small; at least 1.", what=what, shape=min(shape)
        )
    if math.prod(shape) > MAX_ELEMENTS:
        raise StudentError(
            "{what}: {product} = {n} elements are too many; at most {most_elements}.",
            what=what,
            product=" × ".join(map(str, shape)),
            n=math.prod(shape),
            most_elements=MAX_ELEMENTS,
        )
    return shape


def numbers_of(text: str, count: int) -> tuple[float, ...]:
    """Read exactly ``count`` numbers, parted by commas or spaces. Raises ValueError."""
    parts = [part for part in re.split(r"[\s,;]+", text.strip()) if part]
    for part in parts:
        if not _NUMBER.fullmatch(part):
            raise StudentError("“{part}” is not a number, such as 1, 0.5 or -2.", part=part[:20])
    if len(parts) != count:
        raise StudentError(
            "The shape needs {count} numbers, not {n_parts}.", count=count, n_parts=len(parts)
        )
    numbers = tuple(float(part) for part in parts)
    if any(abs(number) > 9999 for number in numbers):
        raise StudentError("Numbers must be between -9999 and 9999.")
    return numbers


def number_of(text: str, what: str) -> float:
    """Read one number; ``-inf`` and ``inf`` are numbers too. Raises ValueError, in a sentence."""
    word = text.strip().lower()
    if word in {"inf", "-inf"}:
        return float(word)
    if not _NUMBER.fullmatch(word):
        raise StudentError(
            "{what}: “{text}” is not a number, such as -1 or -inf.", what=what, text=text[:20]
        )
    return float(word)


def equation_of(text: str) -> str:
    """Read an einsum equation of one or two inputs. Raises ValueError, in a sentence."""
    equation = re.sub(r"\s+", "", text)
    if "->" not in equation:
        raise StudentError("The equation needs an arrow, as in ij,jk->ik.")
    if not _EQUATION.fullmatch(equation):
        raise StudentError(Paragraph("tensors/no-equation", equation=equation[:30]))
    return equation
