"""Switch parts of a model off inside a block; no weight and no module is touched.

    with knocked_out(model, [part, other]):
        model(src, tgt_in)

A part's output becomes zero, or its mean over many examples. Zero-ablation puts later layers where
they never were in training; mean-ablation removes only what depends on the example (Wang et al.
2022, "Interpretability in the Wild", section 2.1). An attention can also stay on with even weights,
which removes only where it looks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.inspect.knockouts.parts import HAS_MEAN, SUBLAYERS, Part, is_attention
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.layers.masks import is_token
from tfm_core.layers.recorder import Change
from tfm_core.models.pictures import Captioner
from tfm_core.models.text import DecoderOnly, EncoderOnly, TextModel
from tfm_core.probe.capture import intervene

Means = Mapping[Part, Tensor]
"""The mean output of a part: (d_head,) of a head, (d_model,) of the others."""


@contextmanager
def knocked_out(
    model: nn.Module,
    parts: Iterable[Part],
    means: Means | None = None,
    *,
    is_even: bool = False,
) -> Iterator[None]:
    """Switch parts of a model off inside the block. means: replaces a part's output; else zero.

    is_even: heads and attentions stay on, and weigh all keys alike that a query may attend to.
    """
    with ExitStack() as undo:
        undo.enter_context(intervene(model, {}))
        for part in parts:
            if is_even and is_attention(part):
                changes = {f"{part.module}.weights": reweighed(part.head, _even)}
            else:
                changes = _changes(model, part, None if means is None else means.get(part))
            undo.enter_context(intervene(model, changes))
        yield


def _changes(model: nn.Module, part: Part, mean: Tensor | None) -> dict[str, Change]:
    """Return what switches a part off, by hook point."""
    norm = f"{part.module}_norm"
    match part.kind:
        case "head":
            change = partial(_with_columns, columns_of(model, part), 0.0 if mean is None else mean)
            return {_point(model, part): change}
        case "sublayer" | "start":
            return {_point(model, part): partial(_constant, mean)}
        case "layer":
            return {_point(model, part): partial(_as_it_came, mean)}
        case "positions":
            inside = _in_layers(model, part.stack, "self_attention.relative")
            changes = dict.fromkeys(inside, partial(_as_it_came, None))
            return {**changes, _point(model, part): partial(_as_it_came, mean)}
        case "residual":
            return {f"{norm}.skipped": _nothing}
        case "norm":
            of_block = [f"{norm}.normed", f"{norm}.joined"]
            points = [f"{part.stack}.output"] if part.layer is None else of_block
            return dict.fromkeys(points, partial(_as_it_came, None))
        case "mask":
            points = _in_layers(model, part.stack, f"{SUBLAYERS[part.sublayer][0]}.mask")
            is_causal = (part.stack, part.sublayer) == ("decoder", "self")
            if not is_causal:
                return dict.fromkeys(points, _nothing)
            # what is no padding can be seen by its own token at least, and now by all
            return {point: lambda mask, _: mask.any(-2, keepdim=True) for point in points}
        case "backward":
            points = _in_layers(model, part.stack, "back.output")
            return dict.fromkeys(points, partial(_constant, None))


def _point(model: nn.Module, part: Part) -> str:
    """Return where a part that has a mean hands it on."""
    if part.kind == "positions":
        name = "src_positions" if part.stack == "encoder" else "tgt_positions"
        return f"{name if hasattr(model, name) else 'positions'}.placed"
    module = "bridge" if part.kind == "start" else part.module
    kind = {"head": "merged", "layer": "residual"}.get(part.kind, "output")
    return f"{module}.{kind}"


def _in_layers(model: nn.Module, stack: str, point: str) -> list[str]:
    layers = model.get_submodule(f"{stack}.layers").named_children()
    return [f"{stack}.layers.{name}.{point}" for name, _layer in layers]


def columns_of(model: nn.Module, part: Part) -> slice:
    """Return the columns of a head among the heads of its attention, side by side."""
    attention = model.get_submodule(part.module)
    assert isinstance(attention, MultiHeadAttention)
    assert part.head is not None
    return slice(part.head * attention.d_head, (part.head + 1) * attention.d_head)


def _with_columns(columns: slice, x: Tensor | float, merged: Tensor, _made_from: None) -> Tensor:
    merged = merged.clone()  # (B, T, d_model), the heads side by side
    merged[..., columns] = x
    return merged


def _constant(mean: Tensor | None, output: Tensor, _made_from: object) -> Tensor:
    return torch.zeros_like(output) if mean is None else mean.expand_as(output)


def _as_it_came(mean: Tensor | None, _output: object, came: Tensor) -> Tensor:
    return came if mean is None else came + mean


def _nothing(_value: Tensor, _made_from: object) -> None:
    return None


_Reweigh = Callable[[Tensor, Tensor | None], Tensor]
"""From the weights (B, H, Q, K) of some heads, and the mask, to other weights."""


def reweighed(head: int | None, reweigh: _Reweigh) -> Change:
    """Return what replaces the weights of a head of an attention, or of all."""
    heads = slice(None) if head is None else slice(head, head + 1)

    def change(weights: Tensor, mask: Tensor | None) -> Tensor:
        few = None if mask is None else mask.expand_as(weights)[:, heads]
        changed = weights.clone()
        changed[:, heads] = reweigh(weights[:, heads], few)
        return changed

    return change


def _even(weights: Tensor, mask: Tensor | None) -> Tensor:
    """Return weights (B, H, Q, K) that are alike for all keys that a query may attend to."""
    allowed = torch.ones_like(weights)
    if mask is not None:
        allowed = allowed.masked_fill(~mask.expand_as(weights), 0.0)
    return allowed / allowed.sum(-1, keepdim=True).clamp(min=1.0)


def pattern(rows: Tensor) -> _Reweigh:
    """Return what puts ``rows`` (Q, K) in place of the weights; later queries keep theirs."""

    def change(weights: Tensor, mask: Tensor | None) -> Tensor:
        n_query, n_key = rows.shape
        changed = weights.clone()
        changed[..., :n_query, :] = 0.0
        changed[..., :n_query, :n_key] = rows.to(weights)
        return changed

    return change


@contextmanager
def scaled_heads(model: nn.Module, scales: Mapping[Part, Tensor]) -> Iterator[None]:
    """Multiply each head's output by one factor per example, (B,), inside the block."""

    def scale(by: Tensor, columns: slice, merged: Tensor, _made_from: None) -> Tensor:
        factor = torch.ones_like(merged)
        factor[..., columns] = by[:, None, None]
        return merged * factor

    with ExitStack() as undo:
        for part, factors in scales.items():
            change = partial(scale, factors, columns_of(model, part))
            undo.enter_context(intervene(model, {_point(model, part): change}))
        yield


@torch.no_grad()
def means_of(
    model: nn.Module, parts: Iterable[Part], batches: Iterable[tuple[Tensor, ...]]
) -> dict[Part, Tensor]:
    """Return the mean output of each part, over all tokens of all batches.

    Padding does not count; of a model that answers all positions at once, the answers count. A part
    without a vector output, such as a mask, has none.
    """
    tallies = {part: _Tally() for part in parts if part.kind in HAS_MEAN}
    with ExitStack() as undo:
        for part, tally in tallies.items():
            columns = columns_of(model, part) if part.kind == "head" else slice(None)
            is_added = part.kind in ("layer", "positions")
            watch = partial(tally.watch, columns, is_added)
            undo.enter_context(intervene(model, {_point(model, part): watch}))
        for inputs in batches:
            tokens = _tokens(model, inputs)
            for part, tally in tallies.items():
                tally.is_token, tally.at = tokens.get(part.stack), 0
            model(*inputs)
    return {part: tally.mean() for part, tally in tallies.items() if tally.count}


class _Tally:
    """The sum of a part's outputs. is_token: (B, T) of a batch, False = not counted; None = all."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self.total: Tensor | float = 0.0
        self.count = self.at = 0
        self.is_token: Tensor | None = None

    def watch(self, columns: slice, is_added: bool, output: Tensor, came: Tensor) -> Tensor:
        """Add (B, n, D), of the next n tokens, or (B, D), of the whole text; change nothing.

        is_added: what is added to ``came`` counts.
        """
        values = output - came if is_added else output[..., columns]
        if values.ndim == 3 and self.is_token is not None:
            end = self.at + values.size(1)
            values, self.at = values[self.is_token[:, self.at : end]], end
        values = values.double().flatten(0, -2)
        self.total, self.count = self.total + values.sum(0), self.count + len(values)
        return output

    def mean(self) -> Tensor:
        """Return (D,)."""
        assert isinstance(self.total, Tensor)
        return (self.total / self.count).float()


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
