"""What a key can be to a query: itself, a neighbour, the first token, behind the same token.

Heads are described by the share of attention on each role (Clark et al. 2019, section 3).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfm_core.choices.config import Experiment, PatchConfig
from tfm_core.data.vocabulary import plain_token
from tfm_core.probe.labels import CLS, axes, kind_of, modules_by_kind
from tfm_core.probe.masks import axes_within
from tfm_core.probe.types import Bools, Floats
from tfm_core.sentences import Sentence, words

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
