"""Five features in two dimensions, at ten sparsities: the model, its training, its exact loss.

After Elhage et al. 2022, "Toy Models of Superposition" (arXiv 2209.10652), section "Demonstrating
Superposition": x' = ReLU(W^T W x + b), and the loss is the sum over features of importance times
squared error. Ten models, one for each sparsity, are trained side by side in one batch.
Axes: T snapshots, S sparsities, F features, N examples; W is (F, 2), a vector for each feature.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd
from safetensors.numpy import load_file, save_file

from tfm_core import byte_cache
from tfm_core.inspect.tables import Column, Columns
from tfm_core.probe.types import Floats
from tfm_core.runs.store import RECORDED
from tfm_core.sentences import N_, Paragraph
from tfm_core.studies.phenomenon import KnownFinding

if TYPE_CHECKING:
    from torch import Tensor

N_FEATURES, N_DIMENSIONS, N_SPARSITIES = 5, 2, 10
SUPERPOSITION = KnownFinding(
    name="superposition",
    title=N_("Superposition"),
    right=N_("it depends on how often a feature is present"),
    wrong={
        N_("two, because there are two dimensions"): Paragraph("discover/superposition-two"),
        N_("always all five"): Paragraph("discover/superposition-five"),
    },
    paper="Elhage et al. 2022",
    address="https://arxiv.org/abs/2209.10652",
)
IMPORTANCE: Floats = 0.9 ** np.arange(N_FEATURES)
DENSITIES: Floats = 20.0 ** -np.linspace(0, 1, N_SPARSITIES)
"""How often a feature is there, 1 to 1/20; a feature that is there is uniform from 0 to 1."""
SPARSITIES: Floats = 1 - DENSITIES
SHARES = Columns(
    sparsity=Column(N_("sparsity (share of zeros)"), axis={"type": "category"}),
    value=Column(
        N_("loss relative to keeping nothing"), ".1%", {"tickformat": ".0%", "rangemode": "tozero"}
    ),
    feature=Column(N_("feature"), axis={"type": "category"}),
    low=Column(N_("lowest"), ".1%"),
    high=Column(N_("highest"), ".1%"),
)
STEPS, _BATCH, _RATE = 2000, 512, 1e-2
_N_SEEDS = 5
_FILE = RECORDED.parent / "superposition.safetensors"
"""The trainings that come with the app, in half precision, and the best that is known."""
SNAPSHOTS = np.unique(np.concatenate([[0], np.geomspace(5, STEPS, 30).round()])).astype(np.int64)
_STARTS, _SEARCH_STEPS = ("right-angle", "square", "pentagon"), 300
_FINE, _COARSE = (1, 64, 24, 12, 8, 7), (1, 6, 6, 5, 4, 3)
"""Values of each feature in expectations, by how many are there: at the end, and in the search."""

KEPT = 0.7
"""The length from which on a feature is kept; a feature that is kept alone has length 1."""
TOLERANCE = 15.0
"""Degrees by which each angle between neighbours may differ from that of a shape."""
GAPS: Mapping[str, tuple[int, ...]] = {
    "nothing": (),
    "one": (360,),
    "right-angle": (90, 270),
    "pair": (180, 180),
    "pair-and-one": (90, 90, 180),
    "triangle": (120, 120, 120),
    "square": (90, 90, 90, 90),
    "pentagon": (72, 72, 72, 72, 72),
}
"""Degrees from each feature that is kept to the next, once around."""
IRREGULAR = "irregular"
LABELS: Mapping[str, str] = {
    "nothing": N_("nothing"),
    "one": N_("one feature"),
    "right-angle": N_("two at a right angle"),
    "pair": N_("an opposite pair"),
    "pair-and-one": N_("an opposite pair and one at a right angle"),
    "triangle": N_("triangle"),
    "square": N_("square: two opposite pairs"),
    "pentagon": N_("pentagon"),
    IRREGULAR: N_("no regular shape"),
}

Snapshot = tuple[int, Floats, Floats]
"""The weights at a step: vectors (S, F, 2) and biases (S, F)."""
Best = tuple[Floats, tuple[str, ...]]
"""The best models that are known: the share (S,) of the loss, the shape of each (S names)."""


def formed(steps: npt.NDArray[np.int64], vectors: Floats) -> tuple[str, int | None]:
    """Return the shape of vectors (T, F, 2) at the end, and the step from which on it stays.

    steps: (T,). None: it was there from the start, or it is no regular shape.
    """
    found = [shape_of(one) for one in vectors]
    since = next((k for k in range(len(found), 0, -1) if found[k - 1] != found[-1]), 0)
    is_new = since > 0 and found[-1] != IRREGULAR
    return found[-1], int(steps[since]) if is_new else None


def record() -> None:
    """Train all seeds, look for the best, and keep both for ``recorded``."""
    every = [[*zip(*train(seed), strict=True)] for seed in range(_N_SEEDS)]  # always the same
    shares, shapes = best()
    kept: dict[str, npt.NDArray[np.generic]] = {
        "vectors": np.array([vectors for _steps, vectors, _biases in every], np.float16),
        "biases": np.array([biases for _steps, _vectors, biases in every], np.float16),
        "best": np.asarray(shares, np.float32),
        "shapes": np.array([[*LABELS].index(name) for name in shapes], np.int8),
    }
    save_file(kept, _FILE)


@cache
def recorded() -> tuple[Floats, Floats, Best]:
    """Return what comes with the app: vectors (N, T, S, F, 2) and biases (N, T, S, F), the best.

    N seeds were trained, at whose T ``SNAPSHOTS`` the weights were kept. A seed always gives the
    same weights, so training it again while somebody watches would show nothing else.
    """
    kept = load_file(_FILE)
    vectors, biases = (kept[name].astype(np.float32) for name in ("vectors", "biases"))
    return vectors, biases, (kept["best"], tuple([*LABELS][n] for n in kept["shapes"]))


def train(seed: int) -> Iterator[Snapshot]:
    """Train the ten models of a seed; yield the weights at each of ``SNAPSHOTS``."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    vectors = torch.empty(N_SPARSITIES, N_FEATURES, N_DIMENSIONS)
    for one in vectors:
        torch.nn.init.xavier_normal_(one, generator=generator)
    density = _tensor(DENSITIES)[:, None, None]
    importance = _tensor(IMPORTANCE)
    shape = (N_SPARSITIES, _BATCH, N_FEATURES)

    def loss(vectors: Tensor, biases: Tensor) -> Tensor:
        is_there = torch.rand(shape, generator=generator) < density
        x = torch.rand(shape, generator=generator) * is_there
        return ((outputs(x, vectors, biases) - x) ** 2 @ importance).mean(1).sum()

    biases = torch.zeros(N_SPARSITIES, N_FEATURES)
    yield from _descend(loss, vectors, biases, STEPS, SNAPSHOTS.tolist())


def _descend(
    loss: Callable[[Tensor, Tensor], Tensor],
    vectors: Tensor,
    biases: Tensor,
    steps: int,
    snapshots: Collection[int],
) -> Iterator[Snapshot]:
    """Descend with Adam, whose rate falls over the second half; yield some steps."""
    import torch

    vectors.requires_grad_()
    biases.requires_grad_()
    learner = torch.optim.Adam([vectors, biases], lr=_RATE, fused=True)
    for step in range(steps + 1):
        if step in snapshots:
            yield step, vectors.detach().numpy().copy(), biases.detach().numpy().copy()
        learner.param_groups[0]["lr"] = _RATE * min(1.0, 2 * (1 - step / steps))
        learner.zero_grad()
        loss(vectors, biases).backward()  # type: ignore[no-untyped-call]
        learner.step()


def outputs(x: Tensor, vectors: Tensor, biases: Tensor) -> Tensor:
    """Return ReLU(W^T W x + b), (..., N, F), of x (..., N, F), vectors (..., F, 2), biases."""
    return (x @ vectors @ vectors.mT + biases.unsqueeze(-2)).relu()


@byte_cache.cached
def _grid(n_values: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Return examples (N, F), and how likely each is (S, N): a grid for every set of features.

    Values are the nodes of Gauss and Legendre. n_values: of each feature, by how many are there.
    """
    examples, weights = [], []
    for there in itertools.product((False, True), repeat=N_FEATURES):
        n = sum(there)
        nodes, shares = np.polynomial.legendre.leggauss(n_values[n])
        places = np.array(list(itertools.product(range(len(nodes)), repeat=n)), np.int64)
        x = np.zeros((len(places), N_FEATURES))
        x[:, there] = (nodes[places] + 1) / 2
        density = DENSITIES[:, None]
        likely = density**n * (1 - density) ** (N_FEATURES - n)
        examples.append(x)
        weights.append(likely * (shares[places] / 2).prod(-1))
    return _tensor(np.concatenate(examples)), _tensor(np.concatenate(weights, 1))


def _expected(vectors: Tensor, biases: Tensor, n_values: tuple[int, ...]) -> Tensor:
    """Return the expected loss (..., S) of vectors (..., S, F, 2)."""

    x, likely = _grid(n_values)
    errors = (outputs(x, vectors, biases) - x) ** 2 @ _tensor(IMPORTANCE)
    return (errors * likely).sum(-1)


def losses(vectors: Floats, biases: Floats) -> Floats:
    """Return the expected loss (..., S) of vectors (..., S, F, 2) and biases (..., S, F)."""
    import torch

    with torch.inference_mode():
        found: Floats = _expected(_tensor(vectors), _tensor(biases), _FINE).numpy()
    return found


def loss_of_keeping(n: int) -> Floats:
    """Return the loss (S,) where the n most important features are exact, the others their mean."""
    variance = DENSITIES / 3 - DENSITIES**2 / 4
    found: Floats = IMPORTANCE[n:].sum() * variance
    return found


def best() -> Best:
    """Return, for each sparsity, the best of the minima that are reached from ideal shapes.

    From each of ``_STARTS``, a little disturbed, all weights descend on the expected loss itself. A
    minimum need not have the shape that it began with.
    """

    starts = np.array([ideal(name, N_FEATURES) for name in _STARTS])
    vectors = np.repeat(starts[:, None], N_SPARSITIES, 1)  # (starts, S, F, 2)
    vectors += 0.02 * np.random.default_rng(0).normal(size=vectors.shape)
    is_there = (starts**2).sum(-1) > 0
    biases = np.where(is_there[:, None], 0.0, DENSITIES[:, None] / 2)  # the mean, if not kept
    ((_step, vectors, biases),) = _descend(
        lambda vectors, biases: _expected(vectors, biases, _COARSE).sum(),
        _tensor(vectors),
        _tensor(biases),
        _SEARCH_STEPS,
        {_SEARCH_STEPS},
    )
    shares = losses(vectors, biases) / loss_of_keeping(0)
    first = shares.argmin(0)
    chosen = vectors[first, np.arange(N_SPARSITIES)]
    return shares.min(0), tuple(shape_of(one) for one in chosen)


def shares_of(vectors: Floats, biases: Floats) -> Floats:
    """Return the loss of weights, (..., S), as a share of that of a model that keeps nothing."""
    return losses(vectors, biases) / loss_of_keeping(0)


def found(
    snapshots: npt.NDArray[np.int64], vectors: Floats, biases: Floats, known: Best
) -> pd.DataFrame:
    """Return what seeds, at least one, found at each sparsity, a row each.

    snapshots: their steps (T,). vectors: (N, T, S, F, 2), biases: (N, T, S, F).
    best: the best shape that is known, and best_share its share of the loss. shapes: what was
    found -> in how many seeds, the most frequent first. mean, sd: of the shares of the loss. steps:
    at which the most frequent shape formed.
    """
    shares = shares_of(vectors[:, -1], biases[:, -1])  # (N, S)
    shapes: list[dict[str, int]] = []
    steps: list[list[int]] = []
    for k in range(N_SPARSITIES):
        every = [formed(snapshots, one[:, k]) for one in vectors]
        shapes.append(dict(Counter(shape for shape, _step in every).most_common()))
        first = next(iter(shapes[-1]))
        steps.append([step for shape, step in every if shape == first and step is not None])
    return pd.DataFrame(
        {
            "sparsity": SPARSITIES,
            "best": known[1],
            "best_share": known[0],
            "shapes": shapes,
            "mean": shares.mean(0),
            "sd": shares.std(0, ddof=1) if len(shares) > 1 else 0.0,
            "steps": steps,
        }
    )


def is_kept(vectors: Floats) -> npt.NDArray[np.bool_]:
    """Return which features (..., F) of vectors (..., F, 2) are kept."""
    kept: npt.NDArray[np.bool_] = np.linalg.norm(vectors, axis=-1) >= KEPT
    return kept


def shape_of(vectors: Floats) -> str:
    """Return the shape of vectors (F, 2), a key of ``LABELS``.

    It is one of ``GAPS`` if as many features are kept and, begun at one of them, in one direction
    or the other, each angle to the next differs by at most TOLERANCE.
    """
    kept = vectors[is_kept(vectors)]
    angles = np.sort(np.degrees(np.arctan2(kept[:, 1], kept[:, 0])))
    gaps = np.diff(np.append(angles, angles[:1] + 360))
    turned = [np.roll(gaps[::way], k) for way in (1, -1) for k in range(max(1, len(gaps)))]
    for name, ideal in GAPS.items():
        if len(ideal) == len(gaps) and any(
            (np.abs(one - ideal) <= TOLERANCE).all() for one in turned
        ):
            return name
    return IRREGULAR


def ideal(name: str, n_features: int) -> Floats:
    """Return vectors (F, 2) of a shape: its features come first, with length 1, others are 0."""
    gaps = GAPS[name]
    angles = np.radians(np.cumsum([0, *gaps])[: len(gaps)])
    vectors = np.zeros((n_features, 2))
    vectors[: len(gaps)] = np.column_stack([np.cos(angles), np.sin(angles)])
    return vectors


def features(there: Collection[int], value: float) -> Floats:
    """Return features (F,), of which some have a value and the others 0."""
    given = np.zeros(N_FEATURES)
    given[list(there)] = value
    return given


def responses(vectors: Floats, biases: Floats, x: npt.ArrayLike) -> Floats:
    """Return the outputs (..., F) of one model, vectors (F, 2), for features x (..., F)."""
    import torch

    with torch.inference_mode():
        given = _tensor(x).reshape(-1, N_FEATURES)
        answered = outputs(given, _tensor(vectors), _tensor(biases)).numpy()
    found: Floats = answered.reshape(np.shape(x))
    return found


def squared_error(x: npt.ArrayLike, answered: npt.ArrayLike) -> float:
    """Return the squared error of outputs (F,), by importance: what the loss is the mean of."""
    return float((np.subtract(answered, x) ** 2 * IMPORTANCE).sum())


def _tensor(values: npt.ArrayLike) -> Tensor:
    import torch

    return torch.tensor(np.asarray(values), dtype=torch.float32)
