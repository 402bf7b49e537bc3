"""Attention maps for painting: weights, mask and names in one value, for canvas, plotly and SVG.

Two maps of the same tokens can be compared. Torch-free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import Experiment
from tfm_core.inspect.attention.example import Example
from tfm_core.probe.labels import RowNames, axes, kind_of, modules_by_kind, rows
from tfm_core.probe.types import Array, Bools, Floats
from tfm_core.sentences import N_, Paragraph, StudentError


@dataclass(frozen=True, slots=True, eq=False)
class MapView:
    """Maps of one shape with their names.

    weights: (..., Q, K), one head or layers and heads. query, key: names of rows and columns; no
    query names for a single unnamed row. may_attend: bool, broadcastable to the weights; None for
    all. query_title, key_title: what rows and columns are. query_words: a phrase for each row.
    glosses: of target tokens, to stand beside their names. first: where the first row and the first
    column stand in the whole map. Raises ValueError if names do not fit.
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


def of_head(maps: Array, layer: int, head: int = MEAN) -> Array:
    """Return one head of all, (L, H, …), or the mean of a layer's."""
    return np.asarray(maps[layer].mean(0) if head == MEAN else maps[layer, head])


def compare(left: Floats, right: Floats, may_attend: Bools | None = None) -> tuple[float, float]:
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
