"""One example as a model reads and answers it without some parts, or with a drawn pattern.

The rows of an attention pattern sum to 1, and a key that the mask hides gets nothing. torch is
imported late.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core.choices.config import CaptionTaskConfig, CorpusTaskConfig
from tfm_core.data.tasks import task_of
from tfm_core.data.vocabulary import MASK
from tfm_core.inspect.attention.example import Example, captured
from tfm_core.inspect.attention.trained import (
    cached_by_weights,
    data_of,
    inputs_of,
    model_of,
)
from tfm_core.inspect.knockouts.measure import Replacement, means_over
from tfm_core.inspect.knockouts.parts import Part
from tfm_core.probe.types import Bools
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from pandas import DataFrame
    from torch import Tensor

Floats = npt.NDArray[np.floating[Any]]
PATTERNS: Mapping[str, str] = {
    "own": N_("The head’s own"),
    "previous": N_("Previous token"),
    "first": N_("First token"),
    "itself": N_("Itself"),
    "even": N_("Even"),
}
"""Patterns to begin with; in the last four, a row without its key is even."""
_DIGITS = 2  # of a cell that a person edits
MIN_MOVED = 0.0005
"""Share of the attention below which a map counts as unchanged: it rounds to 0.0%."""


def example_without(run: Run, index: int, off: Sequence[Part], how: Replacement, n: int) -> Example:
    """Return an example of a run's probe without some parts: maps with the true answer, own answer.

    n: validation examples for the means. Cached. Raises StudentError without checkpoint or probe.
    """
    ordered = tuple(sorted(set(off), key=lambda part: part.code))
    return _read(run, index, ordered, how, n)


def moved(before: Example, after: Example, module: str, head: int | None = None) -> float:
    """Return the share of attention that moved to other keys; head: None for the mean of all."""
    first, second = (
        maps.mean(0) if head is None else maps[head]
        for maps in (before.attention[module], after.attention[module])
    )
    return float(np.abs(second.astype(np.float64) - first).sum(-1).mean() / 2)


def most_moved(before: Example, after: Example) -> str | None:
    """Return the module whose attention moved most, by the mean of its heads; None where none."""
    shares = {module: moved(before, after, module) for module in before.attention}
    module = max(shares, key=lambda name: shares[name], default=None)
    return module if module is not None and shares[module] >= MIN_MOVED else None


@cached_by_weights
def _read(run: Run, index: int, off: tuple[Part, ...], how: Replacement, n: int) -> Example:
    import torch

    from tfm_core.inspect.knockouts.engine import knocked_out
    from tfm_core.probe.capture import capture

    model, step = model_of(run)
    probe = run.probe()
    item = probe.items[index]
    picture = None if probe.images is None else probe.images[index]
    inputs = inputs_of(run, item, picture)
    means = means_over(run, n) if how == "mean" and off else None
    with torch.inference_mode(), knocked_out(model, off, means, is_even=how == "even"):
        with capture(model, only={"weights", "mask"}) as cache:
            logits = model(*inputs)
        answer = _answer(run, model, item, inputs, logits)
    return Example(step, **captured(run.experiment, item, cache), picture=picture, **answer)


def _answer(
    run: Run, model: Any, item: Mapping[str, Any], inputs: Sequence[Tensor], logits: Tensor
) -> dict[str, Any]:
    """Return the prediction: probabilities of classes, or generated words."""
    from tfm_core.data.caption_words import join, vocabulary
    from tfm_core.data.captions import CaptionData
    from tfm_core.data.moving import data_as
    from tfm_core.data.tasks import text_task
    from tfm_core.decoding import Decoded, greedy
    from tfm_core.probe.items import continued

    task = run.experiment.task
    if "label" in item:
        return {"probabilities": logits[0].float().softmax(-1).numpy()}
    if isinstance(task, CaptionTaskConfig):
        longest = data_as(data_of(run.experiment), CaptionData).validation.tgt.size(1) - 1
        written = greedy(model, inputs[0], max_len=longest)
        answer = tuple(vocabulary(task).decode(written.ids[0].tolist()))
        text = join(answer, task)
    else:
        words = text_task(task)
        if isinstance(task, CorpusTaskConfig):
            prompt = inputs[1][:, 1 : 1 + item["prompt"]]
            written = Decoded(*continued(model, task, prompt))
        else:
            written = greedy(model, inputs[0], max_len=task.n_answers)
        answer = tuple(words.tgt_vocabulary.decode(written.ids[0].tolist()))
        text = words.join_tgt(answer)
    confidence = np.asarray(written.confidence[0, : len(answer)].numpy())
    return {"answer": answer, "answer_text": text, "confidence": confidence}


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
                "The mask hides “{key}” from “{query}”. Leave that cell empty.",
                key=key[column],
                query=query[row],
            )
        if (filled[row] < 0).any() or not filled[row].any():
            raise StudentError(
                "The weights of “{query}” can't be negative, and one must be above 0.",
                query=query[row],
            )
    sums = np.where(is_changed, filled.sum(1), 1.0)[:, None]
    rows: Floats = np.where(is_changed[:, None], filled / sums, begun)
    return rows


@cached_by_weights
def redrawn(run: Run, index: int, head: Part, rows: Floats) -> DataFrame:
    """Return the answers to one of the run's examples with a pattern (Q, K) in one head. Cached.

    A row for each place: place, the token at which it answers ("" of a class); before, after: the
    likeliest answer with the head's own weights and with the pattern, and their probabilities
    before_share and after_share; moved: the share of probability that moved to other answers. The
    true answer so far is read before each place, as in training. Raises ValueError, in a sentence,
    where there is no checkpoint.
    """
    import pandas as pd
    import torch

    from tfm_core.inspect.knockouts.engine import pattern, reweighed
    from tfm_core.probe.capture import intervene

    model, _step = model_of(run)
    probe = run.probe()
    item = probe.items[index]
    inputs = inputs_of(run, item, None if probe.images is None else probe.images[index])
    made = torch.from_numpy(rows.astype(np.float64))
    with torch.inference_mode(), intervene(model, {}):
        own = model(*inputs)
        with intervene(model, {f"{head.module}.weights": reweighed(head.head, pattern(made))}):
            other = model(*inputs)
    places = _places(run, item, 1 if own.ndim == 2 else own.size(1))
    before, after = (
        (logits if logits.ndim == 2 else logits[0, list(places)]).double().softmax(-1).numpy()
        for logits in (own, other)
    )
    words = task_of(run.experiment.task).answers
    token = run.experiment.task.class_names.__getitem__ if words is None else words.token
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
