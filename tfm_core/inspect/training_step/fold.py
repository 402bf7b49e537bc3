"""A graph folded into groups of operations: one a block, and the inside of one that is opened."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from tfm_core.inspect.training_step.graph import LOSS, MODEL, Graph


@dataclass(slots=True)
class OperationGroup:
    """Operations drawn as one; ``is_single`` where it is one operation by itself.

    names: how often each operation is in it; norm: of all gradients that end in its parameters.
    """

    key: str
    names: dict[str, int] = field(default_factory=dict)
    n_values: int = 0
    squares: float = 0.0
    is_single: bool = False
    parameter: str = ""

    @property
    def n_operations(self) -> int:
        """How many operations it stands for."""
        return sum(self.names.values())

    @property
    def norm(self) -> float:
        """Norm of the gradients of its parameters."""
        return float(self.squares**0.5)


@dataclass(slots=True)
class GradientFlow:
    """Gradients from one group to another: how many, and the norm and shape of a single one."""

    count: int = 0
    norm: float | None = None
    shape: tuple[int, ...] = ()


@dataclass(slots=True)
class Folded:
    """Groups by key, in the order in which gradients reach them, and the flows between them."""

    groups: dict[str, OperationGroup] = field(default_factory=dict)
    flows: dict[tuple[str, str], GradientFlow] = field(default_factory=dict)


def top(module: str, stacks: Collection[str]) -> str:
    """Return the group that a module belongs to while all are closed.

    A list's items stand for themselves (``encoder.layers.0``), what lies beside a list in one of
    the ``stacks`` (``encoder.final_norm``) too; else it is the part of the model.
    """
    if module in {LOSS, MODEL}:
        return module
    parts = module.split(".")
    for i, part in enumerate(parts):
        if part.isdigit():
            return ".".join(parts[: i + 1])
    return ".".join(parts[:2]) if parts[0] in stacks else parts[0]


def fold(graph: Graph, opened: str = "") -> Folded:
    """Fold all operations into groups, except those directly in the group ``opened``."""
    stacks = _stacks(graph)
    keys = [
        _key(operation.module, number, opened, stacks)
        for number, operation in enumerate(graph.operations)
    ]
    folded = Folded()
    for key, operation in zip(keys, graph.operations, strict=True):
        group = folded.groups.setdefault(key, OperationGroup(key))
        group.is_single = key.startswith("#")
        group.names[operation.name] = group.names.get(operation.name, 0) + 1
        group.n_values += operation.n_values
        if operation.parameter:
            group.parameter = operation.parameter
            group.squares += (operation.norm or 0.0) ** 2
    for tail, head in graph.edges:
        if keys[tail] != keys[head]:
            flow = folded.flows.setdefault((keys[tail], keys[head]), GradientFlow())
            flow.count += 1
            below = graph.operations[head]
            flow.norm, flow.shape = below.norm, below.shape
    return folded


def groups_of(graph: Graph) -> list[str]:
    """Return what can be opened: the groups, and the parts directly inside of them."""
    groups: dict[str, None] = {}
    stacks = _stacks(graph)
    for operation in graph.operations:
        first = top(operation.module, stacks)
        groups[first] = None
        rest = operation.module.removeprefix(first).lstrip(".")
        if rest and operation.module not in {LOSS, MODEL}:
            groups[f"{first}.{rest.split('.')[0]}"] = None
    return sorted(groups)


def _stacks(graph: Graph) -> set[str]:
    """Return the parts of the model that hold lists of blocks."""
    modules = (operation.module.split(".") for operation in graph.operations)
    return {parts[0] for parts in modules if any(part.isdigit() for part in parts)}


def _key(module: str, number: int, opened: str, stacks: Collection[str]) -> str:
    key = top(module, stacks)
    while opened == key or opened.startswith(f"{key}."):
        if module == key:
            return f"#{number}"
        rest = module.removeprefix(f"{key}.")
        key = f"{key}.{rest.split('.')[0]}"
    return key
