"""The steps into the heads and out of them: projections, split, weighted sum, merge."""

from __future__ import annotations

from tfm_core.inspect.walk.block_view import MODULES, BlockView
from tfm_core.inspect.walk.steps import WalkStep, number_question, seen, shape_question
from tfm_core.sentences import N_
from tfm_core.variants.projections import PROJECTIONS


def projections(view: BlockView) -> WalkStep:
    """Queries, keys and values of every token."""
    got, axes = view.got, f"B {view.axis} d_model"
    *_, d_model = view.sizes
    projection = view.module("self_attention").get_submodule("in_projection")
    n = sum(parameter.numel() for parameter in projection.parameters())
    block = view.subject.block
    bias = f" + {d_model}" if block.attention_bias else ""
    because = N_(
        "3 x ({d_model} x {d_model}{bias}) = {n:,}; the number of heads changes nothing.",
        d_model=d_model,
        bias=bias,
        n=n,
    )
    if PROJECTIONS[block.projections].is_sliced:
        because = N_(
            "3 x {n_heads} x ({d_head} x {d_head}{bias}) = {n:,}: each head maps its own slice.",
            n_heads=block.n_heads,
            d_head=block.d_head,
            bias=f" + {block.d_head}" if block.attention_bias else "",
            n=n,
        )
    return WalkStep(
        "queries-keys-values",
        N_("Queries, keys and values"),
        ("projections",),
        "q, k, v = attention.in_projection(x).chunk(3, -1)",
        (seen("x", N_("what the attention reads"), got("self_attention.query_input"), axes),),
        tuple(
            seen(name[0], name, got(f"self_attention.projected_{name}"), axes)
            for name in ("query", "key", "value")
        ),
        number_question(
            N_("How many parameters do the three projections have together?"),
            n,
            because,
        ),
        names={**MODULES, "attention": view.module("self_attention")},
        block=view.path,
    )


def split(view: BlockView) -> WalkStep:
    """Every token's vector cut into one piece a head."""
    got = view.got
    batch, length, n_heads, d_head, d_model = view.sizes
    name = view.axis.partition(":")[0]
    extra = [
        seen("keys", N_("keys, by head"), got("self_attention.key"), f"B H {view.axis} d_head"),
        seen(
            "values", N_("values, by head"), got("self_attention.value"), f"B H {view.axis} d_head"
        ),
    ]
    topics: tuple[str, ...] = ("split",)
    inside = view.kind.inside
    if inside is not None and inside.turn is not None:
        turned = got("self_attention.query")
        extra = [seen("turned", inside.title, turned, f"B H {view.axis} d_head"), *extra]
        topics = (*topics, inside.topic)
    queries = got("self_attention.split_query")
    return WalkStep(
        "split",
        N_("Split into heads"),
        topics,
        f"split = q.view(B, {name}, H, d_head)\nqueries = split.transpose(1, 2)  # k and v alike",
        (
            seen(
                "q", N_("query"), got("self_attention.projected_query"), f"B {view.axis} d_model"
            ),
        ),
        (
            seen("split", N_("cut"), queries.transpose(1, 2), f"B {view.axis} H d_head"),
            seen("queries", N_("queries, by head"), queries, f"B H {view.axis} d_head"),
        ),
        shape_question(
            N_("the query after the view, before the transpose"),
            (batch, length, n_heads, d_head),
            (batch, n_heads, length, d_head),
            (batch, length, d_head, n_heads),
            (batch * n_heads, length, d_head),
            (batch, length, n_heads, d_model),
        ),
        extra=tuple(extra),
        names={"B": batch, name: length, "H": n_heads, "d_head": d_head},
        block=view.path,
    )  # fmt: skip


def weighted_sum(view: BlockView) -> WalkStep:
    """The values, in the proportions of the weights."""
    got, words = view.got, view.axis.partition(":")[2]
    batch, length, n_heads, d_head, d_model = view.sizes
    return WalkStep(
        "weighted-sum",
        N_("Weighted sum of the values"),
        ("weighted-sum",),
        "heads = weights @ values",
        (
            seen("weights", N_("attention weights"), got("self_attention.weights"), view.pair),
            seen("values", N_("values"), got("self_attention.value"), f"B H K:{words} d_head"),
        ),
        (seen("heads", N_("output of each head"), got("self_attention.heads"),
              f"B H Q:{words} d_head"),),
        shape_question(
            N_("the weighted sum"),
            (batch, n_heads, length, d_head),
            (batch, n_heads, length, length),
            (batch, n_heads, length, d_model),
            (batch, n_heads, d_head),
            (batch, length, d_head),
        ),
        block=view.path,
    )  # fmt: skip


def merge(view: BlockView) -> WalkStep:
    """The heads side by side again, and mixed."""
    got, words = view.got, view.axis.partition(":")[2]
    batch, length, n_heads, d_head, d_model = view.sizes
    axes = f"B {view.axis} d_model"
    return WalkStep(
        "merge",
        N_("Merge the heads"),
        ("merge",),
        "merged = heads.transpose(1, 2).reshape(B, Q, d_model)\n"
        "output = attention.out_projection(merged)",
        (seen("heads", N_("output of each head"), got("self_attention.heads"),
              f"B H Q:{words} d_head"),),
        (
            seen("merged", N_("heads side by side"), got("self_attention.merged"), axes),
            seen("output", N_("output of the attention"), got("self_attention.output"), axes),
        ),
        shape_question(
            N_("the output of the attention"),
            (batch, length, d_model),
            (batch, length, d_head),
            (batch, n_heads, length, d_model),
            (batch, length, n_heads * d_model),
            (batch, d_model),
        ),
        names={
            "B": batch, "Q": length, "d_model": d_model,
            "attention": view.module("self_attention"),
        },
        block=view.path,
    )  # fmt: skip
