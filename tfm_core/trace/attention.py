"""The steps of one self-attention: masks, projections, heads, scores, softmax, sum, merge."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from tfm_core.choices.config.shape import TextShape
from tfm_core.choices.variants.forms import CAUSALITIES, SCALES, Causality, Projections, Scale
from tfm_core.choices.variants.sinks import SINKS
from tfm_core.inspect.questions import Question
from tfm_core.layers.masks import window_mask
from tfm_core.sentences import N_
from tfm_core.trace.steps import Step, StepTensor, View, ask_choice, ask_number, ask_shape
from tfm_core.trace.tokens import ids_seen


def masks(view: View) -> Step:
    """Which query may attend to which key."""
    subject, letter, words, length = view.subject, view.letter, view.words, view.sizes[1]
    config, order, mask = subject.config, subject.order, view.captured("self_attention.mask")
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
    batch, _, n_rows, n_keys = mask.shape
    if not mask.has_values:
        wrong = {
            "heads": (batch, n_rows, n_keys),
            "row": (batch, 1, 1, n_keys),
            "swapped": (batch, n_rows, 1, n_keys),
            "alone": (n_rows, n_keys),
        }
        if not has_padding and view.subject.order.cut is not None:
            return ask_shape("triangle_shape", mask, wrong)
        wrong["queries"] = (batch, 1, n_keys, 1)
        lines = {"reason": "reason_rows"} if n_rows > 1 else {}
        return ask_shape("mask_shape", mask, wrong, lines=lines)
    row, names = min(2, n_rows - 1), view.subject.tokens(mask.words[2], view.example)
    n, lines = int(mask.value[view.example, 0, row].sum()), dict[str, str]()
    numbers = {"keys": n_keys}
    if n_rows > 1:
        lines = {"text": "text_row", "because": "because_row", "hint": "hint_row"}
        if names:
            lines["text"] = "text_token"
        if n == row + 1:
            lines["because"], numbers["row"] = "because_first", row
    token = names[row] if names and n_rows > 1 else ""
    return ask_number(
        "masks",
        n,
        numbers,
        lines=lines,
        values=(mask.name,),
        name=mask.name,
        row=row,
        token=token,
    )


def heads(view: View) -> Step:
    """The one condition on the number of heads; none where they have a width of their own."""
    *_, n_heads, d_head, d_model = view.sizes
    sizes: dict[str, Any] = {"n_heads": n_heads, "d_head": d_head, "d_model": d_model}
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
        wrong = {"width": d_model, "one": d_head}
        question = ask_number("heads_own_width", n, wrong, shapes=("per_head",), **sizes)
    else:
        code = f"d_head = d_model // H\n{code}"
        wrong = {"whole": d_model, "product": d_model * n_heads, "number": n_heads}
        question = ask_number("heads", d_head, wrong, shapes=("per_head",), **sizes)
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
    wrong = {"third": n // 3, "unbiased": 3 * d_model * d_q, "heads": n * n_heads}
    n_biases, d_kv, kind = d_q, (attention.n_kv_heads or 0) * d_head, ""
    topics: tuple[str, ...] = ("projections-whole",)
    code, names = "q, k, v = attention.in_projection(x).chunk(3, -1)", dict[str, object]()
    if attention.has_own_width:
        topics, kind = ("projections-own",), "_own"
    if attention.is_sliced:
        topics, kind = ("projections-sliced", *view.mistakes(Projections)), "_sliced"
        code, names = _sliced(projection, d_model)
        wrong, n_biases = {"third": n // 3}, d_head
    width = d_q + 2 * d_kv
    if attention.n_kv_heads:
        topics, kind, names["d_kv"] = ("projections-grouped",), "_grouped", d_kv
        code = f"q, k, v = attention.in_projection(x).split([{queries}, d_kv, d_kv], -1)"
        wrong, n_biases = {"grouped": 3 * (n // width) * d_q}, width
    question = ask_number(
        "projections",
        n,
        wrong,
        lines={"because": f"because{kind}", "hint": f"hint{kind}"},
        n_heads=n_heads,
        d_head=d_head,
        d_model=d_model,
        d_q=d_q,
        d_kv=d_kv,
        width=width,
        bias=f" + {n_biases}" if attention.has_bias else "",
    )
    x = view.captured("self_attention.query_input")
    return view.step(
        N_("Queries, keys and values"),
        ("projections", *topics),
        code,
        question,
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
        normed = view.captured("self_attention.normed_query")
        extra = [view.seen("normed", N_("queries, normed"), normed, axes)]
        topics = (*topics, "qk-norm")
    if kind is not None and kind.inside_title and kind.acts_on == "queries and keys":
        turned = view.captured("self_attention.query")
        extra = [view.seen("turned", kind.inside_title, turned, axes), *extra]
        topics = (*topics, f"inside-{kind.name}")
    queries = view.captured("self_attention.split_query")
    by_head = view.seen("queries", N_("queries, by head"), queries, axes)
    return view.step(
        N_("Split into heads"),
        topics,
        f"split = q.view(B, {view.letter}, H, d_head)\nqueries = split.transpose(1, 2)"
        + ("" if view.attention.n_kv_heads else "  # k and v alike"),
        ask_shape(
            "split",
            by_head,
            {
                "before": (batch, length, n_heads, d_head),
                "wide": (batch, n_heads, length, d_model),
                "swapped": (batch, n_heads, d_head, length),
                "joined": (batch * n_heads, length, d_head),
            },
        ),
        view.seen("split", N_("cut"), queries.transpose(1, 2), "B {tokens} H d_head"),
        by_head,
        *extra,
        view.seen("keys", N_("keys, by head"), view.captured("self_attention.key"), axes),
        view.seen("values", N_("values, by head"), view.captured("self_attention.value"), axes),
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
        added = view.captured("self_attention.bias")
        bias = [view.seen("bias", kind.inside_title, added, "H Q:{words} K:{words}")]
        code += " + bias"
        topics = (*topics, f"inside-{kind.name}")
    return view.step(
        N_("Scores, scaled") if scale.width else N_("Scores, not scaled"),
        topics,
        code,
        ask_shape(
            "scores",
            view.attended("scores"),
            {
                "width": (batch, n_heads, length, d_head),
                "heads": (batch, length, length),
                "order": (batch, length, n_heads, length),
                "keys": (batch, n_heads, d_head, d_head),
            },
            n=n_heads,
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
    masked = view.captured("self_attention.masked_scores")
    mask = view.captured("self_attention.mask")
    order, has_padding = view.order, getattr(view.subject.shape, "pad_id", 0) is not None
    topics: tuple[str, ...] = ("causal" if has_padding else "causal-no-padding",)
    if order is not None and order.sees_future:
        topics = (*["padding"][:has_padding], *view.mistakes(Causality))
    elif order is None and has_padding:
        topics = ("padding",)
    return view.step(
        N_("Mask"),
        ("masking", *topics),
        "masked = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)",
        _masking_question(view, mask, masked),
        is_inside=True,
    )


def _masking_question(view: View, mask: Tensor, masked: Tensor) -> Question:
    """Ask how many scores a mask hides; of shapes alone, what it does by its shape."""
    _, n_heads, n_queries, n_keys = masked.shape
    sizes: dict[str, Any] = {"n_heads": n_heads, "n_queries": n_queries, "n_keys": n_keys}
    if not masked.is_meta:
        n, total = int((~mask.expand_as(masked)[view.example, 0]).sum()), n_queries * n_keys
        wrong = {"rest": total - n}
        if mask.size(2) == 1 and n:
            wrong["row"] = n // n_queries
        return ask_number("hidden_by", n, wrong, values=("masked",), total=total, **sizes)
    if mask.size(2) == 1:
        wrong = {"one": 1, "heads": n_heads, "queries": n_queries, "keys": n_queries * n_keys}
        return ask_number("reach", n_heads * n_queries, wrong, **sizes)
    n, cut = n_keys * (n_keys - 1) // 2, view.subject.order.cut
    if cut is None:
        return ask_number("hidden_scores", 0, {"causal": n}, **sizes)
    wrong = {"diagonal": n + n_keys, "half": n_keys**2 // 2}
    lines = {"because": "because_below", "hint": "hint_below"}
    is_causal = cut == CAUSALITIES["causal"].cut
    return ask_number("triangle", n, wrong, lines={} if is_causal else lines, **sizes)


def softmax(view: View) -> Step:
    """Turn scores into weights."""
    masked = view.captured("self_attention.masked_scores")
    code, topic, names = "weights = masked.softmax(-1)", "softmax", dict[str, object]()
    if SINKS[view.attention.sink].is_there:
        names["sink"] = view.captured("self_attention.sink").detach()
        code, topic = SINK_CODE.format(scores="masked"), "softmax-sink"
    if view.has_captured("self_attention.mask"):
        code += ".masked_fill(~mask, 0.0)"
    is_right = view.attention.scale == "sqrt-d-head"
    return view.step(
        N_("Softmax"),
        (topic, "softmax-scaled" if is_right else "softmax-wrongly-scaled"),
        code,
        _scale_question(view),
        view.seen("masked", N_("scores"), masked, "B H Q:{words} K:{words}"),
        is_inside=True,
        names=names,
    )


_SPREADS = ("evenly", "sharply", "alike")


def _scale_question(view: View) -> Question:
    """Ask what the wrong scale would do, or, of a model that has another, the right one."""
    *_, n_heads, d_head, d_model = view.sizes
    sizes: dict[str, Any] = {"d_head": d_head, "d_model": d_model}
    scale = SCALES[view.attention.scale]
    if scale.width != "d_head":
        here, right = 1.0 if scale.width is None else math.sqrt(d_model), math.sqrt(d_head)
        answer = "alike" if here == right else "evenly" if here < right else "sharply"
        lines = {"because": f"because_{answer}"}
        return ask_choice("right_scale", answer, _SPREADS, lines=lines, **sizes)
    answer, lines = "evenly", {}
    if view.attention.has_own_width:
        answer = "evenly" if d_model > d_head else "sharply" if d_model < d_head else "alike"
        lines = {f"{spread}_why": "roots" for spread in _SPREADS} | {"because": "roots"}
    elif n_heads == 1:
        answer = "alike"
        lines = {f"{spread}_why": "one_head" for spread in _SPREADS} | {"because": "one_head"}
    return ask_choice("scale", answer, _SPREADS, lines=lines, n=n_heads, **sizes)


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
    right, other = ("state", "score") if is_state else ("value", "key")
    return ask_choice("one_weight", right, (other, "query", "mean"), token=token)


def merge(view: View) -> Step:
    """Concatenate the heads and mix them."""
    batch, length, n_heads, d_head, d_model = view.sizes
    name, d_q = view.d_q
    merged, topics = f"heads.transpose(1, 2).reshape(B, Q, {name})", view.mistakes(Projections)
    code, lines = f"output = {merged}", dict[str, str]()
    if view.attention.has_output:
        code = f"merged = {merged}\noutput = attention.out_projection(merged)"
        topics = ("merge-output",)
        lines = {"reason": "reason_own" if view.attention.has_own_width else "reason_output"}
    return view.step(
        N_("Merge the heads"),
        ("merge", *topics),
        code,
        ask_shape(
            "merge",
            view.attended("output"),
            {
                "one": (batch, length, d_head),
                "unmerged": (batch, n_heads, length, d_model),
                "wide": (batch, length, n_heads * d_model),
                "tokens": (batch, d_model),
            },
            lines=lines,
            n_heads=n_heads,
            d_head=d_head,
            d_model=d_model,
            d_q=d_q,
        ),
        is_inside=True,
    )
