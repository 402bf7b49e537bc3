"""The steps into the heads and out of them: projections, split, weighted sum, merge."""

from __future__ import annotations

from torch import Tensor, nn

from tfm_core.config import built
from tfm_core.inspect.questions import Question, choice_question, number_question
from tfm_core.inspect.walk.block_view import MODULES, BlockView, dropped
from tfm_core.inspect.walk.steps import WalkStep, seen, shape_question
from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.forms import Projections


def heads(view: BlockView) -> WalkStep:
    """The one condition on the number of heads; none where they have a width of their own."""
    if view.attention.has_own_width:
        return _own_width(view)
    *_, n_heads, d_head, d_model = view.sizes
    projection = view.module("self_attention").get_submodule("in_projection").weight
    assert isinstance(projection, Tensor)
    weight = projection.detach()[:d_model]
    is_sliced = view.attention.is_sliced
    label = N_("matrix of the queries, 0 outside each head's slice")
    label = label if is_sliced else N_("matrix of the queries")
    return WalkStep(
        "heads",
        N_("Heads must divide d_model"),
        ("heads", "heads-sliced" if is_sliced else "heads-whole"),
        "d_head = d_model // H\nper_head = weight.view(H, d_head, d_model)",
        (seen("weight", label, weight, "d_model d_model"),),
        (
            seen(
                "per_head",
                N_("its rows, by head"),
                weight.view(n_heads, d_head, d_model),
                "H d_head d_model",
            ),
        ),
        number_question(
            N_(
                "d_model is {d_model} and there are {n_heads} heads. How wide is one head?",
                d_model=d_model,
                n_heads=n_heads,
            ),
            d_head,
            N_(
                "{d_model} / {n_heads} = {d_head}.", d_model=d_model, n_heads=n_heads, d_head=d_head
            ),
            wrong={
                d_model: N_("That is the whole vector."),
                d_model * n_heads: N_("The heads share the vector."),
                n_heads: N_("That is the number of heads."),
            },
            hint=N_("The heads share d_model equally."),
            shapes=("per_head",),
        ),
        names={"H": n_heads, "d_model": d_model},
    )


def _own_width(view: BlockView) -> WalkStep:
    """Heads that are wider or narrower than d_model / H."""
    *_, n_heads, d_head, d_model = view.sizes
    projection = view.module("self_attention").get_submodule("in_projection").weight
    assert isinstance(projection, Tensor)
    n = view.d_q[1]
    weight = projection.detach()[:n]
    return WalkStep(
        "heads",
        N_("Heads of their own width"),
        ("heads-own-width",),
        "per_head = weight.view(H, d_head, d_model)",
        (seen("weight", N_("matrix of the queries"), weight, "d_q d_model"),),
        (
            seen(
                "per_head",
                N_("its rows, by head"),
                weight.view(n_heads, d_head, d_model),
                "H d_head d_model",
            ),
        ),
        number_question(
            N_(
                "There are {n_heads} heads, each {d_head} wide. How many numbers are a token's "
                "queries?",
                n_heads=n_heads,
                d_head=d_head,
            ),
            n,
            N_("{n_heads} x {d_head} = {n}.", n_heads=n_heads, d_head=d_head, n=n),
            wrong={
                d_model: N_("That is the width of the vector that they are made of."),
                d_head: N_("That is one head."),
            },
            hint=N_("Each head brings d_head numbers."),
            shapes=("per_head",),
        ),
        names={"H": n_heads, "d_head": d_head, "d_model": d_model},
    )


def projections(view: BlockView) -> WalkStep:
    """Queries, keys and values of every token."""
    got, axes = view.got, f"B {view.axis} d_model"
    *_, n_heads, d_head, d_model = view.sizes
    queries, d_q = view.d_q
    n_kv_heads = view.attention.n_kv_heads
    projection = view.module("self_attention").get_submodule("in_projection")
    n = sum(parameter.numel() for parameter in projection.parameters())
    bias = f" + {d_q}" if view.attention.has_bias else ""
    because = N_(
        "3 x ({d_model} x {d_model}{bias}) = {n:,}, for any number of heads.",
        d_model=d_model,
        bias=bias,
        n=n,
    )
    wrong = {
        n // 3: N_("That is one of the three."),
        3 * d_model * d_q: N_("Each of the three has a bias too."),
        n * n_heads: N_("Heads cut the same matrices into pieces."),
    }
    hint = N_("Each of the three maps {d_model} numbers to {d_model}.", d_model=d_model)
    if view.attention.has_own_width:
        because = N_(
            "3 x ({d_model} x {d_q}{bias}) = {n:,}.", d_model=d_model, d_q=d_q, bias=bias, n=n
        )
        hint = N_("Each of the three maps {d_model} numbers to {d_q}.", d_model=d_model, d_q=d_q)
    is_own = view.attention.has_own_width
    topics: tuple[str, ...] = ("projections", "projections-own" if is_own else "projections-whole")
    code = "q, k, v = attention.in_projection(x).chunk(3, -1)"
    names: dict[str, object] = {"attention": view.module("self_attention")}
    if view.attention.is_sliced:
        topics = ("projections", "projections-sliced", *view.mistakes(Projections))
        code, names = _sliced(projection, n_heads, d_head, d_model)
        wrong = {n // 3: wrong[n // 3]}
        hint = N_("Each head maps {d_head} numbers to {d_head}, three times.", d_head=d_head)
        because = N_(
            "3 x {n_heads} x ({d_head} x {d_head}{bias}) = {n:,}.",
            n_heads=n_heads,
            d_head=d_head,
            bias=f" + {d_head}" if bias else "",
            n=n,
        )
    if n_kv_heads:
        d_kv = n_kv_heads * d_head
        topics = ("projections", "projections-grouped")
        code = f"q, k, v = attention.in_projection(x).split([{queries}, d_kv, d_kv], -1)"
        names |= {queries: d_q, "d_kv": d_kv}
        wrong = {3 * (n // (d_q + 2 * d_kv)) * d_q: N_("Keys and values have fewer rows.")}
        hint = N_("Queries are {d_q} numbers, keys and values {d_kv} each.", d_q=d_q, d_kv=d_kv)
        because = N_(
            "{d_model} x {width}{bias} = {n:,}: {d_q} + 2 x {d_kv} = {width} numbers a token.",
            d_model=d_model,
            d_q=d_q,
            d_kv=d_kv,
            width=d_q + 2 * d_kv,
            bias=f" + {d_q + 2 * d_kv}" if bias else "",
            n=n,
        )
    return WalkStep(
        "queries-keys-values",
        N_("Queries, keys and values"),
        topics,
        code,
        (seen("x", N_("the attention's input"), got("self_attention.query_input"), axes),),
        tuple(
            seen(
                name[0],
                name,
                got(f"self_attention.projected_{name}"),
                f"B {view.axis} {'d_kv' if n_kv_heads and name != 'query' else queries}",
            )
            for name in ("query", "key", "value")
        ),
        number_question(
            N_("How many parameters do the three projections have?"),
            n,
            because,
            wrong=wrong,
            hint=hint,
        ),
        names={**MODULES, **names},
        block=view.path,
    )


def _sliced(
    projection: nn.Module, n_heads: int, d_head: int, d_model: int
) -> tuple[str, dict[str, object]]:
    """Return the code of heads that each map their own slice, and the names that it uses."""
    code = "slices = x.unflatten(-1, (H, d_head))\n"
    code += 'q, k, v = torch.einsum("bthd,phed->pbthe", slices, matrices).flatten(-2)'
    matrices = projection.get_parameter("heads").detach()
    names: dict[str, object] = {"H": n_heads, "d_head": d_head, "matrices": matrices}
    if getattr(projection, "bias", None) is not None:
        code += " + bias"
        names["bias"] = projection.get_parameter("bias").detach().view(3, 1, 1, d_model)
    return code, names


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
    topics: tuple[str, ...] = ("split", *["split-grouped"][: view.attention.n_kv_heads])
    inside = view.inside
    if view.attention.has_qk_norm:
        normed = got("self_attention.normed_query")
        extra = [seen("normed", N_("queries, normed"), normed, f"B H {view.axis} d_head"), *extra]
        topics = (*topics, "qk-norm")
    if inside is not None and inside.turn is not None:
        turned = got("self_attention.query")
        extra = [seen("turned", inside.title, turned, f"B H {view.axis} d_head"), *extra]
        topics = (*topics, inside.topic)
    queries = got("self_attention.split_query")
    by_head = seen("queries", N_("queries, by head"), queries, f"B H {view.axis} d_head")
    return WalkStep(
        "split",
        N_("Split into heads"),
        topics,
        f"split = q.view(B, {name}, H, d_head)\nqueries = split.transpose(1, 2)"
        + ("" if view.attention.n_kv_heads else "  # k and v alike"),
        (
            seen(
                "q",
                N_("query"),
                got("self_attention.projected_query"),
                f"B {view.axis} {view.d_q[0]}",
            ),
        ),
        (
            seen("split", N_("cut"), queries.transpose(1, 2), f"B {view.axis} H d_head"),
            by_head,
        ),
        shape_question(
            by_head,
            N_("The transpose swaps tokens and heads."),
            ((batch, length, n_heads, d_head), N_("That is before the transpose.")),
            ((batch, n_heads, length, d_model), N_("Each head has only d_head numbers.")),
            ((batch, n_heads, d_head, length), N_("d_head stays last.")),
            ((batch * n_heads, length, d_head), N_("Heads have an axis of their own.")),
        ),
        extra=tuple(extra),
        names={"B": batch, name: length, "H": n_heads, "d_head": d_head},
        block=view.path,
    )


def weighted_sum(view: BlockView) -> WalkStep:
    """The weighted sum of the values."""
    got, words = view.got, view.axis.partition(":")[2]
    names: dict[str, object] = {}
    code, topics = "heads = weights @ values", dropped(view.subject.config)
    if topics:
        code = "heads = dropout(weights) @ values"
        names["dropout"] = nn.Dropout(built(view.subject.config).dropout).eval()
    return WalkStep(
        "weighted-sum",
        N_("Weighted sum of the values"),
        ("weighted-sum", *topics),
        code,
        (
            seen("weights", N_("attention weights"), got("self_attention.weights"), view.pair),
            seen("values", N_("values"), got("self_attention.value"), f"B H K:{words} d_head"),
        ),
        (
            seen(
                "heads",
                N_("output of each head"),
                got("self_attention.heads"),
                f"B H Q:{words} d_head",
            ),
        ),
        about_one_weight(_token(view, min(1, view.sizes[1] - 1))),
        names=names,
        block=view.path,
    )


def _token(view: BlockView, position: int) -> str:
    tokens = view.subject.tokens(view.axis.partition(":")[2], view.example)
    return f"“{tokens[position]}”" if tokens else N_("position {n}", n=position)


def about_one_weight(token: str, *, is_state: bool = False) -> Question:
    """Ask what comes out where all the weight lies on one token.

    is_state: what is handed over are the encoder's states, as a recurrent model has no values.
    """
    right, other = N_("the value of {token}", token=token), N_("the key of {token}", token=token)
    if is_state:
        right = N_("the encoder's state at {token}", token=token)
        other = N_("the score of {token}", token=token)
    return choice_question(
        N_("With all its weight on {token}, what does a query get?", token=token),
        right,
        {
            other: N_("It only sets the weight."),
            N_("the query itself"): N_("The query only sets the weights."),
            N_("the mean of all tokens"): N_("That is what equal weights give."),
        },
        N_("1 times that value and 0 times the rest."),
    )


def merge(view: BlockView) -> WalkStep:
    """Concatenate the heads and mix them."""
    got, words = view.got, view.axis.partition(":")[2]
    batch, length, n_heads, d_head, d_model = view.sizes
    axes = f"B {view.axis} d_model"
    output = seen("output", N_("the attention's output"), got("self_attention.output"), axes)
    has_output = view.attention.has_output
    name, d_q = view.d_q
    code, made = f"output = heads.transpose(1, 2).reshape(B, Q, {name})", [output]
    names: dict[str, object] = {"B": batch, "Q": length, name: d_q}
    because = N_(
        "{n_heads} heads of {d_head} are {d_model} numbers.",
        n_heads=n_heads,
        d_head=d_head,
        d_model=d_model,
    )
    if has_output:
        code = f"merged{code.removeprefix('output')}\noutput = attention.out_projection(merged)"
        merged = seen(
            "merged",
            N_("heads side by side"),
            got("self_attention.merged"),
            f"B {view.axis} {name}",
        )
        made, names["attention"] = [merged, output], view.module("self_attention")
        because = Paragraph(
            "walk_questions/merged-width", n_heads=n_heads, d_head=d_head, d_model=d_model
        )
        if view.attention.has_own_width:
            because = N_(
                "{n_heads} heads of {d_head} are {d_q} numbers; the matrix maps them to {d_model}.",
                n_heads=n_heads,
                d_head=d_head,
                d_q=d_q,
                d_model=d_model,
            )
    return WalkStep(
        "merge",
        N_("Merge the heads"),
        ("merge", *(("merge-output",) if has_output else view.mistakes(Projections))),
        code,
        (
            seen(
                "heads",
                N_("output of each head"),
                got("self_attention.heads"),
                f"B H Q:{words} d_head",
            ),
        ),
        tuple(made),
        shape_question(
            output,
            because,
            ((batch, length, d_head), N_("That is one head.")),
            ((batch, n_heads, length, d_model), N_("The heads share the last axis.")),
            ((batch, length, n_heads * d_model), N_("Each head brings d_head numbers.")),
            ((batch, d_model), N_("Every token keeps its own vector.")),
        ),
        names=names,
        block=view.path,
    )
