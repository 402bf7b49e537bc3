"""What the axes are called, before and after an operation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

DEFAULT_AXES: dict[int, tuple[str, ...]] = {
    0: (),
    1: ("D",),
    2: ("T", "D"),
    3: ("B", "T", "D"),
    4: ("B", "H", "T", "D"),
    5: ("A", "B", "H", "T", "D"),
}
_LOW = "₁₂₃₄₅"
_OF_SCORES = frozenset({"masked_fill", "tril", "triu", "softmax"})  # queries by keys
Shape = tuple[int, ...]
Axes = tuple[str, ...]


def axes_before(name: str, dims: Sequence[int], values: Any) -> list[Axes]:
    """Return a name for each axis of each input. dims: how many axes each has."""
    names = [DEFAULT_AXES[n] for n in dims]
    if name == "CHW to HWC" and dims[0] == 3:
        return [("C", "Y", "X")]
    if name == "ToTensor":
        return [("Y", "X", "C")[: dims[0]]]
    if name in _OF_SCORES:
        ends_of_scores = {1: ("K",), 2: ("Q", "K"), 3: ("B", "Q", "K"), 4: ("B", "H", "Q", "K")}
        return [ends_of_scores[n] for n in dims]
    if name in {"matmul", "mm"}:
        ends = (("i", "k"), ("k", "j"))
        return [
            (("k",) if n == 1 else (*("A", "B")[4 - n :], *end))
            for n, end in zip(dims, ends, strict=True)
        ]
    if name == "einsum":
        parts = values["equation"].partition("->")[0].split(",")
        for axis, (part, n) in enumerate(zip(parts, dims, strict=False)):
            if len(part) == n:
                names[axis] = tuple(part)
    return names


def axes_after(
    name: str, axes: Sequence[Axes], shapes: Sequence[Shape], made: Shape, values: Any
) -> Axes:
    """Return a name for each axis of the result; sizes that stand for nothing are called 1."""
    is_picture = name == "ToTensor"
    names = ("C", "Y", "X") if is_picture else _named(name, axes, shapes, made, values)
    if names is None or len(names) != len(made):
        return DEFAULT_AXES[len(made)]
    return names


def _named(
    name: str, axes: Sequence[Axes], shapes: Sequence[Shape], made: Shape, values: Any
) -> Axes | None:
    if name == "einsum":
        return tuple(values["equation"].partition("->")[2])
    if not axes:
        return None
    first = list(axes[0])
    n = len(first)
    if name in {"view", "reshape"}:
        return regrouped(axes[0], shapes[0], made)
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
    elif name in {"matmul", "mm"}:
        longer = max(axes, key=len)
        first = [*longer[:-2], *first[-2:-1], *axes[1][-1:][: len(axes[1]) - 1]]
    return tuple(first)


def _order(name: str, n: int, values: Any) -> list[int]:
    """Return the old places of n axes that change places, in their new order."""
    if name == "CHW to HWC":
        return [1, 2, 0]
    if name == "permute":
        return [dim % n for dim in values["dims"]]
    order = list(range(n))
    i, j = values["first"] % n, values["other"] % n
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
