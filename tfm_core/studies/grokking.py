"""Grokking: addition on a clock, by frequencies: what a model keeps, and what it needs.

After Nanda et al. 2023, "Progress measures for grokking via mechanistic interpretability" (arXiv
2301.05217): the embedding keeps few frequencies, and the logits are waves of a + b in these.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file, save_file

from tfm_core.choices.config import Experiment, TextTaskConfig
from tfm_core.choices.presets import PRESETS
from tfm_core.data.vocabulary import SPECIALS
from tfm_core.inspect.attention.trained import (
    cached_by_folder,
    cached_by_weights,
    data_of,
    model_of,
    model_of_step,
    steps_of,
)
from tfm_core.probe.types import Bools, Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph
from tfm_core.studies.phenomenon import Example, Levels, Phenomenon
from tfm_core.studies.study import Arm

if TYPE_CHECKING:
    from tfm_core.models.text import EncoderOnly

TABLE = "src_embedding"
KEY = 3.0
"""How many times the even share of power makes a frequency a key frequency."""
_TABLES, _N_TABLES = "sums.safetensors", 26
"""Which sums a recorded run gets right at even steps: its file, and how many steps."""


def _of_sums(experiment: Experiment) -> Levels:
    """Return what is right of unseen sums by knowing the trained ones, swapped too."""
    task = experiment.task_as(TextTaskConfig)
    return {N_("swapped training sums"): task.n_train / task.size**2}


def _sum(experiment: Experiment) -> Example:
    n = experiment.task_as(TextTaskConfig).size
    a, b = n // 2 + 2, 2 * n // 3
    return ((f"{a} + {b} =", False), (str((a + b) % n), True), (f"(mod {n})", False))


GROKKING = Phenomenon(
    name="grokking",
    title=N_("Grokking"),
    base=PRESETS["grokking"].experiment,
    arms=(
        Arm("decay", N_("weight decay")),
        Arm("no-decay", N_("no weight decay"), {"training.weight_decay": 0.0}),
    ),
    metrics=("validation-accuracy", "accuracy"),
    right=N_("long after the trained ones"),
    wrong={
        N_("together with the trained ones"): Paragraph("discover/grokking-with"),
        N_("never: it only memorised"): Paragraph("discover/grokking-never"),
    },
    paper="Power et al. 2022, Nanda et al. 2023",
    address="https://arxiv.org/abs/2301.05217",
    levels=_of_sums,
    example=_sum,
)


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


def power_over_time(run: Run) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return the snapshots' steps (S,) and the share of each of K frequencies in power (S, K)."""
    steps = run.snapshot_steps()
    return np.array(steps, np.int64), np.array([_power_at(run, step) for step in steps])


@cached_by_folder
def _power_at(run: Run, step: int) -> Floats:
    return powers(run.snapshot(step).embeddings[TABLE][len(SPECIALS) :])


def record(run: Run) -> None:
    """Train a run again, and keep beside it which sums are right at even steps.

    The weights of so many steps would take 12 MB, these answers 32 kB. A training is the same each
    time on one machine, so this one must be recorded where the run was.
    """
    from tfm_core.training.events import SnapshotDue, Step
    from tfm_core.training.loop import train
    from tfm_core.training.trainer import build

    trainer, right = build(run.experiment), list[Bools]()
    n, every = run.experiment.task_as(TextTaskConfig).size, _table_every(run)
    for event in train(trainer):
        if isinstance(event, Step | SnapshotDue) and event.step == every * len(right):
            right.append(_right(cast("EncoderOnly", trainer.model.eval()), n))
            trainer.model.train()
    save_file({"right": np.packbits(right, axis=-1)}, run.folder / _TABLES)


def _table_every(run: Run) -> int:
    return run.experiment.trained.steps // _N_TABLES


@cached_by_weights
def _recorded(run: Run) -> dict[int, Bools]:
    """Return by step which sums (n, n) are right, of a run that comes with the app."""
    path = run.folder / _TABLES
    if not (run.meta.recorded and path.is_file()):
        return {}
    n = run.experiment.task_as(TextTaskConfig).size
    right = np.unpackbits(load_file(path)["right"], axis=-1, count=n).astype(np.bool_)
    return {number * _table_every(run): table for number, table in enumerate(right)}


def table_steps(run: Run) -> tuple[int, ...]:
    """Return the steps whose table of sums is known. Raises ValueError where there is none.

    Of a run that comes with the app they are even; a visitor's own keeps few weights, mostly early
    ones, where its loss falls.
    """
    return tuple(_recorded(run)) or steps_of(run)


@cached_by_weights
def sum_table(run: Run, step: int) -> tuple[Bools, Bools]:
    """Return of all sums a + b (n, n) what is right at a step of ``table_steps``, and trained.

    Raises ValueError.
    """
    n, kept = run.experiment.task_as(TextTaskConfig).size, _recorded(run)
    if kept:
        return kept[step], _trained(run, n)
    model, _step = model_of_step(run, step)
    return _right(cast("EncoderOnly", model), n), _trained(run, n)


@cached_by_weights
def keys_of(run: Run) -> tuple[int, ...]:
    """Return the key frequencies of the last embedding. Raises ValueError."""
    return key_frequencies(powers(_numbers(model_of_sums(run)[0])))


def _numbers(model: EncoderOnly) -> Floats:
    """Return the embeddings of the numbers, (n, d)."""
    table = model.src_embedding.table.weight.detach()[len(SPECIALS) :]
    found: Floats = table.numpy().astype(np.float64)
    return found


@cached_by_weights
def projected(run: Run, keys: Sequence[int]) -> dict[str, float]:
    """Return what is left of the last weights with parts of the embedding or the logits.

    Of all sums that were not trained, the share right: whole: with the embedding as it is; only,
    without: with some of its frequencies alone, and without them. As losses: whole_loss,
    trained_loss: of the sums not trained, and of those trained; restricted, excluded: the same of
    the logits as functions of a + b, in these frequencies, and without them. Raises ValueError.
    """
    import torch

    model, _step = model_of_sums(run)
    n = run.experiment.task_as(TextTaskConfig).size
    is_new = ~_trained(run, n)
    numbers = _numbers(model)

    def right(table: Floats) -> float:
        made = copy.deepcopy(model)
        with torch.inference_mode():
            weight = made.src_embedding.table.weight
            weight[len(SPECIALS) :] = torch.tensor(table, dtype=torch.float32)
        return float(_right(made, n)[is_new].mean())

    logits = _logits(model, n)
    of_sums = _by_sum(logits, keys)
    return {
        "whole": right(numbers),
        "only": right(kept(numbers, keys)),
        "without": right(numbers - kept(numbers, keys) + numbers.mean(0)),
        "whole_loss": _loss(logits, is_new),
        "restricted": _loss(of_sums + logits.mean((0, 1)), is_new),
        "trained_loss": _loss(logits, ~is_new),
        "excluded": _loss(logits - of_sums, ~is_new),
    }


def _by_sum(logits: Floats, frequencies: Collection[int]) -> Floats:
    """Return the part of logits (n, n, C) that is waves of a + b in some frequencies."""
    n = len(logits)
    basis = waves(n, frequencies)[_answers(n)].reshape(n * n, -1) / np.sqrt(n)  # orthonormal
    flat = logits.reshape(n * n, -1)
    part: Floats = (basis @ (basis.T @ flat)).reshape(logits.shape)
    return part


def _loss(logits: Floats, chosen: Bools) -> float:
    answers = _answers(len(logits))[chosen]
    few = logits[chosen]
    few = few - few.max(-1, keepdims=True)
    logs = few - np.log(np.exp(few).sum(-1, keepdims=True))
    return float(-logs[np.arange(len(few)), answers].mean())


def _answers(n: int) -> npt.NDArray[np.int64]:
    numbers = np.arange(n)
    return (numbers[:, None] + numbers) % n


def _trained(run: Run, n: int) -> Bools:
    from tfm_core.data.moving import data_as
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


def _right(model: EncoderOnly, n: int) -> Bools:
    """Return which sums (n, n) a model gets right."""
    found: Bools = _logits(model, n).argmax(-1) == _answers(n)
    return found


def _logits(model: EncoderOnly, n: int) -> Floats:
    """Return the logits (n, n, n) of all answers to all sums."""
    import torch

    numbers = torch.arange(len(SPECIALS), len(SPECIALS) + n)
    src = torch.cartesian_prod(numbers, numbers)
    with torch.inference_mode():
        parts = [model(rows, rows[:, :1])[:, 0, -n:] for rows in torch.split(src, 2000)]
    return torch.cat(parts).double().numpy().reshape(n, n, n)
