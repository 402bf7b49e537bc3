"""Products element by element: which numbers of the inputs make one of the output, and as loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

import numpy as np

from tfm_core.inspect.tensors.operations import Values
from tfm_core.probe.types import Array

Index = tuple[int, ...]
Term = tuple[Index, ...]
"""The index in each input of the factors of one product."""


def terms(name: str, values: Values, shapes: Sequence[Index], cell: Index) -> list[Term]:
    """Return the products that are summed up to the element of the output at ``cell``.

    name: "matmul", "mm" or "einsum". shapes: of the inputs.
    """
    if name == "einsum":
        return _einsum_terms(values["equation"], shapes, cell)
    first, second = shapes
    row = () if len(first) == 1 else (cell[-1 if len(second) == 1 else -2],)
    column = () if len(second) == 1 else (cell[-1],)
    batch = cell[: len(cell) - len(row) - len(column)]
    made: list[Term] = []
    for k in range(first[-1]):
        left = (*_batch(batch, first), *row, k)
        right = (*_batch(batch, second), k, *column)
        made.append((left, right))
    return made


def _batch(batch: Index, shape: Index) -> Index:
    """Return an index among the leading axes of a shape; an axis of size 1 is the same for all."""
    own = shape[:-2]
    used = batch[len(batch) - len(own) :]
    return tuple(0 if size == 1 else index for index, size in zip(used, own, strict=True))


def along(values: Values, shape: Index, cell: Index) -> list[Index]:
    """Return what a mean or an argmax along one axis looks at for the element at ``cell``.

    shape: of the input; cell: with or without the axis, as keepdim has it.
    """
    dim = values["dim"] % len(shape)
    rest = cell[:dim] + (cell[dim + 1 :] if len(cell) == len(shape) else cell[dim:])
    return [(*rest[:dim], at, *rest[dim:]) for at in range(shape[dim])]


def stretched(shape: Index, cell: Index) -> Index:
    """Return the index in an input of this shape that broadcasting reads for ``cell``."""
    own = cell[len(cell) - len(shape) :]
    return tuple(0 if size == 1 else index for index, size in zip(own, shape, strict=True))


def letters(equation: str) -> tuple[list[str], str, str]:
    """Return the letters of each input, those of the output, and those that are summed over."""
    left, _arrow, out = equation.partition("->")
    parts = left.split(",")
    summed = "".join(dict.fromkeys(letter for letter in "".join(parts) if letter not in out))
    return parts, out, summed


def _sizes(parts: Sequence[str], shapes: Sequence[Index]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for part, shape in zip(parts, shapes, strict=False):
        for letter, size in zip(part, shape, strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
    return sizes


def _einsum_terms(equation: str, shapes: Sequence[Index], cell: Index) -> list[Term]:
    parts, out, summed = letters(equation)
    sizes = _sizes(parts, shapes)
    fixed = dict(zip(out, cell, strict=True))
    terms = []
    for indices in product(*(range(sizes[letter]) for letter in summed)):
        at = {**fixed, **dict(zip(summed, indices, strict=True))}
        terms.append(
            tuple(
                tuple(min(at[letter], n - 1) for letter, n in zip(part, shape, strict=True))
                for part, shape in zip(parts, shapes, strict=False)
            )
        )
    return terms


def by_loops(equation: str, inputs: Sequence[Array]) -> Array:
    """Return an einsum computed by loops in Python, one product at a time; float64."""
    parts, out, _summed = letters(equation)
    shapes = [tuple(one.shape) for one in inputs[: len(parts)]]
    sizes = _sizes(parts, shapes)
    made = np.zeros([sizes[letter] for letter in out])
    for cell in np.ndindex(*made.shape):
        made[cell] = sum(
            math.prod(float(one[index]) for one, index in zip(inputs, term, strict=False))
            for term in _einsum_terms(equation, shapes, cell)
        )
    return made


def loops_code(equation: str, inputs: Sequence[Array]) -> str:
    """Return Python loops that compute an einsum into ``y`` from ``x`` and ``b``.

    The inputs get large letters there, for b may be an axis too.
    """
    parts, out, summed = letters(equation)
    sizes = _sizes(parts, [tuple(one.shape) for one in inputs[: len(parts)]])
    names = "X, B = x, b" if len(parts) > 1 else "X = x"
    lines = [names, f"y = torch.zeros({', '.join(str(sizes[c]) for c in out) or '()'})"]
    depth = 0
    for letter in [*out, *summed]:
        note = "" if letter in out else "  # not in the output: summed over"
        lines.append(f"{'    ' * depth}for {letter} in range({sizes[letter]}):{note}")
        depth += 1
    factors = " * ".join(
        f"{name}[{', '.join(part)}]" if part else name
        for name, part in zip("XB", parts, strict=False)
    )
    target = f"y[{', '.join(out)}]" if out else "y"
    lines.append(f"{'    ' * depth}{target} += {factors}")
    return "\n".join(lines)
