"""Attention maps: for painting, two of them compared, and the arithmetic of one cell.

A ``MapView`` has weights, mask and names in one value, for canvas, plotly and SVG. The arithmetic
is Eq. 1 of Vaswani et al. 2017 for a single query and key, from one pass of the example through the
last checkpoint, or from the recorded pass of a foreign model. torch and pandas are imported late.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import Experiment, built
from tfm_core.inspect.attention import alignment
from tfm_core.inspect.attention.alignment import Row
from tfm_core.inspect.attention.example import Example
from tfm_core.inspect.attention.heads import (
    alikeness,
    leading_role,
    rows_of_kind,
    rows_of_step,
)
from tfm_core.inspect.attention.trained import (
    Picture,
    cached_by_snapshot,
    cached_by_weights,
    inputs_of,
    model_of,
)
from tfm_core.probe.labels import RowNames, axes, kind_of, layer_of, modules_by_kind, rows
from tfm_core.probe.masks import recorded
from tfm_core.probe.types import Array, Bools, Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph, StudentError

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, eq=False)
class MapView:
    """Maps of one shape with their names.

    weights: (..., Q, K), one head or layers and heads. query, key: names of rows and columns; no
    query names for a single unnamed row. may_attend: bool, broadcastable to the weights; None for
    all. query_title, key_title: what rows and columns are. query_words: a phrase for each row.
    glosses: of target tokens, shown beside their names. first: where the first row and the first
    column are in the whole map. Raises ValueError if names do not fit.
    """

    weights: Array
    query: Sequence[str]
    key: Sequence[str]
    may_attend: npt.NDArray[np.bool_] | None = None
    query_title: str = N_("query token")
    key_title: str = N_("key token")
    query_words: Sequence[str] = ()
    glosses: Mapping[str, str] = field(default_factory=dict)
    first: tuple[int, int] = (0, 0)

    def __post_init__(self) -> None:
        """Raise ValueError when names do not fit the weights."""
        n_query, n_key = self.weights.shape[-2:]
        if (n_query, n_key) != (len(self.query) or 1, len(self.key)):
            raise ValueError(
                f"The maps are {n_query} by {n_key}, but there are {len(self.query)} query and "
                f"{len(self.key)} key tokens."
            )

    @property
    def allowed(self) -> npt.NDArray[np.bool_]:
        """The mask, in the shape of the weights."""
        mask = True if self.may_attend is None else self.may_attend
        return np.broadcast_to(np.asarray(mask), self.weights.shape)

    def seen(self, weights: Array | None = None) -> Array:
        """Return its weights, or others of such maps, with NaN where the mask forbids to look."""
        values = self.weights if weights is None else weights
        if self.may_attend is None:
            return values
        return np.where(self.may_attend, values, np.array(np.nan, values.dtype))

    def part(self, tokens: tuple[int, int] | None) -> MapView:
        """Return a stretch of rows and columns, from the first to before the second of two places.

        An axis that ends before them stays whole, as both do for None.
        """
        if tokens is None:
            return self
        sizes = self.weights.shape[-2:]
        rows, columns = (slice(*tokens) if tokens[0] < size else slice(0, size) for size in sizes)
        return replace(
            self,
            weights=self.weights[..., rows, columns],
            query=self.query[rows],
            key=self.key[columns],
            may_attend=self.allowed[..., rows, columns],
            query_words=self.query_words[rows],
            first=(rows.start, columns.start),
        )

    def cut(self, whole: Array) -> Array:
        """Return of an array (..., Q, K) that fits the whole map what fits this one."""
        places = zip(self.first, self.weights.shape[-2:], strict=True)
        rows, columns = (slice(first, first + size) for first, size in places)
        return whole[..., rows, columns]

    def head(self, layer: int, head: int) -> MapView:
        """Return one of all heads, (L, H, Q, K)."""
        mask = None if self.may_attend is None else self.allowed[layer, head]
        return replace(self, weights=self.weights[layer, head], may_attend=mask)


def map_view(
    experiment: Experiment,
    example: Example,
    *,
    kind: str,
    layer: int | None = None,
    head: int | None = None,
    by: RowNames | None = None,
    say: Callable[[str], str] = lambda words: words,
    glosses: Mapping[str, str] | None = None,
) -> MapView:
    """Return all heads of a kind of attention on an example (L, H, Q, K), or one map of a layer.

    head: of the layer; None for the mean. by: see ``rows``. say: translates. glosses: of target
    tokens. Raises StudentError where maps were not recorded.
    """
    modules = modules_by_kind(experiment)[kind]
    modules = modules if layer is None else modules[layer : layer + 1]
    called = rows(experiment, example.item, modules[0], by)
    phrases = called.words
    if glosses:
        glossed = [
            f"{token} ({glosses[token]})" if token in glosses else token
            for token in example.item["tgt"]
        ]
        phrases = rows(experiment, {**example.item, "tgt": glossed}, modules[0], by).words
    weights, mask = example.maps(modules), example.may_attend(modules)[:, None]
    if layer is not None:
        weights, mask = weights[0].mean(0) if head is None else weights[0, head], mask[0, 0]
    return MapView(
        weights,
        called.names,
        axes(experiment, example.item, modules[0]).key,
        mask,
        say(called.title),
        say(kind_of(experiment, modules[0]).key),
        tuple(map(say, phrases)),
        glosses or {},
    )


MEAN = -1
"""Instead of a head: the mean of all heads of its layer."""


def head_map(maps: Array, layer: int, head: int = MEAN) -> Array:
    """Return one head of all, (L, H, …), or the mean of a layer's."""
    return np.asarray(maps[layer].mean(0) if head == MEAN else maps[layer, head])


def compare_maps(
    left: Floats, right: Floats, may_attend: Bools | None = None
) -> tuple[float, float]:
    """Compare two maps (Q, K) of one head each, without rows that may attend to nothing.

    Return the share of attention on other keys, mean over queries (total variation distance), and
    the share of queries with the same strongest key. Raises StudentError if shapes differ.
    """
    if left.shape != right.shape:
        sizes = (" by ".join(map(str, one.shape)) for one in (left, right))
        raise StudentError(
            Paragraph("attention/maps-differ", **dict(zip(("left", "right"), sizes, strict=True)))
        )
    difference = np.asarray(right, np.float32) - np.asarray(left, np.float32)
    allowed = np.ones(left.shape, np.bool_) if may_attend is None else may_attend
    counted = allowed.any(-1)
    if not counted.any():
        return 0.0, 1.0
    by_sink = np.abs(difference.sum(-1))[counted]  # what moved to a sink, or from it
    moved = (np.abs(difference).sum(-1)[counted] + by_sink) / 2
    same = left.argmax(-1) == right.argmax(-1)
    return float(moved.mean()), float(same[counted].mean())


def check_same_tokens(
    left: tuple[Sequence[str], Sequence[str]], right: tuple[Sequence[str], Sequence[str]]
) -> None:
    """Raise StudentError if two maps have different (query, key) tokens."""
    for name, first, second in zip(("query", "key"), left, right, strict=True):
        if tuple(first) != tuple(second):
            index = next(
                (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
                min(len(first), len(second)),
            )
            raise StudentError(Paragraph("attention/tokens-differ", name=name, place=index + 1))


_TANH = "v"  # recorded where a score is v times tanh of query plus key
_KINDS = ("query", "key", "value", "scores", "masked_scores", "weights", "heads", "sink")


@dataclass(frozen=True, slots=True, eq=False)
class AttentionTrace:
    """The tensors that one attention computed on one example.

    tensors: query (H, Q, D), key and value (H, K, D), scores, masked_scores and weights (H, Q, K),
    heads (H, Q, D), as float32; sink (H,) where the model has one, or (H, Q), the log of the sum of
    e^score over keys that were not recorded; v (D,) where scores are v times a tanh. divisor: what
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
    in a recurrent model. bias: from ALiBi or T5, in a recorded model whatever else was added, or 0.
    score = scaled + bias, before the mask ``may_attend``. sink: the exponential of the sink's
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
def trace_attention(
    run: Run, item: Mapping[str, Any], module: str, picture: Picture | None = None
) -> AttentionTrace:
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
    return AttentionTrace(step, item, module, found)


def recorded_trace(run: Run, index: int, module: str) -> AttentionTrace:
    """Return the recorded trace of one attention module on an example of a run's probe.

    Raises ValueError, in a sentence, where nothing was recorded.
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
    return AttentionTrace(snapshot.step, item, module, found, divisor)


def attention_cell(
    experiment: Experiment, trace: AttentionTrace, head: int, query: int, key: int
) -> AttentionCell:
    """Return the arithmetic of one cell; indices from 0.

    Raises StudentError outside the map, and in a recorded row that the mask forbids.
    """
    import pandas as pd

    labels, tensors = axes(experiment, trace.item, trace.module), trace.tensors
    _check_index("head", head, len(tensors["weights"]))
    _check_index("query", query, len(labels.query))
    _check_index("key", key, len(labels.key))
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


def _check_index(what: str, index: int, count: int) -> None:
    if not 0 <= index < count:
        raise StudentError(
            "There is no {what} {index}: this map has {count}.",
            what=what,
            index=index + 1,
            count=count,
        )


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


N_TELLING = 4
"""Heads that a small stage shows."""


def telling_heads(run: Run, step: int, kind: str) -> tuple[int, ...]:
    """Return the heads of a kind of attention that show most at a snapshot, the best first.

    They are numbered row by row. The largest share of attention on the true source words, else on
    a role, comes first, then the fewest keys. Empty where nothing was recorded.
    """
    try:
        rows = rows_of_kind(run.experiment, rows_of_step(run, step), kind)
    except (OSError, ValueError):  # damaged
        return ()
    worth = []
    for row in rows:
        role, share = leading_role(row), row.get("aligned", np.nan)
        if np.isnan(share):
            share = 0.0 if role is None else row[role]
        worth.append((share, -row["entropy"]))
    return tuple(sorted(range(len(worth)), key=worth.__getitem__, reverse=True)[:N_TELLING])


HeadIndex = tuple[int, int]
"""Layer and head, from 0."""


def first_heads(run: Run) -> Mapping[str, HeadIndex]:
    """Return the head to open on for each kind of attention, by the last snapshot."""
    try:
        return _first_heads(run, run.snapshot_steps()[-1])
    except (OSError, ValueError, LookupError):  # being written, damaged or without maps
        return {}


@cached_by_snapshot
def _first_heads(run: Run, step: int) -> Mapping[str, HeadIndex]:
    scores = alignment.scores_of_step(run, step)
    kept = {
        module: alikeness(weights, may_attend)[1]
        for module, _items, weights, may_attend in recorded(
            run.experiment, run.probe().items, run.snapshot(step)
        )
    }
    first = {}
    for kind, modules in modules_by_kind(run.experiment).items():
        scored = [row for row in scores if row["kind"] == kind]
        best = None
        if len({row["module"] for row in scored}) == len(modules):
            best = _place_of(alignment.best_head(scored))
        else:
            places = ((name, int(np.argmax(kept[name]))) for name in modules if name in kept)
            most = max(places, key=lambda at: float(kept[at[0]][at[1]]), default=None)
            best = None if most is None else (layer_of(most[0]), most[1])
        if best is not None:
            first[kind] = best
    return first


def aligning_head(run: Run) -> HeadIndex | None:
    """Return layer and head, from 0, that align best in the last snapshot; None where unknown."""
    try:
        return _place_of(
            alignment.best_head(alignment.scores_of_step(run, run.snapshot_steps()[-1]))
        )
    except (OSError, ValueError, LookupError):  # being written, or without its maps
        return None


def _place_of(best: Row | None) -> HeadIndex | None:
    return None if best is None else (int(best["layer"]) - 1, int(best["head"]) - 1)
