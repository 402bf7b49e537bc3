"""The steps of a text model; a family that lacks a stack lacks its steps."""

from __future__ import annotations

from tfm_core.config import DecoderOnlyConfig, EncoderDecoderConfig
from tfm_core.config.shape import TextShape
from tfm_core.inspect.walk import answer, attention, block, decoder, masks, pooler, tokens, weights
from tfm_core.inspect.walk import block as walk_stack
from tfm_core.inspect.walk import tokens as walk_tokens
from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.place import Place, place_of
from tfm_core.inspect.walk.steps import Step, number_question, seen


def steps(subject: Subject, layer: int, example: int) -> tuple[Step, ...]:
    """Return the steps; layer: the block that is opened, from 0."""
    place = _place(subject, layer, example)
    assert isinstance(subject.shape, TextShape)
    is_causal = isinstance(subject.config, DecoderOnlyConfig)
    found = [
        walk_tokens.tokens(subject, example),
        heads(place),
        masks.masks(subject, place),
        walk_tokens.embedding(subject, place.axis),
        positions(subject, place),
        attention.projections(place),
        attention.split(place),
        weights.scores(place),
        weights.masking(place, ("causal",) if is_causal else ("padding",)),
        weights.softmax(place),
        attention.weighted_sum(place),
        attention.merge(place),
        block.add_norm(place),
        block.feed_forward(place),
    ]
    if not is_causal:
        found.append(walk_stack.encoder_stack(place))
    if subject.shape.is_label:
        found.append(answer.pooling(place))
    if isinstance(subject.config, EncoderDecoderConfig):
        other = place_of(subject, "decoder", "T:tgt", layer, example)
        found += [decoder.decoder_attention(other), decoder.cross_attention(other)]
    if isinstance(subject.shape, TextShape) and subject.shape.head == "pooler":
        return (*found, pooler.answer(place), pooler.whole(subject))
    return (*found, answer.logits(place), answer.whole(subject, example))


def _place(subject: Subject, layer: int, example: int) -> Place:
    if isinstance(subject.config, DecoderOnlyConfig):
        return place_of(subject, "decoder", "L:sequence", layer, example)
    axis = "S:src" if isinstance(subject.config, EncoderDecoderConfig) else "S:slots"
    return place_of(subject, "encoder", axis, layer, example)


def heads(place: Place) -> Step:
    """The one condition on the number of heads."""
    *_, n_heads, d_head, d_model = place.sizes
    projection = place.subject.model.get_parameter(
        f"{place.path}.self_attention.in_projection.weight"
    )
    weight = projection.detach()[:d_model]
    return Step(
        "heads", "Heads must divide d_model", ("heads",),
        "d_head = d_model // H\nper_head = weight.view(H, d_head, d_model)",
        (seen("weight", "matrix that makes the queries", weight, "d_model d_model"),),
        (seen("per_head", "its rows, by head", weight.view(n_heads, d_head, d_model),
              "H d_head d_model"),),
        number_question(
            f"d_model is {d_model} and there are {n_heads} heads. How wide is one head?",
            d_head, f"{d_model} / {n_heads} = {d_head}, without a remainder.",
        ),
        names={"H": n_heads, "d_model": d_model},
    )  # fmt: skip


def positions(subject: Subject, place: Place) -> Step:
    """Where each token stands."""
    name = "positions" if isinstance(subject.config, DecoderOnlyConfig) else "src_positions"
    step = tokens.positions(subject, place.axis, name)
    has_segments = isinstance(subject.shape, TextShape) and subject.shape.n_segments > 0
    return pooler.positions(subject, step) if has_segments else step
