"""The steps around the sublayers of a block: add & norm, and the feed-forward layer."""

from __future__ import annotations

from tfm_core.anatomy import Sublayer
from tfm_core.inspect.questions import Question, choice_question
from tfm_core.inspect.walk.block_view import MODULES, BlockView, dropped, mask_seen, stack_mask
from tfm_core.inspect.walk.steps import StepTensor, WalkStep, seen, shape_question
from tfm_core.sentences import N_
from tfm_core.variants.activations import ACTIVATIONS
from tfm_core.variants.forms import Residual
from tfm_core.variants.norms import NO_NORM, NORMS, Norm


def blocks(view: BlockView) -> tuple[StepTensor, ...]:
    """Return what comes out of each block of the view's stack."""
    layers, axes = view.path.rpartition(".")[0], f"B {view.axis} d_model"
    n = len(list(view.subject.model.get_submodule(layers).children()))
    return tuple(
        seen(
            f"block_{number}",
            N_("after block {number}", number=number),
            view.subject.cache[f"{layers}.{number - 1}.residual"],
            axes,
        )
        for number in range(1, n + 1)
    )


def encoder_stack(view: BlockView) -> WalkStep:
    """All blocks of the encoder, one after the other."""
    subject, axis = view.subject, view.axis
    placed, memory = subject.cache["encoder.input"], subject.cache["encoder.output"]
    before = [seen("placed", N_("vectors with positions"), placed, f"B {axis} d_model")]
    code = "memory = encoder(placed)"
    if view.has("self_attention.mask"):
        before.append(mask_seen(stack_mask(subject, "encoder"), axis.partition(":")[2]))
        code = "memory = encoder(placed, mask=mask)"
    topics: tuple[str, ...] = ("encoder-stack",)
    if view.part.children[-1].kind == "norm":
        topics = (*topics, "final-norm")
    return WalkStep(
        "encoder-stack",
        N_("Encoder stack"),
        topics,
        code,
        tuple(before),
        (seen("memory", N_("the encoder's output"), memory, f"B {axis} d_model"),),
        _twice_as_many(),
        extra=blocks(view),
        names={"encoder": subject.model.get_submodule("encoder")},
    )


def add_norm(view: BlockView, sublayer: str = "self_attention") -> WalkStep:
    """Add the output of an attention to its input, and normalise. sublayer: which attention."""
    part, got, axes = view.sublayer(sublayer), view.got, f"B {view.axis} d_model"
    change = seen("output", N_("the attention's output"), got(f"{sublayer}_norm.change"), axes)
    joined = seen("joined", N_("the sublayer's output"), got(f"{sublayer}_norm.joined"), axes)
    before, after, extra = [change], [joined], []
    topics, norm = dropped(view.subject.config), _norm(part)
    change_said = "dropout(output)" if topics else "output"
    if part.has_sum:
        came = N_("the block's input") if sublayer == "self_attention" else N_("the residual")
        came = N_("norm(x), in place of x") if part.is_normed else came
        before.insert(0, seen("x", came, got(f"{sublayer}_norm.skipped"), axes))
    total = f"x + {change_said}" if part.has_sum else change_said
    if part.norm is None:
        code = f"joined = {total}" + ("" if part.has_sum else "  # x is lost")
    elif part.norm_first:
        note = "the attention read norm(x)" if part.has_sum else "x is lost"
        note = "x is norm(x) from here on" if part.is_normed else note
        code = f"joined = {total}  # {note}"
        if not part.is_normed:
            normed = got(f"{sublayer}_norm.normed")
            extra = [seen("normed", N_("norm(x), which the attention read"), normed, axes)]
    else:
        code = f"total = {total}\njoined = norm(total)"
        label = N_("the sum") if part.has_sum else N_("what is normalised")
        after.insert(0, seen("total", label, got(f"{sublayer}_norm.total"), axes))
    return WalkStep(
        "add-norm",
        _joined_title(part),
        (*_residual_topics(view, part, "norm", "residual-alone"), norm.walk_topic, *topics),
        code,
        tuple(before),
        tuple(after),
        _norm_question(norm, *view.got(f"{sublayer}_norm.joined").shape),
        extra=tuple(extra),
        names={"norm": view.module(f"{sublayer}_norm"), "dropout": view.module("dropout")},
        block=view.path,
    )


def _norm(part: Sublayer) -> Norm:
    return NO_NORM if part.norm is None else NORMS[part.norm.variant]


def _order(part: Sublayer) -> str:
    """Return where a sublayer's norm stands, as topics call it."""
    if part.norm is None:
        return "none"
    return "first" if part.norm_first else "last"


def _joined_title(part: Sublayer) -> str:
    """Return what happens around a sublayer, as a title."""
    if part.has_sum:
        return N_("Add and norm") if part.norm else N_("Add, no norm")
    return N_("Norm, no residual") if part.norm else N_("No residual, no norm")


def _residual_topics(view: BlockView, part: Sublayer, norm: str, alone: str) -> tuple[str, ...]:
    """Return the topics on what is added. norm, alone: the topic with a norm, and without."""
    if part.is_normed or not part.has_sum:
        return view.mistakes(Residual)
    topic = f"{norm}-{_order(part)}" if part.norm else alone
    return (topic,) if topic else ()


def _norm_question(norm: Norm, batch: int, length: int, d_model: int) -> Question:
    if norm.spread is None:
        return _no_norm_question()
    return choice_question(
        N_("Over which numbers does the norm compute each {spread}?", spread=norm.spread),
        N_("the {d_model} numbers of one token", d_model=d_model),
        {
            N_("the {length} tokens of one example, per dimension", length=length): N_(
                "Each token is normalised by itself."
            ),
            N_(
                "all {length} x {d_model} numbers of one example", length=length, d_model=d_model
            ): N_("Each token is normalised by itself."),
            N_("the {batch} examples, per dimension", batch=batch): N_("That is BatchNorm."),
        },
        N_("Other tokens and examples have no influence."),
        topics=(norm.walk_topic,),
    )


def _no_norm_question() -> Question:
    return choice_question(
        N_("What keeps a token's vector from growing here?"),
        N_("only what is learned"),
        {
            N_("the softmax of the attention"): N_("It limits the weights, not the values."),
            N_("the square root under the scores"): N_("It limits only the scores."),
            N_("the residual"): N_("A sum lets the vector grow."),
        },
        N_("Only the learned matrices set its length."),
        topics=("no-norm",),
    )


def _twice_as_many() -> Question:
    return choice_question(
        N_("How large would the memory be with twice as many blocks?"),
        N_("as large as now"),
        {
            N_("twice as wide"): N_("Outputs of blocks are not concatenated."),
            N_("twice as long"): N_("No block adds a token."),
            N_("two tensors"): N_("Only the last block's output goes on."),
        },
        N_("A block returns the shape it gets."),
        topics=("encoder-stack",),
    )


def feed_forward(view: BlockView) -> WalkStep:
    """The feed-forward layer, or the experts that stand for it, then add and norm."""
    if view.sublayer("feed_forward").layer.layer == "MixtureOfExperts":
        return _experts(view)
    part, got, axes = view.sublayer("feed_forward"), view.got, f"B {view.axis} d_model"
    batch, length, n_heads, _, d_model = view.sizes
    d_ff, activation = view.subject.anatomy.sizes["d_ff"], ACTIVATIONS[part.layer.variant]
    hidden_layer = seen(
        "hidden", N_("hidden layer"), got("feed_forward.hidden"), f"B {view.axis} d_ff"
    )
    hidden = activation.code.format(up="ff.up(y)", gate="ff.gate(y)")
    topics = dropped(view.subject.config)
    total = "dropout(ff.down(ff.dropout(hidden)))" if topics else "ff.down(hidden)"
    if part.has_sum:
        total = f"{'y' if part.is_normed else 'x'} + {total}"
    has_cross = view.has("cross_attention_norm.joined")
    last_attention = "cross_attention" if has_cross else "self_attention"
    read = "norm(x)" if _order(part) == "first" else "x"
    last = f"norm({total})" if _order(part) == "last" else total
    return WalkStep(
        "feed-forward",
        _feed_forward_title(part),
        (
            "feed-forward",
            activation.walk_topic,
            *_residual_topics(view, part, "ff-norm", ""),
            *topics,
        ),
        f"y = {read}\nhidden = {hidden}\noutput = {last}",
        (seen("x", N_("after the attention"), got(f"{last_attention}_norm.joined"), axes),),
        (
            hidden_layer,
            seen("output", N_("the block's output"), got("feed_forward_norm.joined"), axes),
        ),
        shape_question(
            hidden_layer,
            N_("Each token is widened from d_model to d_ff numbers."),
            ((batch, length, d_model), N_("That is the width before and after.")),
            ((batch, d_ff), N_("Every token has its own hidden layer.")),
            ((batch, length, d_model + d_ff), N_("The d_ff new numbers replace the old ones.")),
            ((batch, n_heads, length, d_ff), N_("The heads are merged by now.")),
        ),
        names={
            **MODULES,
            "ff": view.module("feed_forward"),
            "dropout": view.module("dropout"),
            "norm": view.module("feed_forward_norm"),
        },
        block=view.path,
    )


def _experts(view: BlockView) -> WalkStep:
    """A router, the experts that it chooses for each token, then add and norm."""
    part, got, axes = view.sublayer("feed_forward"), view.got, f"B {view.axis} d_model"
    batch, length, n_heads, _, d_model = view.sizes
    sizes, topics = view.subject.anatomy.sizes, dropped(view.subject.config)
    n_experts, top_k = sizes["n_experts"], sizes["top_k"]
    total = "dropout(mixed)" if topics else "mixed"
    if part.has_sum:
        total = f"{'y' if part.is_normed else 'x'} + {total}"
    has_cross = view.has("cross_attention_norm.joined")
    last_attention = "cross_attention" if has_cross else "self_attention"
    read = "norm(x)" if _order(part) == "first" else "x"
    last = f"norm({total})" if _order(part) == "last" else total
    divided = "shares = shares / shares.sum(-1, keepdim=True)\n" if top_k > 1 else ""
    gates = seen("gates", N_("share of each expert"), got("feed_forward.gates"), f"B {view.axis} E")
    return WalkStep(
        "feed-forward",
        _feed_forward_title(part),
        (
            "experts",
            "experts-shares" if top_k > 1 else "experts-one",
            *_residual_topics(view, part, "ff-norm", ""),
            *topics,
        ),
        f"y = {read}\n"
        "logits = moe.router(y)\n"
        f"shares, chosen = logits.softmax(-1).topk({top_k})\n"
        f"{divided}"
        "gates = torch.zeros_like(logits).scatter(-1, chosen, shares)\n"
        "mixed = sum(gates[..., n, None] * moe.experts[n](y)  # computed where a share is not 0\n"
        f"            for n in range({n_experts}))\n"
        f"output = {last}",
        (seen("x", N_("after the attention"), got(f"{last_attention}_norm.joined"), axes),),
        (gates, seen("output", N_("the block's output"), got("feed_forward_norm.joined"), axes)),
        shape_question(
            gates,
            N_("Each token has a share for each expert; {top_k} are not 0.", top_k=top_k),
            ((batch, length, top_k), N_("Those left out count too, as 0.")),
            ((batch, n_experts), N_("Every token is routed by itself.")),
            ((batch, length, d_model), N_("The router maps d_model to the number of experts.")),
            ((batch, n_heads, length, n_experts), N_("The heads are merged by now.")),
        ),
        names={
            **MODULES,
            "moe": view.module("feed_forward"),
            "dropout": view.module("dropout"),
            "norm": view.module("feed_forward_norm"),
        },
        block=view.path,
    )


def _feed_forward_title(part: Sublayer) -> str:
    if part.has_sum:
        if part.norm:
            return N_("Feed-forward, add and norm")
        return N_("Feed-forward and add, no norm")
    if part.norm:
        return N_("Feed-forward and norm, no residual")
    return N_("Feed-forward, no residual, no norm")
