"""Known-answer score: does a head attend to the source words that a target word comes from?

Two figures against the true alignment of generated tasks: the share of attention on the true source
words, and the alignment error rate (Och & Ney 2003, section 5.1) with the strongest cell of each
row as the head's link.

Row t writes target token t (row 0 reads <bos>) and is compared with the sources of token t. The
<eos> row and tokens without a source do not count. A single source is a sure link; of several, each
is possible and none sure. In one sequence ("sequence") shares are of all attention, and the link is
the strongest source token.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import Experiment
from tfm_core.inspect.tables import Column, Columns, share
from tfm_core.probe.labels import axes, kind_of, layer_of, modules_by_kind
from tfm_core.probe.masks import on_examples
from tfm_core.probe.types import Bools, Floats, Probe, Snapshot
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    import pandas as pd


LEARNED = 0.5  # share from which on a head is said to align
_WRITES = (
    "cross",
    "picture",
    "slots",
    "sequence",
)  # kinds of attention in which target meets source


@dataclass(frozen=True, slots=True, eq=False)
class AlignmentScore:
    """The heads of one module; arrays (H,).

    share: of attention on true source words. aer: alignment error rate, 0 is perfect. chance: the
    share of even attention. n_tokens: target tokens that were counted.
    """

    share: Floats
    aer: Floats
    chance: float
    n_tokens: int


@dataclass(frozen=True, slots=True)
class Aligned:
    """How many of ``n_heads`` heads align (LEARNED or more) at a step: n, least and largest share.

    step: since when all of them have kept aligning, None if none does.
    """

    n: int
    n_heads: int
    least: float = 0.0
    most: float = 0.0
    step: int | None = None

    @property
    def are_all(self) -> bool:
        """Whether every head does."""
        return self.n == self.n_heads


@dataclass(eq=False)
class AlignmentTally:
    """Sums over examples; see the module for what is counted."""

    n_tokens: int = 0
    _share: Floats | float = 0.0
    _even: float = 0.0
    _sure_hits: npt.NDArray[np.int_] | int = 0
    _hits: npt.NDArray[np.int_] | int = 0
    _sure: int = 0

    def add(self, weights: Floats, truth: Bools, even: Floats | None = None) -> None:
        """Count one example. weights: (H, T, S), truth: bool (T, S), row t = target token t.

        even: (T, S), the even attention; None: 1 / S. Raises ValueError if shapes do not fit.
        """
        if weights.shape[1:] != truth.shape:
            raise StudentError(
                "The weights are {shape}, but the true alignment is {truth_shape}.",
                shape=weights.shape,
                truth_shape=truth.shape,
            )
        n_sources = truth.sum(-1)
        counted, sure = n_sources > 0, n_sources == 1
        weights = np.asarray(weights[:, counted], np.float32)
        self._even += float((truth / truth.shape[1] if even is None else truth * even).sum())
        truth, sure = truth[counted], sure[counted]
        links = weights.argmax(-1) if weights.size else np.zeros(weights.shape[:2], np.int_)
        hits = truth[np.arange(len(truth)), links]  # (H, T)
        self.n_tokens += len(truth)
        self._share = self._share + (weights * truth).sum((1, 2))
        self._hits = self._hits + hits.sum(-1)
        self._sure_hits = self._sure_hits + (hits & sure).sum(-1)
        self._sure += int(sure.sum())

    def result(self) -> AlignmentScore:
        """Return the score. Raises ValueError where no token with a known source was counted."""
        if not self.n_tokens:
            raise StudentError("No target token of this example has a known source.")
        # |A| links, one a token; |S| sure ones: 1 - (|A and S| + |A and P|) / (|A| + |S|)
        aer = 1 - (self._sure_hits + self._hits) / (self.n_tokens + self._sure)
        share = np.asarray(self._share) / self.n_tokens
        return AlignmentScore(share, np.asarray(aer), self._even / self.n_tokens, self.n_tokens)


def true_cells(item: Mapping[str, Any]) -> Bools:
    """Return bool (T, S): the true sources of each target token. Raises StudentError without."""
    alignment: Sequence[Sequence[int]] | None = item.get("alignment")
    if alignment is None:
        raise StudentError("The true alignment of this example is unknown.")
    cells = np.zeros((len(alignment), len(item["src"])), np.bool_)
    for token, sources in enumerate(alignment):
        cells[token, list(sources)] = True
    return cells


def truth_on_map(experiment: Experiment, item: Mapping[str, Any], module: str) -> Bools:
    """Return bool (Q, K): the true alignment as cells of a module's map.

    All False where target does not meet source. Raises StudentError without an alignment.
    """
    names = axes(experiment, item, module)
    cells = np.zeros(names.shape, np.bool_)
    kind = kind_of(experiment, module).name
    if kind in _WRITES:
        truth = true_cells(item)
        first = _first_row(kind, item)
        cells[first : first + truth.shape[0], : truth.shape[1]] = truth
    return cells


def clearest_row(weights: Floats, may_attend: Bools, truth: Bools | None = None) -> int | None:
    """Return the row of a map (Q, K) that best shows what its head does; None without any.

    With a true alignment the row with the most weight on true cells; else the row with the largest
    weight among those with a choice of keys.
    """
    if truth is not None and truth.any():
        return int((weights * truth).sum(-1).argmax())
    chooses = may_attend.sum(-1) > 1
    return int(np.where(chooses, weights.max(-1), -1.0).argmax()) if chooses.any() else None


def can_be_scored(experiment: Experiment, probe: Probe) -> bool:
    """Return whether any attention of the model can be compared with a true alignment."""
    if not scored_modules(experiment):
        return False
    return any(any(item.get("alignment") or ()) for item in probe.items)


def scored_modules(experiment: Experiment) -> list[str]:
    """Return the modules in which target meets source, layer by layer."""
    kinds = modules_by_kind(experiment)
    return [name for kind in _WRITES for name in kinds.get(kind, [])]


def rows_that_write(
    experiment: Experiment, item: Mapping[str, Any], module: str, weights: Floats
) -> Floats:
    """Return (H, T, S): of a map (H, Q, K) the rows that write target tokens, over the source."""
    first = _first_row(kind_of(experiment, module).name, item)
    return weights[:, first : first + len(item["tgt"]), : len(item["src"])]


def even_over_source(
    experiment: Experiment, item: Mapping[str, Any], module: str, may_attend: Bools
) -> Floats:
    """Return (T, S): the even attention of each row that writes. may_attend: bool (Q, K)."""
    even: Floats = may_attend / np.maximum(may_attend.sum(-1, keepdims=True), 1)
    written = rows_that_write(experiment, item, module, even[None])
    return np.asarray(written[0])


def score(
    experiment: Experiment, probe: Probe, snapshot: Snapshot, *, tokens: Collection[str] = ()
) -> dict[str, AlignmentScore]:
    """Return the scores of every module that can be scored, on the examples of the probe.

    tokens: the target tokens that count; without any, all do. Raises StudentError if none occurs.
    """
    maps = {name: snapshot.attention.get(name) for name in scored_modules(experiment)}
    return {
        name: score_maps(
            experiment,
            name,
            probe.items[: len(weights)],
            weights,
            on_examples(
                experiment, probe.items[: len(weights)], name, snapshot.masks, weights.shape[2:]
            ),
            tokens=tokens,
        )
        for name, weights in maps.items()
        if weights is not None
    }


@lru_cache(maxsize=128)
def of_step(folder: Path, step: int, changed: int) -> Mapping[str, AlignmentScore]:
    """Return the scores at a snapshot of the run in a folder, cached; do not change them.

    changed: the snapshot's mtime in ns. Raises ValueError, in a sentence.
    """
    run = Run(folder)
    experiment, probe = run.experiment, run.probe()
    if not can_be_scored(experiment, Probe(probe.kind, probe.attended)):
        return {}
    return score(experiment, probe, run.snapshot(step))


def score_maps(
    experiment: Experiment,
    module: str,
    items: Sequence[Mapping[str, Any]],
    weights: Floats,
    may_attend: Bools,
    *,
    tokens: Collection[str] = (),
) -> AlignmentScore:
    """Return the score of one module. weights: (P, H, Q, K), padded; may_attend: (P, Q, K).

    tokens: see ``score``.
    """
    tally = AlignmentTally()
    for item, map_, allowed in zip(items, weights, may_attend, strict=True):
        even = even_over_source(experiment, item, module, allowed)
        truth = true_cells(item)
        if tokens:
            truth &= np.array([token in tokens for token in item["tgt"]], np.bool_)[:, None]
        tally.add(rows_that_write(experiment, item, module, map_), truth, even)
    return tally.result()


SCORES = Columns(
    step=Column(N_("step (log)"), ",", {"type": "log"}),
    share=share(N_("share of attention on the truth")),
)


def score_over_training(run: Run) -> pd.DataFrame:
    """Return one row a head and snapshot: step, module, kind, layer, head, share, aer, chance.

    layer and head count from 1. Raises ValueError without a probe.
    """
    import pandas as pd

    probe, experiment = run.probe(), run.experiment
    rows: list[dict[str, Any]] = []
    if can_be_scored(experiment, probe):
        for snapshot in _snapshots(run):
            for module, scored in score(experiment, probe, snapshot).items():
                rows += _rows(experiment, module, scored, snapshot.step)
    columns = ["step", "module", "kind", "layer", "head", "share", "aer", "chance"]
    return pd.DataFrame(rows, columns=columns)


def best_head(frame: pd.DataFrame, step: int) -> pd.Series[Any] | None:
    """Return the row of the head with the largest share at a step, if any."""
    here = frame[frame["step"] == step]
    return None if here.empty else here.loc[here["share"].idxmax()]


def best_of(scores: Mapping[str, AlignmentScore]) -> tuple[str, int] | None:
    """Return the module and the head, from 0, with the largest share; None without any."""
    known = {name: one.share for name, one in scores.items() if not np.isnan(one.share).all()}
    if not known:
        return None
    name = max(known, key=lambda module: float(np.nanmax(known[module])))
    return name, int(np.nanargmax(known[name]))


def aligned(frame: pd.DataFrame, step: int) -> Aligned:
    """Return which of the heads align at a step. frame: of ``score_over_training``."""
    here = frame[frame["step"] == step]
    found = here[here["share"] >= LEARNED]
    if found.empty:
        return Aligned(0, len(here))
    known = frame[frame["step"] <= step]
    formed = [formed_at(known, str(row.module), int(row.head) - 1) for row in found.itertuples()]
    shares = found["share"]
    since = max(first for first in formed if first is not None)
    return Aligned(len(found), len(here), float(shares.min()), float(shares.max()), since)


def formed_at(frame: pd.DataFrame, module: str, head: int) -> int | None:
    """Return the first step from which on a head (from 0) kept aligning, None where it does not."""
    of_head = frame[(frame["module"] == module) & (frame["head"] == head + 1)].sort_values("step")
    formed = None
    for step, found in zip(of_head["step"], of_head["share"], strict=True):
        if found < LEARNED:
            formed = None
        elif formed is None:
            formed = int(step)
    return formed


def _snapshots(run: Run) -> Iterator[Snapshot]:
    for step in run.snapshot_steps():
        with contextlib.suppress(ValueError):
            yield run.snapshot(step)


def _rows(
    experiment: Experiment, module: str, scored: AlignmentScore, step: int
) -> list[dict[str, Any]]:
    return [
        {
            "step": step,
            "module": module,
            "kind": kind_of(experiment, module).name,
            "layer": layer_of(module) + 1,
            "head": head + 1,
            "share": float(share),
            "aer": float(aer),
            "chance": scored.chance,
        }
        for head, (share, aer) in enumerate(zip(scored.share, scored.aer, strict=True))
    ]


def _first_row(kind: str, item: Mapping[str, Any]) -> int:
    """Return the row that writes the first target token: where <bos> is read, or position 0."""
    return len(item["src"]) if kind == "sequence" else 0
