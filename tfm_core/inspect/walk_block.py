"""The steps around the sublayers of a block: add & norm, and the feed-forward layer."""

from __future__ import annotations

from tfm_core.inspect.walk import Step, number_question, seen, shape_question
from tfm_core.inspect.walk_place import MODULES, Place

ACTIVATION_CODE = {
    "relu": "F.relu(ff.up({x}))",
    "gelu": "F.gelu(ff.up({x}))",
    "gelu_tanh": "F.gelu(ff.up({x}), approximate='tanh')",
    "swiglu": "F.silu(ff.gate({x})) * ff.up({x})",
}


def add_norm(place: Place, number: int, sublayer: str = "self_attention") -> Step:
    """What an attention found is added to what was there. sublayer: which attention."""
    config, axes = place.subject.block, f"B {place.axis} d_model"
    got = place.got
    change = seen("output", "output of the attention", got(f"{sublayer}_norm.change"), axes)
    after = [seen("joined", "after add and norm", got(f"{sublayer}_norm.joined"), axes)]
    extra = []
    if config.norm_first:
        code = "joined = x + output  # the attention read norm(x)"
        normed = got(f"{sublayer}_norm.normed")
        extra = [seen("normed", "norm(x), which the attention read", normed, axes)]
    else:
        code = "total = x + output\njoined = norm(total)"
        after.insert(0, seen("total", "the sum", got(f"{sublayer}_norm.total"), axes))
    width = place.sizes[-1]
    came = "what came into the block" if sublayer == "self_attention" else "what was there before"
    what = "mean" if config.norm == "layernorm" else "root mean square"
    return Step(
        number,
        "add-norm",
        "Add and norm",
        ("norm-first" if config.norm_first else "norm-last", config.norm),
        code,
        (seen("x", came, got(f"{sublayer}_norm.skipped"), axes), change),
        tuple(after),
        number_question(
            f"The norm divides by a spread. Over how many numbers does it take each {what}?",
            width,
            f"{width}: the d_model numbers of one token; other tokens and other examples have "
            "no say.",
        ),
        extra=tuple(extra),
        names={"norm": place.module(f"{sublayer}_norm")},
        block=place.path,
    )


def feed_forward(place: Place, number: int) -> Step:
    """Every token alone is widened, bent and narrowed; then add and norm again."""
    config, got, axes = place.subject.block, place.got, f"B {place.axis} d_model"
    batch, length, _, _, d_model = place.sizes
    read = "norm(x)" if config.norm_first else "x"
    hidden = ACTIVATION_CODE[config.activation].format(x="y")
    total = "x + ff.down(hidden)"
    last = total if config.norm_first else f"norm({total})"
    return Step(
        number,
        "feed-forward",
        "Feed-forward, add and norm",
        ("feed-forward", f"activation-{config.activation}",
         "ff-norm-first" if config.norm_first else "ff-norm-last"),
        f"y = {read}\nhidden = {hidden}\noutput = {last}",
        (seen("x", "after the attention", got("feed_forward_norm.skipped"), axes),),
        (
            seen("hidden", "hidden layer", got("feed_forward.hidden"), f"B {place.axis} d_ff"),
            seen("output", "output of the block", got("feed_forward_norm.joined"), axes),
        ),
        shape_question(
            "the hidden layer",
            (batch, length, config.d_ff),
            (batch, length, d_model),
            (batch, config.d_ff),
            (batch, length, d_model + config.d_ff),
            (batch, config.n_heads, length, config.d_ff),
        ),
        names={
            **MODULES, "ff": place.module("feed_forward"), "norm": place.module("feed_forward_norm")
        },
        block=place.path,
    )  # fmt: skip
