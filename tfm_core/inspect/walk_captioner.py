"""The steps of a captioner: a picture is read as by a ViT, and described as a target is written."""

from __future__ import annotations

from dataclasses import replace

from tfm_core.inspect import (
    walk_answer,
    walk_block,
    walk_decoder,
    walk_masks,
    walk_positions,
    walk_stack,
    walk_tokens,
    walk_vit,
)
from tfm_core.inspect.walk import Step
from tfm_core.inspect.walk_forward import Subject
from tfm_core.inspect.walk_place import MODULES, Place, place_of

_CROSS = """\
queries, keys, values = attention.project(x, memory)
weights = (queries @ keys.mT / math.sqrt(d_head)).softmax(-1)
heads = weights @ values
output = attention.out_projection(heads.transpose(1, 2).reshape(x.shape))"""


def steps(subject: Subject, layer: int, example: int) -> tuple[Step, ...]:
    """Return the steps; layer: the block that steps 5 to 12 and 18 to 21 open, from 0."""
    reading = place_of(subject, "encoder", "N:tokens", layer, example)
    writing = place_of(subject, "decoder", "T:tgt", layer, example)
    return (
        walk_vit.picture(subject),
        walk_vit.patches(subject),
        walk_vit.projection(subject),
        walk_positions.positions(subject, "N:tokens", "positions", 4),
        *walk_vit.block(reading, 5),
        walk_stack.encoder_stack(reading, 13),
        replace(walk_tokens.tokens(subject, example, 14), title="Token tensors of the caption"),
        walk_tokens.embedding(subject, "T:tgt", 15, module="tgt_embedding"),
        _word_positions(subject, 16),
        walk_masks.masks(subject, writing, 17),
        walk_decoder.decoder_attention(writing, 18),
        _cross_attention(writing, 19),
        _behind(walk_block.add_norm(writing, 20, "cross_attention")),
        _behind(walk_block.feed_forward(writing, 21)),
        walk_answer.logits(writing, 22),
        walk_answer.whole(subject, example, 23),
    )


def _word_positions(subject: Subject, number: int) -> Step:
    """Where each word stands, which is told by other rows than where a patch lies."""
    step = walk_positions.positions(
        subject, "T:tgt", "tgt_positions", number, setting="text_position"
    )
    topics = (*step.topics, "positions-words")
    return replace(step, name="word-positions", title="Positions of the words", topics=topics)


def _cross_attention(place: Place, number: int) -> Step:
    """The words ask, the patches answer; without a mask the arithmetic fits in four lines."""
    step = walk_decoder.cross_attention(place, number)
    heads = place.subject.block.d_head
    return replace(
        step,
        topics=("cross-attention-captioner",),
        code=_CROSS,
        after=(*step.extra, *step.after),
        extra=(),
        names={**MODULES, **step.names, "d_head": heads},
    )


def _behind(step: Step) -> Step:
    """Return a step of the encoder's blocks as the decoder's block has it too."""
    title = f"Decoder: {step.title[:1].lower()}{step.title[1:]}"
    return replace(step, name=f"decoder-{step.name}", title=title)
