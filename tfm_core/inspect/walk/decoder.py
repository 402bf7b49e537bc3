"""The steps inside a decoder block that looks back: at itself, and at what was encoded."""

from __future__ import annotations

from dataclasses import replace

from tfm_core.inspect.questions import number_question
from tfm_core.inspect.walk import block, tokens
from tfm_core.inspect.walk.block_view import MODULES, BlockView, mask_seen
from tfm_core.inspect.walk.steps import WalkStep, seen, shape_question
from tfm_core.inspect.walk.weights import SINK_CODE, scores_code
from tfm_core.sentences import N_
from tfm_core.variants.forms import Causality


def decoder_attention(view: BlockView) -> WalkStep:
    """Masked self-attention of the target."""
    subject, got, axes = view.subject, view.got, "B T:tgt d_model"
    x, weights = got("self_attention.query_input"), got("self_attention.weights")
    relative = subject.model.get_submodule("decoder").relative
    names: dict[str, object] = {"attention": view.module("self_attention")}
    inside = ""
    if relative is not None:
        inside, names["relative"] = ", relative=relative", relative
    batch, length, n_heads, _, d_model = view.sizes
    map_of_weights = seen("weights", N_("attention weights"), weights, "B H Q:tgt K:tgt")
    order = view.order
    assert order is not None
    topics = view.mistakes(Causality) if order.sees_future else ("decoder-attention",)
    if weights.is_meta:
        question = shape_question(
            map_of_weights,
            N_("Each head has a row and a column per target token."),
            ((batch, length, length), N_("Each head has its own weights.")),
            ((batch, n_heads, length, d_model), N_("A weight belongs to a pair of tokens.")),
            ((batch, length, n_heads, length), N_("Heads come before queries.")),
        )
    else:
        mask = got("self_attention.mask").expand_as(weights)[view.example, 0]
        n = int((~mask).sum())
        question = number_question(
            N_(
                "How many of this example's {length} x {length} weights per head must be 0?",
                length=length,
            ),
            n,
            _hidden_in_all(order, n),
            wrong={
                length * (length - 1) // 2: N_("Padding below the diagonal is hidden too.")
                if not order.sees_future
                else N_("That is what a causal mask hides without padding."),
                length * (length + 1) // 2: N_("The diagonal stays: a token may read itself."),
                length**2 - n: N_("That is how many may differ from 0."),
            },
            hint=N_("Count the mask's zeros."),
            values=("weights",),
        )
    mask_axes = "B 1 Q:tgt K:tgt"
    return WalkStep(
        "decoder-attention",
        N_("Decoder: masked self-attention"),
        topics,
        f"output = attention(x, mask=tgt_mask{inside})",
        (
            seen("x", N_("the target so far"), x, axes),
            seen(
                "tgt_mask", N_("target mask: 1 = may attend"), got("self_attention.mask"), mask_axes
            ),
        ),
        (seen("output", N_("the attention's output"), got("self_attention.output"), axes),),
        question,
        extra=(map_of_weights,),
        names=names,
        shown="weights",
        block=view.path,
    )


def _hidden_in_all(order: Causality, n: int) -> str:
    """Return why so many weights of a map are 0."""
    if not order.sees_future:
        return N_("{n}: all above the diagonal, and every column of padding.", n=n)
    if order.cut is None:
        return N_("{n}: every column of padding.", n=n)
    return N_("{n}: all below the diagonal, and every column of padding.", n=n)


def cross_attention(view: BlockView) -> WalkStep:
    """Attention from the target to the encoder's output; over a picture it has no mask."""
    got, axes, memory_axis = view.got, "B T:tgt d_model", view.subject.memory_axis
    words = memory_axis.partition(":")[2]
    weights, memory = got("cross_attention.weights"), got("cross_attention.key_value_input")
    batch, n_heads, length, n_src = weights.shape
    map_of_weights = seen("weights", N_("attention weights"), weights, f"B H Q:tgt K:{words}")
    code, masks = "output = attention(x, memory)", []
    if view.has("cross_attention.mask"):
        code = "output = attention(x, memory, mask=mask)"
        masks = [mask_seen(got("cross_attention.mask"), words)]
    return WalkStep(
        "cross-attention",
        N_("Decoder: cross-attention"),
        ("cross-attention",),
        code,
        (
            seen("x", N_("the target so far"), got("cross_attention.query_input"), axes),
            seen("memory", N_("the encoder's output"), memory, f"B {memory_axis} d_model"),
            *masks,
        ),
        (seen("output", N_("the attention's output"), got("cross_attention.output"), axes),),
        shape_question(
            map_of_weights,
            N_(
                "T queries from the target, {axis} keys from the memory.",
                axis=memory_axis.partition(":")[0],
            ),
            ((batch, n_heads, n_src, length), N_("Rows are queries, from the target.")),
            ((batch, n_heads, length, length), N_("That is self-attention of the target.")),
            ((batch, n_heads, n_src, n_src), N_("That is self-attention of the encoder.")),
            ((batch, length, n_src), N_("Each head has its own weights.")),
        ),
        extra=(
            map_of_weights,
            seen(
                "queries",
                N_("queries, from the target"),
                got("cross_attention.query"),
                "B H Q:tgt d_head",
            ),
            seen(
                "keys",
                N_("keys, from the memory"),
                got("cross_attention.key"),
                f"B H K:{words} d_head",
            ),
            seen(
                "values",
                N_("values, from the memory"),
                got("cross_attention.value"),
                f"B H K:{words} d_head",
            ),
        ),
        names={"attention": view.module("cross_attention")},
        shown="weights",
        block=view.path,
    )


_CROSS = """\
queries, keys, values = attention.project(x, memory)
{weights}
heads = weights @ values
output = {merged}"""


def word_positions(view: BlockView) -> WalkStep:
    """Positions of the words, separate from those of the patches."""
    step = tokens.positions(view)
    topics = (*step.topics, "positions-words")
    return replace(step, name="word-positions", title=N_("Positions of the words"), topics=topics)


def captioner_cross_attention(view: BlockView) -> WalkStep:
    """Cross-attention without a mask, written out in four lines."""
    step = cross_attention(view)
    d_head, d_model = view.attention.d_head, step.before[0].value.size(-1)
    shape = "flatten(2)" if view.attention.has_own_width else "reshape(x.shape)"
    merged = f"heads.transpose(1, 2).{shape}"
    if view.attention.has_output:
        merged = f"attention.out_projection({merged})"
    scores, names = scores_code(view.attention.scale), dict[str, object]()
    weights = f"weights = ({scores}).softmax(-1)"
    if view.has("cross_attention.sink"):
        names["sink"] = view.got("cross_attention.sink").detach()
        weights = f"scores = {scores}\n{SINK_CODE.format(scores='scores')}"
    return replace(
        step,
        topics=("cross-attention-captioner",),
        code=_CROSS.format(weights=weights, merged=merged),
        after=(*step.extra, *step.after),
        extra=(),
        names={**MODULES, **step.names, **names, "d_head": d_head, "d_model": d_model},
    )


def decoder_add_norm(view: BlockView) -> WalkStep:
    """Add and norm behind the decoder's cross-attention."""
    return _of_decoder(block.add_norm(view, "cross_attention"))


def decoder_feed_forward(view: BlockView) -> WalkStep:
    """The decoder's feed-forward layer."""
    return _of_decoder(block.feed_forward(view))


def _of_decoder(step: WalkStep) -> WalkStep:
    """Return a step of the encoder's blocks as the decoder's block has it too."""
    return replace(step, name=f"decoder-{step.name}", title=_IN_DECODER[step.title])


_IN_DECODER = {
    "Add and norm": N_("Decoder: add and norm"),
    "Add, no norm": N_("Decoder: add, no norm"),
    "Norm, no residual": N_("Decoder: norm, no residual"),
    "No residual, no norm": N_("Decoder: no residual, no norm"),
    "Feed-forward, add and norm": N_("Decoder: feed-forward, add and norm"),
    "Feed-forward and add, no norm": N_("Decoder: feed-forward and add, no norm"),
    "Feed-forward and norm, no residual": N_("Decoder: feed-forward and norm, no residual"),
    "Feed-forward, no residual, no norm": N_("Decoder: feed-forward, no residual, no norm"),
}
"""The title of a step of the encoder's blocks -> its title in the decoder's."""
