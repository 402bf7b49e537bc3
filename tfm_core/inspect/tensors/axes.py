"""What the axes are called, before and after an operation, and what a number is computed from.

The names tell both: an element of a product is a sum over the names that the output lacks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from tfm_core.inspect.tensors.operations import Values
from tfm_core.probe.types import Array

DEFAULT_AXES: dict[int, tuple[str, ...]] = {
    0: (),
    1: ("D",),
    2: ("T", "D"),
    3: ("B", "T", "D"),
    4: ("B", "H", "T", "D"),
    5: ("A", "B", "H", "T", "D"),
}
_SCORES = {1: ("K",), 2: ("Q", "K"), 3: ("B", "Q", "K"), 4: ("B", "H", "Q", "K")}
_LOW = "₁₂₃₄₅"
_OF_SCORES = frozenset({"masked_fill", "tril", "triu", "softmax"})  # queries by keys
_PRODUCTS = frozenset({"matmul", "mm", "einsum"})
Index = tuple[int, ...]
Shape = tuple[int, ...]
Axes = tuple[str, ...]
Term = tuple[Index, ...]
"""The index in each input of the factors of one product."""


def axes_before(name: str, dims: Sequence[int], values: Values) -> list[Axes]:
    """Return a name for each axis of each input. dims: how many axes each has."""
    names = [DEFAULT_AXES[n] for n in dims]
    if name == "CHW to HWC" and dims[0] == 3:
        return [("C", "Y", "X")]
    if name == "ToTensor":
        return [("Y", "X", "C")[: dims[0]]]
    if name in _OF_SCORES:
        return [_SCORES[n] for n in dims]
    if name in _PRODUCTS:
        for at, part in enumerate(_of_product(name, dims, values)[0]):
            if len(part) == dims[at]:
                names[at] = part
    return names


def _of_product(name: str, dims: Sequence[int], values: Values) -> tuple[list[Axes], Axes]:
    """Return the letters of each input of a product, and those of its output."""
    if name == "einsum":
        left, _arrow, out = values["equation"].partition("->")
        return [tuple(part) for part in left.split(",")], tuple(out)
    ends = (("i", "k"), ("k", "j"))
    parts: list[Axes] = [
        (*"AB"[4 - n :], *end) if n > 1 else ("k",) for n, end in zip(dims, ends, strict=True)
    ]
    rows, columns = parts[0][-2:-1], parts[1][1:][-1:]
    return parts, (*max(parts, key=len)[:-2], *rows, *columns)


def axes_after(
    name: str, axes: Sequence[Axes], shapes: Sequence[Shape], made: Shape, values: Values
) -> Axes:
    """Return a name for each axis of the result; sizes that stand for nothing are called 1."""
    names = _named(name, axes, shapes, made, values)
    return names if len(names) == len(made) else DEFAULT_AXES[len(made)]


def _named(
    name: str, axes: Sequence[Axes], shapes: Sequence[Shape], made: Shape, values: Values
) -> Axes:
    if name in _PRODUCTS:
        return _of_product(name, [len(one) for one in shapes], values)[1]
    if not axes:
        return DEFAULT_AXES[len(made)]
    first = list(axes[0])
    n = len(first)
    if name in {"view", "reshape"}:
        return regrouped(axes[0], shapes[0], made)
    if name == "ToTensor":
        return ("C", "Y", "X")
    if name in {"transpose", "permute", "CHW to HWC"}:
        first = [first[dim] for dim in _order(name, n, values)]
    elif name in {"unsqueeze", "stack"}:
        first.insert(values["dim"] % (n + 1), "1" if name == "unsqueeze" else "x, b")
    elif name == "expand":
        first = [*["new"] * (len(made) - n), *first]
    elif name in {"squeeze", "mean", "argmax"}:
        at = values["dim"] % n
        is_gone, stays = len(made) < n, "1" if name == "mean" else first[at]
        first[at : at + 1] = [] if is_gone else [stays]
    elif name == "broadcast":
        first = _stretched(axes, shapes)
    return tuple(first)


def _order(name: str, n: int, values: Values) -> Sequence[int]:
    """Return the old places of n axes that change places, in their new order."""
    if name == "CHW to HWC":
        return 1, 2, 0
    if name == "permute":
        return tuple(values["dims"])
    order = list(range(n))
    i, j = values["first"], values["other"]
    order[i], order[j] = order[j], order[i]
    return order


def _stretched(axes: Sequence[Axes], shapes: Sequence[Shape]) -> list[str]:
    """Name each axis of a broadcast after the input that has more than one element there."""
    names = []
    for back in range(max(map(len, shapes)), 0, -1):
        there = [
            (shape[-back], own[-back])
            for own, shape in zip(axes, shapes, strict=True)
            if len(shape) >= back
        ]
        names.append(next((name for size, name in there if size != 1), there[0][1]))
    return names


def regrouped(axes: Axes, old: Shape, new: Shape) -> Axes:
    """Name the axes of a view: one that stays keeps its name, D cut in two is D₁, D₂, joined T·D.

    Axes are matched from the left, in the smallest groups with as many elements.
    """
    names: list[str] = []
    i = j = 0
    while i < len(old) or j < len(new):
        if i < len(old) and j < len(new) and old[i] == new[j]:
            names.append(axes[i])
            i, j = i + 1, j + 1
            continue
        if j < len(new) and new[j] == 1:
            names.append("1")
            j += 1
            continue
        if i < len(old) and old[i] == 1:
            i += 1
            continue
        i_end, j_end = i + 1, j + 1
        while math.prod(old[i:i_end]) != math.prod(new[j:j_end]):
            if math.prod(old[i:i_end]) < math.prod(new[j:j_end]):
                i_end += 1
            else:
                j_end += 1
        joined = "·".join(axes[i:i_end])
        count = j_end - j
        names += [joined] if count == 1 else [f"{joined}{_LOW[k]}" for k in range(count)]
        i, j = i_end, j_end
    return tuple(names)


def sources(
    name: str,
    axes: Sequence[Axes],
    after: Axes,
    shapes: Sequence[Shape],
    cell: Index,
    values: Values,
) -> list[Term]:
    """Return the index in each input of what the element of the result at ``cell`` is made of.

    One tuple for each product that is summed, or for each number along what is reduced.
    """
    parts: Sequence[Sequence[Any]] = axes[:1]
    out: Sequence[Any] = after
    if name in _PRODUCTS:
        parts, out = _of_product(name, [len(one) for one in shapes], values)
    elif name == "broadcast":  # axes are matched from the last
        parts = [range(-len(shape), 0) for shape in shapes]
        out = range(-len(cell), 0)
    elif name == "Sequential":  # each number is made of all of its row
        out, cell = axes[0][:-1], cell[:-1]
    return _terms(parts, out, shapes, cell)


def _sizes(parts: Sequence[Sequence[Any]], shapes: Sequence[Shape]) -> dict[Any, int]:
    sizes: dict[Any, int] = {}
    for part, shape in zip(parts, shapes, strict=False):
        for letter, size in zip(part, shape, strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
    return sizes


def _terms(
    parts: Sequence[Sequence[Any]], out: Sequence[Any], shapes: Sequence[Shape], cell: Index
) -> list[Term]:
    sizes = _sizes(parts, shapes)
    summed = [letter for letter in sizes if letter not in out]
    terms = []
    for indices in product(*(range(sizes[letter]) for letter in summed)):
        at = dict(zip([*out, *summed], [*cell, *indices], strict=True))
        term = [  # an axis of size 1 is read again
            tuple(min(at[letter], n - 1) for letter, n in zip(part, shape, strict=True))
            for part, shape in zip(parts, shapes, strict=False)
        ]
        terms.append(tuple(term))
    return terms


def summed_letters(equation: str) -> str:
    """Return the letters that an einsum sums over, in the order of the inputs."""
    left, _arrow, out = equation.partition("->")
    return "".join(dict.fromkeys(letter for letter in left if letter not in {*out, ","}))


def by_loops(equation: str, inputs: Sequence[Array]) -> Array:
    """Return an einsum computed by loops in Python, one product at a time; float64."""
    parts, out = _of_product("einsum", (), {"equation": equation})
    shapes = [tuple(one.shape) for one in inputs[: len(parts)]]
    sizes = _sizes(parts, shapes)
    made = np.zeros([sizes[letter] for letter in out])
    for cell in np.ndindex(*made.shape):
        made[cell] = sum(
            math.prod(float(one[index]) for one, index in zip(inputs, term, strict=False))
            for term in _terms(parts, out, shapes, cell)
        )
    return made


def loops_code(equation: str, inputs: Sequence[Array]) -> str:
    """Return Python loops that compute an einsum into ``y`` from ``x`` and ``b``.

    The inputs get large letters there, for b may be an axis too.
    """
    parts, out = _of_product("einsum", (), {"equation": equation})
    sizes = _sizes(parts, [tuple(one.shape) for one in inputs[: len(parts)]])
    names = "X, B = x, b" if len(parts) > 1 else "X = x"
    lines = [names, f"y = torch.zeros({', '.join(str(sizes[c]) for c in out) or '()'})"]
    indent = ""
    for letter in [*out, *summed_letters(equation)]:
        note = "" if letter in out else "  # not in the output: summed over"
        lines.append(f"{indent}for {letter} in range({sizes[letter]}):{note}")
        indent += "    "
    factors = " * ".join(
        f"{name}[{', '.join(part)}]" if part else name
        for name, part in zip("XB", parts, strict=False)
    )
    target = f"y[{', '.join(out)}]" if out else "y"
    lines.append(f"{indent}{target} += {factors}")
    return "\n".join(lines)
