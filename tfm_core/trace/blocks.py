"""The steps around the sublayers of a block, and those of a decoder's block that looks back."""

from __future__ import annotations

import math
from dataclasses import replace

import torch

from tfm_core.anatomy import Sublayer
from tfm_core.choices.variants.activations import ACTIVATIONS
from tfm_core.choices.variants.forms import Causality, Residual
from tfm_core.choices.variants.norms import NO_NORM, NORMS, Norm
from tfm_core.inspect.questions import Question
from tfm_core.sentences import N_, Sentence
from tfm_core.trace.attention import SINK_CODE, scores_code
from tfm_core.trace.steps import (
    Step,
    StepTensor,
    View,
    ask_choice,
    ask_number,
    ask_shape,
    stack_mask,
)

_VECTORS = "B {tokens} d_model"


def block_outputs(view: View) -> tuple[StepTensor, ...]:
    """Return what comes out of each block of the view's stack."""
    layers = view.path.rpartition(".")[0]
    n = len(list(view.subject.model.get_submodule(layers).children()))
    return tuple(
        view.seen(
            f"block_{number}",
            N_("after block {number}", number=number),
            f"{layers}.{number - 1}.residual",
            _VECTORS,
        )
        for number in range(1, n + 1)
    )


def encoder_stack(view: View) -> Step:
    """All blocks of the encoder, one after the other."""
    masks, code = list[StepTensor](), "memory = encoder(placed)"
    if view.has_captured("self_attention.mask"):
        masks = [view.mask(stack_mask(view.subject, "encoder"))]
        code = "memory = encoder(placed, mask=mask)"
    wrong = ("wide", "long", "two")
    question = ask_choice("stack", "same", wrong, topics=("encoder-stack",))
    return view.step(
        N_("Encoder stack"),
        ("encoder-stack", *["final-norm"][: view.part.children[-1].kind == "norm"]),
        code,
        question,
        view.seen("placed", N_("vectors with positions"), "encoder.input", _VECTORS),
        *masks,
        *block_outputs(view),
    )


_Titles = dict[tuple[bool, bool], tuple[Sentence, Sentence]]
"""Whether there are a residual and a norm -> the title in an encoder's block, in a decoder's."""
_JOINED: _Titles = {
    (True, True): (N_("Add and norm"), N_("Decoder: add and norm")),
    (True, False): (N_("Add, no norm"), N_("Decoder: add, no norm")),
    (False, True): (N_("Norm, no residual"), N_("Decoder: norm, no residual")),
    (False, False): (N_("No residual, no norm"), N_("Decoder: no residual, no norm")),
}
_FED: _Titles = {
    (True, True): (
        N_("Feed-forward, add and norm"),
        N_("Decoder: feed-forward, add and norm"),
    ),
    (True, False): (
        N_("Feed-forward and add, no norm"),
        N_("Decoder: feed-forward and add, no norm"),
    ),
    (False, True): (
        N_("Feed-forward and norm, no residual"),
        N_("Decoder: feed-forward and norm, no residual"),
    ),
    (False, False): (
        N_("Feed-forward, no residual, no norm"),
        N_("Decoder: feed-forward, no residual, no norm"),
    ),
}


def add_norm(view: View) -> Step:
    """Add the output of an attention to its input, and normalise."""
    in_decoder = view.name == "decoder-add-norm"  # behind its cross-attention
    sublayer = "cross_attention" if in_decoder else "self_attention"
    part, captured, topics = view.sublayer(sublayer), view.captured, view.dropped
    norm = NO_NORM if part.norm is None else NORMS[part.norm.variant]
    change = "dropout(output)" if topics else "output"
    came = N_("the residual") if in_decoder else N_("the block's input")
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
        _JOINED[part.has_sum, part.norm is not None][in_decoder],
        (*_residual_topics(view, part, "norm", "residual-alone"), f"norm-{norm.name}", *topics),
        code,
        _norm_question(norm, *captured(f"{sublayer}_norm.joined").shape),
        *(
            view.seen(name, label, captured(f"{sublayer}_norm.{key}"), _VECTORS)
            for name, (key, label) in recorded.items()
        ),
        names={"norm": view.module(f"{sublayer}_norm")},
        is_inside=True,
    )


def _residual_topics(view: View, part: Sublayer, norm: str, alone: str) -> tuple[str, ...]:
    """Return the topics on what is added. norm, alone: the topic with a norm, and without."""
    if part.is_normed or not part.has_sum:
        return view.mistakes(Residual)
    if part.norm is None:
        return (alone,) if alone else ()
    return (f"{norm}-first" if part.norm_first else f"{norm}-last",)


def _norm_question(norm: Norm, batch: int, length: int, d_model: int) -> Question:
    if norm.spread is None:
        wrong: tuple[str, ...] = ("softmax", "root", "residual")
        return ask_choice("no_norm", "learned", wrong, topics=("norm-none",))
    return ask_choice(
        "norm",
        "token",
        ("dimension", "example", "batch"),
        topics=(f"norm-{norm.name}",),
        spread=norm.spread,
        batch=batch,
        length=length,
        d_model=d_model,
    )


def feed_forward(view: View) -> Step:
    """The feed-forward layer, or the experts that stand for it, then add and norm."""
    part, captured, drops = view.sublayer("feed_forward"), view.captured, view.dropped
    is_mixture = part.layer.layer == "MixtureOfExperts"
    code, topics, inner, question = (_experts if is_mixture else _dense)(view, part)
    total = "mixed" if is_mixture else f"ff.down({'ff.dropout(hidden)' if drops else 'hidden'})"
    total = f"dropout({total})" if drops else total
    if part.has_sum:
        total = f"{'y' if part.is_normed else 'x'} + {total}"
    read, last = "x", total
    if part.norm is not None and part.norm_first:
        read = "norm(x)"
    elif part.norm is not None:
        last = f"norm({total})"
    before = "cross" if view.has_captured("cross_attention_norm.joined") else "self"
    x, output = captured(f"{before}_attention_norm.joined"), captured("feed_forward_norm.joined")
    return view.step(
        _FED[part.has_sum, part.norm is not None][view.name == "decoder-feed-forward"],
        (*topics, *_residual_topics(view, part, "ff-norm", ""), *drops),
        f"y = {read}\n{code}\noutput = {last}",
        question,
        view.seen("x", N_("after the attention"), x, _VECTORS),
        inner,
        view.seen("output", N_("the block's output"), output, _VECTORS),
        names={"norm": view.module("feed_forward_norm")},
        is_inside=True,
    )


_Inside = tuple[str, tuple[str, ...], StepTensor, Question]
"""Of a feed-forward layer: its code between norm and sum, topics, what it makes, the question."""


def _dense(view: View, part: Sublayer) -> _Inside:
    batch, length, n_heads, _, d_model = view.sizes
    d_ff, activation = view.subject.anatomy.sizes["d_ff"], ACTIVATIONS[part.layer.variant]
    made = view.captured("feed_forward.hidden")
    hidden = view.seen("hidden", N_("hidden layer"), made, "B {tokens} d_ff")
    wrong = {
        "width": (batch, length, d_model),
        "one": (batch, d_ff),
        "sum": (batch, length, d_model + d_ff),
        "heads": (batch, n_heads, length, d_ff),
    }
    question = ask_shape("feed_forward", hidden, wrong)
    code = f"hidden = {activation.code.format(up='ff.up(y)', gate='ff.gate(y)')}"
    return code, ("feed-forward", f"activation-{activation.name}"), hidden, question


def _experts(view: View, _part: Sublayer) -> _Inside:
    """A router, and the experts that it chooses for each token."""
    batch, length, n_heads, _, d_model = view.sizes
    sizes = view.subject.anatomy.sizes
    n_experts, top_k = sizes["n_experts"], sizes["top_k"]
    divided = "shares = shares / shares.sum(-1, keepdim=True)\n" if top_k > 1 else ""
    made = view.captured("feed_forward.gates")
    gates = view.seen("gates", N_("share of each expert"), made, "B {tokens} E")
    wrong = {
        "chosen": (batch, length, top_k),
        "one": (batch, n_experts),
        "width": (batch, length, d_model),
        "heads": (batch, n_heads, length, n_experts),
    }
    question = ask_shape("experts", gates, wrong, top_k=top_k)
    code = (
        "logits = moe.router(y)\n"
        f"shares, chosen = logits.softmax(-1).topk({top_k})\n"
        f"{divided}"
        "gates = torch.zeros_like(logits).scatter(-1, chosen, shares)\n"
        "mixed = sum(gates[..., n, None] * moe.experts[n](y)  # computed where a share is not 0\n"
        f"            for n in range({n_experts}))"
    )
    return code, ("experts", "experts-shares" if top_k > 1 else "experts-one"), gates, question


def decoder_attention(view: View) -> Step:
    """Masked self-attention of the target."""
    order, x = view.order, view.captured("self_attention.query_input")
    assert order is not None
    relative = view.subject.model.get_submodule("decoder").relative
    inside = "" if relative is None else ", relative=relative"
    map_of_weights = view.attended("weights")
    return view.step(
        N_("Decoder: masked self-attention"),
        view.mistakes(Causality) if order.sees_future else ("decoder-attention",),
        f"output = attention(x, mask=tgt_mask{inside})",
        _zeros_question(view, order, map_of_weights),
        view.seen("x", N_("the target so far"), x, "B T:tgt d_model"),
        view.target_mask(view.captured("self_attention.mask")),
        map_of_weights,
        shown="weights",
        is_inside=True,
        names={"relative": relative},
    )


def _zeros_question(view: View, order: Causality, map_of_weights: StepTensor) -> Question:
    """Ask how many weights of a decoder's self-attention are 0, or, without any, for its shape."""
    batch, length, n_heads, _, d_model = view.sizes
    weights = map_of_weights.value
    if weights.is_meta:
        shapes = {
            "alone": (batch, length, length),
            "width": (batch, n_heads, length, d_model),
            "order": (batch, length, n_heads, length),
        }
        return ask_shape("decoder_map", map_of_weights, shapes)
    n = int((~view.captured("self_attention.mask").expand_as(weights)[view.example, 0]).sum())
    below, lines = "padding", dict[str, str]()
    if order.sees_future:
        below, lines = (
            "causal",
            {"because": "because_below" if order.cut is not None else "because_padding"},
        )
    wrong = {
        below: length * (length - 1) // 2,
        "diagonal": length * (length + 1) // 2,
        "rest": length**2 - n,
    }
    return ask_number("decoder_zeros", n, wrong, lines=lines, values=("weights",), length=length)


def cross_attention(view: View) -> Step:
    """Attention from the target to the encoder's output; over a picture it has no mask."""
    letter, _colon, words = view.subject.memory_axis.partition(":")
    inside = {
        name: view.seen(name, label, view.captured(f"cross_attention.{recorded}"), axes)
        for name, recorded, label, axes in (
            ("x", "query_input", N_("the target so far"), "B T:tgt d_model"),
            ("memory", "key_value_input", N_("the encoder's output"), "B {memory} d_model"),
            ("output", "output", N_("the attention's output"), "B T:tgt d_model"),
            ("weights", "weights", N_("attention weights"), f"B H Q:tgt K:{words}"),
            ("queries", "query", N_("queries, from the target"), "B H Q:tgt d_head"),
            ("keys", "key", N_("keys, from the memory"), f"B H K:{words} d_head"),
            ("values", "value", N_("values, from the memory"), f"B H K:{words} d_head"),
        )
    }
    batch, n_heads, length, n_src = inside["weights"].shape
    code, masks = "output = attention(x, memory)", []
    if view.has_captured("cross_attention.mask"):
        code = "output = attention(x, memory, mask=mask)"
        masks = [view.mask(view.captured("cross_attention.mask"), words)]
    return view.step(
        N_("Decoder: cross-attention"),
        ("cross-attention",),
        code,
        ask_shape(
            "cross_map",
            inside["weights"],
            {
                "swapped": (batch, n_heads, n_src, length),
                "target": (batch, n_heads, length, length),
                "source": (batch, n_heads, n_src, n_src),
                "alone": (batch, length, n_src),
            },
            axis=letter,
        ),
        *masks,
        *inside.values(),
        shown="weights",
        is_inside=True,
        names={"attention": view.module("cross_attention")},
    )


_CROSS = """\
queries, keys, values = attention.project(x, memory)
{weights}
heads = weights @ values
output = {merged}"""


def captioner_cross_attention(view: View) -> Step:
    """Cross-attention without a mask, written out in four lines."""
    step = cross_attention(view)
    d_head, d_model = view.attention.d_head, step.inputs[0].value.size(-1)
    shape = "flatten(2)" if view.attention.has_own_width else "reshape(x.shape)"
    merged = f"heads.transpose(1, 2).{shape}"
    if view.attention.has_output:
        merged = f"attention.out_projection({merged})"
    scores, names = scores_code(view.attention.scale), dict[str, object]()
    weights = f"weights = ({scores}).softmax(-1)"
    if view.has_captured("cross_attention.sink"):
        names["sink"] = view.captured("cross_attention.sink").detach()
        weights = f"scores = {scores}\n{SINK_CODE.format(scores='scores')}"
    return replace(
        step,
        topics=("cross-attention-captioner",),
        code=_CROSS.format(weights=weights, merged=merged),
        outputs=(*step.extra, *step.outputs),
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
