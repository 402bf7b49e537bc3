"""What an operation did quietly, and what NumPy and PyTorch share: measured, then said."""

from __future__ import annotations

import math

from tfm_core.inspect.tensors.operations import tupled
from tfm_core.inspect.tensors.sight import OperationResult, TensorView
from tfm_core.sentences import N_, Paragraph


def note(seen: OperationResult) -> str:
    """Return a sentence on what this result shows, or nothing. seen: with a result."""
    after, name = seen.after, seen.operation.name
    if after is None or not seen.before:
        return ""
    x = seen.before[0]
    if name == "squeeze" and after.shape == x.shape:
        return N_("Nothing happened: the axis is larger than 1.")
    if name in {"reshape", "contiguous", "to"}:
        return _copied(seen, after)
    if name == "expand" and len(after.storage) < after.values.size:
        return Paragraph("tensors/expanded", size=after.values.size, n_storage=len(after.storage))
    if name == "broadcast":
        return _stretch(seen, after.shape)
    if name == "argmax":
        return N_(
            "Indices ({dtype}): no gradient passes, so a loss takes the scores.", dtype=after.dtype
        )
    if name == "ToTensor" and (x.values != x.values.astype("uint8")).any():
        return N_("Pixels are whole numbers from 0 to 255: x.byte() changed others.")
    if name == "mm":
        return N_("The same as x @ b, but mm takes only matrices.")
    if name == "softmax" and x.values.ndim > 1 and seen.values["dim"] % x.values.ndim == 0:
        return Paragraph("tensors/columns-sum")
    return ""


def _copied(seen: OperationResult, after: TensorView) -> str:
    """Say whether an operation that copies only where it must has copied."""
    x, shares, name = seen.before[0], seen.shares[0], seen.operation.name
    if name == "reshape":
        return (
            N_("Here reshape is a view: no copy.")
            if shares
            else N_("Here reshape copies: x is not in row-major order.")
        )
    if name == "contiguous":
        return N_("x was contiguous: no copy.") if shares else N_("x was not contiguous: a copy.")
    if shares:
        return N_("x was {dtype} on {device} already: no copy.", dtype=x.dtype, device=x.device)
    changed = int((x.values.astype(float) != after.values.astype(float)).sum())
    return N_(
        "A copy on {device}: {n} of {size} numbers changed.",
        device=after.device,
        n=changed,
        size=x.values.size,
    )


def _stretch(seen: OperationResult, made: tuple[int, ...]) -> str:
    """Say how each input of a broadcast is read, and where both were stretched."""
    stretched = [one for one in seen.before if one.shape != made]
    if not stretched:
        return N_("Both have the shape of y: nothing is broadcast.")
    if len(stretched) == len(seen.before):
        return Paragraph(
            "tensors/both-stretched",
            shape=tupled(seen.before[0].shape),
            shape_2=tupled(seen.before[1].shape),
            made=tupled(made),
        )
    one = stretched[0]
    lead = len(made) - len(one.shape)
    strides = [0] * lead + [
        0 if size != made[lead + axis] else stride
        for axis, (size, stride) in enumerate(zip(one.shape, one.strides, strict=True))
    ]
    return Paragraph(
        "tensors/stretched",
        name=one.name,
        shape=tupled(one.shape),
        made=tupled(made),
        strides=tupled(tuple(strides)),
    )


def sums(seen: OperationResult) -> list[float]:
    """Return the sums along the axis of a softmax, in order. seen: of a softmax, with a result."""
    assert seen.after is not None
    return [float(value) for value in seen.after.values.sum(axis=seen.values["dim"]).ravel()]


def statistics(seen: OperationResult) -> str:
    """Return smallest, mean, largest and standard deviation of a random tensor, in words."""
    assert seen.after is not None
    values = seen.after.values
    spread = values.std(ddof=1) if values.size > 1 else math.nan
    return Paragraph(
        "tensors/statistics", min=values.min(), mean=values.mean(), max=values.max(), spread=spread
    )


def numpy_facts() -> list[tuple[str, str, str]]:
    """Try out what NumPy and PyTorch share, with both of them, now.

    Return lines of code, what each gave here, and what follows.
    """
    import numpy as np
    import torch

    array = np.arange(3, dtype=np.float32)
    tensor, copied = torch.from_numpy(array), torch.tensor(array)
    array[0] = 99
    back = torch.zeros(3)
    seen = back.numpy()
    back[1] = 7
    grid = np.zeros((2, 3), np.float32)
    return [
        ("torch.from_numpy(a); a[0] = 99", f"t = {tensor.tolist()}", N_("one memory, two names")),
        ("torch.tensor(a); a[0] = 99", f"t = {copied.tolist()}", N_("a copy")),
        ("n = t.numpy(); t[1] = 7", f"n = {seen.tolist()}", N_("one memory again")),
        ("np.array([1.5]).dtype", str(np.array([1.5]).dtype), N_("NumPy counts in 64 bits")),
        ("torch.tensor([1.5]).dtype", str(torch.tensor([1.5]).dtype), N_("PyTorch in 32")),
        ("np.zeros((2, 3), np.float32).strides", str(grid.strides), N_("in bytes")),
        ("torch.zeros(2, 3).stride()", str(torch.zeros(2, 3).stride()), N_("in elements")),
    ]
