"""A head with an attention pattern that a person drew: what the model then answers.

The rows of a pattern sum to 1, and a key that the mask hides gets nothing. torch is imported late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core import byte_cache
from tfm_core.config import CaptionTaskConfig, PictureTaskConfig, SequenceTaskConfig
from tfm_core.data.vocabulary import MASK
from tfm_core.inspect.attention.inputs import inputs_of
from tfm_core.inspect.attention.trained import checkpoint_mark, model_of
from tfm_core.inspect.knockouts.parts import KnockedPart
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from torch import Tensor

Floats = npt.NDArray[np.floating[Any]]
Bools = npt.NDArray[np.bool_]
PATTERNS: Mapping[str, str] = {
    "own": N_("The head’s own"),
    "previous": N_("Previous token"),
    "first": N_("First token"),
    "itself": N_("Itself"),
    "even": N_("Even"),
}
"""Patterns to begin with; in the last four, a row without its key is even."""


_DIGITS = 2


def pattern_of(name: str, own: Floats, allowed: Bools) -> Floats:
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


def cells_of(rows: Floats, allowed: Bools) -> Floats:
    """Return a pattern (Q, K) as a person edits it: rounded, NaN where the mask hides a key."""
    cells: Floats = np.where(allowed, rows.round(_DIGITS), np.nan)
    return cells


def edited(
    begun: Floats, cells: Floats, allowed: Bools, query: Sequence[str], key: Sequence[str]
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


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """The likeliest answer at each place, and its probability; probabilities: (places, answers)."""

    tokens: tuple[str, ...]
    probabilities: Floats

    @property
    def confidence(self) -> Floats:
        """The probability of the likeliest answer, (places,)."""
        best: Floats = self.probabilities.max(1)
        return best


@dataclass(frozen=True, slots=True, eq=False)
class Redrawn:
    """What a model answers with its own weights, and with a pattern in one head.

    places: the token at which each answer is given; "" of a class.
    """

    places: tuple[str, ...]
    before: Answers
    after: Answers

    @property
    def n_changed(self) -> int:
        """How many answers are others."""
        pairs = zip(self.before.tokens, self.after.tokens, strict=True)
        return sum(one != other for one, other in pairs)

    @property
    def moved(self) -> Floats:
        """The share of probability that moved to other answers, (places,)."""
        shares: Floats = np.abs(self.after.probabilities - self.before.probabilities).sum(1) / 2
        return shares

    def most_moved(self, n: int) -> list[int]:
        """Return the n places where most moved, in their order."""
        return sorted(np.argsort(-self.moved, kind="stable")[:n].tolist())


def redrawn(run: Run, index: int, head: KnockedPart, rows: Floats) -> Redrawn:
    """Return the answers to one of the run's examples with a pattern (Q, K) in one head. Cached.

    The true answer so far is read before each place, as in training. Raises ValueError, in a
    sentence, where there is no checkpoint.
    """
    return _redrawn(
        str(run.folder), checkpoint_mark(run), index, head, rows.shape, rows.astype("<f8").tobytes()
    )


@byte_cache.cached
def _redrawn(
    folder: str, mark: int, index: int, head: KnockedPart, shape: tuple[int, int], rows: bytes
) -> Redrawn:
    import torch

    from tfm_core.inspect.knockouts.engine import knocked_out, twin
    from tfm_core.inspect.knockouts.weights import pattern, weighed

    run = Run(Path(folder))
    model = twin(model_of(run)[0])
    probe = run.probe()
    item = probe.items[index]
    inputs = inputs_of(run, item, None if probe.images is None else probe.images[index])
    made = torch.from_numpy(np.frombuffer(rows, "<f8").reshape(shape).copy())
    attention = model.get_submodule(head.module)
    with torch.inference_mode(), knocked_out(model, ()):
        own = model(*inputs)
        with weighed(attention, head.head, pattern(made)):
            other = model(*inputs)
    places = _places(run, item, 1 if own.ndim == 2 else own.size(1))
    before, after = (_answers(run, logits, list(places)) for logits in (own, other))
    return Redrawn(tuple(places.values()), before, after)


def _places(run: Run, item: Mapping[str, Any], n: int) -> dict[int, str]:
    """Return the positions that answer, with their tokens."""
    if "label" in item or run.experiment.task.facts.answer == "label":
        return {0: ""}
    if run.experiment.model.family == "encoder-only":
        read = (*item["src"], *("" for _ in range(n)))[:n]
        is_cloze = run.experiment.task.facts.answer == "blanks"
        return {at: token for at, token in enumerate(read) if not is_cloze or token == MASK}
    return dict(enumerate((run.experiment.task.begin, *item["tgt"])))


def _answers(run: Run, logits: Tensor, places: list[int]) -> Answers:
    rows = logits if logits.ndim == 2 else logits[0, places]
    probabilities = rows.double().softmax(-1).numpy()
    best = probabilities.argmax(1).tolist()
    task = run.experiment.task
    from tfm_core.data.caption_words import vocabulary
    from tfm_core.data.tasks import text_task

    if isinstance(task, PictureTaskConfig) and not isinstance(task, CaptionTaskConfig):
        names = tuple(str(task.facts.class_names[one]) for one in best)
    elif isinstance(task, CaptionTaskConfig):
        names = tuple(map(vocabulary(task).token, best))
    else:
        names = tuple(
            map(text_task(run.experiment.task_as(SequenceTaskConfig)).tgt_vocabulary.token, best)
        )
    return Answers(names, probabilities)
