"""The batch of a step, the loss of each answer, and autograd's graph of the loss.

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

import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.data.tasks import data_shape
from tfm_core.facts.parameter_table import own_name, own_names
from tfm_core.inspect.tables import Column, Columns
from tfm_core.inspect.training_step.step import LossCall, forward, outputs_of, rows
from tfm_core.probe.types import Floats
from tfm_core.sentences import N_
from tfm_core.training.loop import Trainer

LOSSES = Columns(
    {
        "example": Column(N_("example of the batch"), ","),
        "step": Column(N_("steps"), ","),
        "rate": Column(N_("learning rate"), ".2g"),
        "loss": Column(N_("loss (nats)"), ".4f", {"exponentformat": "e"}),
        "value": Column(N_("loss (nats)"), ".4f", {"exponentformat": "e"}),
        "input": Column(),
        "class": Column(N_("class"), axis={"type": "category"}),
        "chance": Column(N_("probability (softmax of logits)"), ".6f"),
        "logit": Column(N_("logit"), ".4f"),
        "nats": Column(N_("-log p"), ".4f"),
        "row": Column(N_("parameter, input to output")),
        "norm": Column(
            N_("gradient norm"),
            ".4g",
            {"rangemode": "tozero", "nticks": 5, "exponentformat": "e"},
        ),
        "name": Column(),
        "size": Column(N_("numbers"), ","),
        "number": Column(N_("singular values, largest first"), ","),
    }
)


def batch_rows(trainer: Trainer) -> pd.DataFrame:
    """Return the examples of the next step: number in the training set, input and target.

    Where the data are pictures, also each picture, uint8 (C, H, W).
    """
    indices = rows(trainer)
    inputs, targets = trainer.data.shown(indices)
    table = pd.DataFrame({"number": indices.tolist(), "input": inputs, "target": targets})
    pictures = trainer.data.train.pictures(indices)
    return table if pictures is None else table.assign(picture=list(pictures.numpy()))


@dataclass(frozen=True, slots=True, eq=False)
class BatchAnswers:
    """All answers of a batch, one row of the loss's logits each.

    losses: (N,), nats; counts: bool (N,), those that are not padding; owners: (N,), whose they are.
    """

    loss: float
    call: LossCall
    losses: Tensor
    counts: Tensor
    owners: Tensor

    def of(self, example: int) -> list[int]:
        """Return the rows of an example's answers that count."""
        rows: list[int] = ((self.owners == example) & self.counts).nonzero().flatten().tolist()
        return rows


def answers(trainer: Trainer) -> BatchAnswers | None:
    """Run the next batch forward; None where its loss is no cross-entropy of the model's output."""
    with outputs_of(trainer.model) as outputs:
        loss, call = forward(trainer)
    if call is None or not outputs:
        return None
    losses = F.cross_entropy(
        call.given.detach(),
        call.targets,
        reduction="none",
        ignore_index=call.ignore_index,
        label_smoothing=call.smoothing,
    )
    counts = call.targets != call.ignore_index
    owners = _owners(call.logits, outputs[-1])
    return BatchAnswers(float(loss.detach()), call, losses, counts, owners)


def _owners(logits: Tensor, output: Tensor) -> Tensor:
    """Return for each row of the logits the example that it was taken from, -1 if none.

    Autograd knows: every row sends its number back, and it arrives where the row came from.
    """
    numbers = torch.arange(1, len(logits) + 1, dtype=logits.dtype)
    (arrived,) = torch.autograd.grad((logits[:, 0] * numbers).sum(), output)
    owners = torch.full((len(logits),), -1)
    for example, row in enumerate(arrived.flatten(1)):
        there = row[row != 0].long() - 1
        owners[there] = example
    return owners


def example_losses(answers: BatchAnswers, n_examples: int) -> Floats:
    """Return (B,): the mean loss of each example's answers that count, 0 without any."""
    counted = answers.counts & (answers.owners >= 0)
    owners = answers.owners[counted]
    sums = torch.zeros(n_examples).index_add(0, owners, answers.losses[counted].float())
    mean: Floats = (sums / owners.bincount(minlength=n_examples).clamp(min=1)).numpy()
    return mean


def one_answer(
    trainer: Trainer, answers: BatchAnswers, number: int, shown: int = 8
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Return one answer from logits to its loss, by its row.

    A table of the likeliest classes and the right one: class, logit, chance, nats (-log p). Then,
    of the right one, its name as ``target``, logit, p, log_p and loss; log_sum, n_classes, and the
    share of smoothing; is_changed: a mistake made these logits of the model's, and the loss takes
    them for logits.
    """
    call = answers.call
    row = call.given.detach()[number].double()
    target = int(call.targets[number])
    log_sum = float(row.logsumexp(0))
    best = row.argsort(descending=True)[:shown].tolist()
    chosen = best if target in best else [*best[: shown - 1], target]
    log_p = row - log_sum
    picked = torch.tensor(chosen)
    names = trainer.data.names[getattr(trainer.objective, "first_class", 0) :]
    table = LOSSES.table(
        {
            "class": [names[number] for number in chosen],
            "logit": row[picked].float().numpy(),
            "chance": log_p[picked].exp().float().numpy(),
            "nats": -log_p[picked].float().numpy(),
        }
    )
    return table, {
        "target": names[target],
        "logit": float(row[target]),
        "p": float(log_p[target].exp()),
        "log_p": float(log_p[target]),
        "loss": -float(log_p[target]),
        "log_sum": log_sum,
        "n_classes": row.numel(),
        "smoothing": call.smoothing,
        "is_changed": call.given is not call.logits,
    }


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
