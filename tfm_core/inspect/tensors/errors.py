"""Why PyTorch raised an error, in a sentence with the numbers that do not fit, and what would."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tfm_core.inspect.tensors.operations import Values, tupled
from tfm_core.sentences import N_, Paragraph, joined

if TYPE_CHECKING:
    from torch import Tensor

Inputs = tuple["Tensor", ...]


UNKNOWN = N_("PyTorch rejects these tensors; its error is above.")


def explain(name: str, inputs: Inputs, values: Values, error: Exception) -> str:
    """Return the cause of an error of PyTorch's, as a sentence with the numbers at hand."""
    if isinstance(error, IndexError) and "Dimension out of range" in str(error):
        return _axis(name, inputs, values)
    known = _BY_NAME.get(name)
    cause = known(inputs, values) if known else None
    return cause or UNKNOWN


def _shape(tensor: Tensor) -> str:
    return tupled(tuple(tensor.shape))


def _axis(name: str, inputs: Inputs, values: Values) -> str:
    n = inputs[0].dim() + (name in {"unsqueeze", "stack"})
    dims = [values[key] for key in ("dim", "first", "other") if key in values]
    dims += list(values.get("dims", ()))
    wrong = next((dim for dim in dims if not -n <= dim < n), dims[0])
    return N_(
        "There is no axis {wrong}: {n} axes are 0 to {n_2}, or -1 to {value}.",
        wrong=wrong,
        n=n,
        n_2=n - 1,
        value=-n,
    )


def _view(inputs: Inputs, values: Values) -> str | None:
    x, sizes = inputs[0], values["sizes"]
    wrong = _count(x, sizes)
    if wrong:
        return wrong
    return Paragraph("tensors/not-contiguous", strides=tupled(x.stride()), sizes=tupled(sizes))


def _count(x: Tensor, sizes: tuple[int, ...]) -> str | None:
    """Explain sizes that do not hold as many elements as there are."""
    if any(size < -1 for size in sizes):
        return N_("A size cannot be {sizes}; only -1 is allowed (inferred).", sizes=min(sizes))
    if sizes.count(-1) > 1:
        return N_("-1 (inferred) works for one size, not {count}.", count=sizes.count(-1))
    known = math.prod(size for size in sizes if size != -1)
    if -1 in sizes and (known == 0 or x.numel() % known):
        return Paragraph("tensors/no-divisor", x=x.numel(), known=known)
    if -1 not in sizes and known != x.numel():
        return Paragraph("tensors/no-room", x=x.numel(), sizes=tupled(sizes), known=known)
    return None


def _permute(inputs: Inputs, values: Values) -> str:
    n, dims = inputs[0].dim(), values.get("dims", (1, 2, 0))
    if len(dims) != n:
        return N_("x has {n} axes, but {n_dims} are listed.", n=n, n_dims=len(dims))
    return N_("{dims} lists an axis twice.", dims=tupled(dims))


def _expand(inputs: Inputs, values: Values) -> str:
    x, sizes = inputs[0], values["sizes"]
    if len(sizes) < x.dim():
        return Paragraph("tensors/expand-few", dim=x.dim(), n_sizes=len(sizes))
    lead = len(sizes) - x.dim()
    if -1 in sizes[:lead]:
        return N_("-1 keeps a size, which a new axis has not.")
    for dim, (old, new) in enumerate(zip(x.shape, sizes[lead:], strict=True)):
        if new not in {old, -1} and old != 1:
            return Paragraph("tensors/expand-size", dim=dim, old=old, new=new)
    return N_("A size cannot be {sizes}.", sizes=min(sizes))


def _join(inputs: Inputs, dim: int, name: str) -> str:
    a, b = inputs
    if a.dim() != b.dim():
        return N_(
            "x has {dim} axes and b has {dim_2}: {name} needs the same number.",
            dim=a.dim(),
            dim_2=b.dim(),
            name=name,
        )
    axis = dim % a.dim()
    for at, (one, other) in enumerate(zip(a.shape, b.shape, strict=True)):
        if at != axis and one != other:
            return Paragraph(
                "tensors/join-sizes", name=name, axis=axis, at=at, one=one, other=other
            )
    return N_("x is {shape}, b is {shape_2}.", shape=_shape(a), shape_2=_shape(b))


def _matmul(inputs: Inputs, _values: Values) -> str:
    a, b = inputs
    inner = b.size(-2) if b.dim() > 1 else b.size(0)
    if a.size(-1) != inner:
        return Paragraph(
            "tensors/inner-sizes", row=a.size(-1), column=inner, shape=_shape(a), shape_2=_shape(b)
        )
    if a.dtype != b.dtype:
        return _types(a, b)
    return Paragraph("tensors/batch-axes", shape=_shape(a), shape_2=_shape(b))


def _mm(inputs: Inputs, values: Values) -> str:
    a, b = inputs
    if a.dim() == b.dim() == 2:
        return _matmul(inputs, values)
    words = N_(
        "mm takes two matrices; x has {dim} axes and b has {dim_2}.", dim=a.dim(), dim_2=b.dim()
    )
    try:
        made = a @ b
    except RuntimeError:
        return words
    more = N_(
        "@ (matmul) takes leading axes as a batch: {shape} @ {shape_2} is {made}.",
        shape=_shape(a),
        shape_2=_shape(b),
        made=_shape(made),
    )
    return joined(words, more)


def _broadcast(inputs: Inputs, _values: Values) -> str:
    a, b = inputs
    pairs = zip(reversed(a.shape), reversed(b.shape), strict=False)
    for back, (one, other) in enumerate(pairs, start=1):
        if one != other and 1 not in {one, other}:
            return Paragraph(
                "tensors/broadcast-sizes",
                shape=_shape(a),
                shape_2=_shape(b),
                back=back,
                one=one,
                other=other,
            )
    return N_("x is {shape}, b is {shape_2}.", shape=_shape(a), shape_2=_shape(b))


def _types(a: Tensor, b: Tensor) -> str:
    return N_(
        "x holds {dtype}, b holds {dtype_2}: a product needs one type. Use x.float().",
        dtype=str(a.dtype)[6:],
        dtype_2=str(b.dtype)[6:],
    )


def _einsum(inputs: Inputs, values: Values) -> str | None:
    equation = values["equation"]
    left, _arrow, out = equation.partition("->")
    parts = left.split(",")
    sizes: dict[str, tuple[int, str]] = {}
    for name, letters, x in zip("xb", parts, inputs, strict=False):
        if len(letters) != x.dim():
            return Paragraph(
                "tensors/letters",
                letters=letters,
                n_letters=len(letters),
                name=name,
                dim=x.dim(),
                shape=_shape(x),
            )
        for letter, size in zip(letters, x.shape, strict=True):
            old, owner = sizes.setdefault(letter, (size, name))
            if old != size and 1 not in {old, size}:
                return Paragraph(
                    "tensors/letter-sizes",
                    letter=letter,
                    old=old,
                    owner=owner,
                    size=size,
                    name=name,
                )
    for letter in out:
        if letter not in sizes:
            return N_("The output has {letter}, which no input has.", letter=letter)
        if out.count(letter) > 1:
            return N_("The output has {letter} twice; use each letter once.", letter=letter)
    if len({x.dtype for x in inputs[: len(parts)]}) > 1:
        return _types(*inputs)
    return None


def _decimals(inputs: Inputs, _values: Values) -> str | None:
    dtype = inputs[0].dtype
    if dtype.is_floating_point:
        return None
    return N_("x holds {dtype}, but decimals are needed: use x.float().", dtype=str(dtype)[6:])


def _masked(inputs: Inputs, values: Values) -> str:
    x, mask = inputs[0], values["mask"]
    shape = tuple(x.shape)
    pairs = zip(reversed(mask), reversed(shape), strict=False)
    for back, (size, own) in enumerate(pairs, start=1):
        if size != own and 1 not in {size, own}:
            return Paragraph(
                "tensors/mask-sizes",
                mask=tupled(mask),
                shape=tupled(shape),
                back=back,
                size=size,
                own=own,
            )
    if not x.is_floating_point():
        return N_(
            "x holds {dtype}, which has no {value}: use x.float() or a whole number.",
            dtype=str(x.dtype)[6:],
            value=values["value"],
        )
    return N_("The mask {mask} does not fit x {shape}.", mask=tupled(mask), shape=tupled(shape))


def _triangle(inputs: Inputs, _values: Values) -> str:
    return N_(
        "A triangle needs rows and columns; x has {dim} axis, {shape}.",
        dim=inputs[0].dim(),
        shape=_shape(inputs[0]),
    )


def _arange(_inputs: Inputs, values: Values) -> str:
    start, end, step = values["start"], values["end"], values["step"]
    if step == 0:
        return N_("With a step of 0 the end is never reached.")
    return N_(
        "Steps of {step} never get from {start} to {end}: change the sign.",
        start=start,
        end=end,
        step=step,
    )


def _random(_inputs: Inputs, values: Values) -> str:
    low, high = values.get("low", 0), values.get("high", 1)
    if low >= high:
        return N_("Nothing lies from {low} to before {high}: make high larger.", low=low, high=high)
    return N_("The seed {seed} is below 0 or too large.", seed=values["seed"])


_BY_NAME: dict[str, Callable[[Inputs, Any], str | None]] = {
    "view": _view,
    "reshape": lambda inputs, values: _count(inputs[0], values["sizes"]),
    "permute": _permute,
    "CHW to HWC": _permute,
    "expand": _expand,
    "cat": lambda inputs, values: _join(inputs, values["dim"], "cat"),
    "hstack": lambda inputs, values: _join(inputs, 1 if inputs[0].dim() > 1 else 0, "hstack"),
    "stack": lambda inputs, _values: Paragraph(
        "tensors/stack-shapes", shape=_shape(inputs[0]), shape_2=_shape(inputs[1])
    ),
    "matmul": _matmul,
    "mm": _mm,
    "broadcast": _broadcast,
    "mean": _decimals,
    "to": lambda _inputs, values: Paragraph("tensors/no-device", device=values["device"]),
    "einsum": _einsum,
    "softmax": _decimals,
    "Sequential": _decimals,
    "ToTensor": lambda inputs, _values: N_(
        "A picture is (Y, X, C) or (Y, X); x is {shape}.", shape=_shape(inputs[0])
    ),
    "assert": lambda inputs, values: N_(
        "x is {shape}, not {sizes}: better here than as a wrong result later.",
        shape=_shape(inputs[0]),
        sizes=tupled(values["sizes"]),
    ),
    "masked_fill": _masked,
    "tril": _triangle,
    "triu": _triangle,
    "arange": _arange,
    "rand": _random,
    "randint": _random,
    "randn": _random,
}
