"""Activation patching and direct effects: which part of a model decides for one answer.

Two inputs that differ in one token get two answers. Patching puts an activation of the first run
into the second, and looks how far the first answer returns (Vig et al. 2020; Meng et al. 2022,
"Locating and Editing Factual Associations in GPT", section 2.1). The direct effect of a part is
what it adds to the logits by the residual stream alone (Elhage et al. 2021, "A Mathematical
Framework for Transformer Circuits"). Hooks change this one model object: give a ``twin``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from tfm_core.inspect.knockouts.engine import whole
from tfm_core.inspect.knockouts.weights import replaced
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.layers.blocks import Block, Skip, Stack
from tfm_core.mistakes.parts import SharedNorm
from tfm_core.models.ends import LabelOutput
from tfm_core.sentences import StudentError

Inputs = tuple[Tensor, ...]
Floats = npt.NDArray[np.float64]

_AT_ONCE = 32  # patched runs in one forward pass


@dataclass(frozen=True, slots=True)
class Answers:
    """Two answers of one position: ids of classes or tokens, or None for a picture's position."""

    position: int | None
    first: int
    second: int

    def difference(self, logits: Tensor) -> Tensor:
        """Return logit of the first minus logit of the second: (B,) of (B, T, V) or (B, V)."""
        rows = logits if self.position is None else logits[:, self.position]
        return rows[:, self.first] - rows[:, self.second]


@dataclass(frozen=True, slots=True, eq=False)
class Patches:
    """How the difference of two logits returns; clean and corrupted: that of either whole run.

    streams: by stack, (L + 1, T), the residual stream replaced at one position before each layer
    and after the last. heads: by attention module, (H,), one head replaced at all positions.
    """

    clean: float
    corrupted: float
    streams: dict[str, Floats]
    heads: dict[str, Floats]

    def restored(self, differences: Floats) -> Floats:
        """Return 0 where a patch changes nothing, and 1 where it restores the clean difference."""
        return (differences - self.corrupted) / (self.clean - self.corrupted)


@torch.no_grad()
def patches_of(model: nn.Module, clean: Inputs, corrupted: Inputs, answers: Answers) -> Patches:
    """Put each activation of the clean run into the corrupted one.

    clean, corrupted: inputs of one example, (1, ...) each. Raises StudentError where they differ in
    length, or where the model answers both alike.
    """
    if any(one.shape != other.shape for one, other in zip(clean, corrupted, strict=True)):
        raise StudentError("Both inputs need the same number of tokens.")
    with ExitStack() as undo:
        undo.enter_context(whole(model))
        places = [*_streams(model), *_heads(model)]
        seen: dict[_Place, Tensor] = {}
        with ExitStack() as watching:
            for place in places:
                watching.enter_context(place.watch(partial(seen.__setitem__, place)))
            first = float(answers.difference(model(*clean)))
        second = float(answers.difference(model(*corrupted)))
        if first == second:
            raise StudentError("The model answers both inputs alike; change another word.")
        found = [_patched(model, corrupted, answers, place, seen[place]) for place in places]
    streams: dict[str, list[Floats]] = {}
    heads = {}
    for place, differences in zip(places, found, strict=True):
        if place.n_heads:
            heads[place.name] = differences
        else:
            streams.setdefault(place.name, []).append(differences)
    return Patches(first, second, {name: np.stack(rows) for name, rows in streams.items()}, heads)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a vector passes: before a module, or after it; of a stack, or of n_heads heads."""

    name: str
    module: nn.Module
    is_after: bool = False
    n_heads: int = 0

    def watch(self, keep: Callable[[Tensor], None]) -> Any:
        """Hand what passes to ``keep``; return the hook's handle."""
        if self.is_after:
            return self.module.register_forward_hook(lambda _module, _args, x: keep(x))
        return self.module.register_forward_pre_hook(lambda _module, args: keep(args[0]))

    def change(self, change: Callable[[Tensor], Tensor]) -> Any:
        """Replace what passes; return the hook's handle."""
        if self.is_after:
            return self.module.register_forward_hook(lambda _module, _args, x: change(x))
        return self.module.register_forward_pre_hook(
            lambda _module, args: (change(args[0]), *args[1:])
        )


def _streams(model: nn.Module) -> Iterator[_Place]:
    for name, stack in model.named_modules():
        if isinstance(stack, Stack):
            yield from (_Place(name, block) for block in stack.layers)
            yield _Place(name, stack.layers[-1], is_after=True)


def _heads(model: nn.Module) -> Iterator[_Place]:
    for name, attention in model.named_modules():
        if isinstance(attention, MultiHeadAttention):
            yield _Place(name, attention.out_projection, n_heads=attention.n_heads)


def _patched(
    model: nn.Module, corrupted: Inputs, answers: Answers, place: _Place, clean: Tensor
) -> Floats:
    """Return the difference after each patch of a place: (T,) of its positions or (H,)."""
    n = place.n_heads or clean.size(1)
    width = clean.size(-1) // n if place.n_heads else 0
    found = []
    for start in range(0, n, _AT_ONCE):
        which = range(start, min(start + _AT_ONCE, n))

        def patch(x: Tensor, which: range = which) -> Tensor:
            x = x.clone()
            for row, number in enumerate(which):
                if width:
                    columns = slice(number * width, (number + 1) * width)
                    x[row, :, columns] = clean[0, :, columns]
                else:
                    x[row, number] = clean[0, number]
            return x

        rows = [part.expand(len(which), *part.shape[1:]) for part in corrupted]
        with place.change(patch):
            found.append(answers.difference(model(*rows)))
    return torch.cat(found).double().numpy()


@torch.no_grad()
def lens_of(model: nn.Module, inputs: Inputs, answers: Answers) -> Floats:
    """Return the probability of both answers after each layer of the last stack, (L + 1, 2).

    The logit lens (nostalgebraist 2020) for any model: its own last norm, pooling and output read
    the residual stream before the first layer, and after each.
    """
    *_, (name, _stack) = [
        (name, module) for name, module in model.named_modules() if isinstance(module, Stack)
    ]
    places = [place for place in _streams(model) if place.name == name]
    seen: dict[_Place, Tensor] = {}
    with whole(model):
        with ExitStack() as watching:
            for place in places:
                watching.enter_context(place.watch(partial(seen.__setitem__, place)))
            model(*inputs)
        depths = torch.cat([seen[place] for place in places])
        rows = [part.expand(len(depths), *part.shape[1:]) for part in inputs]
        with places[-1].change(lambda _x: depths):
            logits = model(*rows).float()
    read = logits if answers.position is None else logits[:, answers.position]
    chances: Floats = read.softmax(-1)[:, [answers.first, answers.second]].double().numpy()
    return chances


@dataclass(frozen=True, slots=True, eq=False)
class DirectEffects:
    """What each part adds to the difference of two logits by the residual stream alone.

    stack: whose stream it is. embedded: the vectors that enter it. heads: by attention module,
    (H,); feed_forward: by layer, from 0. biases: what no part adds. All sum to ``total``.
    """

    stack: str
    total: float
    embedded: float
    heads: dict[str, Floats]
    feed_forward: dict[int, float]
    biases: float


def direct_effects(model: nn.Module, inputs: Inputs, answers: Answers) -> DirectEffects:
    """Split the difference of two logits of one example among the parts of the last stack.

    Each norm keeps the scale that it had, so that the logits are linear in what is added to the
    stream. Raises StudentError for a model whose answer isn't a linear function of its last stack.
    """
    *_, (name, stack) = [
        (name, module) for name, module in model.named_modules() if isinstance(module, Stack)
    ]
    output = getattr(model, "output", getattr(model, "head", None))
    is_label = isinstance(output, LabelOutput) and output.hidden is None
    if not is_label and not isinstance(output, nn.Linear):
        raise StudentError("This model’s answer passes more layers after its last block.")
    leaves: dict[str, Tensor] = {}
    merged: dict[str, Tensor] = {}
    with torch.enable_grad(), ExitStack() as undo:
        undo.enter_context(whole(model))
        first = stack.layers[0]
        undo.enter_context(
            first.register_forward_pre_hook(lambda _m, args: (_leaf(leaves, "", args[0]),))
        )
        for path, block in stack.layers.named_children():
            assert isinstance(block, Block)
            undo.enter_context(replaced(block, "join", _Join(block, path, leaves)))
        for path, attention in stack.layers.named_modules():
            if isinstance(attention, MultiHeadAttention):
                keep = _keeper(merged, path)
                undo.enter_context(attention.out_projection.register_forward_pre_hook(keep))
        if stack.final_norm is not None:
            undo.enter_context(replaced(stack.final_norm, "forward", _frozen(stack.final_norm)))
        total = answers.difference(model(*inputs))[0]
        slopes = dict(zip(leaves, torch.autograd.grad(total, list(leaves.values())), strict=True))
    with torch.no_grad():
        heads = {
            f"{name}.layers.{path}": _by_head(
                stack.layers.get_submodule(path), merged[path], slopes[path]
            )
            for path in merged
        }
        added = {path: float((leaves[path] * slope).sum()) for path, slope in slopes.items()}
    paths = {i: f"{i}.feed_forward" for i in range(len(stack.layers))}
    feed_forward = {i: added[path] for i, path in paths.items() if path in added}
    parts = added[""] + sum(feed_forward.values()) + sum(each.sum() for each in heads.values())
    value = float(total.detach())
    return DirectEffects(name, value, added[""], heads, feed_forward, value - float(parts))


def _keeper(merged: dict[str, Tensor], path: str) -> Callable[[nn.Module, Any], None]:
    def keep(_module: nn.Module, args: Any) -> None:
        merged[path] = args[0].detach()

    return keep


def _leaf(leaves: dict[str, Tensor], path: str, x: Tensor) -> Tensor:
    leaves[path] = x.detach().requires_grad_()
    return leaves[path]


@dataclass(frozen=True, slots=True)
class _Join:
    """A block's ``join`` whose sublayer reads without a gradient, and adds a leaf."""

    block: Block
    path: str
    leaves: dict[str, Tensor]

    def __call__(
        self,
        x: Tensor,
        norm: Callable[[Tensor], Tensor],
        sublayer: Callable[[Tensor], Tensor],
        skip: Skip,
    ) -> Tensor:
        assert isinstance(norm, nn.Module)
        frozen = _frozen(norm)
        read_by = getattr(sublayer, "func", sublayer)  # sublayers may share a norm
        name = next(name for name, module in self.block.named_children() if module is read_by)
        normed = frozen(x) if self.block.norm_first else x
        with torch.no_grad():
            change = sublayer(normed)
        change = _leaf(self.leaves, f"{self.path}.{name}", change)
        skipped = skip(x, normed)
        total = change if skipped is None else skipped + change
        return total if self.block.norm_first else frozen(total)


def _frozen(norm: nn.Module) -> Callable[[Tensor], Tensor]:
    """Return a norm that divides by a constant, the scale of what it is given."""
    if isinstance(norm, SharedNorm):
        return _frozen(norm.norm)

    def centred(x: Tensor) -> Tensor:
        assert isinstance(norm, nn.LayerNorm)
        away = x - x.mean(-1, keepdim=True)
        out = away / (away.detach().pow(2).mean(-1, keepdim=True) + norm.eps).sqrt() * norm.weight
        return out if norm.bias is None else out + norm.bias

    def scaled(x: Tensor) -> Tensor:
        assert isinstance(norm, nn.RMSNorm)
        eps = torch.finfo(x.dtype).eps if norm.eps is None else norm.eps
        return x / (x.detach().pow(2).mean(-1, keepdim=True) + eps).sqrt() * norm.weight

    if isinstance(norm, nn.LayerNorm):
        return centred
    if isinstance(norm, nn.RMSNorm):
        return scaled
    assert isinstance(norm, nn.Identity)
    return lambda x: x


def _by_head(attention: nn.Module, merged: Tensor, slope: Tensor) -> Floats:
    """Return what each head adds, (H,), from the heads side by side and the slope of their sum."""
    assert isinstance(attention, MultiHeadAttention)
    project, n = attention.out_projection, attention.n_heads
    alone = merged.new_zeros(n, *merged.shape[1:])
    width = merged.size(-1) // n
    for head in range(n):
        columns = slice(head * width, (head + 1) * width)
        alone[head, :, columns] = merged[0, :, columns]
    by_head: Tensor = project(alone) - project(torch.zeros_like(alone[:1]))
    return (by_head * slope).sum((-2, -1)).double().numpy()
