"""What an operation did quietly, and what NumPy and PyTorch share: measured, then said."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tfm_core.inspect.tensors.operations import tupled
from tfm_core.inspect.tensors.sight import OperationResult
from tfm_core.sentences import N_


@dataclass(frozen=True, slots=True)
class Fact:
    """A line of code, what it gave here, and what follows."""

    code: str
    found: str
    meaning: str


def note(seen: OperationResult) -> str:
    """Return a sentence on what this result shows, or nothing. seen: with a result."""
    after, name = seen.after, seen.operation.name
    if after is None or not seen.before:
        return ""
    x, shares = seen.before[0], seen.shares[0]
    if name == "squeeze" and after.shape == x.shape:
        return N_(
            "Nothing happened, and nothing was said: the axis is larger than 1. Errors of "
            "this kind show up much later.",
        )
    if name == "reshape":
        return (
            N_("Here reshape is a view: nothing was copied.")
            if shares
            else N_(
                "Here reshape had to copy: the elements of x do not lie in the order of reading."
            )
        )
    if name == "contiguous":
        return (
            N_("x was contiguous already: it comes back as it is, without a copy.")
            if shares
            else N_("x was not contiguous: its elements were copied into the order of reading.")
        )
    if name == "expand" and len(after.storage) < after.values.size:
        return N_(
            "{size} elements, {n_storage} places in memory: write to one of them and all of "
            "its repetitions change.",
            size=after.values.size,
            n_storage=len(after.storage),
        )
    if name == "broadcast":
        return _stretch(seen, after.shape)
    if name == "argmax":
        return N_(
            "Places, not values, in {dtype}: no gradient passes through them, so a loss takes the "
            "scores themselves.",
            dtype=after.dtype,
        )
    if name == "to":
        if shares:
            return N_(
                "x was {dtype} on {device} already: the same tensor comes back, without a copy.",
                dtype=x.dtype,
                device=x.device,
            )
        changed = int((x.values.astype(float) != after.values.astype(float)).sum())
        return N_(
            "A copy on {device}: {n} of {size} numbers are not what they were.",
            device=after.device,
            n=changed,
            size=x.values.size,
        )
    if name == "mm":
        return N_(
            "The same as x @ b, for both are matrices. Give x and b two axes more, and mm refuses "
            "where @ goes on."
        )
    if name == "softmax" and x.values.ndim > 1 and seen.values["dim"] % x.values.ndim == 0:
        return N_(
            "Axis 0 sums to 1 here: the columns. For attention that is the famous mistake: "
            "the keys, the last axis, must share one query’s attention.",
        )
    return ""


def _stretch(seen: OperationResult, made: tuple[int, ...]) -> str:
    """Say how each input of a broadcast is read, and where both were stretched."""
    stretched = [one for one in seen.before if one.shape != made]
    if not stretched:
        return N_("Both have the shape of y: nothing is broadcast.")
    if len(stretched) == len(seen.before):
        return N_(
            "Neither x {shape} nor b {shape_2} has the shape of y {made}: both were stretched. "
            "Where that is not meant, it is a mistake that no error tells of, such as (B,) minus "
            "(B, 1).",
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
    return N_(
        "{name} {shape} is read as {made} with strides {strides}: nothing is copied, a stride of 0 "
        "reads the same numbers again.",
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
    return N_(
        "smallest {min:.2f}, mean {mean:.2f}, largest {max:.2f}, standard deviation {spread:.2f}",
        min=values.min(),
        mean=values.mean(),
        max=values.max(),
        spread=spread,
    )


def numpy_facts() -> tuple[Fact, ...]:
    """Try out what NumPy and PyTorch share, with both of them, now."""
    import numpy as np
    import torch

    array = np.arange(3, dtype=np.float32)
    tensor, copied = torch.from_numpy(array), torch.tensor(array)
    array[0] = 99
    back = torch.zeros(3)
    seen = back.numpy()
    back[1] = 7
    grid = np.zeros((2, 3), np.float32)
    return (
        Fact(
            "torch.from_numpy(a); a[0] = 99", f"t = {tensor.tolist()}", N_("one memory, two names")
        ),
        Fact("torch.tensor(a); a[0] = 99", f"t = {copied.tolist()}", N_("a copy")),
        Fact("n = t.numpy(); t[1] = 7", f"n = {seen.tolist()}", N_("one memory again")),
        Fact("np.array([1.5]).dtype", str(np.array([1.5]).dtype), N_("NumPy counts in 64 bits")),
        Fact("torch.tensor([1.5]).dtype", str(torch.tensor([1.5]).dtype), N_("PyTorch in 32")),
        Fact("np.zeros((2, 3), np.float32).strides", str(grid.strides), N_("in bytes")),
        Fact("torch.zeros(2, 3).stride()", str(torch.zeros(2, 3).stride()), N_("in elements")),
    )
