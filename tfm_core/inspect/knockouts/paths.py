"""Path patching: by which later parts the effect of one head reaches the answer.

Wang et al. 2022, "Interpretability in the Wild", section 3.1; Goldowsky-Dill et al. 2023,
"Localizing Model Behavior with Path Patching". The head gets its output of the clean run inside the
corrupted one while all later sublayers keep their outputs. What reaches the logits then is its
direct path; what each later part makes of its input then, put into the corrupted run alone, is the
path through that part. Hooks change this one model object: give a ``twin``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from tfm_core.inspect.knockouts.engine import whole
from tfm_core.inspect.knockouts.patching import Answers, Floats, Inputs
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.layers.blocks import Block


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """Differences of two logits, with the effect of one head let through along some paths.

    clean, corrupted: of either whole run. total: along all paths. direct: to the logits, through no
    other sublayer. heads: through one later head first, by attention module, (H,). feed_forward:
    through a later feed-forward first, by module.
    """

    clean: float
    corrupted: float
    total: float
    direct: float
    heads: dict[str, Floats]
    feed_forward: dict[str, float]

    def restored(self, difference: float) -> float:
        """Return 0 where a path changes nothing, and 1 where it restores the clean difference."""
        return (difference - self.corrupted) / (self.clean - self.corrupted)


@torch.no_grad()
def paths_of(
    model: nn.Module, clean: Inputs, corrupted: Inputs, answers: Answers, sender: str, head: int
) -> Paths:
    """Follow the effect of a head, at all positions, from the clean run into the corrupted one.

    sender: the name of the head's attention. clean, corrupted: inputs of one example, (1, ...)
    each, whose answers differ.
    """
    sublayers = dict(_sublayers(model))
    with ExitStack() as undo:
        undo.enter_context(whole(model))
        first, clean_outputs = _watched(model, clean, answers, sublayers)
        second, usual = _watched(model, corrupted, answers, sublayers)
        attention = sublayers[sender]
        assert isinstance(attention, MultiHeadAttention)
        columns = _columns(attention, head)
        sent = usual[sender].clone()
        sent[..., columns] = clean_outputs[sender][..., columns]
        total = _with(model, corrupted, answers, attention, sent)[0]
        with ExitStack() as frozen:
            outputs = _outputs(model, corrupted, sublayers)
            for name, module in sublayers.items():
                if name != sender:
                    frozen.enter_context(_freeze(module, outputs[name]))
            frozen.enter_context(_put(attention, sent))
            direct, reached = _watched(model, corrupted, answers, sublayers)
        heads: dict[str, Floats] = {}
        feed_forward: dict[str, float] = {}
        for name, module in sublayers.items():
            if name == sender or torch.equal(reached[name], usual[name]):
                continue
            if not isinstance(module, MultiHeadAttention):
                alone = _with(model, corrupted, answers, module, reached[name])
                feed_forward[name] = float(alone[0])
                continue
            rows = usual[name].repeat(module.n_heads, 1, 1)
            for number in range(module.n_heads):
                at = _columns(module, number)
                rows[number, :, at] = reached[name][0, :, at]
            heads[name] = _with(model, corrupted, answers, module, rows)
    return Paths(first, second, float(total), direct, heads, feed_forward)


def _sublayers(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    for path, block in model.named_modules():
        if isinstance(block, Block):
            for name in ("self_attention", "cross_attention", "feed_forward"):
                module = getattr(block, name)
                if module is not None:
                    yield f"{path}.{name}", module


def _columns(attention: MultiHeadAttention, head: int) -> slice:
    return slice(head * attention.d_head, (head + 1) * attention.d_head)


def _watched(
    model: nn.Module, inputs: Inputs, answers: Answers, sublayers: dict[str, nn.Module]
) -> tuple[float, dict[str, Tensor]]:
    """Return the difference, and what each sublayer computes: an attention its heads, merged."""
    seen: dict[str, Tensor] = {}
    with ExitStack() as watching:
        for name, module in sublayers.items():
            watching.enter_context(_watch(module, partial(seen.__setitem__, name)))
        found = answers.difference(model(*inputs))
    return float(found), seen


def _watch(module: nn.Module, keep: Callable[[Tensor], None]) -> Any:
    if isinstance(module, MultiHeadAttention):
        return module.out_projection.register_forward_pre_hook(lambda _m, args: keep(args[0]))
    return _watch_output(module, keep)


def _watch_output(module: nn.Module, keep: Callable[[Tensor], None]) -> Any:
    return module.register_forward_hook(lambda _m, _args, x: keep(x), prepend=True)


def _outputs(
    model: nn.Module, inputs: Inputs, sublayers: dict[str, nn.Module]
) -> dict[str, Tensor]:
    """Return the output of each sublayer."""
    seen: dict[str, Tensor] = {}
    with ExitStack() as watching:
        for name, module in sublayers.items():
            watching.enter_context(_watch_output(module, partial(seen.__setitem__, name)))
        model(*inputs)
    return seen


def _freeze(module: nn.Module, output: Tensor) -> Any:
    return module.register_forward_hook(lambda _module, _args, _x: output)


def _put(module: nn.Module, x: Tensor) -> Any:
    """Replace what a sublayer computes, as ``_watched`` sees it."""
    if isinstance(module, MultiHeadAttention):
        return module.out_projection.register_forward_pre_hook(lambda _module, _args: (x,))
    return module.register_forward_hook(lambda _module, _args, _x: x)


def _with(
    model: nn.Module, inputs: Inputs, answers: Answers, module: nn.Module, x: Tensor
) -> Floats:
    """Return the differences with (R, T, D) in place of what a sublayer computes, (R,)."""
    rows = [part.expand(len(x), *part.shape[1:]) for part in inputs]
    with _put(module, x):
        found: Floats = answers.difference(model(*rows)).double().numpy()
    return found
