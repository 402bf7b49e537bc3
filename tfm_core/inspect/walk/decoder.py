"""The steps inside a decoder block that looks back: at itself, and at what was encoded."""

from __future__ import annotations

from tfm_core.inspect.walk.block_view import BlockView, mask_seen
from tfm_core.inspect.walk.steps import WalkStep, number_question, seen, shape_question
from tfm_core.sentences import N_
from tfm_core.variants.causalities import Causality


def decoder_attention(view: BlockView) -> WalkStep:
    """The target looks at itself, and not ahead."""
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
            N_("the weights with which the target attends to itself"),
            map_of_weights,
            N_("A row for each target token, a column for each target token, in every head."),
            ((batch, length, length), N_("Each head has its own weights.")),
            ((batch, n_heads, length, d_model), N_("A weight belongs to a pair of tokens.")),
            ((batch, length, n_heads, length), N_("Heads stand before the queries.")),
        )  # fmt: skip
    else:
        mask = got("self_attention.mask").expand_as(weights)[view.example, 0]
        n = int((~mask).sum())
        question = number_question(
            N_(
                "One head's map has {length} x {length} weights. How many of this example's "
                "must be exactly 0?",
                length=length,
            ),
            n, _hidden_in_all(order, n),
            wrong={
                length * (length - 1) // 2: N_(
                    "That is all above the diagonal; columns of padding below it are hidden too."
                )
                if not order.sees_future
                else N_("That is how many a causal mask hides of a sentence without padding."),
                length * (length + 1) // 2: N_(
                    "The diagonal stays: each token may read itself."
                ),
                length**2 - n: N_("That is how many may differ from 0."),
            },
            hint=N_("Count what the mask hides, square by square: its zeros."),
            values=("weights",),
        )  # fmt: skip
    mask_axes = "B 1 Q:tgt K:tgt"
    return WalkStep(
        "decoder-attention", N_("Decoder: masked self-attention"), topics,
        f"output = attention(x, mask=tgt_mask{inside})",
        (
            seen("x", N_("the target so far"), x, axes),
            seen("tgt_mask", N_("target mask: 1 = may attend"), got("self_attention.mask"),
            mask_axes),
        ),
        (seen("output", N_("output of the attention"), got("self_attention.output"), axes),),
        question,
        extra=(map_of_weights,),
        names=names, shown="weights",
        block=view.path,
    )  # fmt: skip


def _hidden_in_all(order: Causality, n: int) -> str:
    """Return why so many weights of a map are 0."""
    if not order.sees_future:
        return N_("{n}: everything above the diagonal, and every column of padding.", n=n)
    if order.cut is None:
        return N_("{n}: every column of padding, and nothing else.", n=n)
    return N_("{n}: everything below the diagonal, and every column of padding.", n=n)


def cross_attention(view: BlockView) -> WalkStep:
    """The target asks, what was encoded answers: a source, or a picture, which has no mask."""
    got, axes, asked = view.got, "B T:tgt d_model", view.subject.memory_axis
    words = asked.partition(":")[2]
    weights, memory = got("cross_attention.weights"), got("cross_attention.key_value_input")
    batch, n_heads, length, n_src = weights.shape
    map_of_weights = seen("weights", N_("attention weights"), weights, f"B H Q:tgt K:{words}")
    code, masks = "output = attention(x, memory)", []
    if view.has("cross_attention.mask"):
        code = "output = attention(x, memory, mask=mask)"
        masks = [mask_seen(got("cross_attention.mask"), words)]
    return WalkStep(
        "cross-attention", N_("Decoder: cross-attention"), ("cross-attention",),
        code,
        (
            seen("x", N_("the target so far"), got("cross_attention.query_input"), axes),
            seen("memory", N_("the encoder's output (memory)"), memory, f"B {asked} d_model"),
            *masks,
        ),
        (seen("output", N_("output of the attention"), got("cross_attention.output"), axes),),
        shape_question(
            N_("the map of weights in cross-attention"),
            map_of_weights,
            N_("Queries come from the target, keys from what was encoded: T rows, {axis} columns.",
               axis=asked.partition(":")[0]),
            ((batch, n_heads, n_src, length), N_("Queries are the rows, and the target asks.")),
            ((batch, n_heads, length, length), N_(
                "That is the target attending to itself; here it attends to the source."
            )),
            ((batch, n_heads, n_src, n_src), N_(
                "That is the encoder attending to itself; here the target asks."
            )),
            ((batch, length, n_src), N_("Each head has its own weights.")),
        ),
        extra=(
            map_of_weights,
            seen("queries", N_("queries, of the target"), got("cross_attention.query"),
                 "B H Q:tgt d_head"),
            seen("keys", N_("keys, of what is asked"), got("cross_attention.key"),
                 f"B H K:{words} d_head"),
            seen("values", N_("values, of what is asked"), got("cross_attention.value"),
                 f"B H K:{words} d_head"),
        ),
        names={"attention": view.module("cross_attention")}, shown="weights",
        block=view.path,
    )  # fmt: skip
