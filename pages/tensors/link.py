"""Link of Tensors by sight: the operation and its settings."""

from __future__ import annotations

from collections.abc import Iterator

from pages.i18n import N_
from pages.ui.address import parameters
from pages.ui.address.parameters import Choice, Text
from tfm_core.inspect.tensors.operations import OPERATIONS, TensorOperation
from tfm_core.inspect.tensors.sight import PREPARED

MAX_LETTERS = 40  # of a shape or a parameter
OWN = "own"
OPERATION = Choice("op", names=tuple(OPERATIONS), first="view")
_CONTENT = {"arange": N_("0, 1, 2 …"), OWN: N_("Own numbers")}


def key_of(chosen: TensorOperation, name: str) -> str:
    """Return the name of a control of an operation, which is also its name in a link."""
    return f"{chosen.name.replace(' ', '-').lower()}-{name}"


def _parameters_of(chosen: TensorOperation) -> Iterator[tuple[str, Choice | Text]]:
    for one in chosen.parameters:
        key = key_of(chosen, one.name)
        if one.choices:
            yield one.name, Choice(key, names=one.choices, first=one.choices[0])
        else:
            yield one.name, Text(key, first=one.default, most=MAX_LETTERS)
    if chosen.second is not None:
        yield "second", Text(key_of(chosen, "second"), first=chosen.second, most=MAX_LETTERS)
    if chosen.kind == "makes":
        return
    yield "shape", Text(key_of(chosen, "shape"), first=chosen.shape, most=MAX_LETTERS)
    labels = {name: name for name in PREPARED}
    yield "prepared", parameters.named(key_of(chosen, "prepared"), labels)
    start = OWN if chosen.numbers else "arange"
    yield "content", parameters.named(key_of(chosen, "content"), _CONTENT, first=start)
    numbers = Text(key_of(chosen, "numbers"), first=chosen.numbers, most=10 * MAX_LETTERS)
    yield "numbers", numbers
    types = ("float32", "int64")
    yield "dtype", Choice(key_of(chosen, "dtype"), names=types, first=types[0])


PARAMETERS: dict[str, dict[str, Choice | Text]] = {
    name: dict(_parameters_of(one)) for name, one in OPERATIONS.items()
}
"""Operation -> name of a control -> its parameter in the link."""


def elsewhere(chosen: TensorOperation) -> Iterator[Choice | Text]:
    return (
        parameter
        for name, of_operation in PARAMETERS.items()
        for parameter in of_operation.values()
        if name != chosen.name
    )
