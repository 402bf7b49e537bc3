"""The trace of one model: the steps of its parts, in their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from tfm_core.anatomy import stacks
from tfm_core.choices.config import DEPTHS, ModelConfig
from tfm_core.choices.config.shape import Shape
from tfm_core.trace import attention, blocks, ends, recurrent, tokens
from tfm_core.trace.steps import Step, StepTensor, View, views
from tfm_core.trace.subject import Subject, book_config, by_shape

_Makers = Mapping[str, Callable[[View], Step]]
_MAKERS: _Makers = {
    "picture": tokens.picture,
    "patches": tokens.patches,
    "patch-projection": tokens.projection,
    "cls": tokens.cls,
    "tokens": tokens.tokens,
    "heads": attention.heads,
    "masks": attention.masks,
    "embedding": tokens.embedding,
    "positions": tokens.positions,
    "word-positions": tokens.positions,
    "queries-keys-values": attention.projections,
    "split": attention.split,
    "scores": attention.scores,
    "masking": attention.masking,
    "softmax": attention.softmax,
    "weighted-sum": attention.weighted_sum,
    "merge": attention.merge,
    "add-norm": blocks.add_norm,
    "feed-forward": blocks.feed_forward,
    "encoder-stack": blocks.encoder_stack,
    "decoder-attention": blocks.decoder_attention,
    "cross-attention": blocks.cross_attention,
    "decoder-add-norm": blocks.add_norm,
    "decoder-feed-forward": blocks.feed_forward,
    "pooling": ends.pooling,
    "head": ends.head,
    "logits": ends.logits,
    "whole": ends.whole,
}
"""Name of a step -> what makes it."""
_OF_READER: Mapping[str, _Makers] = {
    "vit": {"pooling": ends.picture_pooling, "whole": ends.picture_whole},
    "captioner": {"cross-attention": blocks.captioner_cross_attention},
    "pooler": {"logits": ends.pooler, "whole": ends.pooler_whole},
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


def trace(subject: Subject, *, layer: int = 0, example: int = 0) -> tuple[Step, ...]:
    """Return the steps that this model has, in order; each with a unique name.

    layer: the block that is opened, from 0; a stack with fewer opens its last one. example: the
    one that the questions are about.
    """
    steps = _steps(subject, layer, example)
    if subject.numbers is None:
        return steps
    twins = _steps(subject.numbers, layer, 0)
    return tuple(_with_numbers(step, twin) for step, twin in zip(steps, twins, strict=True))


def _steps(subject: Subject, layer: int, example: int) -> tuple[Step, ...]:
    makers = {**_MAKERS, **_OF_READER.get(subject.reader, {})}
    made: dict[str, Step] = {}
    for view in views(subject, layer, example):
        for name in view.part.steps:
            if name not in made:
                made[name] = makers[name](replace(view, name=name))
    return tuple(made.values())


def _with_numbers(step: Step, twin: Step) -> Step:
    """Return a step of shapes with the numbers of the same step."""
    values = {one.name: one.value for one in twin.tensors}

    def with_its_own(tensors: Sequence[StepTensor]) -> tuple[StepTensor, ...]:
        return tuple(replace(one, numbers=values[one.name]) for one in tensors)

    return replace(
        step,
        inputs=with_its_own(step.inputs),
        outputs=with_its_own(step.outputs),
        extra=with_its_own(step.extra),
    )


def n_blocks(config: ModelConfig) -> int:
    """Return how many blocks there are to open one by one; a recurrent model's trace opens none."""
    return max((stack.n_layers for stack in stacks(config)), default=1)


@lru_cache(maxsize=64)
def index(config: ModelConfig, shape: Shape) -> Mapping[str, tuple[int, str]]:
    """Return name -> number and title of the steps of a model of this kind, in order.

    A deep model has those of a flat one. Raises ValueError, in a sentence, where no trace fits the
    model.
    """
    flat = config.model_copy(update={name: 1 for name in DEPTHS if hasattr(config, name)})
    steps = trace(by_shape(flat, shape, batch=1, src_len=3, tgt_len=3))
    return {step.name: (number, step.title) for number, step in enumerate(steps, 1)}


def book_index() -> Mapping[str, tuple[int, str]]:
    """Return the same of the example of the texts."""
    return index(*book_config())
