"""The steps inside a block: projections, heads, scores, mask, softmax, sum, merge, norms."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tfm_core.inspect.walk import (
    Question,
    Seen,
    Step,
    choice_question,
    number_question,
    seen,
    shape_question,
)
from tfm_core.inspect.walk_subject import Subject

ACTIVATION_CODE = {
    "relu": "F.relu(ff.up({x}))",
    "gelu": "F.gelu(ff.up({x}))",
    "gelu_tanh": "F.gelu(ff.up({x}), approximate='tanh')",
    "swiglu": "F.silu(ff.gate({x})) * ff.up({x})",
}
MODULES: dict[str, object] = {"math": math, "torch": torch, "F": F}


@dataclass(frozen=True, slots=True)
class Place:
    """A block of a subject, and whose tokens go through it.

    path: name of the block's module. axis: its tokens' axis and their list, as ``"S:src"``.
    """

    subject: Subject
    path: str
    axis: str
    example: int

    def got(self, what: str) -> Tensor:
        """Return what was recorded below the block: ``"self_attention.weights"``."""
        return self.subject.tape[f"{self.path}.{what}"]

    def has(self, what: str) -> bool:
        """Return whether that was recorded."""
        return f"{self.path}.{what}" in self.subject.tape

    def module(self, name: str) -> nn.Module:
        """Return a module below the block."""
        return self.subject.model.get_submodule(f"{self.path}.{name}")

    @property
    def pair(self) -> str:
        """The axes of a map of self-attention."""
        words = self.axis.partition(":")[2]
        return f"B H Q:{words} K:{words}"

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        """B, tokens, H, d_head, d_model."""
        batch, length, d_model = self.got("self_attention.asking").shape
        n_heads = self.subject.block.n_heads
        return batch, length, n_heads, d_model // n_heads, d_model


def projections(place: Place, number: int) -> Step:
    """Queries, keys and values of every token."""
    got, axes = place.got, f"B {place.axis} d_model"
    *_, d_model = place.sizes
    n = 3 * d_model * (d_model + place.subject.block.bias)
    bias = f" + {d_model}" if place.subject.block.bias else ""
    return Step(
        number,
        "projections",
        "Queries, keys and values",
        ("projections",),
        "q, k, v = attention.in_projection(x).chunk(3, -1)",
        (seen("x", "what the attention reads", got("self_attention.asking"), axes),),
        tuple(
            seen(name[0], name, got(f"self_attention.projected_{name}"), axes)
            for name in ("query", "key", "value")
        ),
        number_question(
            "How many parameters do the three projections have together?",
            n,
            f"3 x ({d_model} x {d_model}{bias}) = {n:,}; the number of heads changes nothing.",
        ),
        names={**MODULES, "attention": place.module("self_attention")},
    )


def split(place: Place, number: int) -> Step:
    """Every token's vector cut into one piece a head."""
    got = place.got
    batch, length, n_heads, d_head, d_model = place.sizes
    name = place.axis.partition(":")[0]
    extra = [
        seen("keys", "keys, by head", got("self_attention.key"), f"B H {place.axis} d_head"),
        seen("values", "values, by head", got("self_attention.value"), f"B H {place.axis} d_head"),
    ]
    is_rotary = getattr(place.subject.block, "position", "") == "rotary"
    if is_rotary:
        turned = got("self_attention.query")
        extra = [seen("turned", "queries, turned", turned, f"B H {place.axis} d_head"), *extra]
    queries = got("self_attention.split_query")
    return Step(
        number,
        "split",
        "Split into heads",
        ("split", "rotary") if is_rotary else ("split",),
        f"split = q.view(B, {name}, H, d_head)\nqueries = split.transpose(1, 2)  # k and v alike",
        (
            seen(
                "q", "query", got("self_attention.projected_query"), f"B {place.axis} d_model"
            ),
        ),
        (
            seen("split", "cut", queries.transpose(1, 2), f"B {place.axis} H d_head"),
            seen("queries", "queries, by head", queries, f"B H {place.axis} d_head"),
        ),
        shape_question(
            "the query after the view, before the transpose",
            (batch, length, n_heads, d_head),
            (batch, n_heads, length, d_head),
            (batch, length, d_head, n_heads),
            (batch * n_heads, length, d_head),
            (batch, length, n_heads, d_model),
        ),
        extra=tuple(extra),
        names={"B": batch, name: length, "H": n_heads, "d_head": d_head},
    )  # fmt: skip


def scores(place: Place, number: int) -> Step:
    """How well every query matches every key."""
    got, words = place.got, place.axis.partition(":")[2]
    batch, length, n_heads, d_head, _ = place.sizes
    before = [
        seen("queries", "queries", got("self_attention.query"), f"B H Q:{words} d_head"),
        seen("keys", "keys", got("self_attention.key"), f"B H K:{words} d_head"),
    ]
    code = "scores = queries @ keys.mT / math.sqrt(d_head)"
    has_bias = place.has("self_attention.bias")
    if has_bias:
        bias = got("self_attention.bias")
        before.append(seen("bias", "ALiBi's penalty", bias, f"H Q:{words} K:{words}"))
        code += " + bias"
    return Step(
        number,
        "scores",
        "Scores",
        ("scores", "alibi") if has_bias else ("scores",),
        code,
        tuple(before),
        (seen("scores", "scores", got("self_attention.scores"), place.pair),),
        shape_question(
            "the tensor of scores",
            (batch, n_heads, length, length),
            (batch, n_heads, length, d_head),
            (batch, length, length),
            (batch, length, n_heads, length),
            (batch, n_heads, d_head, d_head),
        ),
        names={**MODULES, "d_head": d_head},
    )


def mask_seen(mask: Tensor, words: str) -> Seen:
    """Return a mask with the axes that it has: 1 where it is the same for all."""
    rows = f"Q:{words}" if mask.size(2) > 1 else "1"
    return seen("mask", "mask: 1 = may attend", mask, f"B 1 {rows} K:{words}")


def masking(place: Place, number: int, topics: tuple[str, ...]) -> Step:
    """Scores that may not count become the lowest number there is."""
    got = place.got
    masked = got("self_attention.masked_scores")
    mask = got("self_attention.mask")
    if masked.is_meta:
        question = shape_question(
            "the mask, before it is broadcast over heads",
            tuple(mask.shape),
            tuple(mask.transpose(-1, -2).shape),
            (mask.size(0), mask.size(-1)),
            tuple(masked.shape),
        )
    else:
        n = int((~mask.expand_as(masked)[place.example, 0]).sum())
        total = masked.size(-1) * masked.size(-2)
        question = number_question(
            f"Of the {total} scores of this example's first head, how many does the mask hide?",
            n,
            f"{n} of {total}: count the zeros of the mask, broadcast over the queries.",
        )
    return Step(
        number,
        "masking",
        "Mask",
        ("masking", *topics),
        "masked = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)",
        (
            seen("scores", "scores", got("self_attention.scores"), place.pair),
            mask_seen(mask, place.axis.partition(":")[2]),
        ),
        (seen("masked", "masked scores", masked, place.pair),),
        question,
        names=MODULES,
    )


def softmax(place: Place, number: int) -> Step:
    """From scores to shares; the wrong scale is shown beside the right one."""
    got = place.got
    is_masked = place.has("self_attention.mask")
    before = [seen("masked", "scores", got("self_attention.masked_scores"), place.pair)]
    code = "weights = masked.softmax(-1)"
    if is_masked:
        mask = got("self_attention.mask")
        before.append(mask_seen(mask, place.axis.partition(":")[2]))
        code += ".masked_fill(~mask, 0.0)"
    return Step(
        number,
        "softmax",
        "Scale and softmax",
        ("softmax",),
        code,
        tuple(before),
        (seen("weights", "attention weights", got("self_attention.weights"), place.pair),),
        _scale_question(place.subject.block.n_heads),
        names=MODULES,
    )


def _scale_question(n_heads: int) -> Question:
    answer = "more evenly" if n_heads > 1 else "exactly alike"
    because = (
        f"sqrt(d_model) is sqrt({n_heads}) times sqrt(d_head): every score shrinks, the "
        "differences between scores too, and the softmax comes closer to equal shares."
        if n_heads > 1
        else "With one head d_head is d_model, so nothing changes."
    )
    wrong = [text for text in ("more evenly", "more sharply", "exactly alike") if text != answer]
    return choice_question(
        "If the scores were divided by sqrt(d_model) instead of sqrt(d_head), the weights would be "
        "shared out …",
        answer,
        wrong,
        because,
    )


def weighted_sum(place: Place, number: int) -> Step:
    """The values, in the proportions of the weights."""
    got, words = place.got, place.axis.partition(":")[2]
    batch, length, n_heads, d_head, d_model = place.sizes
    return Step(
        number,
        "weighted-sum",
        "Weighted sum of the values",
        ("weighted-sum",),
        "heads = weights @ values",
        (
            seen("weights", "attention weights", got("self_attention.weights"), place.pair),
            seen("values", "values", got("self_attention.value"), f"B H K:{words} d_head"),
        ),
        (seen("heads", "output of each head", got("self_attention.heads"),
              f"B H Q:{words} d_head"),),
        shape_question(
            "the weighted sum",
            (batch, n_heads, length, d_head),
            (batch, n_heads, length, length),
            (batch, n_heads, length, d_model),
            (batch, n_heads, d_head),
            (batch, length, d_head),
        ),
    )  # fmt: skip


def merge(place: Place, number: int) -> Step:
    """The heads side by side again, and mixed."""
    got, words = place.got, place.axis.partition(":")[2]
    batch, length, n_heads, d_head, d_model = place.sizes
    axes = f"B {place.axis} d_model"
    return Step(
        number,
        "merge",
        "Merge the heads",
        ("merge",),
        "merged = heads.transpose(1, 2).reshape(B, Q, d_model)\n"
        "output = attention.out_projection(merged)",
        (seen("heads", "output of each head", got("self_attention.heads"),
              f"B H Q:{words} d_head"),),
        (
            seen("merged", "heads side by side", got("self_attention.merged"), axes),
            seen("output", "output of the attention", got("self_attention.output"), axes),
        ),
        shape_question(
            "the output of the attention",
            (batch, length, d_model),
            (batch, length, d_head),
            (batch, n_heads, length, d_model),
            (batch, length, n_heads * d_model),
            (batch, d_model),
        ),
        names={
            "B": batch, "Q": length, "d_model": d_model,
            "attention": place.module("self_attention"),
        },
    )  # fmt: skip
