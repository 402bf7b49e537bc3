"""Axes and sizes of an operation: their names, what a number is computed from, and what misfits.

The names of axes tell what is summed: an element of a product is a sum over the names that the
output lacks. An error of PyTorch's is explained in a sentence with the numbers that do not fit, and
what would. ``MISTAKES`` are the famous errors, one press each: every one really raises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from tfm_core.inspect.tensors.operations import Values, tupled
from tfm_core.probe.types import Array
from tfm_core.sentences import N_, Paragraph, joined

if TYPE_CHECKING:
    from torch import Tensor


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
    """Return a name for each axis of the result; sizes without a meaning are called 1."""
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


Inputs = tuple["Tensor", ...]
Facts = dict[str, Any]
"""What a sentence says of the inputs: shape, dim and dtype of x; with _2 behind them, of b."""
_NO_PICTURE = N_("A picture is (Y, X, C) or (Y, X), but x is {shape}.")
_NO_TRIANGLE = N_("A triangle needs rows and columns, but x {shape} has {dim} axis.")
UNKNOWN = N_("PyTorch rejects these tensors. Its error is above.")


def explain_error(name: str, inputs: Inputs, values: Values, error: Exception) -> str:
    """Return the cause of an error of PyTorch's, as a sentence with the numbers at hand."""
    if isinstance(error, IndexError) and "Dimension out of range" in str(error):
        return _axis(name, inputs, values)
    facts: Facts = {}
    for end, tensor in zip(("", "_2"), inputs, strict=False):
        facts[f"shape{end}"] = tupled(tuple(tensor.shape))
        facts[f"dim{end}"] = tensor.dim()
        facts[f"dtype{end}"] = str(tensor.dtype)[6:]
    known = _BY_NAME.get(name)
    cause = known(inputs, values, facts) if known else None
    return cause or UNKNOWN


def _axis(name: str, inputs: Inputs, values: Values) -> str:
    n = inputs[0].dim() + (name in {"unsqueeze", "stack"})
    dims = [values[key] for key in ("dim", "first", "other") if key in values]
    dims += list(values.get("dims", ()))
    wrong = next((dim for dim in dims if not -n <= dim < n), dims[0])
    numbers = {"wrong": wrong, "n": n, "n_2": n - 1, "value": -n}
    return N_(
        "There is no axis {wrong}: {n} axes are numbered 0 to {n_2}, or -1 to {value}.", **numbers
    )


def _view(inputs: Inputs, values: Values, facts: Facts) -> str | None:
    sizes = tupled(values["sizes"])
    strides = tupled(inputs[0].stride())
    wrong = _count(inputs, values, facts)
    return wrong or Paragraph("tensors/not-contiguous", strides=strides, sizes=sizes)


def _count(inputs: Inputs, values: Values, _facts: Facts) -> str | None:
    """Explain sizes that do not hold as many elements as there are."""
    count, sizes = inputs[0].numel(), values["sizes"]
    if any(size < -1 for size in sizes):
        return N_(
            "A size cannot be {sizes}. The only negative size is -1 (inferred).", sizes=min(sizes)
        )
    if sizes.count(-1) > 1:
        return N_("Only one size can be -1 (inferred), not {count}.", count=sizes.count(-1))
    known = math.prod(size for size in sizes if size != -1)
    if -1 in sizes and (known == 0 or count % known):
        return Paragraph("tensors/no-divisor", x=count, known=known)
    if -1 not in sizes and known != count:
        return Paragraph("tensors/no-room", x=count, sizes=tupled(sizes), known=known)
    return None


def _permute(inputs: Inputs, values: Values, _facts: Facts) -> str:
    n, dims = inputs[0].dim(), values.get("dims", (1, 2, 0))
    if len(dims) != n:
        return N_("x has {n} axes, but {n_dims} are listed.", n=n, n_dims=len(dims))
    return N_("{dims} lists an axis twice.", dims=tupled(dims))


def _expand(inputs: Inputs, values: Values, facts: Facts) -> str:
    x, sizes = inputs[0], values["sizes"]
    if len(sizes) < x.dim():
        return Paragraph("tensors/expand-few", dim=x.dim(), n_sizes=len(sizes))
    lead = len(sizes) - x.dim()
    if -1 in sizes[:lead]:
        return N_("-1 keeps a size, but a new axis has none to keep.")
    for dim, (old, new) in enumerate(zip(x.shape, sizes[lead:], strict=True)):
        if new not in {old, -1} and old != 1:
            return Paragraph("tensors/expand-size", dim=dim, old=old, new=new)
    return N_("A size cannot be {sizes}.", sizes=min(sizes))


def _join(inputs: Inputs, dim: int, facts: Facts) -> str | None:
    a, b = inputs
    if a.dim() != b.dim():
        return N_("x has {dim} axes and b has {dim_2}, but {name} needs the same number.", **facts)
    axis = dim % a.dim()
    for at, (one, other) in enumerate(zip(a.shape, b.shape, strict=True)):
        if at != axis and one != other:
            sizes = {"axis": axis, "at": at, "one": one, "other": other}
            return Paragraph("tensors/join-sizes", **sizes, **facts)
    return None


def _matmul(inputs: Inputs, _values: Values, facts: Facts) -> str:
    a, b = inputs
    inner = b.size(-2) if b.dim() > 1 else b.size(0)
    if a.size(-1) != inner:
        return Paragraph("tensors/inner-sizes", row=a.size(-1), column=inner, **facts)
    if a.dtype != b.dtype:
        return _types(facts)
    return Paragraph("tensors/batch-axes", **facts)


def _mm(inputs: Inputs, values: Values, facts: Facts) -> str:
    a, b = inputs
    if a.dim() == b.dim() == 2:
        return _matmul(inputs, values, facts)
    words = N_("mm takes two matrices, but x has {dim} axes and b has {dim_2}.", **facts)
    try:
        made = tupled(tuple((a @ b).shape))
    except RuntimeError:
        return words
    facts = {**facts, "made": made}
    more = N_(
        "@ (matmul) treats leading axes as a batch: {shape} @ {shape_2} gives {made}.", **facts
    )
    return joined(words, more)


def _types(facts: Facts) -> str:
    return N_(
        "x holds {dtype} and b {dtype_2}, but a product needs one type. Use x.float().", **facts
    )


def _misfit(one: Sequence[int], other: Sequence[int]) -> tuple[int, int, int] | None:
    """Return the last axis that does not broadcast, counted from the end, and both sizes."""
    for back, (size, own) in enumerate(zip(reversed(one), reversed(other), strict=False), start=1):
        if size != own and 1 not in {size, own}:
            return back, size, own
    return None


def _broadcast(inputs: Inputs, _values: Values, facts: Facts) -> str | None:
    found = _misfit(inputs[0].shape, inputs[1].shape)
    if found is None:
        return None
    back, one, other = found
    return Paragraph("tensors/broadcast-sizes", back=back, one=one, other=other, **facts)


def _masked(inputs: Inputs, values: Values, facts: Facts) -> str:
    found = _misfit(values["mask"], inputs[0].shape)
    facts = {**facts, "mask": tupled(values["mask"]), "value": values["value"]}
    if found is not None:
        back, size, own = found
        return Paragraph("tensors/mask-sizes", back=back, size=size, own=own, **facts)
    if inputs[0].is_floating_point():
        return N_("The mask {mask} does not fit x {shape}.", **facts)
    return N_("x holds {dtype}, which has no {value}. Use x.float() or a whole number.", **facts)


def _einsum(inputs: Inputs, values: Values, facts: Facts) -> str | None:
    left, _arrow, out = values["equation"].partition("->")
    parts = left.split(",")
    sizes: dict[str, tuple[int, str]] = {}
    for name, letters, x in zip("xb", parts, inputs, strict=False):
        letter_facts: Facts = {"name": name, "letters": letters, "n_letters": len(letters)}
        if len(letters) != x.dim():
            shape = tupled(tuple(x.shape))
            return Paragraph("tensors/letters", dim=x.dim(), shape=shape, **letter_facts)
        for letter, size in zip(letters, x.shape, strict=True):
            old, owner = sizes.setdefault(letter, (size, name))
            if old != size and 1 not in {old, size}:
                letter_facts = {
                    "letter": letter,
                    "old": old,
                    "owner": owner,
                    "size": size,
                    "name": name,
                }
                return Paragraph("tensors/letter-sizes", **letter_facts)
    for letter in out:
        if letter not in sizes:
            return N_("The output has {letter}, which no input has.", letter=letter)
        if out.count(letter) > 1:
            return N_("The output has {letter} twice. Use each letter once.", letter=letter)
    is_of_one_type = len({x.dtype for x in inputs[: len(parts)]}) == 1
    return None if is_of_one_type else _types(facts)


def _decimals(inputs: Inputs, _values: Values, facts: Facts) -> str | None:
    if inputs[0].dtype.is_floating_point:
        return None
    return N_("x holds {dtype}, but decimals are needed. Use x.float().", **facts)


def _assert(_inputs: Inputs, values: Values, facts: Facts) -> str:
    facts = {**facts, "sizes": tupled(values["sizes"])}
    return N_(
        "x is {shape}, not {sizes}. An error here is better than a wrong result later.", **facts
    )


def _arange(_inputs: Inputs, values: Values, _facts: Facts) -> str:
    if values["step"] == 0:
        return N_("With a step of 0 the end is never reached.")
    return N_("Steps of {step} never get from {start} to {end}. Change the sign.", **values)


def _random(_inputs: Inputs, values: Values, _facts: Facts) -> str:
    if "low" in values and values["low"] >= values["high"]:
        return N_("No whole number lies from {low} up to {high}. Make high larger.", **values)
    return N_("The seed {seed} is below 0 or too large.", seed=values["seed"])


_BY_NAME: dict[str, Callable[[Inputs, Any, Facts], str | None]] = {
    "view": _view,
    "reshape": _count,
    "permute": _permute,
    "CHW to HWC": _permute,
    "expand": _expand,
    "cat": lambda inputs, values, facts: _join(inputs, values["dim"], {**facts, "name": "cat"}),
    "hstack": lambda inputs, _values, facts: _join(
        inputs, min(1, inputs[0].dim() - 1), {**facts, "name": "hstack"}
    ),
    "stack": lambda _inputs, _values, facts: Paragraph("tensors/stack-shapes", **facts),
    "matmul": _matmul,
    "mm": _mm,
    "broadcast": _broadcast,
    "mean": _decimals,
    "to": lambda _inputs, values, _facts: Paragraph("tensors/no-device", device=values["device"]),
    "einsum": _einsum,
    "softmax": _decimals,
    "Sequential": _decimals,
    "ToTensor": lambda _inputs, _values, facts: N_(_NO_PICTURE, **facts),
    "assert": _assert,
    "masked_fill": _masked,
    "tril": lambda _inputs, _values, facts: N_(_NO_TRIANGLE, **facts),
    "triu": lambda _inputs, _values, facts: N_(_NO_TRIANGLE, **facts),
    "arange": _arange,
    "rand": _random,
    "randint": _random,
    "randn": _random,
}

_WHOLE = {"shape": "2, 3", "dtype": "int64"}
MISTAKES: dict[str, tuple[str, dict[str, str]]] = {
    "view-transposed": ("view", {"shape": "2, 3", "sizes": "6", "prepared": "transposed"}),
    "view-count": ("view", {"shape": "2, 3", "sizes": "4, 2"}),
    "two-unknowns": ("view", {"shape": "2, 6", "sizes": "-1, -1"}),
    "no-divisor": ("reshape", {"shape": "2, 3", "sizes": "-1, 4"}),
    "no-axis": ("transpose", {"shape": "2, 3", "other": "2"}),
    "permute-twice": ("permute", {"shape": "2, 3, 2", "dims": "0, 0, 1"}),
    "permute-few": ("permute", {"shape": "2, 3, 2", "dims": "1, 0"}),
    "picture-without-channels": ("CHW to HWC", {"shape": "4, 4"}),
    "expand": ("expand", {"shape": "2, 3", "sizes": "4, 3"}),
    "cat": ("cat", {"shape": "2, 3", "second": "2, 2"}),
    "cat-axes": ("cat", {"shape": "2, 3", "second": "3"}),
    "stack": ("stack", {"shape": "2, 3", "second": "2, 2"}),
    "hstack": ("hstack", {"shape": "2, 3", "second": "3, 3"}),
    "matmul": ("matmul", {"shape": "4, 3", "second": "4, 3"}),
    "matmul-batch": ("matmul", {"shape": "2, 2, 3", "second": "3, 3, 2"}),
    "matmul-types": ("matmul", _WHOLE),
    "mm": ("mm", {"shape": "2, 2, 2, 3", "second": "2, 2, 3, 2"}),
    "mm-transpose": ("mm", {"shape": "4, 3", "second": "4, 3"}),
    "broadcast": ("broadcast", {"shape": "4, 3", "second": "4"}),
    "mean-whole": ("mean", _WHOLE),
    "argmax-axis": ("argmax", {"shape": "2, 3", "dim": "2"}),
    "einsum-letters": ("einsum", {"shape": "2, 3", "equation": "bqd,kd->qk"}),
    "einsum-size": ("einsum", {"shape": "2, 3", "equation": "ij,jk->ik", "second": "4, 3"}),
    "einsum-output": ("einsum", {"shape": "2, 3", "equation": "qd,kd->qz"}),
    "einsum-twice": ("einsum", {"shape": "2, 3", "equation": "qd,kd->qq"}),
    "softmax-whole": ("softmax", _WHOLE),
    "softmax-axis": ("softmax", {"shape": "2, 3", "dim": "2"}),
    "mask-shape": ("masked_fill", {"shape": "2, 4, 4", "mask": "3, 3"}),
    "mask-whole": ("masked_fill", {"shape": "4, 4", "dtype": "int64"}),
    "triangle": ("tril", {"shape": "4"}),
    "arange": ("arange", {"shape": "1", "start": "6", "end": "0"}),
}
"""Name -> the operation, and what its fields hold; titles are in ``content``."""
