"""Change a model inside a block: parts switched off, activations patched, paths followed.

    with knocked_out(model, [part, other]):
        model(src, tgt_in)

No weight and no module is touched. A part's output becomes zero, or its mean over many examples.
Zero-ablation puts later layers where they never were in training; mean-ablation removes only what
depends on the example (Wang et al. 2022, "Interpretability in the Wild", section 2.1). An attention
can also stay on with even weights, which removes only where it looks.

Activation patching: two inputs that differ in one token get two answers. An activation of the first
run is put into the second, which shows how far the first answer returns (Vig et al. 2020; Meng et
al. 2022, "Locating and Editing Factual Associations in GPT", section 2.1). Path patching follows
one head (Wang et al. 2022, section 3.1; Goldowsky-Dill et al. 2023). The direct effect of a part is
what it adds to the logits by the residual stream alone (Elhage et al. 2021, "A Mathematical
Framework for Transformer Circuits").
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.choices.mistakes.parts import SharedNorm
from tfm_core.inspect.knockouts.parts import HAS_MEAN, SUBLAYERS, Part, is_attention, part_of
from tfm_core.layers.attention import MultiHeadAttention
from tfm_core.layers.blocks import Block, Stack
from tfm_core.layers.masks import is_token
from tfm_core.layers.recorder import Change
from tfm_core.models.ends import LabelOutput
from tfm_core.models.pictures import Captioner
from tfm_core.models.text import DecoderOnly, EncoderOnly, TextModel
from tfm_core.probe.capture import capture, intervene
from tfm_core.sentences import StudentError

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
                changes = {f"{part.module}.weights": reweigh_heads(part.head, _even)}
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


def reweigh_heads(head: int | None, reweigh: _Reweigh) -> Change:
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


def fixed_pattern(rows: Tensor) -> _Reweigh:
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


Inputs = tuple[Tensor, ...]
Floats = npt.NDArray[np.float64]
_AT_ONCE = 32  # patched runs in one forward pass


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """Two answers of one position: ids of classes or tokens, or None for a picture's position."""

    position: int | None
    first: int
    second: int

    def difference(self, logits: Tensor) -> Tensor:
        """Return logit of the first minus logit of the second: (B,) of (B, T, V) or (B, V)."""
        rows = logits if self.position is None else logits[:, self.position]
        return rows[:, self.first] - rows[:, self.second]


@torch.no_grad()
def patches_of(
    model: nn.Module, clean: Inputs, corrupted: Inputs, answers: AnswerPair
) -> dict[str, Floats]:
    """Put each activation of the clean run into the corrupted one; return the shares restored.

    clean, corrupted: inputs of one example, (1, ...) each. By hook point: of a residual stream
    (T,), replaced at one position before each layer and after the last; of an attention (H,), one
    head replaced at all positions. 0 is where a patch changes nothing, 1 where it restores the
    clean difference of the two logits. Raises StudentError where the inputs differ in length, or
    where the model answers both alike.
    """
    if any(one.shape != other.shape for one, other in zip(clean, corrupted, strict=True)):
        raise StudentError("Both inputs need the same number of tokens.")
    n_heads = dict.fromkeys(itertools.chain(*_streams(model).values()), 0)
    for name, module in model.named_modules():
        if isinstance(module, MultiHeadAttention):
            n_heads[f"{name}.merged"] = module.n_heads
    first, seen = _watched(model, clean, answers, "input", "residual", "merged")
    second, _seen = _watched(model, corrupted, answers)
    if first == second:
        raise StudentError("The model gives both inputs the same answer. Change another word.")
    shares = {}
    for point, n in n_heads.items():
        differences = _patched(model, corrupted, answers, point, seen[point], n)
        shares[point] = (differences - second) / (first - second)
    return shares


def _patched(
    model: nn.Module,
    corrupted: Inputs,
    answers: AnswerPair,
    point: str,
    clean: Tensor,
    n_heads: int,
) -> Floats:
    """Return the difference after each patch at a hook point: (T,) of its positions or (H,)."""
    places = range(n_heads or clean.size(1))
    found = []
    for start in range(0, len(places), _AT_ONCE):
        group = places[start : start + _AT_ONCE]
        put = partial(_put, clean, group, n_heads)
        found.append(_with(model, corrupted, answers, len(group), {point: put}))
    return np.concatenate(found)


def _streams(model: nn.Module) -> dict[str, list[str]]:
    """Return the points of the residual stream of each stack: before each layer, after the last."""
    return {
        name: [f"{name}.input", *(f"{name}.layers.{n}.residual" for n in range(len(stack.layers)))]
        for name, stack in model.named_modules()
        if isinstance(stack, Stack)
    }


def _watched(
    model: nn.Module, inputs: Inputs, answers: AnswerPair, *kinds: str
) -> tuple[float, dict[str, Tensor]]:
    """Return the difference, and what passes the hook points of some kinds."""
    with intervene(model, {}), capture(model, only=set(kinds)) as seen:
        return float(answers.difference(model(*inputs))), seen


def _with(
    model: nn.Module, inputs: Inputs, answers: AnswerPair, n: int, changes: Mapping[str, Change]
) -> Floats:
    """Return the differences (n,) of n equal inputs with an intervention."""
    rows = [part.expand(n, *part.shape[1:]) for part in inputs]
    with intervene(model, changes):
        differences: Floats = answers.difference(model(*rows)).double().numpy()
    return differences


def _put(
    clean: Tensor, places: Sequence[int], n_heads: int, x: Tensor, _made_from: object
) -> Tensor:
    """Return x with one place of the clean run in each row: a head's columns, or a position."""
    x = x.clone()
    width = x.size(-1) // (n_heads or 1)
    for row, place in enumerate(places):
        if n_heads:
            columns = slice(place * width, (place + 1) * width)
            x[row, :, columns] = clean[0, :, columns]
        else:
            x[row, place] = clean[0, place]
    return x


@torch.no_grad()
def paths_of(
    model: nn.Module, clean: Inputs, corrupted: Inputs, answers: AnswerPair, sender: Part
) -> tuple[float, float, dict[Part, float]]:
    """Follow the effect of a head, at all positions, from the clean run into the corrupted one.

    The head gets its output of the clean run inside the corrupted one while all other sublayers
    keep their outputs. What reaches the logits then is its direct path; what each later part makes
    of its input then, put into the corrupted run alone, is the path through that part. Returns the
    shares restored along all paths, directly, and through each part first. clean, corrupted: inputs
    of one example, (1, ...) each, whose answers differ.
    """
    sublayers = {
        f"{path}.{name}": sublayer
        for path, block in model.named_modules()
        if isinstance(block, Block)
        for name, sublayer in block.named_children()
        if name in ("self_attention", "cross_attention", "feed_forward")
    }
    sending = f"{sender.module}.merged"
    first, of_clean = _watched(model, clean, answers, "merged")
    second, usual = _watched(model, corrupted, answers, "merged", "output")
    sent, columns = usual[sending].clone(), columns_of(model, sender)
    sent[..., columns] = of_clean[sending][..., columns]
    send = {sending: lambda *_: sent}
    (total,) = _with(model, corrupted, answers, 1, send)
    own: dict[str, Tensor] = {}  # the output of each sublayer before it is replaced

    def freeze(name: str, output: Tensor, _made_from: object) -> Tensor:
        own[f"{name}.output"] = output
        return usual[f"{name}.output"]

    frozen = {
        f"{name}.output": partial(freeze, name) for name in sublayers if name != sender.module
    }
    with intervene(model, {**send, **frozen}):
        direct, reached = _watched(model, corrupted, answers, "merged")
    differences: dict[Part, float] = {}
    for name, sublayer in sublayers.items():
        is_attention = isinstance(sublayer, MultiHeadAttention)
        point = f"{name}.merged" if is_attention else f"{name}.output"
        made = reached[point] if is_attention else own[point]
        if name == sender.module or torch.equal(made, usual[point]):
            continue
        parts, rows = [part_of(name)], made
        if isinstance(sublayer, MultiHeadAttention):
            n = sublayer.n_heads
            parts = [part_of(name, head) for head in range(n)]
            rows = _put(made, range(n), n, usual[point].repeat(n, 1, 1), None)
        put = partial(_replace, rows)
        found = _with(model, corrupted, answers, len(rows), {point: put})
        differences.update(zip(parts, map(float, found), strict=True))

    def restored(difference: float) -> float:
        return (difference - second) / (first - second)

    through = {part: restored(value) for part, value in differences.items()}
    return restored(float(total)), restored(direct), through


def _replace(by: Tensor, _x: Tensor, _made_from: object) -> Tensor:
    return by


@torch.no_grad()
def lens_of(model: nn.Module, inputs: Inputs, answers: AnswerPair) -> Floats:
    """Return the probability of both answers after each layer of the last stack, (L + 1, 2).

    The logit lens (nostalgebraist 2020) for any model: its own last norm, pooling and output read
    the residual stream before the first layer, and after each.
    """
    *_, points = _streams(model).values()
    _difference, seen = _watched(model, inputs, answers, "input", "residual")
    depths = torch.cat([seen[point] for point in points])
    rows = [part.expand(len(depths), *part.shape[1:]) for part in inputs]
    with intervene(model, {points[-1]: partial(_replace, depths)}):
        logits = model(*rows).float()
    read = logits if answers.position is None else logits[:, answers.position]
    chances: Floats = read.softmax(-1)[:, [answers.first, answers.second]].double().numpy()
    return chances


def direct_effects(
    model: nn.Module, inputs: Inputs, answers: AnswerPair
) -> list[tuple[Part | None, float]]:
    """Split the difference of two logits of one example among the parts of the last stack.

    Each norm keeps the scale that it had, so that the logits are linear in what is added to the
    stream. Returns effects that sum to the difference: of the vectors that enter the stack (None),
    of each head, of each feed-forward, and of what no part adds (None), the biases. Raises
    StudentError for a model whose answer isn't a linear function of its last stack.
    """
    *_, stack = _streams(model)
    output = getattr(model, "output", getattr(model, "head", None))
    is_label = isinstance(output, LabelOutput) and output.hidden is None
    if not is_label and not isinstance(output, nn.Linear):
        raise StudentError("This model’s answer passes more layers after its last block.")
    frozen = _frozen_norms(model, stack)
    with intervene(model, frozen):
        _difference, seen = _watched(model, inputs, answers, "input", "change", "merged")
    leaves = {
        point: activation.detach().requires_grad_()
        for point, activation in seen.items()
        if point == f"{stack}.input"
        or (point.startswith(f"{stack}.layers.") and point.endswith(".change"))
    }
    linear = {point: partial(_replace, leaf) for point, leaf in leaves.items()}
    with torch.enable_grad(), intervene(model, {**frozen, **linear}):
        total = answers.difference(model(*inputs))[0]
        slopes = torch.autograd.grad(total, list(leaves.values()))
    heads: dict[Part | None, float] = {}
    feed_forward: dict[Part | None, float] = {}
    embedded = 0.0
    with torch.no_grad():
        for (point, added), slope in zip(leaves.items(), slopes, strict=True):
            name = point.removesuffix("_norm.change")
            attention = model.get_submodule(name) if name != point else None
            if isinstance(attention, MultiHeadAttention):
                by_head = _by_head(attention, seen[f"{name}.merged"], slope)
                heads |= {part_of(name, head): x for head, x in enumerate(by_head.tolist())}
            elif name != point:
                feed_forward[part_of(name)] = float((added * slope).sum())
            else:
                embedded = float((added * slope).sum())
    parts = [*heads.items(), *feed_forward.items()]
    biases = float(total.detach()) - embedded - sum(effect for _part, effect in parts)
    return [(None, embedded), *parts, (None, biases)]


def _frozen_norms(model: nn.Module, stack: str) -> dict[str, Change]:
    """Return the changes that freeze the scale of each norm of a stack."""
    frozen: dict[str, Change] = {}
    for path, block in model.get_submodule(f"{stack}.layers").named_children():
        where = "normed" if block.norm_first else "joined"
        for name, norm in block.named_children():
            if name.endswith("_norm"):
                frozen[f"{stack}.layers.{path}.{name}.{where}"] = partial(_frozen, norm)
    final_norm = model.get_submodule(stack).final_norm
    if isinstance(final_norm, nn.Module):
        frozen[f"{stack}.output"] = partial(_frozen, final_norm)
    return frozen


def _frozen(norm: nn.Module, _normed: Tensor, x: Tensor) -> Tensor:
    """Return the norm of x with a constant scale: its own, without a gradient."""
    if isinstance(norm, SharedNorm):
        norm = norm.norm
    if isinstance(norm, nn.LayerNorm):
        away = x - x.mean(-1, keepdim=True)
        out = away / (away.detach().pow(2).mean(-1, keepdim=True) + norm.eps).sqrt() * norm.weight
        return out if norm.bias is None else out + norm.bias
    if isinstance(norm, nn.RMSNorm):
        eps = torch.finfo(x.dtype).eps if norm.eps is None else norm.eps
        return x / (x.detach().pow(2).mean(-1, keepdim=True) + eps).sqrt() * norm.weight
    assert isinstance(norm, nn.Identity)
    return x


def _by_head(attention: MultiHeadAttention, merged: Tensor, slope: Tensor) -> Floats:
    """Return what each head adds, (H,), from the heads side by side and the slope of their sum."""
    project, n = attention.out_projection, attention.n_heads
    alone = _put(merged, range(n), n, merged.new_zeros(n, *merged.shape[1:]), None)
    by_head: Tensor = project(alone) - project(torch.zeros_like(alone[:1]))
    return (by_head * slope).sum((-2, -1)).double().numpy()
