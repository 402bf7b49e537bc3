"""The steps into the heads and out of them: projections, split, weighted sum, merge."""

from __future__ import annotations

from tfm_core.inspect.walk.place import MODULES, Place
from tfm_core.inspect.walk.steps import Step, number_question, seen, shape_question


def projections(place: Place) -> Step:
    """Queries, keys and values of every token."""
    got, axes = place.got, f"B {place.axis} d_model"
    *_, d_model = place.sizes
    n = 3 * d_model * (d_model + place.subject.block.bias)
    bias = f" + {d_model}" if place.subject.block.bias else ""
    return Step(
        "queries-keys-values",
        "Queries, keys and values",
        ("projections",),
        "q, k, v = attention.in_projection(x).chunk(3, -1)",
        (seen("x", "what the attention reads", got("self_attention.query_input"), axes),),
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
        block=place.path,
    )


def split(place: Place) -> Step:
    """Every token's vector cut into one piece a head."""
    got = place.got
    batch, length, n_heads, d_head, d_model = place.sizes
    name = place.axis.partition(":")[0]
    extra = [
        seen("keys", "keys, by head", got("self_attention.key"), f"B H {place.axis} d_head"),
        seen("values", "values, by head", got("self_attention.value"), f"B H {place.axis} d_head"),
    ]
    topics: tuple[str, ...] = ("split",)
    inside = place.kind.inside
    if inside is not None and inside.turn is not None:
        turned = got("self_attention.query")
        extra = [seen("turned", inside.title, turned, f"B H {place.axis} d_head"), *extra]
        topics = (*topics, inside.topic)
    queries = got("self_attention.split_query")
    return Step(
        "split",
        "Split into heads",
        topics,
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
        block=place.path,
    )  # fmt: skip


def weighted_sum(place: Place) -> Step:
    """The values, in the proportions of the weights."""
    got, words = place.got, place.axis.partition(":")[2]
    batch, length, n_heads, d_head, d_model = place.sizes
    return Step(
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
        block=place.path,
    )  # fmt: skip


def merge(place: Place) -> Step:
    """The heads side by side again, and mixed."""
    got, words = place.got, place.axis.partition(":")[2]
    batch, length, n_heads, d_head, d_model = place.sizes
    axes = f"B {place.axis} d_model"
    return Step(
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
        block=place.path,
    )  # fmt: skip
