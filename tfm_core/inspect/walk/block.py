"""The steps around the sublayers of a block: add & norm, and the feed-forward layer."""

from __future__ import annotations

from torch import Tensor

from tfm_core.inspect.walk.block_view import MODULES, BlockView, mask_seen
from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.steps import Seen, WalkStep, number_question, seen, shape_question
from tfm_core.sentences import N_
from tfm_core.variants.activations import ACTIVATIONS
from tfm_core.variants.norms import NORMS


def blocks(subject: Subject, stack: str, axis: str) -> tuple[Seen, ...]:
    """Return what comes out of each block of a stack."""
    return tuple(
        seen(
            f"block_{number}", N_("after block {number}", number=number), value, f"B {axis} d_model"
        )
        for number, value in enumerate(_residuals(subject, stack), 1)
    )


def _residuals(subject: Subject, stack: str) -> list[Tensor]:
    n = len(list(subject.model.get_submodule(f"{stack}.layers").children()))
    return [subject.cache[f"{stack}.layers.{i}.residual"] for i in range(n)]


def encoder_stack(view: BlockView) -> WalkStep:
    """All blocks of the encoder, one after the other."""
    subject, axis = view.subject, view.axis
    placed, memory = subject.cache["encoder.input"], subject.cache["encoder.output"]
    batch, length, d_model = memory.shape
    through = blocks(subject, "encoder", axis)
    before = [seen("placed", N_("vectors with their place"), placed, f"B {axis} d_model")]
    code = "memory = encoder(placed)"
    if view.has("self_attention.mask"):
        before.append(mask_seen(view.got("self_attention.mask"), axis.partition(":")[2]))
        code = "memory = encoder(placed, mask=mask)"
    topics = ("encoder-stack", "final-norm") if subject.block.has_final_norm else ("encoder-stack",)
    return WalkStep(
        "encoder-stack", N_("Encoder stack"), topics, code, tuple(before),
        (seen("memory", N_("what the encoder understood"), memory, f"B {axis} d_model"),),
        shape_question(
            f"the memory, after {len(through)} block{'s' if len(through) > 1 else ''}",
            (batch, length, d_model), (batch, len(through), length, d_model),
            (batch, length, len(through) * d_model + d_model), (batch, d_model), (length, d_model),
        ),
        extra=through, names={"encoder": subject.model.get_submodule("encoder")},
    )  # fmt: skip


def add_norm(view: BlockView, sublayer: str = "self_attention") -> WalkStep:
    """What an attention found is added to what was there. sublayer: which attention."""
    config, axes = view.subject.block, f"B {view.axis} d_model"
    got = view.got
    change = seen("output", N_("output of the attention"), got(f"{sublayer}_norm.change"), axes)
    after = [seen("joined", N_("after add and norm"), got(f"{sublayer}_norm.joined"), axes)]
    extra = []
    if config.norm_first:
        code = "joined = x + output  # the attention read norm(x)"
        normed = got(f"{sublayer}_norm.normed")
        extra = [seen("normed", N_("norm(x), which the attention read"), normed, axes)]
    else:
        code = "total = x + output\njoined = norm(total)"
        after.insert(0, seen("total", N_("the sum"), got(f"{sublayer}_norm.total"), axes))
    width = view.sizes[-1]
    came = (
        N_("what came into the block")
        if sublayer == "self_attention"
        else N_("what was there before")
    )
    norm = NORMS[config.norm]
    return WalkStep(
        "add-norm",
        N_("Add and norm"),
        ("norm-first" if config.norm_first else "norm-last", norm.walk_topic),
        code,
        (seen("x", came, got(f"{sublayer}_norm.skipped"), axes), change),
        tuple(after),
        number_question(
            N_(
                "The norm divides by a spread. Over how many numbers does it take each {spread}?",
                spread=norm.spread,
            ),
            width,
            f"{width}: the d_model numbers of one token; other tokens and other examples have "
            "no say.",
        ),
        extra=tuple(extra),
        names={"norm": view.module(f"{sublayer}_norm")},
        block=view.path,
    )


def feed_forward(view: BlockView) -> WalkStep:
    """Every token alone is widened, bent and narrowed; then add and norm again."""
    config, got, axes = view.subject.block, view.got, f"B {view.axis} d_model"
    batch, length, _, _, d_model = view.sizes
    read = "norm(x)" if config.norm_first else "x"
    activation = ACTIVATIONS[config.activation]
    hidden = activation.code.format(up="ff.up(y)", gate="ff.gate(y)")
    total = "x + ff.down(hidden)"
    last = total if config.norm_first else f"norm({total})"
    return WalkStep(
        "feed-forward",
        N_("Feed-forward, add and norm"),
        ("feed-forward", activation.walk_topic,
         "ff-norm-first" if config.norm_first else "ff-norm-last"),
        f"y = {read}\nhidden = {hidden}\noutput = {last}",
        (seen("x", N_("after the attention"), got("feed_forward_norm.skipped"), axes),),
        (
            seen("hidden", N_("hidden layer"), got("feed_forward.hidden"), f"B {view.axis} d_ff"),
            seen("output", N_("output of the block"), got("feed_forward_norm.joined"), axes),
        ),
        shape_question(
            N_("the hidden layer"),
            (batch, length, config.d_ff),
            (batch, length, d_model),
            (batch, config.d_ff),
            (batch, length, d_model + config.d_ff),
            (batch, config.n_heads, length, config.d_ff),
        ),
        names={
            **MODULES, "ff": view.module("feed_forward"), "norm": view.module("feed_forward_norm")
        },
        block=view.path,
    )  # fmt: skip
