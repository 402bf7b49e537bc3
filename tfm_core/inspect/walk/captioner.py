"""The steps of a captioner's decoder, as far as they differ from those of a decoder of texts."""

from __future__ import annotations

from dataclasses import replace

from tfm_core.inspect.walk import block, decoder, tokens
from tfm_core.inspect.walk.block_view import MODULES, BlockView
from tfm_core.inspect.walk.steps import WalkStep
from tfm_core.inspect.walk.weights import scores_code

_CROSS = """\
queries, keys, values = attention.project(x, memory)
weights = ({scores}).softmax(-1)
heads = weights @ values
output = {merged}"""


def word_positions(view: BlockView) -> WalkStep:
    """Where each word stands, which is told by other rows than where a patch lies."""
    step = tokens.positions(view)
    topics = (*step.topics, "positions-words")
    return replace(step, name="word-positions", title="Positions of the words", topics=topics)


def cross_attention(view: BlockView) -> WalkStep:
    """The words ask, the patches answer; without a mask the arithmetic fits in four lines."""
    step = decoder.cross_attention(view)
    *_, d_head, d_model = view.sizes
    merged = "heads.transpose(1, 2).reshape(x.shape)"
    if view.attention.has_output:
        merged = f"attention.out_projection({merged})"
    return replace(
        step,
        topics=("cross-attention-captioner",),
        code=_CROSS.format(scores=scores_code(view.attention.scale), merged=merged),
        after=(*step.extra, *step.after),
        extra=(),
        names={**MODULES, **step.names, "d_head": d_head, "d_model": d_model},
    )


def add_norm(view: BlockView) -> WalkStep:
    """What the words read in the picture is added to what they were."""
    return _of_decoder(block.add_norm(view, "cross_attention"))


def feed_forward(view: BlockView) -> WalkStep:
    """Every word alone is widened, bent and narrowed."""
    return _of_decoder(block.feed_forward(view))


def _of_decoder(step: WalkStep) -> WalkStep:
    """Return a step of the encoder's blocks as the decoder's block has it too."""
    title = f"Decoder: {step.title[:1].lower()}{step.title[1:]}"
    return replace(step, name=f"decoder-{step.name}", title=title)
