"""Tensors by sight: one operation on a small tensor, before and after, with its memory.

Everything is measured on the tensors themselves: shape, strides, storage offset, whether two share
memory. Where each element came from is found by sending numbered elements through the operation.
torch is imported where it is needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from tfm_core.inspect.tables import Column, Columns
from tfm_core.inspect.tensors import text
from tfm_core.inspect.tensors.axes import axes_after, axes_before
from tfm_core.inspect.tensors.errors import explain
from tfm_core.inspect.tensors.operations import (
    OPERATIONS,
    TensorOperation,
    Values,
    listed,
    tupled,
)
from tfm_core.probe.types import Array
from tfm_core.sentences import N_, Paragraph, StudentError

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


def read(operation: TensorOperation, texts: Mapping[str, str]) -> dict[str, Any]:
    """Read what was typed for each parameter. Raises ValueError, in a sentence."""
    readers = {"int": text.int_of, "ints": text.ints_of, "number": text.number_of}
    settings: dict[str, Any] = {}
    for one in operation.parameters:
        typed = texts.get(one.name, one.default)
        if one.kind == "choice":
            settings[one.name] = typed if typed in one.choices else one.default
        elif one.kind == "equation":
            settings[one.name] = text.equation_of(typed)
        elif one.kind == "shape":
            settings[one.name] = text.shape_of(typed, one.label)
        else:
            settings[one.name] = readers[one.kind](typed, one.label)
    return settings


def sight(
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
        look(letter, one, numbers, names)
        for letter, one, numbers, names in zip("xb", inputs, numbered, axes, strict=False)
    )
    lines = "\n".join([*code, operation.code(values)])
    try:
        names_made = operation.run(inputs, values)
    except (RuntimeError, IndexError, TypeError, ValueError, AssertionError) as error:
        why = explain(name, inputs, values, error)
        kind, words = type(error).__name__, str(error)
        return OperationResult(operation, lines, before, None, (), words, kind, why, values)
    made: Tensor = names_made["y"]
    if made.numel() > text.MAX_RESULT or made.dim() > text.MAX_AXES + 1:
        raise StudentError(
            Paragraph(
                "tensors/result-too-large",
                shape=tupled(tuple(made.shape)),
                n=made.numel(),
                most_result=text.MAX_RESULT,
            )
        )
    origins = _traced(operation, inputs, numbered, values, names_made)
    shapes = [tuple(one.shape) for one in inputs]
    names = axes_after(name, axes, shapes, tuple(made.shape), values)
    after = look("y", made, origins, names)
    memory = made.untyped_storage().data_ptr()
    shares = tuple(one.untyped_storage().data_ptr() == memory for one in inputs)
    return OperationResult(operation, lines, before, after, shares, values=values)


def look(name: str, tensor: Tensor, origins: Tensor, axes: tuple[str, ...]) -> TensorView:
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
            raise StudentError("A vector has one axis: nothing to transpose.")
        return tensor.transpose(-2, -1)
    if how == "without its first":
        if tensor.size(0) < 2:
            raise StudentError("The first axis has size 1: nothing would be left.")
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
