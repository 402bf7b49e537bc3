"""The steps of one self-attention: projections, heads, scores, mask, softmax, sum, merge."""

from __future__ import annotations

import math

from torch import Tensor, nn

from tfm_core.choices.variants.forms import CAUSALITIES, SCALES, Causality, Projections, Scale
from tfm_core.choices.variants.sinks import SINKS
from tfm_core.inspect.questions import Question, choice_question, number_question
from tfm_core.inspect.walk.block_view import BlockView, dropped
from tfm_core.inspect.walk.steps import StepTensor, WalkStep, seen, shape_question
from tfm_core.sentences import N_, Paragraph


def heads(view: BlockView) -> WalkStep:
    """The one condition on the number of heads; none where they have a width of their own."""
    *_, n_heads, d_head, d_model = view.sizes
    n = view.d_q[1]
    projection = view.module("self_attention").get_submodule("in_projection").weight
    assert isinstance(projection, Tensor)
    weight = projection.detach()[:n]
    per_head = weight.view(n_heads, d_head, d_model)
    is_sliced, is_own = view.attention.is_sliced, view.attention.has_own_width
    title, topics = N_("Heads must divide d_model"), ["heads", "heads-whole"]
    code = "d_head = d_model // H\nper_head = weight.view(H, d_head, d_model)"
    label = N_("matrix of the queries")
    question = number_question(
        N_(
            "d_model is {d_model} and there are {n_heads} heads. How wide is one head?",
            d_model=d_model,
            n_heads=n_heads,
        ),
        d_head,
        N_("{d_model} / {n_heads} = {d_head}.", d_model=d_model, n_heads=n_heads, d_head=d_head),
        wrong={
            d_model: N_("That is the whole vector."),
            d_model * n_heads: N_("The heads share the vector."),
            n_heads: N_("That is the number of heads."),
        },
        hint=N_("The heads share d_model equally."),
        shapes=("per_head",),
    )
    if is_sliced:
        topics = ["heads", "heads-sliced"]
        label = N_("matrix of the queries, 0 outside each head's slice")
    if is_own:
        title, topics = N_("Heads of their own width"), ["heads-own-width"]
        code = "per_head = weight.view(H, d_head, d_model)"
        question = number_question(
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
        )
    return view.step(
        "heads",
        title,
        topics,
        code,
        question,
        seen("weight", label, weight, f"{view.d_q[0]} d_model"),
        seen("per_head", N_("its rows, by head"), per_head, "H d_head d_model"),
    )


def projections(view: BlockView) -> WalkStep:
    """Queries, keys and values of every token."""
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
        code, names = _sliced(projection, d_model)
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
        names["d_kv"] = d_kv
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
    x = view.got("self_attention.query_input")
    return view.step(
        "queries-keys-values",
        N_("Queries, keys and values"),
        topics,
        code,
        number_question(
            N_("How many parameters do the three projections have?"),
            n,
            because,
            wrong=wrong,
            hint=hint,
        ),
        seen("x", N_("the attention's input"), x, f"B {view.axis} d_model"),
        is_inside=True,
        names=names,
    )


def _sliced(projection: nn.Module, d_model: int) -> tuple[str, dict[str, object]]:
    """Return the code of heads that each map their own slice, and the names that it uses."""
    code = "slices = x.unflatten(-1, (H, d_head))\n"
    code += 'q, k, v = torch.einsum("bthd,phed->pbthe", slices, matrices).flatten(-2)'
    matrices = projection.get_parameter("heads").detach()
    names: dict[str, object] = {"matrices": matrices}
    if getattr(projection, "bias", None) is not None:
        code += " + bias"
        names["bias"] = projection.get_parameter("bias").detach().view(3, 1, 1, d_model)
    return code, names


def split(view: BlockView) -> WalkStep:
    """Every token's vector cut into one piece a head."""
    batch, length, n_heads, d_head, d_model = view.sizes
    name, axes = view.axis.partition(":")[0], f"B H {view.axis} d_head"
    extra: list[StepTensor] = []
    topics: tuple[str, ...] = ("split", *["split-grouped"][: view.attention.n_kv_heads])
    kind = view.relative
    if view.attention.has_qk_norm:
        normed = view.got("self_attention.normed_query")
        extra = [seen("normed", N_("queries, normed"), normed, axes)]
        topics = (*topics, "qk-norm")
    if kind is not None and kind.inside_title and kind.acts_on == "queries and keys":
        turned = view.got("self_attention.query")
        extra = [seen("turned", kind.inside_title, turned, axes), *extra]
        topics = (*topics, f"inside-{kind.name}")
    queries = view.got("self_attention.split_query")
    by_head = seen("queries", N_("queries, by head"), queries, axes)
    return view.step(
        "split",
        N_("Split into heads"),
        topics,
        f"split = q.view(B, {name}, H, d_head)\nqueries = split.transpose(1, 2)"
        + ("" if view.attention.n_kv_heads else "  # k and v alike"),
        shape_question(
            by_head,
            N_("The transpose swaps tokens and heads."),
            ((batch, length, n_heads, d_head), N_("That is before the transpose.")),
            ((batch, n_heads, length, d_model), N_("Each head has only d_head numbers.")),
            ((batch, n_heads, d_head, length), N_("d_head stays last.")),
            ((batch * n_heads, length, d_head), N_("Heads have an axis of their own.")),
        ),
        seen("split", N_("cut"), queries.transpose(1, 2), f"B {view.axis} H d_head"),
        by_head,
        *extra,
        seen("keys", N_("keys, by head"), view.got("self_attention.key"), axes),
        seen("values", N_("values, by head"), view.got("self_attention.value"), axes),
        is_inside=True,
    )


def weighted_sum(view: BlockView) -> WalkStep:
    """The weighted sum of the values."""
    topics = dropped(view.subject.config)
    return view.step(
        "weighted-sum",
        N_("Weighted sum of the values"),
        ("weighted-sum", *topics),
        "heads = dropout(weights) @ values" if topics else "heads = weights @ values",
        about_one_weight(_token(view, min(1, view.sizes[1] - 1))),
        is_inside=True,
        names={"dropout": view.module("dropout")},
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
    batch, length, n_heads, d_head, d_model = view.sizes
    has_output = view.attention.has_output
    name, d_q = view.d_q
    code = f"output = heads.transpose(1, 2).reshape(B, Q, {name})"
    because = N_(
        "{n_heads} heads of {d_head} are {d_model} numbers.",
        n_heads=n_heads,
        d_head=d_head,
        d_model=d_model,
    )
    if has_output:
        code = f"merged{code.removeprefix('output')}\noutput = attention.out_projection(merged)"
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
    return view.step(
        "merge",
        N_("Merge the heads"),
        ("merge", *(("merge-output",) if has_output else view.mistakes(Projections))),
        code,
        shape_question(
            view.attended("output"),
            because,
            ((batch, length, d_head), N_("That is one head.")),
            ((batch, n_heads, length, d_model), N_("The heads share the last axis.")),
            ((batch, length, n_heads * d_model), N_("Each head brings d_head numbers.")),
            ((batch, d_model), N_("Every token keeps its own vector.")),
        ),
        is_inside=True,
        names={"attention": view.module("self_attention")},
    )


SINK_CODE = """\
column = sink[:, None, None].expand(*{scores}.shape[:-1], 1)
weights = torch.cat([{scores}, column], -1).softmax(-1)[..., :-1]"""
"""Weights of scores where a sink takes a part of each row."""


def scores(view: BlockView) -> WalkStep:
    """How well every query matches every key."""
    batch, length, n_heads, d_head, _ = view.sizes
    bias: list[StepTensor] = []
    scale = SCALES[view.attention.scale]
    code = f"scores = {scores_code(scale.name)}"
    is_right = scale.width == "d_head"
    topics: tuple[str, ...] = ("scores", "scores-scaled")
    if not is_right:
        topics = ("scores", "scores-wrongly-scaled", *view.mistakes(Scale))
    kind = view.relative
    if kind is not None and kind.inside_title and kind.acts_on == "scores":
        words = view.axis.partition(":")[2]
        added = view.got("self_attention.bias")
        bias = [seen("bias", kind.inside_title, added, f"H Q:{words} K:{words}")]
        code += " + bias"
        topics = (*topics, f"inside-{kind.name}")
    return view.step(
        "scores",
        N_("Scores, scaled") if scale.width else N_("Scores, not scaled"),
        topics,
        code,
        shape_question(
            view.attended("scores"),
            N_("Every query meets every key, in every head."),
            ((batch, n_heads, length, d_head), N_("The dot product sums over d_head.")),
            ((batch, length, length), N_("Each of the {n} heads has its own scores.", n=n_heads)),
            ((batch, length, n_heads, length), N_("Heads come before queries.")),
            ((batch, n_heads, d_head, d_head), N_("That is keys.mT @ queries: a sum over tokens.")),
        ),
        *bias,
        is_inside=True,
    )


def scores_code(scale: str) -> str:
    """Return the expression of the scores of queries and keys. scale: a name of SCALES."""
    width = SCALES[scale].width
    return "queries @ keys.mT" + (f" / math.sqrt({width})" if width else "")


def masking(view: BlockView) -> WalkStep:
    """Set hidden scores to the lowest number of their type."""
    masked, mask = view.got("self_attention.masked_scores"), view.got("self_attention.mask")
    cut = view.subject.order.cut
    return view.step(
        "masking",
        N_("Mask"),
        ("masking", *_hidden(view)),
        "masked = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)",
        _reach_of(mask, masked, cut) if masked.is_meta else _hidden_by(mask, masked, view.example),
        is_inside=True,
    )


def _hidden(view: BlockView) -> tuple[str, ...]:
    """Return the topics on what the mask hides."""
    has_padding = getattr(view.subject.shape, "pad_id", 0) is not None
    order = view.order
    if order is not None and order.sees_future:
        return (*(["padding"] if has_padding else []), *view.mistakes(Causality))
    if not has_padding:
        return ("causal-no-padding",)
    return ("padding",) if order is None else ("causal",)


def _hidden_by(mask: Tensor, masked: Tensor, example: int) -> Question:
    n_queries, total = masked.size(-2), masked.size(-1) * masked.size(-2)
    n = int((~mask.expand_as(masked)[example, 0]).sum())
    wrong = {total - n: N_("That is how many stay.")}
    if mask.size(2) == 1 and n:
        wrong[n // n_queries] = N_("That is one row, for {n} queries.", n=n_queries)
    return number_question(
        N_(
            "How many of the {total} scores of this example's first head does the mask hide?",
            total=total,
        ),
        n,
        N_("{n} of {total}: the mask's zeros; a single row serves every query.", n=n, total=total),
        wrong=wrong,
        hint=N_("Each 0 of the mask hides a score; a single row serves every query."),
        values=("masked",),
    )


def _reach_of(mask: Tensor, masked: Tensor, cut: str | None) -> Question:
    """Ask what a mask does by its shape alone. cut: what is cut from it, see ``Causality``."""
    _, n_heads, n_queries, n_keys = masked.shape
    if mask.size(2) == 1:
        n = n_heads * n_queries
        return number_question(
            N_("How many scores of its example does one entry of this mask decide?"),
            n,
            N_(
                "{n_heads} heads x {n_queries} queries = {n}.",
                n_heads=n_heads,
                n_queries=n_queries,
                n=n,
            ),
            wrong={
                1: N_("Axes of size 1 are broadcast over heads and queries."),
                n_heads: N_("It decides for every query, too."),
                n_queries: N_("It decides for every head."),
                n_queries * n_keys: N_("An entry covers one key."),
            },
            hint=N_("One key has a score per head and query."),
        )
    if cut is None:
        return number_question(
            Paragraph("walk_questions/hidden-scores", n_queries=n_queries, n_keys=n_keys),
            0,
            N_("None: there is no causal mask"),
            wrong={n_keys * (n_keys - 1) // 2: N_("That is what a causal mask would hide.")},
            hint=N_("Which keys does the mask hide?"),
        )
    n = n_keys * (n_keys - 1) // 2
    return number_question(
        Paragraph("walk_questions/triangle", n_queries=n_queries, n_keys=n_keys),
        n,
        N_("{n_keys} x ({n_keys} - 1) / 2 = {n}: all above the diagonal.", n_keys=n_keys, n=n)
        if cut == CAUSALITIES["causal"].cut
        else N_("{n_keys} x ({n_keys} - 1) / 2 = {n}: all below the diagonal.", n_keys=n_keys, n=n),
        wrong={
            n + n_keys: N_("The diagonal stays: a token may read itself."),
            n_keys**2 // 2: N_("Not half of them: the diagonal stays."),
        },
        hint=N_("A query may not read later keys.")
        if cut == CAUSALITIES["causal"].cut
        else N_("A query may not read earlier keys."),
    )


def softmax(view: BlockView) -> WalkStep:
    """Turn scores into weights."""
    scale, masked = view.attention.scale, view.got("self_attention.masked_scores")
    words = view.axis.partition(":")[2]
    code, topic, names = "weights = masked.softmax(-1)", "softmax", dict[str, object]()
    if SINKS[view.attention.sink].is_there:
        names["sink"] = view.got("self_attention.sink").detach()
        code, topic = SINK_CODE.format(scores="masked"), "softmax-sink"
    if view.has("self_attention.mask"):
        code += ".masked_fill(~mask, 0.0)"
    return view.step(
        "softmax",
        N_("Softmax"),
        (topic, "softmax-scaled" if scale == "sqrt-d-head" else "softmax-wrongly-scaled"),
        code,
        _scale_question(view) if scale == "sqrt-d-head" else _right_scale_question(view),
        seen("masked", N_("scores"), masked, f"B H Q:{words} K:{words}"),
        is_inside=True,
        names=names,
    )


def _scale_question(view: BlockView) -> Question:
    *_, n_heads, d_head, d_model = view.sizes
    evenly, sharply, alike = N_("more evenly"), N_("more sharply"), N_("exactly alike")
    if view.attention.has_own_width:
        answer = evenly if d_model > d_head else sharply if d_model < d_head else alike
        roots = N_(
            "The divisor would be sqrt({d_model}), not sqrt({d_head}).",
            d_model=d_model,
            d_head=d_head,
        )
        others: dict[str, str] = {one: roots for one in (evenly, sharply, alike) if one != answer}
        return choice_question(Paragraph("walk_questions/scale"), answer, others, roots)
    text, same = Paragraph("walk_questions/scale"), N_("With one head, d_head is d_model.")
    if n_heads == 1:
        return choice_question(text, alike, {evenly: same, sharply: same}, same)
    wrong: dict[str, str] = {
        sharply: N_("A larger divisor brings the scores closer together."),
        alike: N_("With {n} heads, sqrt(d_model) is the larger divisor.", n=n_heads),
    }
    reason = Paragraph("walk_questions/scale-reason", n=n_heads)
    return choice_question(text, evenly, wrong, reason)


def _right_scale_question(view: BlockView) -> Question:
    """Ask what the right scale would do, of a model that has another."""
    evenly, sharply, alike = N_("more evenly"), N_("more sharply"), N_("exactly alike")
    *_, d_head, d_model = view.sizes
    here = 1.0 if SCALES[view.attention.scale].width is None else math.sqrt(d_model)
    right = math.sqrt(d_head)
    answer = alike if here == right else evenly if here < right else sharply
    because = {
        evenly: N_(
            "sqrt({d_head}) is the larger divisor: scores would be closer together.", d_head=d_head
        ),
        sharply: N_(
            "sqrt({d_head}) is smaller than sqrt({d_model}): scores would be further apart.",
            d_head=d_head,
            d_model=d_model,
        ),
        alike: N_("Both divisors are equal here."),
    }[answer]
    wrong: dict[str, str] = {
        evenly: N_("Only a larger divisor brings scores closer together."),
        sharply: N_("Only a smaller divisor spreads the scores."),
        alike: N_("The divisor changes the spread of the scores."),
    }
    text = N_("How would the weights spread with scores divided by sqrt(d_head)?")
    return choice_question(text, answer, wrong, because)
