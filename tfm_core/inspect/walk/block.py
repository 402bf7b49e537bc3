"""The steps around the sublayers of a block: add & norm, and the feed-forward layer."""

from __future__ import annotations

from torch import Tensor

from tfm_core.inspect.walk.block_view import MODULES, BlockView, dropped, mask_seen
from tfm_core.inspect.walk.forward import Subject
from tfm_core.inspect.walk.steps import (
    Question,
    Seen,
    WalkStep,
    choice_question,
    seen,
    shape_question,
)
from tfm_core.sentences import N_
from tfm_core.variants.activations import ACTIVATIONS
from tfm_core.variants.norms import NORMS, Norm


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
    through = blocks(subject, "encoder", axis)
    before = [seen("placed", N_("vectors with positions"), placed, f"B {axis} d_model")]
    code = "memory = encoder(placed)"
    if view.has("self_attention.mask"):
        before.append(mask_seen(view.got("self_attention.mask"), axis.partition(":")[2]))
        code = "memory = encoder(placed, mask=mask)"
    topics = ("encoder-stack", "final-norm") if subject.block.has_final_norm else ("encoder-stack",)
    return WalkStep(
        "encoder-stack", N_("Encoder stack"), topics, code, tuple(before),
        (seen("memory", N_("the encoder's output (memory)"), memory, f"B {axis} d_model"),),
        _twice_as_many(),
        extra=through, names={"encoder": subject.model.get_submodule("encoder")},
    )  # fmt: skip


def add_norm(view: BlockView, sublayer: str = "self_attention") -> WalkStep:
    """What an attention found is added to what was there. sublayer: which attention."""
    config, axes = view.subject.block, f"B {view.axis} d_model"
    got = view.got
    change = seen("output", N_("output of the attention"), got(f"{sublayer}_norm.change"), axes)
    after = [seen("joined", N_("after add and norm"), got(f"{sublayer}_norm.joined"), axes)]
    extra = []
    topics = dropped(config)
    change_said = "dropout(output)" if topics else "output"
    if config.norm_first:
        code = f"joined = x + {change_said}  # the attention read norm(x)"
        normed = got(f"{sublayer}_norm.normed")
        extra = [seen("normed", N_("norm(x), which the attention read"), normed, axes)]
    else:
        code = f"total = x + {change_said}\njoined = norm(total)"
        after.insert(0, seen("total", N_("the sum"), got(f"{sublayer}_norm.total"), axes))
    came = (
        N_("the block's input")
        if sublayer == "self_attention"
        else N_("the residual: the input as it was")
    )
    norm = NORMS[config.norm]
    return WalkStep(
        "add-norm",
        N_("Add and norm"),
        ("norm-first" if config.norm_first else "norm-last", norm.walk_topic, *topics),
        code,
        (seen("x", came, got(f"{sublayer}_norm.skipped"), axes), change),
        tuple(after),
        _norm_question(norm, *view.got(f"{sublayer}_norm.joined").shape),
        extra=tuple(extra),
        names={"norm": view.module(f"{sublayer}_norm"), "dropout": view.module("dropout")},
        block=view.path,
    )


def _norm_question(norm: Norm, batch: int, length: int, d_model: int) -> Question:
    return choice_question(
        N_("Over which numbers does the norm compute each {spread}?", spread=norm.spread),
        N_("the {d_model} numbers of one token", d_model=d_model),
        {
            N_("the {length} tokens of one example, dimension by dimension", length=length): N_(
                "Then padding and the length of a sentence would have a say; each token is "
                "normalised by itself."
            ),
            N_(
                "all {length} x {d_model} numbers of one example", length=length, d_model=d_model
            ): N_("Then one token would change the others; each is normalised by itself."),
            N_("the {batch} examples, dimension by dimension", batch=batch): N_(
                "That is BatchNorm; here no example has a say in another."
            ),
        },
        N_("Other tokens and other examples have no say, in use as in training."),
        topics=(norm.walk_topic,),
    )


def _twice_as_many() -> Question:
    return choice_question(
        N_("If the stack had twice as many blocks, the memory that comes out would be …"),
        N_("as large as now"),
        {
            N_("twice as wide"): N_(
                "Blocks follow one another; their outputs are not concatenated."
            ),
            N_("twice as long"): N_("No block adds a token."),
            N_("two tensors"): N_("Only what leaves the last block is handed on."),
        },
        N_(
            "A block returns the shape that it takes, so more blocks change the numbers "
            "and the parameter count, but no shape."
        ),
        topics=("encoder-stack",),
    )


def feed_forward(view: BlockView) -> WalkStep:
    """Every token alone is widened, bent and narrowed; then add and norm again."""
    config, got, axes = view.subject.block, view.got, f"B {view.axis} d_model"
    batch, length, _, _, d_model = view.sizes
    read = "norm(x)" if config.norm_first else "x"
    activation = ACTIVATIONS[config.activation]
    hidden_layer = seen(
        "hidden", N_("hidden layer"), got("feed_forward.hidden"), f"B {view.axis} d_ff"
    )
    hidden = activation.code.format(up="ff.up(y)", gate="ff.gate(y)")
    topics = dropped(config)
    total = "x + dropout(ff.down(ff.dropout(hidden)))" if topics else "x + ff.down(hidden)"
    last = total if config.norm_first else f"norm({total})"
    return WalkStep(
        "feed-forward",
        N_("Feed-forward, add and norm"),
        ("feed-forward", activation.walk_topic,
         "ff-norm-first" if config.norm_first else "ff-norm-last", *topics),
        f"y = {read}\nhidden = {hidden}\noutput = {last}",
        (seen("x", N_("after the attention"), got("feed_forward_norm.skipped"), axes),),
        (
            hidden_layer,
            seen("output", N_("output of the block"), got("feed_forward_norm.joined"), axes),
        ),
        shape_question(
            N_("the hidden layer"),
            hidden_layer,
            N_("Each token alone is widened from d_model to d_ff numbers."),
            (
                (batch, length, d_model),
                N_("That is the width before and after; in between it is wider."),
            ),
            ((batch, config.d_ff), N_("Every token has its own hidden layer.")),
            (
                (batch, length, d_model + config.d_ff),
                N_("The matrix makes d_ff new numbers; the old ones are not kept beside them."),
            ),
            (
                (batch, config.n_heads, length, config.d_ff),
                N_("There are no heads here: they were merged."),
            ),
        ),
        names={
            **MODULES, "ff": view.module("feed_forward"), "dropout": view.module("dropout"),
            "norm": view.module("feed_forward_norm"),
        },
        block=view.path,
    )  # fmt: skip
