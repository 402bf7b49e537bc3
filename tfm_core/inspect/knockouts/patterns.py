"""A head with an attention pattern that a person drew: what the model then answers.

The rows of a pattern sum to 1, and a key that the mask hides gets nothing. torch is imported late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.data.vocabulary import MASK
from tfm_core.inspect.attention.inputs import inputs_of
from tfm_core.inspect.attention.trained import cached_by_weights, model_of
from tfm_core.inspect.knockouts.parts import Part
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from pandas import DataFrame

Floats = npt.NDArray[np.floating[Any]]
_Bools = npt.NDArray[np.bool_]
PATTERNS: Mapping[str, str] = {
    "own": N_("The head’s own"),
    "previous": N_("Previous token"),
    "first": N_("First token"),
    "itself": N_("Itself"),
    "even": N_("Even"),
}
"""Patterns to begin with; in the last four, a row without its key is even."""


_DIGITS = 2


def pattern_of(name: str, own: Floats, allowed: _Bools) -> Floats:
    """Return a pattern (Q, K) of PATTERNS; own: the head's weights, allowed: the mask, (Q, K)."""
    if name == "own":
        return np.array(own, np.float64)
    even: Floats = allowed / np.maximum(allowed.sum(1, keepdims=True), 1)
    n_query, n_key = allowed.shape
    wanted = {
        "previous": np.eye(n_query, n_key, -1, dtype=np.bool_),
        "first": np.arange(n_key) == np.zeros((n_query, 1)),
        "itself": np.eye(n_query, n_key, dtype=np.bool_),
    }
    if name == "even":
        return even
    one = wanted[name] & allowed
    rows: Floats = np.where(one.any(1, keepdims=True), one.astype(np.float64), even)
    return rows


def cells_of(rows: Floats, allowed: _Bools) -> Floats:
    """Return a pattern (Q, K) as a person edits it: rounded, NaN where the mask hides a key."""
    cells: Floats = np.where(allowed, rows.round(_DIGITS), np.nan)
    return cells


def edited(
    begun: Floats, cells: Floats, allowed: _Bools, query: Sequence[str], key: Sequence[str]
) -> Floats:
    """Return a pattern (Q, K) with the rows that a person edited, scaled to sum to 1.

    begun: the pattern before. cells: ``cells_of`` it, edited. query, key: names of rows and
    columns. Raises StudentError for a negative weight, for one that the mask forbids, and for a row
    without weights.
    """
    filled = np.nan_to_num(cells.astype(np.float64), nan=0.0, posinf=-1.0, neginf=-1.0)
    is_changed = (filled != np.nan_to_num(cells_of(begun, allowed))).any(1)
    for row in np.flatnonzero(is_changed).tolist():
        for column in np.flatnonzero((filled[row] > 0) & ~allowed[row]).tolist():
            raise StudentError(
                "The mask hides “{key}” from “{query}”: leave that cell empty.",
                key=key[column],
                query=query[row],
            )
        if (filled[row] < 0).any() or not filled[row].any():
            raise StudentError(
                "The row of “{query}” needs weights of 0 or more, and one above 0.",
                query=query[row],
            )
    sums = np.where(is_changed, filled.sum(1), 1.0)[:, None]
    rows: Floats = np.where(is_changed[:, None], filled / sums, begun)
    return rows


def redrawn(run: Run, index: int, head: Part, rows: Floats) -> DataFrame:
    """Return the answers to one of the run's examples with a pattern (Q, K) in one head. Cached.

    A row for each place: place, the token at which it answers ("" of a class); before, after: the
    likeliest answer with the head's own weights and with the pattern, and their probabilities
    before_share and after_share; moved: the share of probability that moved to other answers. The
    true answer so far is read before each place, as in training. Raises ValueError, in a sentence,
    where there is no checkpoint.
    """
    return _redrawn(run, index, head, rows.shape, rows.astype("<f8").tobytes())


@cached_by_weights
def _redrawn(run: Run, index: int, head: Part, shape: tuple[int, int], rows: bytes) -> DataFrame:
    import pandas as pd
    import torch

    from tfm_core.inspect.knockouts.engine import pattern, reweighed
    from tfm_core.probe.intervene import intervene

    model, _step = model_of(run)
    probe = run.probe()
    item = probe.items[index]
    inputs = inputs_of(run, item, None if probe.images is None else probe.images[index])
    made = torch.from_numpy(np.frombuffer(rows, "<f8").reshape(shape).copy())
    with torch.inference_mode(), intervene(model, {}):
        own = model(*inputs)
        with intervene(model, {f"{head.module}.weights": reweighed(head.head, pattern(made))}):
            other = model(*inputs)
    places = _places(run, item, 1 if own.ndim == 2 else own.size(1))
    before, after = (
        (logits if logits.ndim == 2 else logits[0, list(places)]).double().softmax(-1).numpy()
        for logits in (own, other)
    )
    token = _token_of(run)
    return pd.DataFrame(
        {
            "place": list(places.values()),
            "before": [token(best) for best in before.argmax(1).tolist()],
            "before_share": before.max(1),
            "after": [token(best) for best in after.argmax(1).tolist()],
            "after_share": after.max(1),
            "moved": np.abs(after - before).sum(1) / 2,
        }
    )


def _places(run: Run, item: Mapping[str, Any], n: int) -> dict[int, str]:
    """Return the positions that answer, with their tokens."""
    if "label" in item or run.experiment.task.facts.answer == "label":
        return {0: ""}
    if run.experiment.model.family == "encoder-only":
        read = (*item["src"], *("" for _ in range(n)))[:n]
        is_cloze = run.experiment.task.facts.answer == "blanks"
        return {at: token for at, token in enumerate(read) if not is_cloze or token == MASK}
    return dict(enumerate((run.experiment.task.begin, *item["tgt"])))


def _token_of(run: Run) -> Callable[[int], str]:
    """Return what names an answer: a class or a token."""
    from tfm_core.data.tasks import task_of

    answers = task_of(run.experiment.task).answers
    return run.experiment.task.class_names.__getitem__ if answers is None else answers.token
