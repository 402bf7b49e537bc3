"""The tensors of a training step with the gradients that flow through them, from the loss down.

What the steps of a trace show is recorded in the forward pass; ``loss.backward()`` leaves a
gradient in each of these tensors and in each parameter. Autograd's graph, walked from
``loss.grad_fn``, says which of them a gradient comes from. Folded, each block is one group,
and for what lies inside of one that is opened.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from tfm_core.data.tasks import data_shape
from tfm_core.facts.parameter_table import own_name, own_names
from tfm_core.layers.recorder import recording
from tfm_core.probe.capture import ActivationCache
from tfm_core.trace.learning import copied, forward
from tfm_core.trace.subject import Subject
from tfm_core.training.loop import Trainer

LOSS, MODEL = "(loss)", "(model)"
"""The loss, and parameters of the model itself outside all of its parts."""


@dataclass(slots=True)
class BackwardNode:
    """A tensor of the forward pass or a parameter, and the gradient that arrived there.

    name: what was recorded of its module, as a capture calls it. parameter: its path, or "". norm
    and shape: of the gradient, None where none arrived.
    """

    name: str
    module: str
    parameter: str = ""
    n_values: int = 0
    norm: float | None = None
    shape: tuple[int, ...] = ()


Graph = tuple[list[BackwardNode], list[tuple[int, int]]]
"""All tensors, and the edges along which gradients flow, from the loss on."""
_READ = frozenset({"input", "query_input", "key_value_input", "skipped"})
"""Kinds of records of a tensor that another module made and recorded too."""
_Place = tuple[Any, int]
"""A node of autograd's graph, and which of its outputs."""
_Recorded = dict[_Place, tuple[str, Tensor]]
"""The key and the tensor that were recorded at a place."""


def with_gradients(trainer: Trainer) -> tuple[Subject, Tensor]:
    """Run a copy's next step forward and backward; return what its parts recorded, and the loss.

    The tensors of its ``trace`` then have their gradients, and so have the parameters.
    """
    trainer = copied(trainer)
    model, experiment = trainer.model, trainer.experiment
    cache = ActivationCache(model, None, None, with_grad=True)
    seen: list[tuple[Tensor, ...]] = []
    with recording(cache), model.register_forward_pre_hook(lambda _, given: seen.append(given)):
        loss, _call = forward(trainer)
    for tensor in cache.values():
        if tensor.grad_fn is not None:
            tensor.retain_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    names = [trainer.data.names]
    words = {"vocabulary": names, "classes": names}
    shape = data_shape(experiment)
    return Subject(experiment.model, model, shape, seen[0], cache, words), loss


def graph_of(trainer: Trainer) -> Graph:
    """Return the tensors of the next step and their gradients.

    Modules and parameters have the names of the model's family.
    """
    subject, loss = with_gradients(trainer)
    made = sorted(subject.cache.items(), key=lambda item: item[0].rpartition(".")[2] in _READ)
    recorded: _Recorded = {}
    for key, tensor in made:
        recorded.setdefault((tensor.grad_fn, tensor.output_nr), (key, tensor))
    parameters = {id(one): name for name, one in subject.model.named_parameters()}
    start = (loss.grad_fn, loss.output_nr)
    numbers = {start: 0}
    nodes, edges = [BackwardNode("loss", LOSS, norm=1.0)], list[tuple[int, int]]()
    waiting = [start]
    for above in waiting:
        for below in _next(above, recorded):
            if below not in numbers:
                numbers[below] = len(nodes)
                waiting.append(below)
                nodes.append(_node(below, recorded, parameters))
            edges.append((numbers[above], numbers[below]))
    names = own_names(subject.config, subject.shape)
    for node in nodes:
        node.module = own_name(node.module, names) or node.module
        node.parameter = own_name(node.parameter, names) or node.parameter
    return nodes, edges


def _next(place: _Place, recorded: _Recorded) -> list[_Place]:
    """Return the recorded tensors and the parameters that a tensor was computed from."""
    found: dict[_Place, None] = {}
    waiting: dict[_Place, None] = dict.fromkeys(place[0].next_functions)
    for below in (queue := list(waiting)):
        if below[0] is None:
            continue
        if below in recorded or hasattr(below[0], "variable"):
            found[below] = None
            continue
        new = [one for one in below[0].next_functions if one not in waiting]
        waiting.update(dict.fromkeys(new))
        queue.extend(new)
    return list(found)


def _node(place: _Place, recorded: _Recorded, parameters: dict[int, str]) -> BackwardNode:
    """Return a tensor or a parameter with its gradient."""
    if place in recorded:
        key, tensor = recorded[place]
        module, _dot, name = key.rpartition(".")
        node = BackwardNode(name, module)
    else:
        tensor = place[0].variable
        parameter = parameters.get(id(tensor), "")  # none of a leaf that a mistake made
        module, _dot, name = parameter.rpartition(".")
        node = BackwardNode(name or "leaf", module or MODEL, parameter, tensor.numel())
    if tensor.grad is not None:
        node.norm, node.shape = float(tensor.grad.norm()), tuple(tensor.grad.shape)
    return node


SINGLE = "#"
"""The beginning of the key of a tensor that stands by itself."""
Folded = tuple[dict[str, list[BackwardNode]], dict[tuple[str, str], list[BackwardNode]]]
"""Tensors by group, in the order in which gradients reach them; then, by pairs of groups, the
tensors of the second to which gradients flow from the first."""


def fold(graph: Graph, opened: str = "") -> Folded:
    """Fold all tensors into groups, except those directly in the group ``opened``."""
    nodes, edges = graph
    keys, stacks = list[str](), _stacks(graph)
    for number, node in enumerate(nodes):
        names = _groups(node.module, stacks)
        closed = (name for name in names if not f"{opened}.".startswith(f"{name}."))
        keys.append(next(closed, f"{SINGLE}{number}"))
    groups: dict[str, list[BackwardNode]] = {}
    for key, node in zip(keys, nodes, strict=True):
        groups.setdefault(key, []).append(node)
    flows: dict[tuple[str, str], list[BackwardNode]] = {}
    for tail, head in edges:
        flow = flows.setdefault((keys[tail], keys[head]), [])
        if not any(node is nodes[head] for node in flow):
            flow.append(nodes[head])
    return groups, {pair: flow for pair, flow in flows.items() if pair[0] != pair[1]}


def groups_of(graph: Graph) -> list[str]:
    """Return what can be opened: the groups, and the parts directly inside of them."""
    stacks = _stacks(graph)
    return sorted({name for one in graph[0] for name in _groups(one.module, stacks)[:2]})


def _stacks(graph: Graph) -> set[str]:
    """Return the parts of the model that hold lists of blocks."""
    modules = (node.module.split(".") for node in graph[0])
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
