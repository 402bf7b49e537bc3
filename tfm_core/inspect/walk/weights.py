"""The steps from queries and keys to weights: scores, mask, softmax."""

from __future__ import annotations

import math

from torch import Tensor

from tfm_core.inspect.questions import Question, choice_question, number_question
from tfm_core.inspect.walk.block_view import MODULES, BlockView, mask_seen
from tfm_core.inspect.walk.steps import WalkStep, seen, shape_question
from tfm_core.sentences import N_, Paragraph
from tfm_core.variants.forms import CAUSALITIES, SCALES, Causality, Scale
from tfm_core.variants.sinks import SINKS

SINK_CODE = """\
column = sink[:, None, None].expand(*{scores}.shape[:-1], 1)
weights = torch.cat([{scores}, column], -1).softmax(-1)[..., :-1]"""
"""Weights of scores where a sink takes a part of each row."""


def scores(view: BlockView) -> WalkStep:
    """How well every query matches every key."""
    got, words = view.got, view.axis.partition(":")[2]
    batch, length, n_heads, d_head, d_model = view.sizes
    before = [
        seen("queries", N_("queries"), got("self_attention.query"), f"B H Q:{words} d_head"),
        seen("keys", N_("keys"), got("self_attention.key"), f"B H K:{words} d_head"),
    ]
    scale = SCALES[view.attention.scale]
    code = f"scores = {scores_code(scale.name)}"
    is_right = scale.width == "d_head"
    topics: tuple[str, ...] = ("scores", "scores-scaled")
    if not is_right:
        topics = ("scores", "scores-wrongly-scaled", *view.mistakes(Scale))
    inside = view.inside
    if inside is not None and inside.turn is None:
        bias = got("self_attention.bias")
        before.append(seen("bias", inside.title, bias, f"H Q:{words} K:{words}"))
        code += " + bias"
        topics = (*topics, inside.topic)
    made = seen("scores", N_("scores"), got("self_attention.scores"), view.pair)
    return WalkStep(
        "scores",
        N_("Scores, scaled") if scale.width else N_("Scores, not scaled"),
        topics,
        code,
        tuple(before),
        (made,),
        shape_question(
            made,
            N_("Every query meets every key, in every head."),
            ((batch, n_heads, length, d_head), N_("The dot product sums over d_head.")),
            ((batch, length, length), N_("Each of the {n} heads has its own scores.", n=n_heads)),
            ((batch, length, n_heads, length), N_("Heads come before queries.")),
            ((batch, n_heads, d_head, d_head), N_("That is keys.mT @ queries: a sum over tokens.")),
        ),
        names={**MODULES, "d_head": d_head, "d_model": d_model},
        block=view.path,
    )


def scores_code(scale: str) -> str:
    """Return the expression of the scores of queries and keys. scale: a name of SCALES."""
    width = SCALES[scale].width
    return "queries @ keys.mT" + (f" / math.sqrt({width})" if width else "")


def masking(view: BlockView) -> WalkStep:
    """Set hidden scores to the lowest number of their type."""
    got = view.got
    masked = got("self_attention.masked_scores")
    mask = got("self_attention.mask")
    cut = view.subject.order.cut
    return WalkStep(
        "masking",
        N_("Mask"),
        ("masking", *_hidden(view)),
        "masked = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)",
        (
            seen("scores", N_("scores"), got("self_attention.scores"), view.pair),
            mask_seen(mask, view.axis.partition(":")[2]),
        ),
        (seen("masked", N_("masked scores"), masked, view.pair),),
        _reach_of(mask, masked, cut) if masked.is_meta else _hidden_by(mask, masked, view.example),
        names=MODULES,
        block=view.path,
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
    got = view.got
    is_masked, scale = view.has("self_attention.mask"), view.attention.scale
    before = [seen("masked", N_("scores"), got("self_attention.masked_scores"), view.pair)]
    code, topics, names = "weights = masked.softmax(-1)", ["softmax"], dict(MODULES)
    if SINKS[view.attention.sink].is_there:
        sink = got("self_attention.sink")
        names["sink"] = sink.detach()
        topics = ["softmax-sink"]
        code = SINK_CODE.format(scores="masked")
    if is_masked:
        mask = got("self_attention.mask")
        before.append(mask_seen(mask, view.axis.partition(":")[2]))
        code += ".masked_fill(~mask, 0.0)"
    return WalkStep(
        "softmax",
        N_("Softmax"),
        (*topics, "softmax-scaled" if scale == "sqrt-d-head" else "softmax-wrongly-scaled"),
        code,
        tuple(before),
        (seen("weights", N_("attention weights"), got("self_attention.weights"), view.pair),),
        _scale_question(view) if scale == "sqrt-d-head" else _right_scale_question(view),
        names=names,
        block=view.path,
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
