"""The carry of a model that adds column by column: when it is learned, where it is, what it does.

At the second bit of a column a model of one layer has read both bits, and all of the columns
before. What its attention adds there depends on these by one bit only, the carry, if it adds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfm_core.choices.config import CorpusTaskConfig
from tfm_core.data.corpus.column_sums import BASE, WIDTH, columns
from tfm_core.data.tasks import corpus_task
from tfm_core.inspect.attention.trained import (
    cached_by_folder,
    cached_by_weights,
    data_of,
    model_at,
    model_of,
    models_by_step,
)
from tfm_core.inspect.discover.transitions import first, stays
from tfm_core.inspect.tables import Column, Columns
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.models.build import Model
    from tfm_core.models.text import DecoderOnly

Ints = npt.NDArray[np.int64]
LEARNED = 0.99
"""The share of digits with a carry that are right where a model has learned the carry."""
N_SUMS = 1000
_MAX_DOTS = 60  # of each total
BLOCK = "decoder.layers.0"
_ROUNDING = 1e-5  # the stream is float32: directions that are weaker hold rounding alone


def sums_of(sequences: Sequence[Sequence[str]]) -> Ints:
    """Return a, b, the digit and the carry into each column (4, N, n) of sums from their tokens.

    A column that is not whole is left out.
    """
    n = len(sequences[0]) // WIDTH
    whole = np.array([list(map(int, tokens[: n * WIDTH])) for tokens in sequences], np.int64)
    a, b, digit = (whole[:, part::WIDTH] for part in range(WIDTH))
    return np.stack([a, b, digit, (digit - a - b) % BASE])


def new_sums(run: Run) -> list[tuple[str, ...]]:
    """Draw sums that the run was not trained on. Raises StudentError where there are none."""
    from tfm_core.data.moving import data_as
    from tfm_core.data.text_data import TextData

    experiment = run.experiment
    context = experiment.task_as(CorpusTaskConfig).context
    trained = {pair.tgt for pair in data_as(data_of(experiment), TextData).train.pairs}
    rng = random.Random(f"new sums {experiment.seed}")
    drawn = (columns(rng, context) for _ in range(20 * N_SUMS))
    found = list(islice((tokens for tokens in drawn if tokens[:-1] not in trained), N_SUMS))
    if not found:
        raise StudentError("This run was trained on all sums there are.")
    return found


def learned(history: pd.DataFrame) -> int | None:
    """Return the first step from which on the carry is there, or None.

    It is there where at least LEARNED of the bits with a carry are right; at the start it is not.
    """
    is_there = stays(history["carried"].to_numpy() >= LEARNED)
    return None if is_there[:1].all() else first(history["step"].to_numpy(), is_there)


def history(run: Run) -> pd.DataFrame:
    """Return the share of bits right at each step whose weights are kept.

    Columns: step; carried: of the bits with a carry; others: of those without.
    """
    rows = [(step, *_right_at(run, step)) for step, _model in models_by_step(run)]
    return pd.DataFrame(rows, columns=["step", "carried", "others"])


@cached_by_folder
def _right_at(run: Run, step: int) -> tuple[float, float]:
    rows, (_a, _b, digit, carry) = read_sums(run)
    is_right = _answers(model_at(run, step), rows) == digit
    has = carry == 1
    return float(is_right[has].mean()), float(is_right[~has].mean())


@cached_by_weights
def exact(run: Run) -> float:
    """Return the share of new sums that the last weights write right, every bit.

    They read their own bits of the sum. Raises ValueError.
    """
    import torch

    model = model_of_run(run)
    rows, (_a, _b, digit, _carry) = read_sums(run)
    zero = _numbers(run)("0")
    for column in range(digit.shape[1]):
        written = _answers(model, rows)[:, column]
        rows[:, WIDTH * (column + 1)] = torch.from_numpy(written + zero)
    found = (rows[:, WIDTH::WIDTH].numpy() - zero)[:, : digit.shape[1]]
    return float((found == digit).all(1).mean())


def read_right(table: pd.DataFrame) -> float:
    """Return the share of columns of ``carry_of`` on the right side of one half."""
    return float(((table["read"] > 0.5) == table["has_carry"]).mean())


CARRY = Columns(
    before=Column(
        N_("the column before comes to"), axis={"tickvals": [0, 1, 2, 3], "showgrid": False}
    ),
    read=Column(N_("read by the probe"), ".2f"),
)


@cached_by_weights
def carry_of(run: Run) -> pd.DataFrame:
    """Return where the last weights keep the carry, by a linear probe of the stream.

    A row for each column but the first, of sums that the probe was not fitted to. read: by the
    probe, behind attention, 0 without and 1 with a carry; before: a + b + carry of the column
    before; has_carry. Raises ValueError.
    """
    from tfm_core.probe.capture import capture

    model = model_of_run(run)
    rows, (a, b, _digit, carry) = read_sums(run)
    with capture(model, only={"joined"}, modules={f"{BLOCK}.self_attention_norm"}) as cache:
        _answers(model, rows)
    (stream,) = cache.values()
    seen = stream[:, WIDTH - 1 :: WIDTH].double().numpy()[:, : a.shape[1]]
    half = len(rows) // 2

    def flat(part: Ints, chosen: slice) -> Ints:
        return part[chosen, 1:].ravel()

    def read(chosen: slice) -> Floats:
        bits = (np.eye(BASE)[flat(part, chosen)] for part in (a, b))
        return np.concatenate([seen[chosen, 1:].reshape(-1, seen.shape[-1]), *bits], 1)

    fit, rest = slice(0, half), slice(half, None)
    carries = flat(carry, fit).astype(np.float64)
    probe = np.linalg.lstsq(read(fit), carries, rcond=_ROUNDING)[0]
    before = (a + b + carry)[rest, :-1].ravel()
    return CARRY.table(
        {"read": read(rest) @ probe, "before": before, "has_carry": flat(carry, rest) == 1}
    )


def dots(found: pd.DataFrame) -> pd.DataFrame:
    """Return some columns of each total beside each other, and whether each has a carry.

    found: of ``carry_of``.
    """
    some = found.groupby("before").head(_MAX_DOTS).sort_values("before", kind="stable")
    each = some.groupby("before")["read"]
    place = each.cumcount() / (each.transform("size") - 1).clip(lower=1)
    spread = some["before"] - 0.3 + 0.6 * place
    return CARRY.table(some.assign(before=spread, has=some["before"] >= 2))


@cached_by_weights
def set_by_hand(run: Run) -> tuple[float, float]:
    """Return the share of answers that flip with attention's output of another sum's column.

    Both columns have the same two bits; first where their carries differ, then where they do not.
    Raises ValueError.
    """
    import torch

    from tfm_core.probe.capture import capture
    from tfm_core.probe.intervene import intervene

    model = model_of_run(run)
    rows, (a, b, _digit, carries) = read_sums(run)
    clean = _answers(model, rows)
    n = a.shape[1]
    attention = f"{BLOCK}.self_attention"
    with capture(model, only={"output"}, modules={attention}) as seen:
        _answers(model, rows)
    places = seen[f"{attention}.output"][:, WIDTH - 1 :: WIDTH][:, 1:n].flatten(0, 1)
    kinds = 2 * a[:, 1:].ravel() + b[:, 1:].ravel()
    carry, rng = carries[:, 1:].ravel(), np.random.default_rng(0)

    def flipped(differs: int) -> float:
        """Return the share of flipped answers with other columns, whose carry differs or not."""
        donors = np.arange(len(kinds))
        for kind in range(BASE**2):
            for has in range(2):
                here = np.flatnonzero((kinds == kind) & (carry == has))
                there = np.flatnonzero((kinds == kind) & (carry == (has ^ differs)))
                if len(there):
                    donors[here] = rng.choice(there, len(here))
        given = places[torch.from_numpy(donors)].reshape(len(rows), n - 1, -1)

        def put(out: Tensor, _made_from: object) -> Tensor:
            out = out.clone()
            out[:, 2 * WIDTH - 1 : n * WIDTH : WIDTH] = given
            return out

        with intervene(model, {f"{attention}.output": put}):
            return float((_answers(model, rows) != clean)[:, 1:].mean())

    return flipped(1), flipped(0)


def _numbers(run: Run) -> Callable[[str], int]:
    """Return what gives the number of a token."""
    return corpus_task(run.experiment.task_as(CorpusTaskConfig)).tgt_vocabulary.id_of


def read_sums(run: Run) -> tuple[Tensor, Ints]:
    """Return new sums as ids (N, 1 + context) and as ``sums_of``. Raises StudentError."""
    drawn = new_sums(run)
    return ids_of(run, drawn), sums_of(drawn)


def ids_of(run: Run, drawn: Sequence[Sequence[str]]) -> Tensor:
    """Return sequences as ids (N, 1 + context), from <bos> on."""
    import torch

    id_of = _numbers(run)
    return torch.tensor([[id_of("<bos>"), *map(id_of, tokens)] for tokens in drawn])


def _answers(model: Model, rows: Tensor) -> Ints:
    """Return the bit that a model gives each whole column (N, n), with the true ones before."""
    import torch

    n = (rows.size(1) - 1) // WIDTH
    with torch.inference_mode():
        logits = model(rows[:, :0], rows[:, :-1])[:, WIDTH - 1 :: WIDTH][:, :n, -BASE:]
    answers: Ints = logits.argmax(-1).numpy()
    return answers


def model_of_run(run: Run) -> DecoderOnly:
    """Return the model with its last weights. Raises ValueError."""
    from tfm_core.models.text import DecoderOnly

    model, _step = model_of(run)
    assert isinstance(model, DecoderOnly)
    return model
