"""Addition on a clock, by frequencies: what a model that adds modulo n keeps, and what it needs.

After Nanda et al. 2023, "Progress measures for grokking via mechanistic interpretability" (arXiv
2301.05217): the embedding keeps few frequencies, and the logits are waves of a + b in these.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tfm_core import byte_cache
from tfm_core.config import TextTaskConfig
from tfm_core.data.vocabulary import SPECIALS
from tfm_core.inspect.attention.trained import checkpoint_mark, data_of, model_of
from tfm_core.runs.run import Run

if TYPE_CHECKING:
    from tfm_core.models.text import EncoderOnly

Floats = npt.NDArray[np.floating[Any]]
TABLE = "src_embedding"
KEY = 3.0
"""How many times the even share of power makes a frequency a key frequency."""


def powers(table: Floats) -> Floats:
    """Return the share of each frequency 1 to (n - 1) / 2 in the power of a table (n, d).

    n is odd. The mean over the numbers, frequency 0, is left out.
    """
    found = np.abs(np.fft.rfft(table.astype(np.float64), axis=0)) ** 2  # (n // 2 + 1, d)
    shares: Floats = found[1:].sum(1)
    total = shares.sum()
    return shares / total if total else shares


def key_frequencies(shares: Floats) -> tuple[int, ...]:
    """Return the frequencies, from 1, of at least KEY times the even share of power."""
    return tuple(int(k) + 1 for k in np.flatnonzero(shares >= KEY / len(shares)))


def waves(n: int, frequencies: Collection[int]) -> Floats:
    """Return an orthonormal basis (n, 2 K) of the waves of some frequencies over n numbers."""
    angles = 2 * np.pi * np.outer(np.arange(n), sorted(frequencies)) / n
    basis: Floats = np.concatenate([np.cos(angles), np.sin(angles)], 1) * np.sqrt(2 / n)
    return basis


def kept(values: Floats, frequencies: Collection[int]) -> Floats:
    """Return the part of values (n, ...) along axis 0 that is in some frequencies, or constant."""
    basis = waves(len(values), frequencies)
    flat = values.reshape(len(values), -1)
    part: Floats = (basis @ (basis.T @ flat) + flat.mean(0)).reshape(values.shape)
    return part


@dataclass(frozen=True, slots=True, eq=False)
class PowerOverTime:
    """The share of power of each frequency at each snapshot: steps (S,), shares (S, K)."""

    steps: npt.NDArray[np.int64]
    shares: Floats


def power_over_time(run: Run) -> PowerOverTime:
    """Return the power of the embedding's frequencies at each snapshot."""
    steps = run.snapshot_steps()
    return PowerOverTime(
        np.array(steps, np.int64), np.array([_power_at(str(run.folder), step) for step in steps])
    )


@byte_cache.cached
def _power_at(folder: str, step: int) -> Floats:
    return powers(Run(Path(folder)).snapshot(step).embeddings[TABLE][len(SPECIALS) :])


@dataclass(frozen=True, slots=True, eq=False)
class SumTable:
    """All sums a + b, each (n, n): whether the last weights are right, and whether it is learned.

    step: of the weights.
    """

    step: int
    is_right: npt.NDArray[np.bool_]
    is_trained: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Projected:
    """Shares right of all sums that were not trained, with parts of the embedding or the logits.

    whole: as it is. only, without: with some frequencies of the embedding alone, and without them.
    restricted, excluded: the same of the logits as functions of a + b, as losses: of the sums not
    trained, and of those trained; whole_loss, trained_loss: as they are.
    """

    whole: float
    only: float
    without: float
    whole_loss: float
    restricted: float
    trained_loss: float
    excluded: float


def sum_table(run: Run) -> SumTable:
    """Return the table of all sums, as the last weights answer them. Raises ValueError."""
    return _sum_table(str(run.folder), checkpoint_mark(run))


def keys_of(run: Run) -> tuple[int, ...]:
    """Return the key frequencies of the last embedding. Raises ValueError."""
    return _keys(str(run.folder), checkpoint_mark(run))


def projected(run: Run, frequencies: Collection[int]) -> Projected:
    """Return what is left without some frequencies, and with them alone. Raises ValueError."""
    return _projected(str(run.folder), checkpoint_mark(run), tuple(sorted(frequencies)))


@byte_cache.cached
def _sum_table(folder: str, mark: int) -> SumTable:
    run = Run(Path(folder))
    model, step = model_of_sums(run)
    n = run.experiment.task_as(TextTaskConfig).size
    return SumTable(step, _logits(model, n).argmax(-1) == _answers(n), _trained(run, n))


@byte_cache.cached
def _keys(folder: str, mark: int) -> tuple[int, ...]:
    return key_frequencies(powers(_numbers(model_of_sums(Run(Path(folder)))[0])))


def _numbers(model: EncoderOnly) -> Floats:
    """Return the embeddings of the numbers, (n, d)."""
    table = model.src_embedding.table.weight.detach()[len(SPECIALS) :]
    found: Floats = table.numpy().astype(np.float64)
    return found


@byte_cache.cached
def _projected(folder: str, mark: int, keys: tuple[int, ...]) -> Projected:
    import torch

    run = Run(Path(folder))
    model, _step = model_of_sums(run)
    n = run.experiment.task_as(TextTaskConfig).size
    is_new = ~_trained(run, n)
    numbers = _numbers(model)

    def right(table: Floats) -> float:
        made = _with_table(model, torch.tensor(table, dtype=torch.float32))
        return float((_logits(made, n).argmax(-1) == _answers(n))[is_new].mean())

    logits = _logits(model, n)
    of_sums = _by_sum(logits, keys)
    return Projected(
        right(numbers),
        right(kept(numbers, keys)),
        right(numbers - kept(numbers, keys) + numbers.mean(0)),
        _loss(logits, is_new),
        _loss(of_sums + logits.mean((0, 1)), is_new),
        _loss(logits, ~is_new),
        _loss(logits - of_sums, ~is_new),
    )


def _by_sum(logits: Floats, frequencies: Collection[int]) -> Floats:
    """Return the part of logits (n, n, C) that is waves of a + b in some frequencies."""
    n = len(logits)
    basis = waves(n, frequencies)[_answers(n)].reshape(n * n, -1) / np.sqrt(n)  # orthonormal
    flat = logits.reshape(n * n, -1)
    part: Floats = (basis @ (basis.T @ flat)).reshape(logits.shape)
    return part


def _loss(logits: Floats, chosen: npt.NDArray[np.bool_]) -> float:
    answers = _answers(len(logits))[chosen]
    few = logits[chosen]
    few = few - few.max(-1, keepdims=True)
    logs = few - np.log(np.exp(few).sum(-1, keepdims=True))
    return float(-logs[np.arange(len(few)), answers].mean())


def _answers(n: int) -> npt.NDArray[np.int64]:
    numbers = np.arange(n)
    return (numbers[:, None] + numbers) % n


def _trained(run: Run, n: int) -> npt.NDArray[np.bool_]:
    from tfm_core.data.load import data_as
    from tfm_core.data.text_data import TextData

    trained = np.zeros((n, n), np.bool_)
    for pair in data_as(data_of(run.experiment), TextData).train.pairs:
        trained[int(pair.src[0]), int(pair.src[1])] = True
    return trained


def model_of_sums(run: Run) -> tuple[EncoderOnly, int]:
    """Return the model and its step. Raises ValueError, in a sentence."""
    from tfm_core.models.text import EncoderOnly

    model, step = model_of(run)
    assert isinstance(model, EncoderOnly)
    return model, step


def _with_table(model: EncoderOnly, numbers: Any) -> EncoderOnly:
    """Return a copy of a model with other embeddings of the numbers."""
    import copy

    import torch

    changed = copy.deepcopy(model)
    with torch.inference_mode():
        changed.src_embedding.table.weight[len(SPECIALS) :] = numbers
    return changed


def _logits(model: EncoderOnly, n: int) -> Floats:
    """Return the logits (n, n, n) of all answers to all sums."""
    import torch

    numbers = torch.arange(len(SPECIALS), len(SPECIALS) + n)
    src = torch.cartesian_prod(numbers, numbers)
    with torch.inference_mode():
        parts = [model(rows, rows[:, :1])[:, 0, -n:] for rows in torch.split(src, 2000)]
    return torch.cat(parts).double().numpy().reshape(n, n, n)
