"""The steps from queries and keys to weights: scores, mask, softmax."""

from __future__ import annotations

from tfm_core.inspect.walk.block_view import MODULES, BlockView, mask_seen
from tfm_core.inspect.walk.steps import (
    Question,
    WalkStep,
    choice_question,
    number_question,
    seen,
    shape_question,
)
from tfm_core.sentences import N_


def scores(view: BlockView) -> WalkStep:
    """How well every query matches every key."""
    got, words = view.got, view.axis.partition(":")[2]
    batch, length, n_heads, d_head, _ = view.sizes
    before = [
        seen("queries", N_("queries"), got("self_attention.query"), f"B H Q:{words} d_head"),
        seen("keys", N_("keys"), got("self_attention.key"), f"B H K:{words} d_head"),
    ]
    code = "scores = queries @ keys.mT / math.sqrt(d_head)"
    topics: tuple[str, ...] = ("scores",)
    inside = view.kind.inside
    if inside is not None and inside.turn is None:
        bias = got("self_attention.bias")
        before.append(seen("bias", inside.title, bias, f"H Q:{words} K:{words}"))
        code += " + bias"
        topics = (*topics, inside.topic)
    return WalkStep(
        "scores",
        N_("Scores"),
        topics,
        code,
        tuple(before),
        (seen("scores", N_("scores"), got("self_attention.scores"), view.pair),),
        shape_question(
            N_("the tensor of scores"),
            (batch, n_heads, length, length),
            (batch, n_heads, length, d_head),
            (batch, length, length),
            (batch, length, n_heads, length),
            (batch, n_heads, d_head, d_head),
        ),
        names={**MODULES, "d_head": d_head},
        block=view.path,
    )


def masking(view: BlockView, topics: tuple[str, ...]) -> WalkStep:
    """Scores that may not count become the lowest number there is."""
    got = view.got
    masked = got("self_attention.masked_scores")
    mask = got("self_attention.mask")
    if masked.is_meta:
        question = shape_question(
            N_("the mask, before it is broadcast over heads"),
            tuple(mask.shape),
            tuple(mask.transpose(-1, -2).shape),
            (mask.size(0), mask.size(-1)),
            tuple(masked.shape),
        )
    else:
        n = int((~mask.expand_as(masked)[view.example, 0]).sum())
        total = masked.size(-1) * masked.size(-2)
        question = number_question(
            N_(
                "Of the {total} scores of this example's first head, how many does the mask hide?",
                total=total,
            ),
            n,
            N_(
                "{n} of {total}: count the zeros of the mask, broadcast over the queries.",
                n=n,
                total=total,
            ),
        )
    return WalkStep(
        "masking",
        N_("Mask"),
        ("masking", *topics),
        "masked = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)",
        (
            seen("scores", N_("scores"), got("self_attention.scores"), view.pair),
            mask_seen(mask, view.axis.partition(":")[2]),
        ),
        (seen("masked", N_("masked scores"), masked, view.pair),),
        question,
        names=MODULES,
        block=view.path,
    )


def softmax(view: BlockView) -> WalkStep:
    """From scores to shares; the wrong scale is shown beside the right one."""
    got = view.got
    is_masked = view.has("self_attention.mask")
    before = [seen("masked", N_("scores"), got("self_attention.masked_scores"), view.pair)]
    code = "weights = masked.softmax(-1)"
    if is_masked:
        mask = got("self_attention.mask")
        before.append(mask_seen(mask, view.axis.partition(":")[2]))
        code += ".masked_fill(~mask, 0.0)"
    return WalkStep(
        "softmax",
        N_("Scale and softmax"),
        ("softmax",),
        code,
        tuple(before),
        (seen("weights", N_("attention weights"), got("self_attention.weights"), view.pair),),
        _scale_question(view.subject.block.n_heads),
        names=MODULES,
        block=view.path,
    )


def _scale_question(n_heads: int) -> Question:
    answer = N_("more evenly") if n_heads > 1 else N_("exactly alike")
    because = (
        f"sqrt(d_model) is sqrt({n_heads}) times sqrt(d_head): every score shrinks, the "
        "differences between scores too, and the softmax comes closer to equal shares."
        if n_heads > 1
        else N_("With one head d_head is d_model, so nothing changes.")
    )
    wrong = [
        text
        for text in (N_("more evenly"), N_("more sharply"), N_("exactly alike"))
        if text != answer
    ]
    return choice_question(
        N_(
            "If the scores were divided by sqrt(d_model) instead of sqrt(d_head), the weights "
            "would be shared out …",
        ),
        answer,
        wrong,
        because,
    )
