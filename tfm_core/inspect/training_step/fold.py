"""A graph folded into groups of operations: one a block, and the inside of one that is opened."""

from __future__ import annotations

from collections.abc import Collection

from tfm_core.inspect.training_step.graph import LOSS, MODEL, BackwardNode, Graph

SINGLE = "#"
"""With what the key of an operation that stands by itself begins."""
Folded = tuple[dict[str, list[BackwardNode]], dict[tuple[str, str], list[BackwardNode]]]
"""Operations by group, in the order in which gradients reach them; then, by pairs of groups, the
operations of the second to which gradients flow from the first."""


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
    operations, edges = graph
    stacks = _stacks(graph)
    keys = [_key(one.module, number, opened, stacks) for number, one in enumerate(operations)]
    groups: dict[str, list[BackwardNode]] = {}
    for key, operation in zip(keys, operations, strict=True):
        groups.setdefault(key, []).append(operation)
    flows: dict[tuple[str, str], list[BackwardNode]] = {}
    for tail, head in edges:
        if keys[tail] != keys[head]:
            flows.setdefault((keys[tail], keys[head]), []).append(operations[head])
    return groups, flows


def groups_of(graph: Graph) -> list[str]:
    """Return what can be opened: the groups, and the parts directly inside of them."""
    groups: dict[str, None] = {}
    stacks = _stacks(graph)
    for operation in graph[0]:
        first = top(operation.module, stacks)
        groups[first] = None
        rest = operation.module.removeprefix(first).lstrip(".")
        if rest and operation.module not in {LOSS, MODEL}:
            groups[f"{first}.{rest.split('.')[0]}"] = None
    return sorted(groups)


def _stacks(graph: Graph) -> set[str]:
    """Return the parts of the model that hold lists of blocks."""
    modules = (operation.module.split(".") for operation in graph[0])
    return {parts[0] for parts in modules if any(part.isdigit() for part in parts)}


def _key(module: str, number: int, opened: str, stacks: Collection[str]) -> str:
    key = top(module, stacks)
    while opened == key or opened.startswith(f"{key}."):
        if module == key:
            return f"{SINGLE}{number}"
        rest = module.removeprefix(f"{key}.")
        key = f"{key}.{rest.split('.')[0]}"
    return key
