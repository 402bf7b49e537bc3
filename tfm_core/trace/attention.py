"""The steps of one self-attention: masks, projections, heads, scores, softmax, sum, merge."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from tfm_core.choices.config.shape import TextShape
from tfm_core.choices.variants.forms import CAUSALITIES, SCALES, Causality, Projections, Scale
from tfm_core.choices.variants.sinks import SINKS
from tfm_core.inspect.questions import Question, choice_question, number_question
from tfm_core.layers.masks import window_mask
from tfm_core.sentences import N_, Paragraph
from tfm_core.trace.steps import Step, StepTensor, View, shape_question
from tfm_core.trace.tokens import ids_seen


def masks(view: View) -> Step:
    """Which query may attend to which key."""
    subject, letter, words, length = view.subject, view.letter, view.words, view.sizes[1]
    config, order, mask = subject.config, subject.order, view.got("self_attention.mask")
    window, names = view.attention.window, dict[str, object]()
    near = " & near" if window else ""
    if window:
        names["near"] = window_mask(length, window)
    causal = f"torch.ones({{n}}, {{n}}, dtype=torch.bool){order.cut or ''}"
    both = ids_seen(view)
    tgt = both[-1]
    has_padding = subject.shape.pad_id is not None if isinstance(subject.shape, TextShape) else True
    inputs: tuple[StepTensor, ...] = ()
    outputs: tuple[StepTensor, ...] = (view.mask(mask),)
    if not has_padding and subject.reader != "encoder-decoder":
        code = f"mask = {causal.format(n='L')}.expand(B, 1, L, L){near}"
    elif letter == "L":  # source and target in one sequence
        src, tgt_ids = subject.inputs
        n = (src != 0).sum(1, keepdim=True) + (tgt_ids != 0).sum(1, keepdim=True)
        keep = torch.arange(length, device=mask.device) < n
        inputs = (view.seen("keep", N_("1 = a token, 0 = padding"), keep, "B L:sequence"),)
        code = f"mask = keep[:, None, None, :] & {causal.format(n='L')}{near}"
    elif words == "slots":  # of an encoder alone
        has_slots = subject.reader == "encoder-only"
        label = N_("source ids, with slots") if has_slots else N_("text ids")
        inputs = (view.seen("src", label, "src_embedding.ids", "B S:slots"),)
        code = f"mask = (src != 0)[:, None, None, :]{near}"
    elif letter == "T":  # pictures have no padding: the caption alone has a mask
        inputs, outputs = (tgt,), (view.target_mask(mask),)
        code = f"tgt_mask = (tgt != 0)[:, None, None, :] & {causal.format(n='T')}"
    else:
        inputs, names["T"] = both, tgt.value.size(1)
        first = getattr(config, "window", 0)  # of the target: the first block is shown
        near_tgt = " & near_tgt" if first else ""
        if first:
            names["near_tgt"] = window_mask(tgt.value.size(1), first)
        code = _of_both(has_padding, causal.format(n="T"), near, near_tgt)
        tgt_mask = subject.cache["decoder.layers.0.self_attention.mask"]
        outputs = (*outputs, view.target_mask(tgt_mask))
    topics = [f"masks-{subject.reader}" if has_padding else "masks-no-padding"]
    if order.sees_future:
        topics = [*(["masks-padding"] if has_padding else []), *view.mistakes(Causality)]
    if getattr(config, "window", 0):
        topics.append("window-by-layer" if getattr(config, "full_every", 0) else "window")
    return view.step(
        N_("Masks"),
        ("masks", *topics),
        code,
        _mask_question(view, outputs[-1], has_padding=has_padding),
        *inputs,
        *outputs,
        names=names,
        shown=outputs[-1].name,
    )


def _of_both(has_padding: bool, causal: str, near: str, near_tgt: str) -> str:
    """Return the code of an encoder's and a decoder's masks."""
    if has_padding:
        return (
            f"mask = (src != 0)[:, None, None, :]{near}\n"
            f"tgt_mask = (tgt != 0)[:, None, None, :] & {causal}{near_tgt}"
        )
    return (
        f"mask = torch.ones_like(src, dtype=torch.bool)[:, None, None, :]{near}\n"
        f"tgt_mask = ({causal}{near_tgt}).expand(len(tgt), 1, -1, -1)"
    )


def _mask_question(view: View, mask: StepTensor, *, has_padding: bool) -> Question:
    subject, n_rows, n_keys = view.subject, mask.shape[2], mask.shape[3]
    if not mask.has_values:
        return _mask_shape(mask, is_triangle=not has_padding and subject.order.cut is not None)
    row = min(2, n_rows - 1)
    n = int(mask.value[view.example, 0, row].sum())
    text = N_("By `{name}`, to how many keys may each query attend?", name=mask.name)
    because = N_("{n}: the ones in the mask's only row.", n=n)
    hint = N_("Every token may be read, but no padding.")
    if n_rows > 1:
        names = subject.tokens(mask.words[2], view.example)
        text = N_("By `{name}`, how many keys may query {row} attend to?", name=mask.name, row=row)
        if names:
            text = N_(
                "By `{name}`, how many keys may query {row}, “{token}”, attend to?",
                name=mask.name,
                row=row,
                token=names[row],
            )
        because = N_("{n}: the ones in its row of the mask.", n=n)
        hint = N_("Positions count from 0, and a query may read itself.")
        if n == row + 1:
            because = N_("{n}: positions 0 to {row}.", n=n, row=row)
    wrong = {n_keys: N_("The mask hides some of these keys.")}
    if n_rows > 1 and n == row + 1:
        wrong[row] = N_("Positions count from 0, and a query may read itself.")
    return number_question(text, n, because, wrong=wrong, hint=hint, values=(mask.name,))


def _mask_shape(mask: StepTensor, *, is_triangle: bool) -> Question:
    batch, _, n_rows, n_keys = mask.shape
    without_heads = (batch, n_rows, n_keys), N_("B would be broadcast against H.")
    swapped = (batch, n_rows, 1, n_keys), N_("Heads come second, queries third.")
    if is_triangle:
        return shape_question(
            mask,
            Paragraph("walk_questions/triangle-shape"),
            without_heads,
            swapped,
            ((batch, 1, 1, n_keys), N_("One row for all queries is no triangle.")),
            ((n_rows, n_keys), N_("That is the triangle before it is expanded.")),
        )
    reason = N_("Padding differs by example; heads and queries share the mask.")
    if n_rows > 1:
        reason = N_("Padding differs by example, and each query has a row; heads share the mask.")
    return shape_question(
        mask,
        reason,
        without_heads,
        ((batch, 1, 1, n_keys), N_("The future differs by query.")),
        swapped,
        ((n_rows, n_keys), N_("Padding differs by example.")),
        ((batch, 1, n_keys, 1), N_("That hides queries; padding would still be read as a key.")),
    )


def heads(view: View) -> Step:
    """The one condition on the number of heads; none where they have a width of their own."""
    *_, n_heads, d_head, d_model = view.sizes
    sizes = {"n_heads": n_heads, "d_head": d_head, "d_model": d_model}
    name, n = view.d_q
    projection = view.module("self_attention").get_submodule("in_projection").weight
    assert isinstance(projection, Tensor)
    weight = projection.detach()[:n]
    per_head = weight.view(n_heads, d_head, d_model)
    title, label = N_("Heads must divide d_model"), N_("matrix of the queries")
    topics: tuple[str, ...] = ("heads", "heads-whole")
    code = "per_head = weight.view(H, d_head, d_model)"
    if view.attention.is_sliced:
        topics = ("heads", "heads-sliced")
        label = N_("matrix of the queries, 0 outside each head's slice")
    if view.attention.has_own_width:
        title, topics = N_("Heads of their own width"), ("heads-own-width",)
        question = number_question(
            N_(
                "There are {n_heads} heads, each {d_head} wide. How many numbers are a token's "
                "queries?",
                **sizes,
            ),
            n,
            N_("{n_heads} x {d_head} = {n}.", **sizes, n=n),
            wrong={
                d_model: N_("That is the width of the vector that they are made of."),
                d_head: N_("That is one head."),
            },
            hint=N_("Each head brings d_head numbers."),
            shapes=("per_head",),
        )
    else:
        code = f"d_head = d_model // H\n{code}"
        question = number_question(
            N_(
                "d_model is {d_model} and there are {n_heads} heads. How wide is one head?", **sizes
            ),
            d_head,
            N_("{d_model} / {n_heads} = {d_head}.", **sizes),
            wrong={
                d_model: N_("That is the whole vector."),
                d_model * n_heads: N_("The heads share the vector."),
                n_heads: N_("That is the number of heads."),
            },
            hint=N_("The heads share d_model equally."),
            shapes=("per_head",),
        )
    return view.step(
        title,
        topics,
        code,
        question,
        view.seen("weight", label, weight, f"{name} d_model"),
        view.seen("per_head", N_("its rows, by head"), per_head, "H d_head d_model"),
    )


def projections(view: View) -> Step:
    """Queries, keys and values of every token."""
    *_, n_heads, d_head, d_model = view.sizes
    queries, d_q = view.d_q
    attention = view.attention
    projection = view.module("self_attention").get_submodule("in_projection")
    n = sum(parameter.numel() for parameter in projection.parameters())
    sizes = {"n_heads": n_heads, "d_head": d_head, "d_model": d_model, "d_q": d_q, "n": n}

    def bias(size: int) -> str:
        return f" + {size}" if attention.has_bias else ""

    because = N_(
        "3 x ({d_model} x {d_model}{bias}) = {n:,}, for any number of heads.",
        **sizes,
        bias=bias(d_q),
    )
    wrong = {
        n // 3: N_("That is one of the three."),
        3 * d_model * d_q: N_("Each of the three has a bias too."),
        n * n_heads: N_("Heads cut the same matrices into pieces."),
    }
    hint = N_("Each of the three maps {d_model} numbers to {d_model}.", **sizes)
    topics: tuple[str, ...] = ("projections-whole",)
    code, names = "q, k, v = attention.in_projection(x).chunk(3, -1)", dict[str, object]()
    if attention.has_own_width:
        because = N_("3 x ({d_model} x {d_q}{bias}) = {n:,}.", **sizes, bias=bias(d_q))
        hint = N_("Each of the three maps {d_model} numbers to {d_q}.", **sizes)
        topics = ("projections-own",)
    if attention.is_sliced:
        topics = ("projections-sliced", *view.mistakes(Projections))
        code, names = _sliced(projection, d_model)
        wrong = {n // 3: wrong[n // 3]}
        hint = N_("Each head maps {d_head} numbers to {d_head}, three times.", **sizes)
        because = N_(
            "3 x {n_heads} x ({d_head} x {d_head}{bias}) = {n:,}.", **sizes, bias=bias(d_head)
        )
    if attention.n_kv_heads:
        d_kv = attention.n_kv_heads * d_head
        width = d_q + 2 * d_kv
        topics, names["d_kv"] = ("projections-grouped",), d_kv
        code = f"q, k, v = attention.in_projection(x).split([{queries}, d_kv, d_kv], -1)"
        wrong = {3 * (n // width) * d_q: N_("Keys and values have fewer rows.")}
        hint = N_("Queries are {d_q} numbers, keys and values {d_kv} each.", **sizes, d_kv=d_kv)
        because = N_(
            "{d_model} x {width}{bias} = {n:,}: {d_q} + 2 x {d_kv} = {width} numbers a token.",
            **sizes,
            d_kv=d_kv,
            width=width,
            bias=bias(width),
        )
    x = view.got("self_attention.query_input")
    text = N_("How many parameters do the three projections have?")
    return view.step(
        N_("Queries, keys and values"),
        ("projections", *topics),
        code,
        number_question(text, n, because, wrong=wrong, hint=hint),
        view.seen("x", N_("the attention's input"), x, "B {tokens} d_model"),
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


def split(view: View) -> Step:
    """Every token's vector cut into one piece a head."""
    batch, length, n_heads, d_head, d_model = view.sizes
    axes, kind, extra = "B H {tokens} d_head", view.relative, list[StepTensor]()
    topics: tuple[str, ...] = ("split", *["split-grouped"][: view.attention.n_kv_heads])
    if view.attention.has_qk_norm:
        normed = view.got("self_attention.normed_query")
        extra = [view.seen("normed", N_("queries, normed"), normed, axes)]
        topics = (*topics, "qk-norm")
    if kind is not None and kind.inside_title and kind.acts_on == "queries and keys":
        turned = view.got("self_attention.query")
        extra = [view.seen("turned", kind.inside_title, turned, axes), *extra]
        topics = (*topics, f"inside-{kind.name}")
    queries = view.got("self_attention.split_query")
    by_head = view.seen("queries", N_("queries, by head"), queries, axes)
    return view.step(
        N_("Split into heads"),
        topics,
        f"split = q.view(B, {view.letter}, H, d_head)\nqueries = split.transpose(1, 2)"
        + ("" if view.attention.n_kv_heads else "  # k and v alike"),
        shape_question(
            by_head,
            N_("The transpose swaps tokens and heads."),
            ((batch, length, n_heads, d_head), N_("That is before the transpose.")),
            ((batch, n_heads, length, d_model), N_("Each head has only d_head numbers.")),
            ((batch, n_heads, d_head, length), N_("d_head stays last.")),
            ((batch * n_heads, length, d_head), N_("Heads have an axis of their own.")),
        ),
        view.seen("split", N_("cut"), queries.transpose(1, 2), "B {tokens} H d_head"),
        by_head,
        *extra,
        view.seen("keys", N_("keys, by head"), view.got("self_attention.key"), axes),
        view.seen("values", N_("values, by head"), view.got("self_attention.value"), axes),
        is_inside=True,
    )


SINK_CODE = """\
column = sink[:, None, None].expand(*{scores}.shape[:-1], 1)
weights = torch.cat([{scores}, column], -1).softmax(-1)[..., :-1]"""
"""Weights of scores where a sink takes a part of each row."""


def scores(view: View) -> Step:
    """How well every query matches every key."""
    batch, length, n_heads, d_head, _ = view.sizes
    bias, scale, kind = list[StepTensor](), SCALES[view.attention.scale], view.relative
    code = f"scores = {scores_code(scale.name)}"
    topics: tuple[str, ...] = ("scores", "scores-scaled")
    if scale.width != "d_head":
        topics = ("scores", "scores-wrongly-scaled", *view.mistakes(Scale))
    if kind is not None and kind.inside_title and kind.acts_on == "scores":
        added = view.got("self_attention.bias")
        bias = [view.seen("bias", kind.inside_title, added, "H Q:{words} K:{words}")]
        code += " + bias"
        topics = (*topics, f"inside-{kind.name}")
    return view.step(
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


def masking(view: View) -> Step:
    """Set hidden scores to the lowest number of their type."""
    masked, mask = view.got("self_attention.masked_scores"), view.got("self_attention.mask")
    order, has_padding = view.order, getattr(view.subject.shape, "pad_id", 0) is not None
    topics: tuple[str, ...] = ("causal" if has_padding else "causal-no-padding",)
    if order is not None and order.sees_future:
        topics = (*["padding"][:has_padding], *view.mistakes(Causality))
    elif order is None and has_padding:
        topics = ("padding",)
    cut = view.subject.order.cut
    return view.step(
        N_("Mask"),
        ("masking", *topics),
        "masked = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)",
        _reach_of(mask, masked, cut) if masked.is_meta else _hidden_by(mask, masked, view.example),
        is_inside=True,
    )


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
    sizes = {"n_heads": n_heads, "n_queries": n_queries, "n_keys": n_keys}
    if mask.size(2) == 1:
        n = n_heads * n_queries
        return number_question(
            N_("How many scores of its example does one entry of this mask decide?"),
            n,
            N_("{n_heads} heads x {n_queries} queries = {n}.", **sizes, n=n),
            wrong={
                1: N_("Axes of size 1 are broadcast over heads and queries."),
                n_heads: N_("It decides for every query, too."),
                n_queries: N_("It decides for every head."),
                n_queries * n_keys: N_("An entry covers one key."),
            },
            hint=N_("One key has a score per head and query."),
        )
    n = n_keys * (n_keys - 1) // 2
    if cut is None:
        return number_question(
            Paragraph("walk_questions/hidden-scores", n_queries=n_queries, n_keys=n_keys),
            0,
            N_("None: there is no causal mask"),
            wrong={n: N_("That is what a causal mask would hide.")},
            hint=N_("Which keys does the mask hide?"),
        )
    because = N_("{n_keys} x ({n_keys} - 1) / 2 = {n}: all below the diagonal.", **sizes, n=n)
    hint = N_("A query may not read earlier keys.")
    if cut == CAUSALITIES["causal"].cut:
        because = N_("{n_keys} x ({n_keys} - 1) / 2 = {n}: all above the diagonal.", **sizes, n=n)
        hint = N_("A query may not read later keys.")
    return number_question(
        Paragraph("walk_questions/triangle", n_queries=n_queries, n_keys=n_keys),
        n,
        because,
        wrong={
            n + n_keys: N_("The diagonal stays: a token may read itself."),
            n_keys**2 // 2: N_("Not half of them: the diagonal stays."),
        },
        hint=hint,
    )


def softmax(view: View) -> Step:
    """Turn scores into weights."""
    masked = view.got("self_attention.masked_scores")
    code, topic, names = "weights = masked.softmax(-1)", "softmax", dict[str, object]()
    if SINKS[view.attention.sink].is_there:
        names["sink"] = view.got("self_attention.sink").detach()
        code, topic = SINK_CODE.format(scores="masked"), "softmax-sink"
    if view.has("self_attention.mask"):
        code += ".masked_fill(~mask, 0.0)"
    is_right = view.attention.scale == "sqrt-d-head"
    return view.step(
        N_("Softmax"),
        (topic, "softmax-scaled" if is_right else "softmax-wrongly-scaled"),
        code,
        _scale_question(view) if is_right else _right_scale_question(view),
        view.seen("masked", N_("scores"), masked, "B H Q:{words} K:{words}"),
        is_inside=True,
        names=names,
    )


def _scale_question(view: View) -> Question:
    *_, n_heads, d_head, d_model = view.sizes
    text = Paragraph("walk_questions/scale")
    evenly, sharply, alike = N_("more evenly"), N_("more sharply"), N_("exactly alike")
    if view.attention.has_own_width:
        answer = evenly if d_model > d_head else sharply if d_model < d_head else alike
        roots = N_(
            "The divisor would be sqrt({d_model}), not sqrt({d_head}).",
            d_model=d_model,
            d_head=d_head,
        )
        return choice_question(text, answer, dict.fromkeys((evenly, sharply, alike), roots), roots)
    if n_heads == 1:
        same = N_("With one head, d_head is d_model.")
        return choice_question(text, alike, {evenly: same, sharply: same}, same)
    wrong: dict[str, str] = {
        sharply: N_("A larger divisor brings the scores closer together."),
        alike: N_("With {n} heads, sqrt(d_model) is the larger divisor.", n=n_heads),
    }
    reason = Paragraph("walk_questions/scale-reason", n=n_heads)
    return choice_question(text, evenly, wrong, reason)


def _right_scale_question(view: View) -> Question:
    """Ask what the right scale would do, of a model that has another."""
    evenly, sharply, alike = N_("more evenly"), N_("more sharply"), N_("exactly alike")
    *_, d_head, d_model = view.sizes
    sizes = {"d_head": d_head, "d_model": d_model}
    here = 1.0 if SCALES[view.attention.scale].width is None else math.sqrt(d_model)
    right = math.sqrt(d_head)
    answer = alike if here == right else evenly if here < right else sharply
    because = {
        evenly: N_(
            "sqrt({d_head}) is the larger divisor: scores would be closer together.", **sizes
        ),
        sharply: N_(
            "sqrt({d_head}) is smaller than sqrt({d_model}): scores would be further apart.",
            **sizes,
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


def weighted_sum(view: View) -> Step:
    """The weighted sum of the values."""
    position = min(1, view.sizes[1] - 1)
    tokens = view.subject.tokens(view.words, view.example)
    return view.step(
        N_("Weighted sum of the values"),
        ("weighted-sum", *view.dropped),
        "heads = dropout(weights) @ values" if view.dropped else "heads = weights @ values",
        about_one_weight(f"“{tokens[position]}”" if tokens else N_("position {n}", n=position)),
        is_inside=True,
    )


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


def merge(view: View) -> Step:
    """Concatenate the heads and mix them."""
    batch, length, n_heads, d_head, d_model = view.sizes
    name, d_q = view.d_q
    sizes = {"n_heads": n_heads, "d_head": d_head, "d_model": d_model}
    merged, topics = f"heads.transpose(1, 2).reshape(B, Q, {name})", view.mistakes(Projections)
    code = f"output = {merged}"
    because = N_("{n_heads} heads of {d_head} are {d_model} numbers.", **sizes)
    if view.attention.has_output:
        code, topics = (
            f"merged = {merged}\noutput = attention.out_projection(merged)",
            ("merge-output",),
        )
        because = Paragraph("walk_questions/merged-width", **sizes)
        if view.attention.has_own_width:
            because = N_(
                "{n_heads} heads of {d_head} are {d_q} numbers; the matrix maps them to {d_model}.",
                **sizes,
                d_q=d_q,
            )
    return view.step(
        N_("Merge the heads"),
        ("merge", *topics),
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
    )
