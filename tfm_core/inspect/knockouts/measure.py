"""What switching parts off costs: loss and accuracy on the first n validation examples.

The measurement is the training's (``Objective.measure``). torch is imported late.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tfm_core.inspect.attention.trained import (
    at_once,
    batch_of,
    cached_by_weights,
    data_of,
    in_all,
    model_of,
)
from tfm_core.inspect.knockouts.parts import STACKS, SUBLAYERS, Part, heads_of, parts_of
from tfm_core.inspect.questions import Question, choice_question
from tfm_core.inspect.tables import Column, Columns, share
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


def n_first(run: Run) -> int:
    """Return on how many validation examples a press is answered: few where maps are large."""
    few = in_all(run.experiment, FIRST_EXAMPLES * _MORE, least=_MORE) // _MORE
    return min(n_validation(run), max(few, _MIN))


def n_most(run: Run) -> int:
    """Return on how many one may ask for: all, or fewer where that would take minutes."""
    return max(n_first(run), in_all(run.experiment, n_validation(run)))


def measured(run: Run, off: Sequence[Part], how: Replacement, n: int) -> Score:
    """Return the score without some parts on the first n validation examples. Cached.

    Raises ValueError, in a sentence, without a checkpoint or data.
    """
    ordered = tuple(sorted(set(off), key=lambda part: part.code))
    n = min(n, n_validation(run))
    return _measured(run, ordered, how if off else "zero", n)


def together(run: Run, off: Sequence[Part], how: Replacement, n: int) -> tuple[float, float] | None:
    """Return how much the loss rises without each part alone, in sum, and without all.

    None for fewer than two parts and more than MAX_TOGETHER.
    """
    if not 2 <= len(off) <= MAX_TOGETHER:
        return None
    whole = measured(run, (), how, n).loss
    alone = sum(measured(run, (part,), how, n).loss - whole for part in off)
    return alone, measured(run, off, how, n).loss - whole


def in_words(alone: float, joint: float) -> Sentence:
    """Say whether parts stand in for each other, from the result of ``together``."""
    if max(abs(alone), abs(joint)) < _NOTICED:
        verdict = N_("These examples need neither.")
    elif joint > max(_MORE_THAN * alone, alone + _NOTICED):
        verdict = N_("That is more: each stood in for the other.")
    elif alone > max(_MORE_THAN * joint, joint + _NOTICED):
        verdict = N_("That is less: they serve one purpose.")
    else:
        verdict = N_("That is about equal: each does its own work.")
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
        N_("One of these parts is switched off. Without which one is the loss largest?"),
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

    whole = measured(run, (), how, n)
    rows = []
    for done, head in enumerate(heads_of(run.experiment), 1):
        score = measured(run, (head,), how, n)
        rows.append({"part": head, "rise": score.loss - whole.loss, **score._asdict()})
        yield done
    yield pd.DataFrame(rows)


@cached_by_weights
def gradient_importances(run: Run, n: int) -> dict[Part, float]:
    """Return the importance of each head from one backward pass: Michel et al. 2019, Eq. 3.

    The mean over examples of |dL / d xi|, xi being a factor of the head's output, at xi = 1: a
    linear estimate of what removing it costs. Cached. Raises ValueError as ``measured``.
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


def pruned(
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
            score = measured(run, each[:stage], how, n)
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
def _measured(run: Run, off: tuple[Part, ...], how: Replacement, n: int) -> Score:
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
