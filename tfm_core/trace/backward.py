"""Autograd's graph of the loss of a training step, with the gradients that flow through it.

The graph goes from ``loss.grad_fn`` down, folded by module so that it is legible. Every node knows
when it was made (``Node._sequence_nr``), and every module when it began and ended, so each
operation belongs to the innermost module that was at work; a parameter's node (``AccumulateGrad``)
belongs to the module that owns it. Folded, a group stands for each block, and for what lies inside
of one that is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from tfm_core.data.tasks import data_shape
from tfm_core.facts.parameter_table import own_name, own_names
from tfm_core.trace.learning import forward
from tfm_core.training.loop import Trainer

LOSS, MODEL = "(loss)", "(model)"
"""Operations behind the model, and those of the model itself outside all of its parts."""


@dataclass(slots=True)
class BackwardNode:
    """A node: what it undoes, whose it is, and the gradient that arrived there.

    name: of the backward function, without its number. parameter: the name of the parameter whose
    gradient ends here, or "". norm and shape: of the gradient, None where none arrived.
    """

    name: str
    module: str
    parameter: str = ""
    n_values: int = 0
    norm: float | None = None
    shape: tuple[int, ...] = ()


Graph = tuple[list[BackwardNode], list[tuple[int, int]]]
"""All operations, and the edges along which gradients flow, from the loss on."""
_Span = tuple[str, int, int]
"""A module, and the newest nodes when it began and when it ended."""


def graph_of(trainer: Trainer) -> Graph:
    """Run the next step forward and backward, and return its graph with the gradients in it.

    Modules and parameters have the names of the model's family.
    """
    spans: list[_Span] = []
    trainer.model.zero_grad(set_to_none=True)
    with _watched(trainer.model, spans):
        loss, _call = forward(trainer)
    (operations, edges), nodes = _walk(loss, trainer.model, spans)
    with ExitStack() as undo:
        for node, operation in zip(nodes, operations, strict=True):
            undo.callback(node.register_prehook(_note(operation)).remove)
        loss.backward()  # type: ignore[no-untyped-call]
    trainer.model.zero_grad(set_to_none=True)
    names = own_names(trainer.experiment.model, data_shape(trainer.experiment))
    for operation in operations:
        operation.module = own_name(operation.module, names) or operation.module
        operation.parameter = own_name(operation.parameter, names) or operation.parameter
    return operations, edges


def _now() -> int:
    """Return the number of the newest node."""
    made = torch.zeros((), requires_grad=True).clone().grad_fn
    assert made is not None
    return int(made._sequence_nr())


@contextmanager
def _watched(model: nn.Module, spans: list[_Span]) -> Iterator[None]:
    begun: dict[str, list[int]] = {}
    with ExitStack() as undo:
        for name, module in model.named_modules():

            def before(_module: nn.Module, _inputs: object, name: str = name) -> None:
                begun.setdefault(name, []).append(_now())

            def after(_module: nn.Module, _in: object, _out: object, name: str = name) -> None:
                spans.append((name or MODEL, begun[name].pop(), _now()))

            undo.enter_context(module.register_forward_pre_hook(before))
            undo.enter_context(module.register_forward_hook(after))
        yield


def _walk(loss: Tensor, model: nn.Module, spans: list[_Span]) -> tuple[Graph, list[Any]]:
    owners = {id(one): name for name, one in model.named_parameters()}
    inner_first = sorted(spans, key=lambda span: span[2] - span[1])
    edges: list[tuple[int, int]] = []
    nodes: list[Any] = []
    numbers: dict[Any, int] = {loss.grad_fn: 0}
    waiting: list[Any] = [loss.grad_fn]
    while waiting:
        node = waiting.pop(0)
        nodes.append(node)
        for below, _place in node.next_functions:
            if below is None:
                continue
            if below not in numbers:
                numbers[below] = len(numbers)
                waiting.append(below)
            edges.append((numbers[node], numbers[below]))
    return ([_operation(node, owners, inner_first) for node in nodes], edges), nodes


def _operation(node: Any, owners: dict[int, str], spans: list[_Span]) -> BackwardNode:
    name = (
        node.name().rstrip("0123456789").removesuffix("Backward").removeprefix("torch::autograd::")
    )
    variable = getattr(node, "variable", None)
    if variable is not None:
        parameter = owners.get(id(variable), "")
        return BackwardNode(
            name, parameter.rpartition(".")[0] or MODEL, parameter, variable.numel()
        )
    number = node._sequence_nr()
    owner = next((module for module, begin, end in spans if begin < number < end), LOSS)
    return BackwardNode(name, owner)


def _note(operation: BackwardNode) -> Callable[[tuple[Tensor | None, ...]], None]:
    def note(arriving: tuple[Tensor | None, ...]) -> None:
        there = [one for one in arriving if isinstance(one, Tensor)]
        if there:
            operation.norm = float(torch.stack([one.norm() for one in there]).norm())
            operation.shape = tuple(there[0].shape)

    return note


SINGLE = "#"
"""With what the key of an operation that stands by itself begins."""
Folded = tuple[dict[str, list[BackwardNode]], dict[tuple[str, str], list[BackwardNode]]]
"""Operations by group, in the order in which gradients reach them; then, by pairs of groups, the
operations of the second to which gradients flow from the first."""


def fold(graph: Graph, opened: str = "") -> Folded:
    """Fold all operations into groups, except those directly in the group ``opened``."""
    operations, edges = graph
    keys, stacks = list[str](), _stacks(graph)
    for number, operation in enumerate(operations):
        names = _groups(operation.module, stacks)
        closed = (name for name in names if not f"{opened}.".startswith(f"{name}."))
        keys.append(next(closed, f"{SINGLE}{number}"))
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
    stacks = _stacks(graph)
    return sorted({name for one in graph[0] for name in _groups(one.module, stacks)[:2]})


def _stacks(graph: Graph) -> set[str]:
    """Return the parts of the model that hold lists of blocks."""
    modules = (operation.module.split(".") for operation in graph[0])
    return {parts[0] for parts in modules if any(part.isdigit() for part in parts)}


def _groups(module: str, stacks: Collection[str]) -> list[str]:
    """Return the groups that a module lies in, the outermost first, and itself.

    The outermost is a list's item (``encoder.layers.0``), what lies beside a list in one of the
    ``stacks`` (``encoder.final_norm``), or else a part of the model.
    """
    if module in {LOSS, MODEL}:
        return [module]
    parts = module.split(".")
    beside = int(parts[0] in stacks and len(parts) > 1)
    first = next((n for n, part in enumerate(parts) if part.isdigit()), beside)
    return [".".join(parts[: n + 1]) for n in range(first, len(parts))]
