"""What heads do: entropy, mean attention distance, shares by role, a label in words.

After Clark et al. 2019 (entropy, roles) and figure 7 of the ViT paper (distance). Every query with
a choice of keys counts the same; a role counts only queries that have such a key. Torch-free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import Experiment
from tfm_core.inspect.attention.alignment import LEARNED, AlignmentScore
from tfm_core.inspect.attention.example import Example
from tfm_core.inspect.attention.head_roles import (
    OF_TOKENS,
    ROLES,
    TokenRelations,
    relations_by_position,
    relations_of,
)
from tfm_core.probe.labels import kind_of, layer_of, modules_by_kind
from tfm_core.probe.masks import on_examples
from tfm_core.probe.types import Bools, Floats, Probe, Snapshot
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph, Sentence, StudentError, whole_percent

if TYPE_CHECKING:
    import pandas as pd


_CROSSING = frozenset({"cross", "picture"})  # kinds whose keys are other tokens than the queries
_OF_POSITION = ("self", "previous", "next", "above", "below", "near")

MAX = 0.8  # a role with more names the head alone
MUCH = 0.4  # a role with more makes it "mostly"; and at least twice what even attention gives
SINK = 0.005  # of a row's weight that no key gets: less is rounding
FEW = 0.2  # of the queries have to have a key with a matching token, or the share says little
EVEN = 0.92  # of the largest entropy there can be
ALIGNED, SPREAD, NO_CHOICE, UNCLEAR = "aligned", "spread", "no choice", "unclear"


@dataclass(frozen=True, slots=True, eq=False)
class HeadStatistics:
    """The heads of one attention module; arrays (H,).

    entropy in nats; evenness: entropy over that of even attention; distance in ``unit`` ("tokens"
    or "pixels"). shares: role -> share of attention, NaN where no query has such a key; chance:
    role -> the share under even attention.
    """

    kind: str
    entropy: Floats
    evenness: Floats
    distance: Floats
    shares: Mapping[str, Floats]
    chance: Mapping[str, float]
    unit: str
    n_examples: int
    n_queries: int


@dataclass(eq=False)
class Tally:
    """Sums over examples, so that a whole validation set can pass by in batches."""

    kind: str = ""
    n_examples: int = 0
    _sums: dict[str, Floats] = field(default_factory=dict)
    _counts: dict[str, float] = field(default_factory=dict)
    _chance: dict[str, float] = field(default_factory=dict)
    _unit: str = "tokens"

    def add(self, weights: Floats, relations: TokenRelations) -> None:
        """Count P more examples. weights: (P, H, Q, K). Raises ValueError on another shape."""
        allowed = relations.may_attend
        if weights.ndim != 4 or (weights.shape[0], *weights.shape[2:]) != allowed.shape:
            raise StudentError(
                Paragraph(
                    "attention/shapes-differ", shape=weights.shape, allowed_shape=allowed.shape
                )
            )
        weights = np.asarray(weights, np.float32)
        options = allowed.sum(-1)  # (P, Q)
        chooses = np.greater(options, 1)
        self._unit = relations.unit
        self.n_examples += len(weights)
        rest = np.clip(1 - weights.sum(-1), 0, 1)  # (P, H, Q)
        rest[(rest < SINK) | ~np.asarray(allowed.any(-1))[:, None]] = 0.0
        self._add_entropy(weights, rest, options, chooses)
        self._count("role sink", (rest * chooses[:, None]).sum((0, 2)), chooses.sum())
        even = float((chooses / (options + 1)).sum())
        self._chance["sink"] = self._chance.get("sink", 0.0) + even
        self._add_distance(weights, relations.distance, chooses)
        for name, cells in relations.roles.items():
            self._add_role(name, weights, cells, allowed, chooses)

    def _add_entropy(
        self, weights: Floats, rest: Floats, options: npt.NDArray[Any], chooses: Bools
    ) -> None:
        """Count a sink, which takes the rest (P, H, Q) of a row, as one more key."""
        surprise = np.log(weights, where=weights > 0, out=np.zeros_like(weights))
        entropy = -np.einsum("phqk,phqk->phq", weights, surprise)
        entropy -= rest * np.log(rest, where=rest > 0, out=np.zeros_like(rest))
        largest = np.log(np.where(chooses, options, 2)[:, None] + (rest > 0))
        self._count("entropy", (entropy * chooses[:, None]).sum((0, 2)), chooses.sum())
        self._count("evenness", (entropy / largest * chooses[:, None]).sum((0, 2)), chooses.sum())

    def _add_distance(self, weights: Floats, distance: Floats, chooses: Bools) -> None:
        near = np.nan_to_num(distance)
        known = np.logical_and(np.isfinite(distance), chooses[..., None])
        mass = np.einsum("phqk,pqk->phq", weights, known.astype(np.float32))
        total = np.einsum("phqk,pqk->phq", weights, near * known)
        means = np.divide(total, mass, where=mass > 0, out=np.zeros_like(total))
        self._count("distance", means.sum((0, 2)), known.any(-1).sum())

    def _add_role(
        self, name: str, weights: Floats, cells: Bools, allowed: Bools, chooses: Bools
    ) -> None:
        if name == "padding":  # forbidden, so the question is whether anything leaks
            seen, rows = cells, np.asarray(allowed.any(-1))
        else:
            seen = cells & allowed
            rows = np.logical_and(seen.any(-1), chooses)
        counted = (seen & rows[..., None]).astype(np.float32)
        self._count(f"role {name}", np.einsum("phqk,pqk->h", weights, counted), rows.sum())
        options = np.maximum(allowed.sum(-1), 1)
        even = float((counted.sum(-1) / options).sum()) if name != "padding" else 0.0
        self._chance[name] = self._chance.get(name, 0.0) + even

    def _count(self, name: str, sums: Floats, n: float) -> None:
        self._sums[name] = self._sums.get(name, np.zeros(len(sums))) + sums
        self._counts[name] = self._counts.get(name, 0.0) + float(n)

    def _mean(self, name: str) -> Floats:
        n = self._counts[name]
        return self._sums[name] / n if n else np.full(len(self._sums[name]), np.nan)

    def _tells(self, role: str) -> bool:
        if role == "sink":
            return bool(self._sums["role sink"].any())
        n = self._counts["entropy"]
        return role not in OF_TOKENS or self._counts[f"role {role}"] >= FEW * n

    def result(self) -> HeadStatistics:
        """Return the means over what was counted. Raises ValueError when that is nothing."""
        if not self.n_examples:
            raise StudentError("There are no examples to measure.")
        roles = [name for name in ROLES if f"role {name}" in self._sums and self._tells(name)]
        return HeadStatistics(
            kind=self.kind,
            entropy=self._mean("entropy"),
            evenness=self._mean("evenness"),
            distance=self._mean("distance"),
            shares={name: self._mean(f"role {name}") for name in roles},
            chance={
                name: self._chance[name] / max(1.0, self._counts[f"role {name}"]) for name in roles
            },
            unit=self._unit,
            n_examples=self.n_examples,
            n_queries=int(self._counts["entropy"]),
        )


def statistics(
    weights: Floats, may_attend: Bools, relations: TokenRelations | None = None, kind: str = ""
) -> HeadStatistics:
    """Return the figures of the heads of one module.

    weights: (P, H, Q, K); may_attend: bool (P, Q, K), all False for a padded query. relations: by
    default of positions alone.
    """
    tally = Tally(kind)
    tally.add(weights, relations_by_position(may_attend) if relations is None else relations)
    return tally.result()


def of_snapshot(
    experiment: Experiment, probe: Probe, snapshot: Snapshot
) -> dict[str, HeadStatistics]:
    """Return the figures of every module in one snapshot, on the few examples of the probe."""
    figures = {}
    for module, weights in _in_order(experiment, snapshot.attention):
        items = probe.items[: len(weights)]
        may_attend = on_examples(experiment, items, module, snapshot.masks, weights.shape[2:])
        figures[module] = _of_items(experiment, items, module, weights, may_attend)
    return figures


def _in_order(experiment: Experiment, attention: Mapping[str, Floats]) -> list[tuple[str, Floats]]:
    """Return the maps that there are by module, kind by kind."""
    modules = (module for modules in modules_by_kind(experiment).values() for module in modules)
    return [(module, attention[module]) for module in modules if module in attention]


def _of_items(
    experiment: Experiment,
    items: Sequence[Mapping[str, Any]],
    module: str,
    weights: Floats,
    may_attend: Bools,
) -> HeadStatistics:
    kind = kind_of(experiment, module).name
    relations = relations_of(experiment, items, kind, may_attend)
    return statistics(weights, may_attend, relations, kind)


@lru_cache(maxsize=128)
def of_step(folder: Path, step: int, changed: int) -> Mapping[str, HeadStatistics]:
    """Return those of a snapshot of the run in a folder, cached; do not change them.

    changed: the snapshot's mtime in ns. Raises ValueError, in a sentence.
    """
    run = Run(folder)
    return of_snapshot(run.experiment, run.probe(), run.snapshot(step))


def of_example(experiment: Experiment, example: Example) -> dict[str, HeadStatistics]:
    """Return the figures of every module on one example."""
    return {
        module: _of_items(
            experiment, [example.item], module, weights[None], example.masks[module][None]
        )
        for module, weights in _in_order(experiment, example.attention)
    }


def describe(
    stats: HeadStatistics, head: int, aligned: float = 0.0, *, is_short: bool = False
) -> str:
    """Return what a head does in a few words, with its figure: "previous token, 94%".

    aligned: its share on the true source words or the named digit, if known. is_short: for a small
    map.
    """
    role = role_of(stats, head, aligned)
    if role == ALIGNED:
        if is_short:
            return N_("aligns, {share}", share=whole_percent(aligned))
        words: str = N_("the digit named") if stats.kind == "picture" else N_("true source words")
        return _share_of(words, aligned)
    if role in ROLES:
        share = float(stats.shares[role][head])
        words = ROLES[role].words(stats.kind)
        if is_short:
            return N_("{words}, {share}", words=words, share=whole_percent(share))
        return _share_of(words, share)
    if role == NO_CHOICE:
        return N_("no choice")
    if role == SPREAD:
        percent = whole_percent(float(stats.evenness[head]))
        if is_short:
            return N_("evenly spread, {share}", share=percent)
        return N_("evenly spread, {share} of the largest entropy", share=percent)
    # as many keys as even attention would need to be as uncertain: the perplexity of a row
    n_keys = f"{np.exp(float(stats.entropy[head])):.1f}"
    if is_short:
        return N_("unclear, {n} keys", n=n_keys)
    return N_("unclear: about {n} keys per row", n=n_keys)


def role_of(stats: HeadStatistics, head: int, aligned: float = 0.0) -> str:
    """Return what a head does: one of ROLES, or ALIGNED, SPREAD, NO_CHOICE or UNCLEAR.

    aligned: see ``describe``.
    """
    role = leading_role(stats, head)
    most = float(stats.shares[role][head]) if role is not None else MUCH
    if aligned >= LEARNED and aligned > most:
        return ALIGNED
    if role is not None:
        return role
    evenness = float(stats.evenness[head])
    if np.isnan(evenness):
        return NO_CHOICE
    return SPREAD if evenness >= EVEN else UNCLEAR


def leading_role(stats: HeadStatistics, head: int) -> str | None:
    """Return the role with more than MUCH and twice its even share, the largest; None without.

    "near", which holds others, counts only where none of these does.
    """
    best, most = None, MUCH
    for name, shares in stats.shares.items():
        share = float(shares[head])
        if name in ("padding", "near") or not share >= 2 * stats.chance[name]:
            continue
        if share > most:
            best, most = name, share
    near = float(stats.shares["near"][head]) if "near" in stats.shares else 0.0
    if best is None and near > MUCH and near >= 2 * stats.chance["near"]:
        return "near"
    return best


def table(
    experiment: Experiment,
    measured: Mapping[str, HeadStatistics],
    alignment: Mapping[str, AlignmentScore] | None = None,
) -> pd.DataFrame:
    """Return one row a head: module, kind, layer and head from 1, label, and every figure.

    With ``alignment`` also aligned (share on true source words) and aer. Where queries and keys are
    different tokens, distance and roles of position are NaN.
    """
    import pandas as pd

    rows = []
    for module, stats in measured.items():
        kind = kind_of(experiment, module).name
        score = (alignment or {}).get(module)
        for head in range(len(stats.entropy)):
            aligned = float(score.share[head]) if score is not None else 0.0
            figures = (
                {} if score is None else {"aligned": score.share[head], "aer": score.aer[head]}
            )
            figures |= {
                "entropy": stats.entropy[head],
                "evenness": stats.evenness[head],
                "distance": stats.distance[head],
                **{name: shares[head] for name, shares in stats.shares.items()},
            }
            if kind in _CROSSING:
                figures |= {name: np.nan for name in ("distance", *_OF_POSITION) if name in figures}
            rows.append(
                {
                    "module": module,
                    "kind": kind,
                    "layer": layer_of(module) + 1,
                    "head": head + 1,
                    "label": describe(stats, head, aligned),
                    **{name: float(value) for name, value in figures.items()},
                }
            )
    labels = pd.Series([row["label"] for row in rows], dtype=object)  # pandas' str loses values
    return pd.DataFrame(rows).assign(label=labels)


def _share_of(words: str, share: float) -> Sentence:
    percent = whole_percent(share)
    if share >= MAX:
        return N_("{words}, {share}", words=words, share=percent)
    return N_("mostly {words}, {share}", words=words, share=percent)
