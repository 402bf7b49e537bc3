"""What a key can be to a query: itself, a neighbour, the first token, behind the same token.

Heads are described by the share of attention on each role (Clark et al. 2019, section 3).
"""

from __future__ import annotations

import contextlib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import Experiment, PatchConfig
from tfm_core.data.vocabulary import plain_token
from tfm_core.inspect.attention import alignment
from tfm_core.inspect.attention.alignment import LEARNED, AlignmentTally
from tfm_core.inspect.attention.example import Example
from tfm_core.inspect.attention.trained import (
    at_once,
    batch_of,
    cached_by_snapshot,
    cached_by_weights,
    data_of,
    in_all,
    model_of,
)
from tfm_core.probe.labels import CLS, axes, kind_of, layer_of, modules_by_kind
from tfm_core.probe.masks import Maps, axes_within, recorded
from tfm_core.probe.types import Bools, Floats, Probe, Snapshot
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph, Sentence, StudentError, whole_percent, words

if TYPE_CHECKING:
    import pandas as pd


NEAR = 2  # positions
OF_TOKENS = frozenset({"repeated", "induction"})
"""Roles by which token a key is: not every query has such keys."""


ROLES: dict[str, Mapping[str, Sentence]] = {
    name: words(f"choices/roles/{name}")
    for name in (
        *("self", "previous", "next", "above", "below", "first", "cls", "bos"),
        *("repeated", "induction", "punctuation", "sink", "near", "padding"),
    )
}
"""Label and help; the labels for cross-attention and for patches where they have their own."""


def role_words(role: str, kind: str) -> Sentence:
    """Return the label of a role in an attention of a kind (see ``labels.KINDS``)."""
    special = {"cross": "cross", "picture": "patch", "patches": "patch"}.get(kind, "label")
    return ROLES[role].get(special, ROLES[role]["label"])


@dataclass(frozen=True, slots=True, eq=False)
class TokenRelations:
    """How query and key tokens relate in P padded examples.

    may_attend: bool (P, Q, K), no row of a padded query. roles: role name -> bool (P, Q, K).
    distance: float32 (P, Q, K) in ``unit``, NaN where there is none (CLS, padding).
    """

    may_attend: Bools
    roles: Mapping[str, Bools]
    distance: Floats
    unit: str = "tokens"


def relations_by_position(may_attend: Bools) -> TokenRelations:
    """Return the relations by position alone. may_attend: bool (P, Q, K)."""
    n_queries, n_keys = may_attend.shape[1:]
    away = np.arange(n_keys)[None, :] - np.arange(n_queries)[:, None]
    first = np.zeros(away.shape, np.bool_)
    first[:, 0] = True
    cells = {
        "self": away == 0,
        "previous": away == -1,
        "next": away == 1,
        "first": first,
        "near": np.abs(away) <= NEAR,
    }
    roles = {name: _spread(where, may_attend) for name, where in cells.items()}
    distance = np.broadcast_to(np.abs(away).astype(np.float32), may_attend.shape)
    return TokenRelations(may_attend, roles, distance)


def relations_of(
    experiment: Experiment, items: Sequence[Mapping[str, Any]], kind: str, may_attend: Bools
) -> TokenRelations:
    """Return the relations of examples of a probe in a kind of attention.

    may_attend: (P, Q, K), see ``probe.masks.on_examples``. Raises StudentError for a larger
    example.
    """
    module = modules_by_kind(experiment)[kind][0]
    assert kind_of(experiment, module).name == kind
    if kind == "patches":
        return _patch_relations(experiment, may_attend, module)
    shape = may_attend.shape[1:]
    padding, bos, cls, signs, same, behind = (np.zeros_like(may_attend) for _ in range(6))
    for index, item in enumerate(items):
        names = axes_within(experiment, item, module, shape)
        rows, columns = names.shape
        padding[index, :rows, columns:] = True
        bos[index, :rows, :columns] = [token == experiment.task.begin for token in names.key]
        cls[index, :rows, :columns] = [token == CLS for token in names.key]
        signs[index, :rows, :columns] = [is_punctuation(token) for token in names.key]
        if names.query == names.key:
            same[index, :rows, :columns] = earlier(names.key)
            behind[index, :rows, :columns] = behind_earlier(names.key)
    if kind == "picture":
        first = np.zeros(may_attend.shape, np.bool_)
        first[..., 0] = may_attend[..., 0]
        nowhere = np.full(may_attend.shape, np.nan, np.float32)
        return TokenRelations(may_attend, {"first": first, "padding": padding}, nowhere, "pixels")
    by_position = relations_by_position(may_attend)
    roles = {**by_position.roles, "punctuation": signs, "padding": padding}
    some = {"bos": bos, "cls": cls, "repeated": same, "induction": behind}
    roles |= {name: cells for name, cells in some.items() if cells.any()}
    return TokenRelations(may_attend, roles, by_position.distance)


def earlier(tokens: Sequence[str]) -> Bools:
    """Return (T, T): from each token, its earlier occurrences."""
    read = np.array(list(map(plain_token, tokens)), dtype=object)
    return np.tril(read[:, None] == read[None, :], -1)


def behind_earlier(tokens: Sequence[str]) -> Bools:
    """Return (T, T): from each token, the tokens behind its earlier occurrences."""
    return np.pad(earlier(tokens)[:, :-1], ((0, 0), (1, 0)))


def is_punctuation(token: str) -> bool:
    """Return whether a token is punctuation or signs only."""
    return bool(token) and all(unicodedata.category(sign)[0] in "PS" for sign in token)


def _patch_relations(experiment: Experiment, may_attend: Bools, module: str) -> TokenRelations:
    """Return the relations of patches: neighbours in the picture, distances in pixels."""
    model = experiment.model_as(PatchConfig)
    names = axes(experiment, {}, module).query
    first = int(names[0] == CLS)
    side = round((len(names) - first) ** 0.5)
    size = (len(names), len(names))
    rows, columns = np.divmod(np.arange(side**2), side)
    down = rows[None] - rows[:, None]  # of the key, seen from the query
    right = columns[None] - columns[:, None]
    steps = {"self": (0, 0), "previous": (0, -1), "next": (0, 1), "above": (-1, 0), "below": (1, 0)}
    roles = {}
    for name, step in steps.items():
        cells = np.zeros(size, np.bool_)
        cells[first:, first:] = (down == step[0]) & (right == step[1])
        roles[name] = cells
    roles["first"] = np.zeros(size, np.bool_)
    roles["first"][:, first] = True
    if first:
        roles["self"][0, 0] = True
        roles["cls"] = np.zeros(size, np.bool_)
        roles["cls"][:, 0] = True
    roles["padding"] = np.zeros(size, np.bool_)
    distance = np.full(size, np.nan, np.float32)
    distance[first:, first:] = np.hypot(down, right) * model.patch_size
    spread = {name: _spread(cells, may_attend) for name, cells in roles.items()}
    far = np.broadcast_to(distance, may_attend.shape)
    return TokenRelations(may_attend, spread, far, "pixels")


def _spread(cells: Bools, like: Bools) -> Bools:
    return np.broadcast_to(cells, like.shape)


Row = Mapping[str, Any]
"""A head: a row of the table."""

_CROSSING = frozenset({"cross", "picture"})  # kinds whose keys are other tokens than the queries
_OF_POSITION = ("distance", "self", "previous", "next", "above", "below", "near")
_UNSHOWN = ("short", "role", "unit", "step", "n_examples", "n_queries", "n_all")
MAX = 0.8  # a role with more names the head alone
MUCH = 0.4  # a role with more makes it "mostly"; and at least twice what even attention gives
SINK = 0.005  # of a row's weight that no key gets: less is rounding
FEW = 0.2  # of the queries have to have a key with a matching token, or the share says little
EVEN = 0.92  # of the largest entropy there can be
ALIGNED, SPREAD, NO_CHOICE, UNCLEAR = "aligned", "spread", "no choice", "unclear"


LIMIT = 1000  # validation examples; the figures of more differ in the third digit
_BATCH = 50


@dataclass(eq=False)
class Tally:
    """Sums over examples, so that a whole validation set can pass by in batches."""

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

    def rows(self) -> list[dict[str, Any]]:
        """Return the means over what was counted, a row a head, without the truth and words.

        Raises StudentError when nothing was counted.
        """
        if not self.n_examples:
            raise StudentError("There are no examples to measure.")
        roles = [name for name in ROLES if f"role {name}" in self._sums and self._tells(name)]
        means = {name: self._mean(name) for name in ("entropy", "evenness", "distance")}
        means |= {name: self._mean(f"role {name}") for name in roles}
        even = {
            f"even {name}": self._chance[name] / max(1.0, self._counts[f"role {name}"])
            for name in roles
        }
        n = {"n_examples": self.n_examples, "n_queries": int(self._counts["entropy"])}
        return [
            {**{name: float(values[head]) for name, values in means.items()}, **even, **n}
            | {"unit": self._unit}
            for head in range(len(means["entropy"]))
        ]


def table_of_snapshot(experiment: Experiment, probe: Probe, snapshot: Snapshot) -> pd.DataFrame:
    """Return the table of a snapshot, on the few examples of the probe."""
    return _table(_of_snapshot(experiment, probe, snapshot))


@cached_by_snapshot
def table_of_step(run: Run, step: int) -> pd.DataFrame:
    """Return the table of a snapshot of a run, cached; do not change it. Raises ValueError."""
    return _table(rows_of_step(run, step))


@cached_by_snapshot
def rows_of_step(run: Run, step: int) -> list[Row]:
    """Return the rows of that table, without pandas: Home appears before it is there."""
    return _of_snapshot(run.experiment, run.probe(), run.snapshot(step))


def _of_snapshot(experiment: Experiment, probe: Probe, snapshot: Snapshot) -> list[Row]:
    return _of_maps(experiment, recorded(experiment, probe.items, snapshot), step=snapshot.step)


def rows_of_example(experiment: Experiment, example: Example) -> list[Row]:
    """Return the rows of the table of one example."""
    maps = (
        (module, [example.item], example.attention[module][None], example.masks[module][None])
        for modules in modules_by_kind(experiment).values()
        for module in modules
        if module in example.attention
    )
    return _of_maps(experiment, maps, step=example.step)


@cached_by_weights
def over_validation(run: Run, limit: int = LIMIT) -> pd.DataFrame:
    """Return the table over the first ``limit`` validation examples, or fewer, and of n_all.

    With the last checkpoint; sentences are read with the true target. Fewer where maps are large
    (``in_all``). Slow, so cached. Raises StudentError without a checkpoint or data.
    """
    from tfm_core.probe.capture import capture
    from tfm_core.probe.snapshot import decoder_input

    experiment = run.experiment
    model, step = model_of(run)
    data = data_of(experiment)
    n_all = len(data.validation)
    n = min(in_all(experiment, limit), n_all)
    size = at_once(experiment, _BATCH)

    def maps() -> Iterator[Maps]:
        for first in range(0, n, size):
            inputs, items = batch_of(experiment, data, slice(first, min(n, first + size)))
            with capture(model, only={"weights", "mask"}) as cache:
                model(inputs[0], *map(decoder_input, inputs[1:]))
            found = {name: value.float().numpy() for name, value in cache.of("weights").items()}
            seen = Snapshot(step, attention=found, masks=cache.masks())
            yield from recorded(experiment, items, seen)

    return _table(_of_maps(experiment, maps(), step=step)).assign(n_all=n_all)


def _of_maps(experiment: Experiment, maps: Iterable[Maps], *, step: int) -> list[Row]:
    """Return the rows of the table over maps; those of a module may come in parts."""
    tallies: dict[str, Tally] = {}
    on_truth = {name: AlignmentTally() for name in alignment.scored_modules(experiment)}
    for module, items, weights, may_attend in maps:
        relations = relations_of(experiment, items, kind_of(experiment, module).name, may_attend)
        tallies.setdefault(module, Tally()).add(weights, relations)
        if module in on_truth:
            # nobody knows the truth of the user's own example
            with contextlib.suppress(StudentError):
                on_truth[module].add_maps(experiment, module, items, weights, may_attend)
    rows: list[Row] = []
    for module, tally in tallies.items():
        kind = kind_of(experiment, module).name
        place = {"module": module, "kind": kind, "layer": layer_of(module) + 1}
        truth = on_truth.get(module)
        scores = truth.rows() if truth is not None and truth.n_tokens else []
        for head, figures in enumerate(tally.rows(), 1):
            row = {**place, "head": head, "label": ""}
            if scores:
                score = scores[head - 1]
                row |= {"aligned": score["share"], "aer": score["aer"]}
                figures |= {"even aligned": score["chance"]}
            row |= {**figures, "step": step}
            words = {"label": describe(row), "short": describe(row, is_short=True)}
            rows.append({**row, **words, "role": role_of(row)})
    return rows


def _table(rows: Sequence[Row]) -> pd.DataFrame:
    import pandas as pd

    columns = ["module", "kind", "layer", "head", "label", "short", "role", "unit", "n_examples"]
    table = pd.DataFrame(list(rows), columns=None if rows else columns)
    for name in ("label", "short"):  # of themselves, columns of sentences become plain texts
        table[name] = pd.Series([row[name] for row in rows], dtype=object)
    return table


def rows_of_kind(experiment: Experiment, rows: Sequence[Row], kind: str) -> list[Row]:
    """Return the heads of a kind of attention, layer by layer; none where a layer lacks."""
    found = [row for row in rows if row["kind"] == kind]
    n_layers = len({row["module"] for row in found})
    return found if n_layers == len(modules_by_kind(experiment)[kind]) else []


def displayed(table: pd.DataFrame) -> pd.DataFrame:
    """Return what a person reads of a table: not what a crossing attention's positions mean."""
    even = [name for name in table if name.startswith("even ")]
    kept = table.drop(columns=[*even, *_UNSHOWN], errors="ignore")
    names = [name for name in _OF_POSITION if name in kept]
    kept.loc[kept["kind"].isin(_CROSSING), names] = np.nan
    return kept


def describe(row: Row, *, is_short: bool = False) -> str:
    """Return what a head does in a few words, with its figure: "previous token, 94%".

    is_short: for a small map, which says nothing of a head without a clear role.
    """
    role, kind = role_of(row), row.get("kind", "")
    if role == ALIGNED:
        aligned = float(row["aligned"])
        if is_short:
            return N_("aligns, {share}", share=whole_percent(aligned))
        words: str = N_("the named digit") if kind == "picture" else N_("true source words")
        return _share_of(words, aligned)
    if role in ROLES:
        share = float(row[role])
        words = role_words(role, kind)
        if is_short:
            return N_("{words}, {share}", words=words, share=whole_percent(share))
        return _share_of(words, share)
    if role == NO_CHOICE:
        return N_("only one key")
    if role == SPREAD:
        percent = whole_percent(float(row["evenness"]))
        if is_short:
            return N_("spreads evenly")
        return N_("spreads its attention evenly ({share} of the maximum entropy)", share=percent)
    if is_short:
        return ""
    # as many keys as even attention would need to be as uncertain: the perplexity of a row
    n_keys = f"{np.exp(float(row['entropy'])):.1f}"
    return N_("no clear role: about {n} keys per row", n=n_keys)


def full_label(row: Row) -> Sentence:
    """Return what a head does, and on how many examples."""
    is_mean = row["n_examples"] > 1
    rule = N_("{what} (mean of {n} examples)") if is_mean else N_("{what} (this example)")
    return N_(rule, what=row["label"], n=int(row["n_examples"]))


def role_of(row: Row) -> str:
    """Return what a head does: one of ROLES, or ALIGNED, SPREAD, NO_CHOICE or UNCLEAR."""
    role = leading_role(row)
    most = float(row[role]) if role is not None else MUCH
    aligned = float(row.get("aligned", 0.0))
    if aligned >= LEARNED and aligned > most:
        return ALIGNED
    if role is not None:
        return role
    evenness = float(row["evenness"])
    if np.isnan(evenness):
        return NO_CHOICE
    return SPREAD if evenness >= EVEN else UNCLEAR


def leading_role(row: Row) -> str | None:
    """Return the role with more than MUCH and twice its even share, the largest; None without.

    "near", which holds others, counts only where none of these does.
    """
    best, most = None, MUCH
    for name in ROLES:
        share = float(row.get(name, np.nan))
        if name in ("padding", "near") or not share >= 2 * row.get(f"even {name}", 0.0):
            continue
        if share > most:
            best, most = name, share
    near = float(row.get("near", 0.0))
    if best is None and near > MUCH and near >= 2 * row["even near"]:
        return "near"
    return best


def _share_of(words: str, share: float) -> Sentence:
    percent = whole_percent(share)
    if share >= MAX:
        return N_("{words}, {share}", words=words, share=percent)
    return N_("mostly {words}, {share}", words=words, share=percent)


ALIKE = 0.02
"""Share of the attention that would have to move for a head to be even, or the same for all.

Such heads do nothing. One is normal: models have more heads than they need (Michel et al. 2019). A
whole layer of them is not. Healthy: 0.1 and more, once the model has left guessing. Ill: 0.005 and
less."""


def alikeness(weights: Floats, may_attend: Bools) -> tuple[Floats, Floats]:
    """Return, by head, the share of attention that has to move to be even, or constant; each (H,).

    weights: (P, H, Q, K); may_attend: (P, Q, K). Constant: the same keys whatever the query.
    Queries with a single key are left out; without others, nothing is alike.
    """
    weights = np.asarray(weights, np.float32)
    chooses = may_attend.sum(-1) > 1  # (P, Q)
    if not chooses.any():
        return np.ones(weights.shape[1]), np.ones(weights.shape[1])
    rows = np.asarray(weights.transpose(0, 2, 1, 3)[chooses], np.float64)  # (n, H, K)
    allowed = may_attend[chooses][:, None]  # (n, 1, K)
    even = allowed / allowed.sum(-1, keepdims=True)
    mean = rows.sum(0) / np.maximum(allowed.sum(0), 1)  # (H, K), of those that may see the key
    own = mean * allowed
    own /= np.maximum(own.sum(-1, keepdims=True), 1e-12)
    moved = (0.5 * np.abs(rows - other).sum(-1).mean(0) for other in (even, own))
    to_even, to_constant = map(np.asarray, moved)
    return to_even, to_constant


def is_dead(alike: tuple[Floats, Floats]) -> bool:
    """Return whether all heads of a module do nothing, by their ``alikeness``."""
    return bool((np.minimum(*alike) < ALIKE).all())


def dead_modules(run: Run, steps: list[int]) -> tuple[int, tuple[str, ...]] | None:
    """Return the modules all of whose heads do nothing now, and since which snapshot.

    steps: of snapshots, ascending; damaged ones are left out.
    """
    since, dead = 0, set[str]()
    for step in steps[::-1]:
        try:
            found = _dead_at(run, step)
        except (OSError, ValueError):
            continue
        if not dead:
            dead, since = set(found), step
        elif dead <= found:
            since = step
        else:
            break
        if not dead:
            return None
    return (since, tuple(sorted(dead))) if dead else None


@cached_by_snapshot
def _dead_at(run: Run, step: int) -> frozenset[str]:
    """Return the modules all of whose heads do nothing in a snapshot. Raises ValueError."""
    return frozenset(
        module
        for module, _items, weights, may_attend in recorded(
            run.experiment, run.probe().items, run.snapshot(step)
        )
        if is_dead(alikeness(weights, may_attend))
    )
