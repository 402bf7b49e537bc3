"""One operation on a small tensor: the tensors before and after, with notes on them.

Everything is measured on the tensors themselves: shape, strides, storage offset, whether two share
memory. Where each element came from is found by sending numbered elements through the operation.
torch is imported where it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from tfm_core.inspect.by_hand_text import product
from tfm_core.inspect.questions import Question, choice_question
from tfm_core.inspect.tables import Column, Columns
from tfm_core.inspect.tensors.operations import (
    MAX_AXES,
    MAX_RESULT,
    OPERATIONS,
    TensorOperation,
    Values,
    listed,
    tupled,
)
from tfm_core.inspect.tensors.shapes import Index, axes_after, axes_before, explain_error, sources
from tfm_core.probe.types import Array
from tfm_core.sentences import N_, Paragraph, Sentence, StudentError

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor


Dtype = Literal["float32", "int64"]
PREPARED: dict[str, str] = {
    N_("as it is"): "",
    N_("transposed"): ".transpose(-2, -1)",
    N_("without its first"): "[1:]",
    N_("every other"): "[..., ::2]",
}
NEW = -1  # the origin of an element that no input has


READING = Columns(
    element=Column(N_("element, in reading order"), ","),
    place=Column(N_("memory position"), ","),
)


@dataclass(frozen=True, slots=True)
class InputSpec:
    """How the first input is made. numbers: its content, or None for 0, 1, 2 …"""

    shape: tuple[int, ...]
    numbers: tuple[float, ...] | None = None
    dtype: Dtype = "float32"
    prepared: str = N_("as it is")


@dataclass(frozen=True, slots=True, eq=False)
class TensorView:
    """A tensor as it can be seen.

    values: of its shape. axes: a name each. strides, offset: in elements. storage: the memory
    behind it, in order. visits: the index in the storage of each element, in the order in which
    they are read. origins, storage_origins: which element of the inputs it is, counted over the
    memory of all inputs, or NEW.
    """

    name: str
    values: Array
    axes: tuple[str, ...]
    strides: tuple[int, ...]
    offset: int
    is_contiguous: bool
    dtype: str
    device: str
    storage: Array
    visits: Array
    origins: Array
    storage_origins: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the axes."""
        return tuple(self.values.shape)


def reading(tensors: Sequence[TensorView]) -> pd.DataFrame:
    """Return element, place, of: which place in memory is read when, of each tensor by its name."""
    import pandas as pd

    parts = [{"place": one.visits, "of": one.name} for one in tensors]
    table = pd.concat([pd.DataFrame(part) for part in parts])
    return READING.table(table.assign(element=table.groupby("of").cumcount() + 1))


@dataclass(frozen=True, slots=True, eq=False)
class OperationResult:
    """An operation on its inputs: code, tensors before and after, what they share.

    after: None where PyTorch refused; then error is what it said, word for word, with the type of
    the exception, and explanation a sentence on the cause. shares: for each input, whether the
    result lies in the same memory.
    """

    operation: TensorOperation
    code: str
    before: tuple[TensorView, ...]
    after: TensorView | None = None
    shares: tuple[bool, ...] = ()
    error: str = ""
    error_type: str = ""
    explanation: str = ""
    values: Values = field(default_factory=dict)


def run_operation(
    name: str, source: InputSpec, values: Values, second: tuple[int, ...] | None = None
) -> OperationResult:
    """Run an operation and look at everything.

    values: as ``read`` returns them. second: shape of the second input, where there is one.
    Raises ValueError, in a sentence, where the result is too large to be shown or the input cannot
    be prepared so; an error of PyTorch's is no exception here, but part of what is seen.
    """
    operation = OPERATIONS[name]
    code, inputs, numbered = _inputs(operation, source, second)
    axes = axes_before(name, [one.dim() for one in inputs], values)
    before = tuple(
        measure_tensor(letter, one, numbers, names)
        for letter, one, numbers, names in zip("xb", inputs, numbered, axes, strict=False)
    )
    lines = "\n".join([*code, operation.code(values)])
    try:
        names_made = operation.run(inputs, values)
    except (RuntimeError, IndexError, TypeError, ValueError, AssertionError) as error:
        why = explain_error(name, inputs, values, error)
        kind, words = type(error).__name__, str(error)
        return OperationResult(operation, lines, before, None, (), words, kind, why, values)
    made: Tensor = names_made["y"]
    if made.numel() > MAX_RESULT or made.dim() > MAX_AXES + 1:
        facts = {"shape": tupled(tuple(made.shape)), "n": made.numel(), "most_result": MAX_RESULT}
        raise StudentError(Paragraph("tensors/result-too-large", **facts))
    origins = _traced(operation, inputs, numbered, values, names_made)
    shapes = [tuple(one.shape) for one in inputs]
    names = axes_after(name, axes, shapes, tuple(made.shape), values)
    after = measure_tensor("y", made, origins, names)
    memory = made.untyped_storage().data_ptr()
    shares = tuple(one.untyped_storage().data_ptr() == memory for one in inputs)
    return OperationResult(operation, lines, before, after, shares, values=values)


def measure_tensor(name: str, tensor: Tensor, origins: Tensor, axes: tuple[str, ...]) -> TensorView:
    """Measure a tensor; origins: a tensor laid out like it, with the element that each one is."""
    import torch

    whole = _memory(tensor)
    addresses = torch.arange(len(whole))
    seen = addresses.as_strided(tensor.size(), tensor.stride(), tensor.storage_offset())
    return TensorView(
        name=name,
        values=tensor.detach().cpu().numpy().copy(),
        axes=axes,
        strides=tuple(tensor.stride()),
        offset=int(tensor.storage_offset()),
        is_contiguous=tensor.is_contiguous(),
        dtype=str(tensor.dtype).removeprefix("torch."),
        device=str(tensor.device),
        storage=whole.cpu().numpy().copy(),
        visits=seen.flatten().numpy().copy(),
        origins=origins.cpu().numpy().copy(),
        storage_origins=_memory(origins).cpu().numpy().copy(),
    )


def _memory(tensor: Tensor) -> Tensor:
    """Return all that lies in the memory of a tensor, as one vector on the same memory."""
    size = tensor.untyped_storage().nbytes() // tensor.element_size()
    return tensor.as_strided((size,), (1,), 0)


def _inputs(
    operation: TensorOperation, source: InputSpec, second: tuple[int, ...] | None
) -> tuple[list[str], tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return the lines that make the inputs, the inputs, and the numbers of their elements."""
    import torch

    if operation.kind == "makes":
        return [], (), ()
    dtype = getattr(torch, source.dtype)
    count = math.prod(source.shape)
    flat = torch.arange(count, dtype=dtype)
    line = f"x = torch.arange({count}{'.' if source.dtype == 'float32' else ''})"
    if source.numbers is not None:
        flat = torch.tensor(source.numbers, dtype=dtype)
        numbers = ", ".join(f"{number:g}" for number in source.numbers)
        line = f"x = torch.tensor([{numbers}], dtype=torch.{source.dtype})"
    line += f".view({listed(source.shape)})" + PREPARED[source.prepared]
    x = _prepared(flat.view(source.shape), source.prepared)
    numbered = _prepared(torch.arange(count).view(source.shape), source.prepared)
    if second is None:
        return [line], (x,), (numbered,)
    n = math.prod(second)
    start = 0 if operation.kind == "computes" else count
    b = torch.arange(start, start + n, dtype=torch.float32).view(second)
    code = f"b = torch.arange({float(start):g}., {start + n}.).view({listed(second)})"
    return [line, code], (x, b), (numbered, torch.arange(count, count + n).view(second))


def _prepared(tensor: Tensor, how: str) -> Tensor:
    if how == "transposed":
        if tensor.dim() < 2:
            raise StudentError("A vector has one axis, so there is nothing to transpose.")
        return tensor.transpose(-2, -1)
    if how == "without its first":
        if tensor.size(0) < 2:
            raise StudentError("The first axis has size 1, so nothing would be left.")
        return tensor[1:]
    return tensor[..., ::2] if how == "every other" else tensor


def _traced(
    operation: TensorOperation,
    inputs: tuple[Tensor, ...],
    numbered: tuple[Tensor, ...],
    values: Values,
    names: Mapping[str, Tensor],
) -> Tensor:
    """Return which element of the inputs each element of the result is, laid out like it."""
    import torch

    made: Tensor
    if operation.kind == "moves":
        made = operation.run(numbered, values)["y"]
        return made
    if operation.name == "masked_fill":
        return numbered[0].masked_fill(names["mask"], NEW)
    if operation.kind == "fills":
        made = operation.run([numbers + 1 for numbers in numbered], values)["y"]
        return made - 1
    made = names["y"]
    if operation.kind == "places":
        if made is inputs[0]:  # nothing happened
            return numbered[0]
        return torch.empty_like(made, dtype=torch.int64).copy_(numbered[0])
    return torch.full_like(made, NEW, dtype=torch.int64)


def arithmetic(seen: OperationResult, index: Index) -> tuple[frozenset[int], str]:
    """Return what an element of the result is computed from, and how, written out.

    The first are elements of the inputs, counted over the memory of all. seen: with a result.
    """
    after, name = seen.after, seen.operation.name
    assert after is not None
    shapes = [tensor.shape for tensor in seen.before]
    axes = [tensor.axes for tensor in seen.before]
    found = sources(name, axes, after.axes, shapes, index, seen.values)
    factors = [list(zip(seen.before, term, strict=False)) for term in found]
    used = frozenset(int(tensor.origins[at]) for row in factors for tensor, at in row)
    values = [[float(tensor.values[at]) for tensor, at in row] for row in factors]
    made = float(after.values[index])
    place = "y" + "".join(f"[{i}]" for i in index)
    if name in {"matmul", "mm", "einsum"}:
        left, right = [row[0] for row in values], [[*row, 1.0][1] for row in values]
        return used, f"{place} = {product(left, right, made, is_whole=True)}"
    numbers = [f"{value:g}" for row in values for value in row]
    terms = f"{made:.6g}"
    if name == "argmax":
        largest = N_(
            "{place}: the largest of {numbers} is at {place}",
            place=int(made),
            numbers=", ".join(numbers),
        )
        return used, Sentence("{name} = {terms}", {"name": place, "terms": largest})
    if name == "broadcast":
        sign = f" {seen.values['sign']} "
        terms = f"{sign.join(numbers)} = {made:g}"
    elif name == "numel":
        terms = f"{' × '.join(map(str, shapes[0]))} = {made:g}"
    elif name == "mean":
        terms = f"({' + '.join(numbers)}) / {len(numbers)} = {terms}"
    elif name == "ToTensor":
        terms = f"{int(values[0][0]) % 256} / 255 = {terms}"
    elif name == "Sequential":
        terms = f"(W₂ relu(W₁ [{', '.join(numbers)}] + b₁) + b₂)[{index[-1]}] = {terms}"
    return used, f"{place} = {terms}"


def note(seen: OperationResult) -> str:
    """Return a sentence on what this result shows, or nothing. seen: with a result."""
    after, name = seen.after, seen.operation.name
    if after is None or not seen.before:
        return ""
    x = seen.before[0]
    if name == "squeeze" and after.shape == x.shape:
        return N_("Nothing happened, because the axis is larger than 1.")
    if name in {"reshape", "contiguous", "to"}:
        return _copied(seen, after)
    if name == "expand" and len(after.storage) < after.values.size:
        return Paragraph("tensors/expanded", size=after.values.size, n_storage=len(after.storage))
    if name == "broadcast":
        return _stretch(seen, after.shape)
    if name == "argmax":
        return N_(
            "Indices ({dtype}) pass no gradient, so a loss uses the scores.", dtype=after.dtype
        )
    if name == "ToTensor" and (x.values != x.values.astype("uint8")).any():
        return N_("Pixels are whole numbers from 0 to 255, so x.byte() changed the others.")
    if name == "mm":
        return N_("The same as x @ b, but mm takes only matrices.")
    if name == "softmax" and x.values.ndim > 1 and seen.values["dim"] % x.values.ndim == 0:
        return Paragraph("tensors/columns-sum")
    return ""


def _copied(seen: OperationResult, after: TensorView) -> str:
    """Say whether an operation that copies only where it must has copied."""
    x, shares, name = seen.before[0], seen.shares[0], seen.operation.name
    if name == "reshape":
        copied = N_("Here reshape copies, because x is not in row-major order.")
        return N_("Here reshape returns a view, without a copy.") if shares else copied
    if name == "contiguous":
        return (
            N_("x was contiguous, so nothing was copied.")
            if shares
            else N_("x was not contiguous, so it was copied.")
        )
    if shares:
        return N_(
            "x was already {dtype} on {device}, so nothing was copied.",
            dtype=x.dtype,
            device=x.device,
        )
    changed = int((x.values.astype(float) != after.values.astype(float)).sum())
    values = {"device": after.device, "n": changed, "size": x.values.size}
    return N_("A copy on {device}: {n} of {size} numbers changed.", **values)


def _stretch(seen: OperationResult, made: tuple[int, ...]) -> str:
    """Say how each input of a broadcast is read, and where both were stretched."""
    stretched = [one for one in seen.before if one.shape != made]
    if not stretched:
        return N_("Both have the shape of y, so nothing is broadcast.")
    shapes = [tupled(one.shape) for one in stretched]
    facts = {"name": stretched[0].name, "shape": shapes[0], "made": tupled(made)}
    if len(stretched) == 2:
        return Paragraph("tensors/both-stretched", shape_2=shapes[1], **facts)
    one = stretched[0]
    lead = len(made) - len(one.shape)
    read_again = [size != new for size, new in zip(one.shape, made[lead:], strict=True)]
    strides = [0 if again else n for again, n in zip(read_again, one.strides, strict=True)]
    return Paragraph("tensors/stretched", strides=tupled((*[0] * lead, *strides)), **facts)


def sums(seen: OperationResult) -> list[float]:
    """Return the sums along the axis of a softmax, in order. seen: of a softmax, with a result."""
    assert seen.after is not None
    return [float(value) for value in seen.after.values.sum(axis=seen.values["dim"]).ravel()]


def statistics(seen: OperationResult) -> str:
    """Return smallest, mean, largest and standard deviation of a random tensor, in words."""
    assert seen.after is not None
    values = seen.after.values
    spread = values.std(ddof=1) if values.size > 1 else math.nan
    facts = {"min": values.min(), "mean": values.mean(), "max": values.max(), "spread": spread}
    return Paragraph("tensors/statistics", **facts)


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
        ("np.array([1.5]).dtype", str(np.array([1.5]).dtype), N_("NumPy uses 64 bits")),
        ("torch.tensor([1.5]).dtype", str(torch.tensor([1.5]).dtype), N_("PyTorch uses 32 bits")),
        ("np.zeros((2, 3), np.float32).strides", str(grid.strides), N_("in bytes")),
        ("torch.zeros(2, 3).stride()", str(torch.zeros(2, 3).stride()), N_("in elements")),
    ]


def about_strides(y: TensorView) -> Question | None:
    """Ask for the strides after an exchange of the first and last axis; None with fewer than two.

    Also None where all answers are the same.
    """
    if len(y.shape) < 2:
        return None
    swapped = _same_layout(y).transpose(0, -1)
    dense = tuple(swapped.contiguous().stride())
    answer = tupled(tuple(swapped.stride()))
    wrong = {
        tupled(dense): N_("That needs a copy in the new order; transpose moves nothing."),
        tupled(tuple(y.strides)): N_("Those are y's own strides, before two axes change places."),
        tupled(tuple(swapped.shape)): N_("That is the new shape."),
    }
    if not set(wrong) - {answer}:
        return None
    return choice_question(
        N_("What are the strides of `y.transpose(0, -1)`?"),
        answer,
        wrong,
        N_("The first and last stride change places, and no number moves."),
    )


def about_view(y: TensorView) -> Question | None:
    """Ask whether the exchanged tensor can be viewed as one row; None without two axes."""
    if len(y.shape) < 2:
        return None
    yes, no = N_("Yes, without a copy"), N_("No, PyTorch refuses")
    try:
        _same_layout(y).transpose(0, -1).view(-1)
        answer = yes
        because = N_("Reading it in order still walks the memory with one stride.")
    except RuntimeError:
        answer = no
        because = N_("No single stride reads it in order. `reshape` would copy.")
    wrong: dict[str, str] = {
        yes: N_("One row needs one stride, but here the steps between numbers differ."),
        no: N_("Here one stride is enough: an axis has size 1, or the memory is in order."),
    }
    return choice_question(N_("Does `y.transpose(0, -1).view(-1)` work?"), answer, wrong, because)


def _same_layout(y: TensorView) -> Tensor:
    """Return a tensor with y's sizes and strides, on memory of its own."""
    import torch

    return torch.arange(len(y.storage)).as_strided(y.shape, y.strides, y.offset)
