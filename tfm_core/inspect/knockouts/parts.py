"""The parts of a model that can be switched off, and their names; torch-free.

After Michel et al. 2019, "Are Sixteen Heads Really Better than One?", and Voita et al. 2019.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tfm_core.anatomy import StackName, StackPlan, stacks
from tfm_core.choices.config import BlockConfig, Experiment, RecurrentConfig, built
from tfm_core.choices.variants.positions import POSITIONS
from tfm_core.probe.labels import modules_by_kind
from tfm_core.sentences import N_, Sentence

PartKind = Literal[
    "head", "sublayer", "layer", "residual", "norm", "positions", "mask", "start", "backward"
]
SUBLAYERS: dict[str, tuple[str, str]] = {  # in a link -> module of a block, words
    "self": ("self_attention", N_("self-attention")),
    "cross": ("cross_attention", N_("cross-attention")),
    "ff": ("feed_forward", N_("feed-forward")),
}
KINDS: dict[str, str] = {  # what switching it off does
    "head": N_("The head's slice before the output projection is replaced."),
    "sublayer": N_("The sublayer adds nothing to the residual stream."),
    "layer": N_("Every token passes the layer unchanged."),
    "residual": N_("The sublayer's output replaces the token's vector instead of being added."),
    "norm": N_("The vectors are neither centred nor scaled."),
    "positions": N_("No token knows its position."),
    "mask": N_("Hidden keys become visible, unlike in training."),
    "start": N_("The decoder starts from zeros."),
    "backward": N_("The encoder reads only left to right."),
}
HAS_MEAN = frozenset({"head", "sublayer", "layer", "positions", "start"})
"""Kinds with a vector output, which has a mean."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a model.

    layer and head: from 0; layer: None for a whole stack; sublayer: a key of SUBLAYERS, or "".
    """

    kind: PartKind
    stack: StackName
    layer: int | None = None
    sublayer: str = ""
    head: int | None = None

    @property
    def code(self) -> str:
        """How a link calls it, counting from 1: ``decoder.2.cross.3`` is a head."""
        layer = "" if self.layer is None else str(self.layer + 1)
        last = "" if self.head is None else str(self.head + 1)
        if self.kind not in ("head", "layer", "sublayer"):
            last = self.kind
        return ".".join(filter(None, (self.stack, layer, self.sublayer, last)))

    @property
    def module(self) -> str:
        """The module that it is, or that it belongs to: a block's sublayer, a block, a stack."""
        layer = "" if self.layer is None else f"layers.{self.layer}"
        sublayer = SUBLAYERS[self.sublayer][0] if self.sublayer else ""
        return ".".join(filter(None, (self.stack, layer, sublayer)))


def parts_of(experiment: Experiment) -> tuple[Part, ...]:
    """Return all parts of a model that can be switched off, layer by layer, then by stack."""
    model = built(experiment.model)
    if isinstance(model, RecurrentConfig):
        return tuple(_recurrent(model))
    parts: list[Part] = []
    for stack in stacks(model):
        for layer in range(stack.n_layers):
            parts += _of_layer(model, stack, layer)
    for stack in stacks(model):
        parts += _of_stack(model, stack)
    return tuple(parts)


def heads_of(experiment: Experiment) -> tuple[Part, ...]:
    """Return the heads among the parts; a recurrent model has none."""
    return tuple(part for part in parts_of(experiment) if part.kind == "head")


def head_of(experiment: Experiment, parts: Sequence[Part]) -> Part:
    """Return a head of the newest of some parts that has one, else the first head of the model."""
    heads = heads_of(experiment)
    of_parts = (
        h
        for part in reversed(parts)
        for h in heads
        if part in (h, replace(h, kind="sublayer", head=None))
    )
    return next(of_parts, heads[0])


def is_attention(part: Part) -> bool:
    """Return whether a part is a head, or an attention with heads."""
    is_whole = part.kind == "sublayer" and part.layer is not None and part.sublayer != "ff"
    return part.kind == "head" or is_whole


def part_of(module: str, head: int | None = None) -> Part:
    """Return a head of an attention module, or a whole sublayer."""
    stack_name, _layers, layer, sublayer = module.split(".")
    stack: StackName = "encoder" if stack_name == "encoder" else "decoder"
    kind: PartKind = "sublayer" if head is None else "head"
    code = next(code for code, (name, _words) in SUBLAYERS.items() if name == sublayer)
    return Part(kind, stack, int(layer), code, head)


def first_to_go(experiment: Experiment) -> Part:
    """Return a part whose loss is likely to show.

    The last decoder layer's attention to the source, else the first layer's self-attention.
    """
    sublayers = [part for part in parts_of(experiment) if part.kind == "sublayer"]
    crossing = [part for part in sublayers if part.sublayer == "cross"]
    return crossing[-1] if crossing else sublayers[0]


def telling(experiment: Experiment) -> tuple[Part, ...]:
    """Return a few parts whose loss tells what a model needs: attention, a head, and the like."""
    parts, most = parts_of(experiment), first_to_go(experiment)
    first = {part.kind: part for part in reversed(parts) if part.kind in ("sublayer", "positions")}
    masks = [part for part in parts if (part.kind, part.sublayer) == ("mask", "self")]
    some = (most, head_of(experiment, (most,)), *first.values(), *masks[-1:])
    return tuple(dict.fromkeys(some))


def kind_of_attention(experiment: Experiment, part: Part) -> str:
    """Return which attention a head or an attention sublayer is, "" for another part."""
    kinds = modules_by_kind(experiment).items()
    return next((kind for kind, names in kinds if part.module in names), "")


def what_goes(part: Part, how: str, n: int) -> str:
    """Return what it means that a part is off. how: by what it is replaced; n: examples."""
    if how == "mean" and part.kind in HAS_MEAN:
        return N_("Its output is replaced by its mean over these {n} examples.", n=f"{n:,}")
    if how == "even" and is_attention(part):
        return N_("It attends equally to all tokens that its mask permits.")
    if part.kind == "sublayer" and part.layer is None:  # a recurrent network's attention
        return N_("The decoder no longer reads the source.")
    return KINDS[part.kind]


def board_name(part: Part) -> str:
    """Return what a part is called beside the others of its stack, layer and sublayer."""
    if part.head is not None:
        return str(part.head + 1)
    if part.kind == "mask":
        is_causal = (part.stack, part.sublayer) == ("decoder", "self")
        padding = N_("padding, cross") if part.sublayer == "cross" else N_("padding")
        return N_("causal") if is_causal else padding
    if part.layer is not None:
        return _IN_LAYER.get(part.kind, N_("block"))
    return _ALONE.get(part.kind, STACKS[part.stack])


def name_of(part: Part) -> Sentence:
    """Return how a part is called: ``decoder layer 2, cross-attention, head 3``."""
    if part.code in _NAMES:
        return N_(_NAMES[part.code])
    stack = STACKS[part.stack]
    if part.layer is None:
        return N_(_OF_STACK[part.kind], stack=stack)
    return N_(
        _OF_LAYER[part.kind],
        stack=stack,
        layer=part.layer + 1,
        sublayer=SUBLAYERS[part.sublayer][1] if part.sublayer else "",
        head="" if part.head is None else part.head + 1,
    )


def short_name(part: Part) -> Sentence:
    """Return how a sublayer or a head is called beside others: ``decoder 2, cross-attention 3``."""
    form = N_("{stack} {n}, {sublayer}")
    if part.head is not None:
        form = N_("{stack} {n}, {sublayer} {head}")
    return N_(
        form,
        stack=STACKS[part.stack],
        n=(part.layer or 0) + 1,
        sublayer=SUBLAYERS[part.sublayer][1],
        head=(part.head or 0) + 1,
    )


STACKS: dict[str, str] = {"encoder": N_("encoder"), "decoder": N_("decoder")}
_NAMES: dict[str, str] = {  # by code, of what there is one
    "encoder.self.mask": N_("encoder mask (padding)"),
    "decoder.self.mask": N_("causal decoder mask"),
    "decoder.cross.mask": N_("cross-attention mask (padding)"),
    "decoder.cross": N_("decoder attention"),
    "decoder.start": N_("initial decoder state"),
    "encoder.backward": N_("right-to-left reading"),
}
_IN_LAYER: dict[str, str] = {"sublayer": N_("all"), "residual": N_("skip"), "norm": N_("norm")}
_ALONE: dict[str, str] = {
    "sublayer": N_("context"),
    "start": N_("summary"),
    "backward": N_("backwards"),
}
_OF_STACK: dict[str, str] = {
    "norm": N_("final norm of the {stack}"),
    "positions": N_("positions of the {stack}"),
}
_OF_LAYER: dict[str, str] = {
    "head": N_("{stack} layer {layer}, {sublayer}, head {head}"),
    "sublayer": N_("{stack} layer {layer}, {sublayer}"),
    "layer": N_("{stack} layer {layer}"),
    "residual": N_("{stack} layer {layer}, residual around {sublayer}"),
    "norm": N_("{stack} layer {layer}, norm of {sublayer}"),
}


def _of_layer(model: BlockConfig, stack: StackPlan, layer: int) -> Iterator[Part]:
    last = ("ff",) * model.has_feed_forward
    for sublayer in ("self", "cross", *last) if stack.memory else ("self", *last):
        if sublayer != "ff":
            heads = range(model.n_heads)
            yield from (Part("head", stack.name, layer, sublayer, head) for head in heads)
        yield Part("sublayer", stack.name, layer, sublayer)
        if model.has_residuals:
            yield Part("residual", stack.name, layer, sublayer)
        if model.has_norms:
            yield Part("norm", stack.name, layer, sublayer)
    yield Part("layer", stack.name, layer)


def _of_stack(model: BlockConfig, stack: StackPlan) -> Iterator[Part]:
    if model.has_final_norm:
        yield Part("norm", stack.name)
    position = POSITIONS[getattr(model, stack.position)]
    if position.is_added or position.is_inside:
        yield Part("positions", stack.name)
    for attention in stack.attentions:
        order = model.order if attention.has_order else None
        sees_all = order is not None and order.sees_past and order.sees_future
        if attention.has_padding and not sees_all:
            yield Part("mask", stack.name, None, "cross" if attention.is_cross else "self")


def _recurrent(model: RecurrentConfig) -> Iterator[Part]:
    yield Part("sublayer", "decoder", None, "cross")
    yield Part("start", "decoder")
    if model.is_bidirectional:
        yield Part("backward", "encoder")
