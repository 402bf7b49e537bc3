"""The steps around the sublayers of a block, and those of a decoder's block that looks back."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from tfm_core.anatomy import Sublayer
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.forms import Causality, Residual
from tfm_core.choices.variants.norms import NO_NORM, NORMS, Norm
from tfm_core.inspect.questions import Question, choice_question, number_question
from tfm_core.inspect.walk import tokens
from tfm_core.inspect.walk.attention import SINK_CODE, scores_code
from tfm_core.inspect.walk.block_view import BlockView, dropped, mask_seen, stack_mask
from tfm_core.inspect.walk.steps import StepTensor, WalkStep, seen, shape_question
from tfm_core.sentences import N_


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
    masks, code = list[StepTensor](), "memory = encoder(placed)"
    if view.has("self_attention.mask"):
        masks = [mask_seen(stack_mask(subject, "encoder"), axis.partition(":")[2])]
        code = "memory = encoder(placed, mask=mask)"
    topics: tuple[str, ...] = ("encoder-stack",)
    if view.part.children[-1].kind == "norm":
        topics = (*topics, "final-norm")
    return view.step(
        "encoder-stack",
        N_("Encoder stack"),
        topics,
        code,
        _twice_as_many(),
        seen("placed", N_("vectors with positions"), placed, f"B {axis} d_model"),
        *masks,
        seen("memory", N_("the encoder's output"), memory, f"B {axis} d_model"),
        *blocks(view),
        names={"encoder": subject.model.get_submodule("encoder")},
    )


def add_norm(view: BlockView, sublayer: str = "self_attention") -> WalkStep:
    """Add the output of an attention to its input, and normalise. sublayer: which attention."""
    part, got, axes = view.sublayer(sublayer), view.got, f"B {view.axis} d_model"
    topics, norm = dropped(view.subject.config), _norm(part)
    change = "dropout(output)" if topics else "output"
    came = N_("the block's input") if sublayer == "self_attention" else N_("the residual")
    came = N_("norm(x), in place of x") if part.is_normed else came
    recorded = {
        "output": ("change", N_("the attention's output")),
        "joined": ("joined", N_("the sublayer's output")),
    }
    if part.has_sum:
        recorded["x"] = ("skipped", came)
    total = f"x + {change}" if part.has_sum else change
    if part.norm is None:
        code = f"joined = {total}" + ("" if part.has_sum else "  # x is lost")
    elif part.norm_first:
        note = "the attention read norm(x)" if part.has_sum else "x is lost"
        note = "x is norm(x) from here on" if part.is_normed else note
        code = f"joined = {total}  # {note}"
        if not part.is_normed:
            recorded["normed"] = ("normed", N_("norm(x), which the attention read"))
    else:
        code = f"total = {total}\njoined = norm(total)"
        label = N_("the sum") if part.has_sum else N_("what is normalised")
        recorded["total"] = ("total", label)
    return view.step(
        "add-norm",
        _joined_title(part),
        (*_residual_topics(view, part, "norm", "residual-alone"), f"norm-{norm.name}", *topics),
        code,
        _norm_question(norm, *got(f"{sublayer}_norm.joined").shape),
        *(
            seen(name, label, got(f"{sublayer}_norm.{key}"), axes)
            for name, (key, label) in recorded.items()
        ),
        names={"norm": view.module(f"{sublayer}_norm"), "dropout": view.module("dropout")},
        is_inside=True,
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
        topics=(f"norm-{norm.name}",),
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
        topics=("norm-none",),
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
    part, got, axes = view.sublayer("feed_forward"), view.got, f"B {view.axis} d_model"
    drops, is_mixture = dropped(view.subject.config), part.layer.layer == "MixtureOfExperts"
    code, topics, inner, question = (_experts if is_mixture else _dense)(view, part)
    total = "mixed" if is_mixture else f"ff.down({'ff.dropout(hidden)' if drops else 'hidden'})"
    total = f"dropout({total})" if drops else total
    if part.has_sum:
        total = f"{'y' if part.is_normed else 'x'} + {total}"
    has_cross = view.has("cross_attention_norm.joined")
    x = got("cross_attention_norm.joined" if has_cross else "self_attention_norm.joined")
    read = "norm(x)" if _order(part) == "first" else "x"
    last = f"norm({total})" if _order(part) == "last" else total
    return view.step(
        "feed-forward",
        _feed_forward_title(part),
        (*topics, *_residual_topics(view, part, "ff-norm", ""), *drops),
        f"y = {read}\n{code}\noutput = {last}",
        question,
        seen("x", N_("after the attention"), x, axes),
        inner,
        seen("output", N_("the block's output"), got("feed_forward_norm.joined"), axes),
        names={
            "moe" if is_mixture else "ff": view.module("feed_forward"),
            "dropout": view.module("dropout"),
            "norm": view.module("feed_forward_norm"),
        },
        is_inside=True,
    )


_Inside = tuple[str, tuple[str, ...], StepTensor, Question]
"""Of a feed-forward layer: its code between norm and sum, topics, what it makes, the question."""


def _dense(view: BlockView, part: Sublayer) -> _Inside:
    batch, length, n_heads, _, d_model = view.sizes
    d_ff, activation = view.subject.anatomy.sizes["d_ff"], ACTIVATIONS[part.layer.variant]
    axes = f"B {view.axis} d_ff"
    hidden = seen("hidden", N_("hidden layer"), view.got("feed_forward.hidden"), axes)
    question = shape_question(
        hidden,
        N_("Each token is widened from d_model to d_ff numbers."),
        ((batch, length, d_model), N_("That is the width before and after.")),
        ((batch, d_ff), N_("Every token has its own hidden layer.")),
        ((batch, length, d_model + d_ff), N_("The d_ff new numbers replace the old ones.")),
        ((batch, n_heads, length, d_ff), N_("The heads are merged by now.")),
    )
    code = f"hidden = {activation.code.format(up='ff.up(y)', gate='ff.gate(y)')}"
    return code, ("feed-forward", f"activation-{activation.name}"), hidden, question


def _experts(view: BlockView, _part: Sublayer) -> _Inside:
    """A router, and the experts that it chooses for each token."""
    batch, length, n_heads, _, d_model = view.sizes
    sizes = view.subject.anatomy.sizes
    n_experts, top_k = sizes["n_experts"], sizes["top_k"]
    divided = "shares = shares / shares.sum(-1, keepdim=True)\n" if top_k > 1 else ""
    axes = f"B {view.axis} E"
    gates = seen("gates", N_("share of each expert"), view.got("feed_forward.gates"), axes)
    question = shape_question(
        gates,
        N_("Each token has a share for each expert; {top_k} are not 0.", top_k=top_k),
        ((batch, length, top_k), N_("Those left out count too, as 0.")),
        ((batch, n_experts), N_("Every token is routed by itself.")),
        ((batch, length, d_model), N_("The router maps d_model to the number of experts.")),
        ((batch, n_heads, length, n_experts), N_("The heads are merged by now.")),
    )
    code = (
        "logits = moe.router(y)\n"
        f"shares, chosen = logits.softmax(-1).topk({top_k})\n"
        f"{divided}"
        "gates = torch.zeros_like(logits).scatter(-1, chosen, shares)\n"
        "mixed = sum(gates[..., n, None] * moe.experts[n](y)  # computed where a share is not 0\n"
        f"            for n in range({n_experts}))"
    )
    return code, ("experts", "experts-shares" if top_k > 1 else "experts-one"), gates, question


def _feed_forward_title(part: Sublayer) -> str:
    if part.has_sum:
        if part.norm:
            return N_("Feed-forward, add and norm")
        return N_("Feed-forward and add, no norm")
    if part.norm:
        return N_("Feed-forward and norm, no residual")
    return N_("Feed-forward, no residual, no norm")


def decoder_attention(view: BlockView) -> WalkStep:
    """Masked self-attention of the target."""
    got, axes = view.got, "B T:tgt d_model"
    x, weights = got("self_attention.query_input"), got("self_attention.weights")
    relative = view.subject.model.get_submodule("decoder").relative
    inside = "" if relative is None else ", relative=relative"
    batch, length, n_heads, _, d_model = view.sizes
    map_of_weights = view.attended("weights")
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
    mask = got("self_attention.mask")
    return view.step(
        "decoder-attention",
        N_("Decoder: masked self-attention"),
        topics,
        f"output = attention(x, mask=tgt_mask{inside})",
        question,
        seen("x", N_("the target so far"), x, axes),
        seen("tgt_mask", N_("target mask: 1 = may attend"), mask, "B 1 Q:tgt K:tgt"),
        map_of_weights,
        shown="weights",
        is_inside=True,
        names={"attention": view.module("self_attention"), "relative": relative},
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
    return view.step(
        "cross-attention",
        N_("Decoder: cross-attention"),
        ("cross-attention",),
        code,
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
        seen("x", N_("the target so far"), got("cross_attention.query_input"), axes),
        seen("memory", N_("the encoder's output"), memory, f"B {memory_axis} d_model"),
        *masks,
        seen("output", N_("the attention's output"), got("cross_attention.output"), axes),
        map_of_weights,
        *(
            seen(name, label, got(f"cross_attention.{recorded}"), by_head)
            for name, recorded, label, by_head in (
                ("queries", "query", N_("queries, from the target"), "B H Q:tgt d_head"),
                ("keys", "key", N_("keys, from the memory"), f"B H K:{words} d_head"),
                ("values", "value", N_("values, from the memory"), f"B H K:{words} d_head"),
            )
        ),
        shown="weights",
        is_inside=True,
        names={"attention": view.module("cross_attention")},
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
        names={
            **step.names,
            **names,
            "math": math,
            "torch": torch,
            "d_head": d_head,
            "d_model": d_model,
        },
    )


def decoder_add_norm(view: BlockView) -> WalkStep:
    """Add and norm behind the decoder's cross-attention."""
    return _of_decoder(add_norm(view, "cross_attention"))


def decoder_feed_forward(view: BlockView) -> WalkStep:
    """The decoder's feed-forward layer."""
    return _of_decoder(feed_forward(view))


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
