"""The steps of a captioner: a picture is read as by a ViT, and described as a target is written."""

from __future__ import annotations

from dataclasses import replace

from tfm_core.inspect.walk import answer, block, decoder, masks, tokens, vit
from tfm_core.inspect.walk import block as walk_stack
from tfm_core.inspect.walk import tokens as walk_tokens
from tfm_core.inspect.walk.block_view import MODULES, BlockView, block_view
from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.steps import WalkStep
from tfm_core.inspect.walk.weights import scores_code
from tfm_core.variants.projections import PROJECTIONS

_CROSS = """\
queries, keys, values = attention.project(x, memory)
weights = ({scores}).softmax(-1)
heads = weights @ values
output = {merged}"""


def steps(subject: Subject, layer: int, example: int) -> tuple[WalkStep, ...]:
    """Return the steps; layer: the block that is opened, from 0."""
    reading = block_view(subject, "encoder", "N:tokens", layer, example)
    writing = block_view(subject, "decoder", "T:tgt", layer, example)
    return (
        vit.picture(subject),
        vit.patches(subject),
        vit.projection(subject),
        tokens.positions(subject, "N:tokens", "positions"),
        *vit.block(reading),
        walk_stack.encoder_stack(reading),
        replace(walk_tokens.tokens(subject, example), title="Token tensors of the caption"),
        walk_tokens.embedding(subject, "T:tgt", module="tgt_embedding"),
        _word_positions(subject),
        masks.masks(subject, writing),
        decoder.decoder_attention(writing),
        _cross_attention(writing),
        _behind(block.add_norm(writing, "cross_attention")),
        _behind(block.feed_forward(writing)),
        answer.logits(writing),
        answer.whole(subject, example),
    )


def _word_positions(subject: Subject) -> WalkStep:
    """Where each word stands, which is told by other rows than where a patch lies."""
    step = tokens.positions(subject, "T:tgt", "tgt_positions", setting="text_position")
    topics = (*step.topics, "positions-words")
    return replace(step, name="word-positions", title="Positions of the words", topics=topics)


def _cross_attention(view: BlockView) -> WalkStep:
    """The words ask, the patches answer; without a mask the arithmetic fits in four lines."""
    step = decoder.cross_attention(view)
    heads, merged = view.subject.block.d_head, "heads.transpose(1, 2).reshape(x.shape)"
    if PROJECTIONS[view.subject.block.projections].has_output:
        merged = f"attention.out_projection({merged})"
    return replace(
        step,
        topics=("cross-attention-captioner",),
        code=_CROSS.format(scores=scores_code(view.subject.block), merged=merged),
        after=(*step.extra, *step.after),
        extra=(),
        names={**MODULES, **step.names, "d_head": heads, "d_model": view.subject.block.d_model},
    )


def _behind(step: WalkStep) -> WalkStep:
    """Return a step of the encoder's blocks as the decoder's block has it too."""
    title = f"Decoder: {step.title[:1].lower()}{step.title[1:]}"
    return replace(step, name=f"decoder-{step.name}", title=title)
