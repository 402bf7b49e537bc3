"""The arithmetic of one cell of an attention map, step by step, with the model's own numbers.

Eq. 1 of Vaswani et al. 2017 for a single query and key, from one pass of the example through the
last checkpoint, or from what a look kept of its pass. torch is imported late.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from tfm_core.choices.config import Experiment, built
from tfm_core.inspect.attention.trained import (
    Picture,
    cached_by_weights,
    inputs_of,
    model_of,
)
from tfm_core.probe.labels import axes
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import Paragraph, StudentError

_TANH = "v"  # recorded where a score is v times tanh of query plus key
_KINDS = ("query", "key", "value", "scores", "masked_scores", "weights", "heads", "sink")


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What one attention computed on one example.

    tensors: query (H, Q, D), key and value (H, K, D), scores, masked_scores and weights (H, Q, K),
    heads (H, Q, D), as float32; sink (H,) where the model has one, or (H, Q), the log of the sum of
    e^score over what a look does not show; v (D,) where scores are v times a tanh. divisor: what
    scores were divided by; None where the settings say it.
    """

    step: int
    item: Mapping[str, Any]
    module: str
    tensors: Mapping[str, Floats]
    divisor: float | None = None


DIMENSIONS = ("dimension", "query", "key", "product", "value", "contribution", "output")
"""Of a cell, a row a dimension of the head. Queries and keys are after rotation if positions are
rotary, and end where they are shorter than values, as in a linear score; product: elementwise, or v
times tanh(query + key). contribution: weight * value; output: the sum of those of the row."""
ROW = ("token", "score", "may_attend", "exponential", "weight")
"""Of a cell's row, a row a key: exponential: e^(score - largest), 0 where masked."""


@dataclass(frozen=True, slots=True, eq=False)
class AttentionCell:
    """One query and one key of one head, in the order of the computation.

    dimensions, row: tables, see DIMENSIONS and ROW. dot: the sum of the products, with v times tanh
    if ``is_tanh``. scaled = dot / scale; scale is sqrt(d_head), another divisor of the model, or 1
    in a recurrent model. bias: from ALiBi or T5, of a look whatever else was done to the score, or
    0. score = scaled + bias, before the mask ``may_attend``. sink: the exponential of the sink's
    logit, 0 without one; total: the sum of all exponentials; weight: of this key. share:
    contribution . output / output . output; a row's shares sum to 1, one may be negative.
    norm_share: length of the contribution over the sum of lengths (Kobayashi et al. 2020).
    """

    step: int
    key_index: int
    key_token: str
    dimensions: pd.DataFrame
    row: pd.DataFrame
    is_tanh: bool
    dot: float
    scale: float
    scaled: float
    bias: float
    score: float
    may_attend: bool
    sink: float
    total: float
    weight: float
    share: float
    norm_share: float


@cached_by_weights
def traced(run: Run, item: Mapping[str, Any], module: str, picture: Picture | None = None) -> Trace:
    """Send an example through the last checkpoint and keep what one attention module computed.

    item and picture: of an ``Example``. Cached. Raises ValueError, in a sentence.
    """
    from tfm_core.probe.capture import capture

    model, step = model_of(run)
    inputs = inputs_of(run, item, picture)
    with capture(model, only={*_KINDS, _TANH}, modules={module}) as cache:
        model(*inputs)
    found = {
        kind: (tensor if kind == "sink" else tensor[0]).float().numpy()
        for name, tensor in cache.items()
        for kind in (name.rpartition(".")[2],)
    }
    return Trace(step, item, module, found)


def seen(run: Run, index: int, module: str) -> Trace:
    """Return what a look kept of one attention module on an example of its probe.

    Raises ValueError, in a sentence, where it kept nothing of it.
    """
    snapshot = run.snapshot(run.snapshot_steps()[-1])
    item, vectors = run.probe().items[index], snapshot.vectors.get(module)
    if vectors is None:
        raise StudentError(Paragraph("attention/no-vectors"))
    found: dict[str, Floats] = {
        name: values[min(index, len(values) - 1)] for name, values in vectors.items() if values.ndim
    }
    divisor = float(vectors["divisor"])
    scores = found["query"] @ found["key"].swapaxes(-1, -2) / divisor + found.pop("bias", 0.0)
    mask = snapshot.masks[module]
    allowed = np.broadcast_to(mask[min(index, len(mask) - 1)], scores.shape)
    masked = np.where(allowed, scores, -np.inf)
    found["heads"] = found.pop("output")
    rest = found.pop("rest", None)
    whole = masked if rest is None else np.concatenate([masked, rest[..., None]], -1)
    largest = np.maximum(whole.max(-1, keepdims=True), np.finfo(np.float32).min)
    powers = np.exp(whole - largest)
    sums = np.maximum(powers.sum(-1, keepdims=True), np.finfo(np.float32).tiny)
    found |= {"scores": scores, "masked_scores": masked}
    found["weights"] = (powers / sums)[..., : scores.shape[-1]]
    if rest is not None:
        found["sink"] = rest
    return Trace(snapshot.step, item, module, found, divisor)


def cell(experiment: Experiment, trace: Trace, head: int, query: int, key: int) -> AttentionCell:
    """Return the arithmetic of one cell; indices from 0.

    Raises StudentError outside the map, and in a row of a look that the mask forbids.
    """
    labels, tensors = axes(experiment, trace.item, trace.module), trace.tensors
    _check("head", head, len(tensors["weights"]))
    _check("query", query, len(labels.query))
    _check("key", key, len(labels.key))
    n_keys = len(labels.key)
    q, k = tensors["query"][head, query], tensors["key"][head, key]
    v = tensors.get(_TANH)
    products = q * k if v is None else v * np.tanh(q + k)
    scale = trace.divisor or built(experiment.model).score_divisor or math.sqrt(len(q))
    dot = float(products.sum())
    row = tensors["scores"][head, query, :n_keys]
    allowed = tensors["masked_scores"][head, query, :n_keys] == row
    if trace.divisor is not None and not allowed.any():
        raise StudentError(Paragraph("attention/row-forbidden"))
    largest = row[allowed].max() if allowed.any() else 0.0
    sink = 0.0
    if "sink" in tensors:
        logits = tensors["sink"][head]
        logit = float(logits[query] if logits.ndim else logits)
        largest = max(largest, logit)
        sink = math.exp(logit - largest)
    exponentials = np.exp(np.where(allowed, row - largest, -np.inf))
    values = tensors["value"][head, :n_keys]
    weights = tensors["weights"][head, query, :n_keys]
    contributions = weights[:, None] * values  # (K, D)
    output = tensors["heads"][head, query]
    lengths = np.linalg.norm(contributions, axis=-1)
    numbers = np.arange(1, values.shape[1] + 1)
    dimensions = (numbers, q, k, products, values[key], contributions[key], output)
    score, contribution = float(row[key]), contributions[key]
    bias = score - dot / scale
    is_rounding = abs(bias) <= 1e-4 * max(1.0, abs(dot / scale))
    return AttentionCell(
        step=trace.step,
        key_index=key,
        key_token=labels.key[key],
        dimensions=pd.DataFrame(
            {name: pd.Series(of) for name, of in zip(DIMENSIONS, dimensions, strict=True)}
        ),
        row=pd.DataFrame(
            dict(zip(ROW, (labels.key, row, allowed, exponentials, weights), strict=True))
        ),
        is_tanh=v is not None,
        dot=dot,
        scale=scale,
        scaled=dot / scale,
        bias=0.0 if is_rounding else bias,
        score=score,
        may_attend=bool(allowed[key]),
        sink=sink,
        total=float(exponentials.sum()) + sink,
        weight=float(weights[key]),
        share=_ratio(float(contribution @ output), float(output @ output)),
        norm_share=_ratio(float(lengths[key]), float(lengths.sum())),
    )


def _check(what: str, index: int, count: int) -> None:
    if not 0 <= index < count:
        raise StudentError(
            "There is no {what} {index}: this map has {count}.",
            what=what,
            index=index + 1,
            count=count,
        )


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
