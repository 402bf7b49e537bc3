"""Switch parts of a trained model off inside a block; no weight is touched.

    with knocked_out(model, [part, other]):
        model(src, tgt_in)

A part's output becomes zero, or its mean over many examples. Zero-ablation puts later layers where
they never were in training; mean-ablation removes only what depends on the example (Wang et al.
2022, "Interpretability in the Wild", section 2.1). An attention can also stay on with even weights,
which removes only where it looks. Hooks change this one model object: knock out a ``twin`` of a
shared model.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from tfm_core.inspect.knockouts.parts import SUBLAYERS, KnockedPart, is_attention
from tfm_core.inspect.knockouts.weights import even, replaced, weighed
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.layers.blocks import Block, Skip, Stack
from tfm_core.layers.masks import is_token
from tfm_core.mistakes.blocks import skip_nothing
from tfm_core.models.pictures import Captioner
from tfm_core.models.text import DecoderOnly, EncoderOnly, TextModel

Means = Mapping[KnockedPart, Tensor]
"""The mean output of a part: (d_head,) of a head, (d_model,) of the others."""

Net = TypeVar("Net", bound=nn.Module)
Undo = AbstractContextManager[object]
"""Ends a change of a model, such as the handle of a hook."""


def twin(model: Net) -> Net:
    """Return a copy of the model that shares its weight tensors."""
    return copy.deepcopy(model, {id(weight): weight for weight in model.parameters()})


@contextmanager
def knocked_out(
    model: nn.Module,
    parts: Iterable[KnockedPart],
    means: Means | None = None,
    *,
    is_even: bool = False,
) -> Iterator[None]:
    """Switch parts of a model off inside the block. means: replaces a part's output; else zero.

    is_even: heads and attentions stay on, and weigh all keys alike that a query may attend to.
    """
    with ExitStack() as undo:
        undo.enter_context(whole(model))
        for part in parts:
            mean = None if means is None else means.get(part)
            if is_even and is_attention(part):
                undo.enter_context(weighed(_module_of(model, part), part.head, even))
            else:
                undo.enter_context(_KNOCK_OUTS[part.kind](model, part, mean))
        yield


@torch.no_grad()
def means_of(
    model: nn.Module, parts: Iterable[KnockedPart], batches: Iterable[tuple[Tensor, ...]]
) -> dict[KnockedPart, Tensor]:
    """Return the mean output of each part, over all tokens of all batches.

    Padding does not count; of a model that answers all positions at once, the answers count. A part
    without a vector output, such as a mask, has none.
    """
    tallies: dict[KnockedPart, _Tally] = {}
    with ExitStack() as undo:
        undo.enter_context(whole(model))
        for part in parts:
            if (watch := _WATCHES.get(part.kind)) is not None:
                tally = tallies[part] = _Tally()
                for handle in watch(model, part, tally.add):
                    undo.enter_context(handle)
        for inputs in batches:
            tokens = _tokens(model, inputs)
            for part, tally in tallies.items():
                tally.begin(tokens.get(part.stack))
            model(*inputs)
    return {part: tally.mean() for part, tally in tallies.items() if tally.count}


class _Tally:
    """The sum of a part's outputs."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self.total: Tensor | float = 0.0
        self.count = 0
        self.begin(None)

    def begin(self, is_token: Tensor | None) -> None:
        """Begin a batch. is_token: (B, T), False = not counted; None where everything counts."""
        self.is_token, self.at = is_token, 0

    def add(self, values: Tensor) -> None:
        """Add (B, n, D), of the next n tokens, or (B, D), of the whole text."""
        if values.ndim == 3 and self.is_token is not None:
            end = self.at + values.size(1)
            values, self.at = values[self.is_token[:, self.at : end]], end
        values = values.double().flatten(0, -2)
        self.total, self.count = self.total + values.sum(0), self.count + len(values)

    def mean(self) -> Tensor:
        """Return (D,)."""
        assert isinstance(self.total, Tensor)
        return (self.total / self.count).float()


@contextmanager
def scaled_heads(model: nn.Module, scales: Mapping[KnockedPart, Tensor]) -> Iterator[None]:
    """Multiply each head's output by one factor per example, (B,), inside the block."""
    with ExitStack() as undo:
        for part, factors in scales.items():
            attention, columns = _columns(model, part)

            def scale(
                _module: nn.Module, args: Any, by: Tensor = factors, at: slice = columns
            ) -> tuple[Tensor]:
                merged: Tensor = args[0]
                factor = torch.ones_like(merged)
                factor[..., at] = by[:, None, None]
                return (merged * factor,)

            undo.enter_context(attention.out_projection.register_forward_pre_hook(scale))
        yield


def _head(model: nn.Module, part: KnockedPart, mean: Tensor | None) -> Undo:
    attention, columns = _columns(model, part)

    def without(_module: nn.Module, args: Any) -> tuple[Tensor]:
        merged = args[0].clone()  # (B, T, d_model), the heads side by side
        merged[..., columns] = 0.0 if mean is None else mean
        return (merged,)

    return attention.out_projection.register_forward_pre_hook(without)


def _handed_on(model: nn.Module, part: KnockedPart, mean: Tensor | None) -> Undo:
    """Replace the output of a sublayer, a recurrent attention or the first state."""

    def instead(_module: nn.Module, args: Any, output: Any) -> Any:
        vector = _vector(output)
        other = torch.zeros_like(vector) if mean is None else mean.expand_as(vector)
        return _with_vector(output, other)

    return _module_of(model, part).register_forward_hook(instead)


@contextmanager
def _backward(model: nn.Module, part: KnockedPart, mean: Tensor | None) -> Iterator[None]:
    def silent(_module: nn.Module, args: Any, output: Any) -> Any:
        return _with_vector(output, torch.zeros_like(_vector(output)))

    encoder = model.get_submodule(part.stack)
    with ExitStack() as undo:
        for layer in encoder.get_submodule("layers").children():
            reader = layer.get_submodule("back")
            undo.enter_context(reader.register_forward_hook(silent))
        yield


def _added(model: nn.Module, part: KnockedPart, mean: Tensor | None) -> Undo:
    """Remove what a layer adds to its input."""
    return _unchanged(_module_of(model, part), mean)


def _unchanged(module: nn.Module, mean: Tensor | None) -> Undo:
    """Let a module return its input, or its input plus the mean change."""

    def instead(_module: nn.Module, args: Any, output: Tensor) -> Tensor:
        x: Tensor = args[0]
        return x if mean is None else x + mean

    return module.register_forward_hook(instead)


def _residual(model: nn.Module, part: KnockedPart, mean: Tensor | None) -> Undo:
    block = model.get_submodule(f"{part.stack}.layers.{part.layer}")
    assert isinstance(block, Block)
    name = f"{SUBLAYERS[part.sublayer][0]}_norm"
    usual = block.join

    def join(
        x: Tensor,
        norm: Callable[[Tensor], Tensor],
        sublayer: Callable[[Tensor], Tensor],
        skip: Skip,
    ) -> Tensor:
        is_part = norm is block.get_submodule(name)
        return usual(x, norm, sublayer, skip_nothing if is_part else skip)

    return replaced(block, "join", join)


def _norm(model: nn.Module, part: KnockedPart, mean: Tensor | None) -> Undo:
    # the module is swapped, not hooked: other sublayers may share it
    if part.layer is None:
        owner, name = model.get_submodule(part.stack), "final_norm"
    else:
        owner = model.get_submodule(f"{part.stack}.layers.{part.layer}")
        name = f"{SUBLAYERS[part.sublayer][0]}_norm"
    return _swapped(owner, name, nn.Identity())


@contextmanager
def _positions(model: nn.Module, part: KnockedPart, mean: Tensor | None) -> Iterator[None]:
    with ExitStack() as undo:
        added = _added_positions(model, part)
        if added is not None:
            undo.enter_context(_unchanged(added, mean))
        undo.enter_context(_swapped(model.get_submodule(part.stack), "relative", None))
        yield


@contextmanager
def _mask(model: nn.Module, part: KnockedPart, mean: Tensor | None) -> Iterator[None]:
    def without(_module: nn.Module, args: Any, settings: dict[str, Any]) -> tuple[Any, Any]:
        changed = dict(settings)
        if part.sublayer == "cross":
            changed["memory_mask"] = None
        elif part.stack == "encoder":
            changed["mask"] = None
        else:  # what is no padding can be seen by its own token at least, and now by all
            changed["mask"] = settings["mask"].any(-2, keepdim=True)
        return args, changed

    stack = model.get_submodule(part.stack)
    with ExitStack() as undo:
        undo.enter_context(stack.register_forward_pre_hook(without, with_kwargs=True))
        if part.sublayer != "cross" and isinstance(stack, Stack):  # a window is a part of the mask
            undo.enter_context(_swapped(stack, "windows", (0,) * len(stack.windows)))
        yield


_KNOCK_OUTS: dict[str, Callable[[nn.Module, KnockedPart, Tensor | None], Undo]] = {
    "head": _head,
    "sublayer": _handed_on,
    "layer": _added,
    "residual": _residual,
    "norm": _norm,
    "positions": _positions,
    "mask": _mask,
    "start": _handed_on,
    "backward": _backward,
}

Add = Callable[[Tensor], None]


def _watch_head(model: nn.Module, part: KnockedPart, add: Add) -> list[RemovableHandle]:
    attention, columns = _columns(model, part)
    watch = attention.out_projection.register_forward_pre_hook
    return [watch(lambda _module, args: add(args[0][..., columns]))]


def _watch_output(model: nn.Module, part: KnockedPart, add: Add) -> list[RemovableHandle]:
    watch = _module_of(model, part).register_forward_hook
    return [watch(lambda _module, _args, output: add(_vector(output)))]


def _watch_change(model: nn.Module, part: KnockedPart, add: Add) -> list[RemovableHandle]:
    changing = _added_positions(model, part) if part.kind == "positions" else None
    if part.kind == "layer":
        changing = _module_of(model, part)
    if changing is None:
        return []
    return [changing.register_forward_hook(lambda _module, args, output: add(output - args[0]))]


_WATCHES: dict[str, Callable[[nn.Module, KnockedPart, Add], list[RemovableHandle]]] = {
    "head": _watch_head,
    "sublayer": _watch_output,
    "layer": _watch_change,
    "positions": _watch_change,
    "start": _watch_output,
}


def _columns(model: nn.Module, part: KnockedPart) -> tuple[MultiHeadAttention, slice]:
    """Return the attention of a head, and the columns of its output."""
    attention = model.get_submodule(part.module)
    assert isinstance(attention, MultiHeadAttention)
    assert part.head is not None
    width = attention.d_head
    return attention, slice(part.head * width, (part.head + 1) * width)


def _module_of(model: nn.Module, part: KnockedPart) -> nn.Module:
    return model.get_submodule("bridge" if part.kind == "start" else part.module)


def _added_positions(model: nn.Module, part: KnockedPart) -> nn.Module | None:
    """Return the layer that adds positions in front of a stack."""
    name = "src_positions" if part.stack == "encoder" else "tgt_positions"
    found = getattr(model, name, getattr(model, "positions", None))
    return found if isinstance(found, nn.Module) else None


def _vector(output: Any) -> Tensor:
    """Return the output tensor of a module, or the first of several."""
    if isinstance(output, Tensor):
        return output
    vector: Tensor = output[0]
    return vector


def _with_vector(output: Any, vector: Tensor) -> Any:
    if isinstance(output, Tensor):
        return vector
    rest = output[1:]
    return type(output)(vector, *rest) if hasattr(output, "_fields") else (vector, *rest)


@contextmanager
def whole(model: nn.Module) -> Iterator[None]:
    """Let every stack compute all tokens, so that hooks see every block."""
    with ExitStack() as undo:
        for module in model.modules():
            if isinstance(module, Stack):
                undo.enter_context(replaced(module, "at", partial(Stack.at, module)))
        yield


def _tokens(model: nn.Module, inputs: tuple[Tensor, ...]) -> dict[str, Tensor]:
    """Return which positions of each stack count, bool (B, T); pictures count everywhere."""
    if not isinstance(model, TextModel | Captioner):
        return {}
    read, tgt_in = inputs
    written = is_token(tgt_in, model.pad_id)
    if isinstance(model, Captioner):
        return {"decoder": written}
    if isinstance(model, DecoderOnly):
        return {"decoder": model._joined(read, tgt_in)[1]}
    seen = is_token(read, model.pad_id)
    if not isinstance(model, EncoderOnly):
        return {"encoder": seen, "decoder": written}
    if model.pool is not None:
        return {"encoder": F.pad(seen, (int(model.has_cls), 0), value=True)}
    length = max(seen.size(1), written.size(1))
    return {
        "encoder": F.pad(seen, (0, length - seen.size(1)))
        | F.pad(written, (0, length - written.size(1)))
    }


@contextmanager
def _swapped(
    owner: nn.Module, name: str, other: nn.Module | tuple[int, ...] | None
) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, other)
    try:
        yield
    finally:
        setattr(owner, name, before)
