"""The walk through one model: the steps of its parts, in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tfm_core.inspect.walk import (
    answer,
    attention,
    block,
    masks,
    recurrent,
    tokens,
    vit,
)
from tfm_core.inspect.walk.block_view import BlockView, views
from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.steps import StepTensor, WalkStep

_Makers = Mapping[str, Callable[[BlockView], WalkStep]]
_MAKERS: _Makers = {
    "picture": vit.picture,
    "patches": vit.patches,
    "patch-projection": vit.projection,
    "cls": vit.cls,
    "tokens": tokens.tokens,
    "heads": attention.heads,
    "masks": masks.masks,
    "embedding": tokens.embedding,
    "positions": tokens.positions,
    "word-positions": block.word_positions,
    "queries-keys-values": attention.projections,
    "split": attention.split,
    "scores": attention.scores,
    "masking": attention.masking,
    "softmax": attention.softmax,
    "weighted-sum": attention.weighted_sum,
    "merge": attention.merge,
    "add-norm": block.add_norm,
    "feed-forward": block.feed_forward,
    "encoder-stack": block.encoder_stack,
    "decoder-attention": block.decoder_attention,
    "cross-attention": block.cross_attention,
    "decoder-add-norm": block.decoder_add_norm,
    "decoder-feed-forward": block.decoder_feed_forward,
    "pooling": answer.pooling,
    "head": vit.head,
    "logits": answer.logits,
    "whole": answer.whole,
}
"""Name of a step -> what makes it."""
_OF_READER: Mapping[str, _Makers] = {
    "vit": {"pooling": vit.pooling, "whole": vit.whole},
    "captioner": {"cross-attention": block.captioner_cross_attention},
    "pooler": {"logits": answer.pooler, "whole": answer.pooler_whole},
    "recurrent": {
        "embedding": recurrent.embedding,
        "encoder": recurrent.reading,
        "bridge": recurrent.bridge,
        "scores": recurrent.scores,
        "weights": recurrent.weights,
        "context": recurrent.context,
        "writing": recurrent.writing,
    },
}
"""``Subject.reader`` -> its own steps, instead of these or besides."""


def walk(subject: Subject, *, layer: int = 0, example: int = 0) -> tuple[WalkStep, ...]:
    """Return the steps that this model has, in order; each with a unique name.

    layer: the block that is opened, from 0; a stack with fewer opens its last one. example: the
    one that the questions are about.
    """
    steps = _steps(subject, layer, example)
    if subject.numbers is None:
        return steps
    twins = _steps(subject.numbers, layer, 0)
    return tuple(_with_numbers(step, twin) for step, twin in zip(steps, twins, strict=True))


def _steps(subject: Subject, layer: int, example: int) -> tuple[WalkStep, ...]:
    makers = {**_MAKERS, **_OF_READER.get(subject.reader, {})}
    made: dict[str, WalkStep] = {}
    for view in views(subject, layer, example):
        for name in view.part.steps:
            if name not in made:
                made[name] = makers[name](view)
    return tuple(made.values())


def _with_numbers(step: WalkStep, twin: WalkStep) -> WalkStep:
    """Return a step of shapes with the numbers of the same step."""
    values = {one.name: one.value for one in twin.tensors}

    def with_its_own(tensors: Sequence[StepTensor]) -> tuple[StepTensor, ...]:
        return tuple(replace(one, numbers=values[one.name]) for one in tensors)

    return replace(
        step,
        before=with_its_own(step.before),
        after=with_its_own(step.after),
        extra=with_its_own(step.extra),
    )
