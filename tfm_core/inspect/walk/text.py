"""The steps of a text model; a family that lacks a stack lacks its steps."""

from __future__ import annotations

from torch import Tensor

from tfm_core.config import DecoderOnlyConfig, EncoderDecoderConfig
from tfm_core.config.shape import TextShape
from tfm_core.inspect.walk import answer, attention, block, decoder, masks, pooler, tokens, weights
from tfm_core.inspect.walk import block as walk_stack
from tfm_core.inspect.walk import tokens as walk_tokens
from tfm_core.inspect.walk.block_view import BlockView, block_view
from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.steps import WalkStep, number_question, seen
from tfm_core.sentences import N_
from tfm_core.variants.causalities import CAUSALITIES
from tfm_core.variants.projections import PROJECTIONS


def steps(subject: Subject, layer: int, example: int) -> tuple[WalkStep, ...]:
    """Return the steps; layer: the block that is opened, from 0."""
    view = _first_view(subject, layer, example)
    assert isinstance(subject.shape, TextShape)
    is_causal = isinstance(subject.config, DecoderOnlyConfig)
    made = [
        walk_tokens.tokens(subject, example),
        heads(view),
        masks.masks(subject, view),
        walk_tokens.embedding(subject, view.axis),
        positions(subject, view),
        attention.projections(view),
        attention.split(view),
        weights.scores(view),
        weights.masking(view, (_hidden(subject, is_causal=is_causal),)),
        weights.softmax(view),
        attention.weighted_sum(view),
        attention.merge(view),
        block.add_norm(view),
        block.feed_forward(view),
    ]
    if not is_causal:
        made.append(walk_stack.encoder_stack(view))
    if subject.shape.is_label:
        made.append(answer.pooling(view))
    if isinstance(subject.config, EncoderDecoderConfig):
        other = block_view(subject, "decoder", "T:tgt", layer, example)
        made += [decoder.decoder_attention(other), decoder.cross_attention(other)]
    if isinstance(subject.shape, TextShape) and subject.shape.head == "pooler":
        return (*made, pooler.answer(view), pooler.whole(subject))
    if subject.shape.head == "states":
        return tuple(made)
    return (*made, answer.logits(view), answer.whole(subject, example))


def _hidden(subject: Subject, *, is_causal: bool) -> str:
    """Return the topic on what the mask hides."""
    padding = "" if getattr(subject.shape, "pad_id", 0) is not None else "-no-padding"
    order = CAUSALITIES[getattr(subject.config, "causality", "causal")]
    if is_causal and order.sees_future:
        return f"causality-{order.name}{padding}"
    return f"causal{padding}" if is_causal or padding else "padding"


def _first_view(subject: Subject, layer: int, example: int) -> BlockView:
    if isinstance(subject.config, DecoderOnlyConfig):
        return block_view(subject, "decoder", "L:sequence", layer, example)
    axis = "S:src" if isinstance(subject.config, EncoderDecoderConfig) else "S:slots"
    return block_view(subject, "encoder", axis, layer, example)


def heads(view: BlockView) -> WalkStep:
    """The one condition on the number of heads."""
    *_, n_heads, d_head, d_model = view.sizes
    projection = view.module("self_attention").get_submodule("in_projection").weight
    assert isinstance(projection, Tensor)
    weight = projection.detach()[:d_model]
    is_sliced = PROJECTIONS[view.subject.block.projections].is_sliced
    label = N_("matrix that makes the queries")
    if is_sliced:
        label = N_("matrix that makes the queries, 0 outside each head's slice")
    return WalkStep(
        "heads", N_("Heads must divide d_model"), ("heads-sliced" if is_sliced else "heads",),
        "d_head = d_model // H\nper_head = weight.view(H, d_head, d_model)",
        (seen("weight", label, weight, "d_model d_model"),),
        (seen("per_head", N_("its rows, by head"), weight.view(n_heads, d_head, d_model),
              "H d_head d_model"),),
        number_question(
            N_(
                "d_model is {d_model} and there are {n_heads} heads. How wide is one head?",
                d_model=d_model,
                n_heads=n_heads,
            ),
            d_head, N_(
                "{d_model} / {n_heads} = {d_head}, without a remainder.",
                d_model=d_model,
                n_heads=n_heads,
                d_head=d_head,
            ),
            wrong={
                d_model: N_("That is the whole vector; each head gets a part of it."),
                d_model * n_heads: N_("The heads share the vector out; they do not repeat it."),
                n_heads: N_("That is how many heads there are."),
            },
            hint=N_("The heads share d_model out evenly: divide it."),
            shapes=("per_head",),
        ),
        names={"H": n_heads, "d_model": d_model},
    )  # fmt: skip


def positions(subject: Subject, view: BlockView) -> WalkStep:
    """Where each token stands."""
    name = "positions" if isinstance(subject.config, DecoderOnlyConfig) else "src_positions"
    step = tokens.positions(subject, view.axis, name)
    has_segments = isinstance(subject.shape, TextShape) and subject.shape.n_segments > 0
    return pooler.positions(subject, step) if has_segments else step
