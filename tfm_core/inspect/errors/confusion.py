"""Which answer is given for which: counts of what was meant against what was said."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tfm_core.inspect.errors.answers import Answers, Integers

MAX = 24
"""Classes with a row of their own where there are more; the rest are counted together."""
OTHERS = -1
"""The number of all classes that are not told apart."""


@dataclass(frozen=True, slots=True, eq=False)
class Confusion:
    """Counts (classes, classes): what was meant down, what was said across.

    numbers: the class of each row and column, ascending, OTHERS last where there is such a row.
    In the row and the column of the others a count is right where it is the same class.
    """

    numbers: tuple[int, ...]
    names: tuple[str, ...]
    counts: Integers
    n_wrong: Integers

    def cell(self, row: int, column: int) -> tuple[int, int]:
        """Return the classes of a cell."""
        return self.numbers[row], self.numbers[column]


def confusion(answers: Answers, most: int = MAX) -> Confusion:
    """Count what was said for what was meant.

    Of more than ``most`` classes those are told apart that take part in the most errors, then those
    that are meant most often.
    """
    truth, said, n = answers.truth, answers.said, len(answers.names)
    used = np.flatnonzero(np.bincount(truth, minlength=n) + np.bincount(said, minlength=n))
    if answers.unit == "picture" and n <= most:
        used = np.arange(n)
    shown = used if len(used) <= most else np.sort(_most_confused(answers, used)[: most - 1])
    numbers = (*shown.tolist(), *([OTHERS] if len(shown) < len(used) else []))
    place = np.full(n, len(shown), np.int64)
    place[shown] = np.arange(len(shown))
    size = len(numbers)
    cells = place[truth] * size + place[said]
    is_wrong = truth != said
    return Confusion(
        numbers,
        tuple("…" if number == OTHERS else answers.names[number] for number in numbers),
        np.bincount(cells, minlength=size * size).reshape(size, size),
        np.bincount(cells[is_wrong], minlength=size * size).reshape(size, size),
    )


def _most_confused(answers: Answers, used: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return classes by how many errors they take part in, then by how often they are meant."""
    n, wrong = len(answers.names), ~answers.is_right
    errors = np.bincount(answers.truth[wrong], minlength=n)
    errors += np.bincount(answers.said[wrong], minlength=n)
    often = np.bincount(answers.truth, minlength=n)
    return used[np.lexsort((-often[used], -errors[used]))]


def in_cell(answers: Answers, found: Confusion, cell: tuple[int, int]) -> npt.NDArray[np.intp]:
    """Return which answers a cell, (truth, said) by number, counts; none for one not shown."""
    if not set(cell) <= set(found.numbers):
        return np.array([], np.intp)
    chosen = np.ones(len(answers.truth), np.bool_)
    named = [number for number in found.numbers if number != OTHERS]
    for values, number in zip((answers.truth, answers.said), cell, strict=True):
        chosen &= ~np.isin(values, named) if number == OTHERS else values == number
    return np.flatnonzero(chosen)
