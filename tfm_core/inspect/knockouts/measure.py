"""What switching parts off costs on validation examples, and what it changes in one example.

The measurement is the training's (``Objective.measure``). The rows of an attention pattern sum to
1, and a key that the mask hides gets nothing. torch is imported late.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from tfm_core.choices.config import CaptionTaskConfig, CorpusTaskConfig
from tfm_core.data.tasks import task_of
from tfm_core.data.vocabulary import MASK
from tfm_core.inspect.attention.example import Example, captured
from tfm_core.inspect.attention.trained import (
    at_once,
    batch_of,
    cached_by_weights,
    data_of,
    in_all,
    inputs_of,
    model_of,
)
from tfm_core.inspect.knockouts.parts import STACKS, SUBLAYERS, Part, heads_of, parts_of
from tfm_core.inspect.questions import Question, choice_question
from tfm_core.inspect.tables import Column, Columns, share
from tfm_core.probe.types import Bools, Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph, Sentence, StudentError, joined

if TYPE_CHECKING:
    from pandas import DataFrame
    from torch import Tensor

    from tfm_core.data.moving import Data
    from tfm_core.inspect.knockouts.engine import Means
    from tfm_core.training.objectives import Objective


Replacement = Literal["zero", "mean", "even"]
FIRST_EXAMPLES = 200
RANDOM_ORDERS = 5
MAX_STAGES = 24
"""Points of a pruning curve after its first; with more heads, several go at a time."""
MAX_TOGETHER = 4
"""The most parts that are also measured one by one."""
_MORE_THAN, _NOTICED = 1.5, 0.01  # of one sum over the other, and nats
_BATCH = 100
_MORE, _MIN = 10, 20  # a press may take a tenth of what a question over all may


class Score(NamedTuple):
    """Loss in nats a token (or picture), its accuracy, and that of whole answers, on n examples."""

    loss: float
    accuracy: float
    exact: float | None
    n: int


def n_validation(run: Run) -> int:
    """Return how many validation examples a run has. Raises ValueError."""
    return len(data_of(run.experiment).validation)


def can_measure(run: Run) -> bool:
    """Return whether there are examples whose answers are known; a model of others may lack them.

    Raises ValueError where those of a run are missing.
    """
    task = run.experiment.task
    if task.is_trained_here or task.facts.answer == "vectors":  # which no one example shows
        return n_validation(run) > 0
    try:
        return n_validation(run) > 0
    except StudentError:
        return False


def default_examples(run: Run) -> int:
    """Return on how many validation examples a press is answered: few where maps are large."""
    few = in_all(run.experiment, FIRST_EXAMPLES * _MORE, least=_MORE) // _MORE
    return min(n_validation(run), max(few, _MIN))


def max_examples(run: Run) -> int:
    """Return on how many one may ask for: all, or fewer where that would take minutes."""
    return max(default_examples(run), in_all(run.experiment, n_validation(run)))


def score_without(run: Run, off: Sequence[Part], how: Replacement, n: int) -> Score:
    """Return the score without some parts on the first n validation examples. Cached.

    Raises ValueError, in a sentence, without a checkpoint or data.
    """
    ordered = tuple(sorted(set(off), key=lambda part: part.code))
    n = min(n, n_validation(run))
    return _score_without(run, ordered, how if off else "zero", n)


def joint_effect(
    run: Run, off: Sequence[Part], how: Replacement, n: int
) -> tuple[float, float] | None:
    """Return how much the loss rises without each part alone, in sum, and without all.

    None for fewer than two parts and more than MAX_TOGETHER.
    """
    if not 2 <= len(off) <= MAX_TOGETHER:
        return None
    whole = score_without(run, (), how, n).loss
    alone = sum(score_without(run, (part,), how, n).loss - whole for part in off)
    return alone, score_without(run, off, how, n).loss - whole


def joint_effect_text(alone: float, joint: float) -> Sentence:
    """Say whether parts replace each other, from the result of ``joint_effect``."""
    if max(abs(alone), abs(joint)) < _NOTICED:
        verdict = N_("These examples need none of them.")
    elif joint > max(_MORE_THAN * alone, alone + _NOTICED):
        verdict = N_("That is more, so each stood in for the other.")
    elif alone > max(_MORE_THAN * joint, joint + _NOTICED):
        verdict = N_("That is less, so they serve the same purpose.")
    else:
        verdict = N_("That is about the same, so each does its own work.")
    return joined(
        Paragraph("knockouts/together", alone=f"{alone:+.3f}", joint=f"{joint:+.3f}"), verdict
    )


def about_costliest(losses: Mapping[str, float]) -> Question:
    """Ask which part a model misses most. losses: without each, by its name."""
    most = max(losses, key=losses.__getitem__)
    why = {
        name: N_("Without it, the loss is {loss:.2f}.", loss=loss) for name, loss in losses.items()
    }
    return choice_question(
        N_("Switch off one of these parts. Which one raises the loss most?"),
        most,
        why,
        why[most],
    )


def importances(run: Run, how: Replacement, n: int) -> Iterator[int | DataFrame]:
    """Measure the model without each head (Michel et al. 2019, 3.2). Raises ValueError.

    Yield how many heads are done, then the table, a row a head: part; rise: how much the loss rises
    without it, in nats; and the ``Score`` without it.
    """
    import pandas as pd

    whole = score_without(run, (), how, n)
    rows = []
    for done, head in enumerate(heads_of(run.experiment), 1):
        score = score_without(run, (head,), how, n)
        rows.append({"part": head, "rise": score.loss - whole.loss, **score._asdict()})
        yield done
    yield pd.DataFrame(rows)


@cached_by_weights
def gradient_importances(run: Run, n: int) -> dict[Part, float]:
    """Return the importance of each head from one backward pass: Michel et al. 2019, Eq. 3.

    The mean over examples of |dL / d xi|, xi being a factor of the head's output, at xi = 1: a
    linear estimate of what removing it costs. Cached. Raises ValueError as ``score_without``.
    """
    import torch

    from tfm_core.inspect.knockouts.engine import scaled_heads

    n = min(n, n_validation(run))
    heads = heads_of(run.experiment)
    totals = dict.fromkeys(heads, 0.0)
    if not heads:
        return {}
    model, goal = model_of(run)[0], objective(run, n)
    for rows in _equally_long(run, n):
        with torch.inference_mode(False), torch.enable_grad():
            scales = {head: torch.ones(len(rows), requires_grad=True) for head in heads}
            with scaled_heads(model, scales):
                draw = torch.Generator().manual_seed(int(rows[0]))
                loss = goal.loss_and_metrics(model, rows, draw).loss
                found = torch.autograd.grad(loss, list(scales.values()))
        # the loss is the mean over all tokens of the batch: of equally many in each example
        for head, gradient in zip(heads, found, strict=True):
            totals[head] += float(gradient.abs().sum()) * len(rows)
    return {head: total / n for head, total in totals.items()}


def by_head(run: Run, importances: DataFrame, n: int) -> DataFrame:
    """Return a row a head, the most important first, after ``importances``.

    part, stack and attention in words, layer and head from 1, rise, loss, accuracy; gradient: a
    share of the largest of ``gradient_importances``.
    """
    import pandas as pd

    slopes = gradient_importances(run, n)
    table = importances.sort_values("rise", ascending=False, kind="stable", ignore_index=True)
    parts: list[Part] = table["part"].tolist()
    columns = {
        "part": parts,
        "stack": [STACKS[part.stack] for part in parts],
        "attention": [SUBLAYERS[part.sublayer][1] for part in parts],
        "layer": [(part.layer or 0) + 1 for part in parts],
        "head": [(part.head or 0) + 1 for part in parts],
        **{name: table[name] for name in ("rise", "loss", "accuracy")},
        "gradient": [slopes[part] / (max(slopes.values()) or 1.0) for part in parts],
    }
    return pd.DataFrame(columns)


def stages_of(n_heads: int) -> tuple[int, ...]:
    """Return how many heads are gone at each point of a curve, from none to all."""
    last = min(n_heads, MAX_STAGES)
    return tuple(round(stage * n_heads / last) for stage in range(last + 1))


def n_measurements(n_heads: int, n_orders: int = RANDOM_ORDERS) -> int:
    """Return how many measurements a pruning makes, those that are shared counted once."""
    return (len(stages_of(n_heads)) - 2) * (1 + n_orders) + 2


PRUNED = Columns(
    removed=Column(N_("heads removed")),
    accuracy=share(N_("accuracy"), range=(-0.02, 1.04)),
    loss=Column(N_("loss (nats)"), ".3f", {"rangemode": "tozero"}),
)


def prune(
    run: Run,
    order: Sequence[Part],
    how: Replacement,
    n: int,
    n_orders: int = RANDOM_ORDERS,
    seed: int = 0,
) -> Iterator[int | DataFrame]:
    """Remove heads in an order and in random ones; yield measurements done, then the curves.

    The table has order (0 as given, others random), removed (heads), loss, accuracy, exact and n.
    """
    import pandas as pd

    chance = random.Random(seed)
    orders = [tuple(order), *(chance.sample(order, len(order)) for _ in range(n_orders))]
    rows = []
    done = 0
    for number, each in enumerate(orders):
        for stage in stages_of(len(order)):
            score = score_without(run, each[:stage], how, n)
            rows.append({"order": number, "removed": stage, **score._asdict()})
            if number == 0 or 0 < stage < len(order):  # nothing and all are the same for each order
                done += 1
                yield done
    yield pd.DataFrame(rows)


def heads_to_spare(curves: DataFrame, points: float = 0.01) -> list[int]:
    """Return how many heads went in each order before accuracy had fallen by over ``points``."""
    spare = []
    for _order, curve in curves.groupby("order"):
        has_fallen = curve["accuracy"] < curve["accuracy"].iloc[0] - points
        spare.append(int(curve["removed"][~has_fallen.cummax()].max()))
    return spare


@cached_by_weights
def _score_without(run: Run, off: tuple[Part, ...], how: Replacement, n: int) -> Score:
    from tfm_core.inspect.knockouts.engine import knocked_out

    model, _step = model_of(run)
    means = means_over(run, n) if how == "mean" else None
    with knocked_out(model, off, means, is_even=how == "even"):
        loss, accuracy, exact = objective(run, n).measure(model, "validation")
    return Score(loss, accuracy, exact, n)


@cached_by_weights
def means_over(run: Run, n: int) -> Means:
    """Return the mean output of each part over the first n validation examples. Cached."""
    from tfm_core.inspect.knockouts.engine import means_of

    n = min(n, n_validation(run))
    data = data_of(run.experiment)
    size = at_once(run.experiment, _BATCH)
    rows = (slice(first, min(n, first + size)) for first in range(0, n, size))
    batches = (_answering(run, batch_of(run.experiment, data, each)[0]) for each in rows)
    return means_of(model_of(run)[0], parts_of(run.experiment), batches)


def _answering(run: Run, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Return the inputs of a model with padding in place of targets that answer nothing."""
    if len(inputs) == 1:
        return inputs
    read, tgt_in = inputs
    first = 1 if getattr(run.experiment.task.facts, "answer", "") == "blanks" else 0
    model: Any = model_of(run)[0]
    answering = tgt_in[:, first:]
    if model.eos_id == model.bos_id:  # then no text of a batch ends
        return read, answering
    return read, answering.masked_fill(answering == model.eos_id, model.fill_id)


def _equally_long(run: Run, n: int) -> Iterator[Tensor]:
    """Yield the first n validation examples in batches whose targets have equally many tokens."""
    import torch

    from tfm_core.layers.masks import is_token

    size = at_once(run.experiment, _BATCH)
    targets = getattr(data_of(run.experiment).validation, "tgt", None)
    # a picture has one target
    pad = getattr(model_of(run)[0], "pad_id", None)
    lengths = torch.ones(n) if targets is None else is_token(targets[:n], pad).sum(1)
    for length in sorted(set(lengths.tolist())):
        alike = (lengths == length).nonzero().squeeze(1)
        yield from (alike[first : first + size] for first in range(0, len(alike), size))


@cached_by_weights
def objective(run: Run, n: int) -> Objective:
    """Return the training's objective over the first n validation examples, unchanged pictures."""
    from torch import Tensor

    from tfm_core.training.trainer import objective_of

    experiment = run.experiment
    data: Any = data_of(experiment)
    parts = {part.name: getattr(data.validation, part.name) for part in fields(data.validation)}
    few = {name: rows[:n] for name, rows in parts.items() if isinstance(rows, Tensor | tuple)}
    cut = replace(data.validation, **few)
    windows = {"windows": None} if hasattr(data, "windows") else {}  # read like the validation set
    first: Data = replace(data, train=cut, validation=cut, **windows)
    still = {name: 0.0 for name in _CHANGES if hasattr(experiment.task, name)}
    task = experiment.task.model_copy(update=still)
    return objective_of(task)(first, task)


_CHANGES = ("shift", "rotation", "scale", "slant")  # of pictures, while a model is trained


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
    return _example_without(run, index, ordered, how, n)


def attention_moved(before: Example, after: Example, module: str, head: int | None = None) -> float:
    """Return the share of attention that moved to other keys; head: None for the mean of all."""
    first, second = (
        maps.mean(0) if head is None else maps[head]
        for maps in (before.attention[module], after.attention[module])
    )
    return float(np.abs(second.astype(np.float64) - first).sum(-1).mean() / 2)


def most_moved(before: Example, after: Example) -> str | None:
    """Return the module whose attention moved most, by the mean of its heads; None where none."""
    shares = {module: attention_moved(before, after, module) for module in before.attention}
    module = max(shares, key=lambda name: shares[name], default=None)
    return module if module is not None and shares[module] >= MIN_MOVED else None


@cached_by_weights
def _example_without(
    run: Run, index: int, off: tuple[Part, ...], how: Replacement, n: int
) -> Example:
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


def edited_pattern(
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
def answers_with_pattern(run: Run, index: int, head: Part, rows: Floats) -> DataFrame:
    """Return the answers to one of the run's examples with a pattern (Q, K) in one head. Cached.

    A row for each place: place, the token at which it answers ("" of a class); before, after: the
    likeliest answer with the head's own weights and with the pattern, and their probabilities
    before_share and after_share; moved: the share of probability that moved to other answers. The
    true answer so far is read before each place, as in training. Raises ValueError, in a sentence,
    where there is no checkpoint.
    """
    import pandas as pd
    import torch

    from tfm_core.inspect.knockouts.engine import fixed_pattern, reweigh_heads
    from tfm_core.probe.capture import intervene

    model, _step = model_of(run)
    probe = run.probe()
    item = probe.items[index]
    inputs = inputs_of(run, item, None if probe.images is None else probe.images[index])
    made = torch.from_numpy(rows.astype(np.float64))
    with torch.inference_mode(), intervene(model, {}):
        own = model(*inputs)
        with intervene(
            model, {f"{head.module}.weights": reweigh_heads(head.head, fixed_pattern(made))}
        ):
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
