"""How far beyond the trained length a model's kind of positions goes."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfm_core.choices.config import Experiment, TextTaskConfig
from tfm_core.inspect.attention.trained import model_of
from tfm_core.inspect.tables import Column, Columns, share
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from tfm_core.data.text.task import Pair, TextTask

PER_LENGTH = 32
"""Sequences measured at each length."""
DRAWS = 1500
"""Sequences drawn to find some of each length, where a task cannot be asked for one."""


RACE = Columns(
    step=Column(N_("step"), ","),
    length=Column(N_("source length (tokens)"), ","),
    right=share(N_("tokens right")),
)
Extrapolation = tuple[pd.DataFrame, int, str]
"""What ``extrapolate`` returns."""


def can_extrapolate(experiment: Experiment) -> str | None:
    """Return why a run's task has no longer sequences with the same words, or None."""
    config = experiment.task
    if config.picture_shape:
        return N_("Pictures have one size, so no longer input exists.")
    if config.facts.answer == "text":
        return N_("A language model has no source that could be longer.")
    if not isinstance(config, TextTaskConfig) or _longer(config) is None:
        return N_(
            "{label} has no longer sequences; copy, reverse and sort do.", label=config.facts.label
        )
    return None


def extrapolate(run: Run) -> Extrapolation:
    """Let a run's last weights answer sequences up to twice the trained length, greedily.

    By the length of the source the share of right tokens, NaN where the model cannot read so much;
    the longest source that it was trained on; and why it cannot. Raises ValueError, in a sentence,
    where the task has no longer sequences or there are no weights.
    """
    from tfm_core.data.tasks import text_task
    from tfm_core.data.text_data import encode_src
    from tfm_core.decoding import greedy
    from tfm_core.models.pictures import VisionTransformer

    why = can_extrapolate(run.experiment)
    if why is not None:
        raise StudentError(why)
    config = run.experiment.task_as(TextTaskConfig)
    longer = _longer(config)
    assert longer is not None
    task = text_task(longer)
    model, _step = model_of(run)
    assert not isinstance(model, VisionTransformer)
    pools = _pools(config, longer, run.experiment.seed)
    shares, stopped = [], ""
    for length, pairs in pools.items():
        try:
            src = encode_src(task, [pair.src for pair in pairs], length=length)
            longest = max(len(pair.tgt) for pair in pairs) + 1
            written = greedy(model, src, max_len=longest).ids.tolist()
        except ValueError as error:
            stopped = stopped or str(error)
            shares.append(np.nan)
            continue
        answers = [task.tgt_vocabulary.decode(row) for row in written]
        right = [_right(answer, pair.tgt) for answer, pair in zip(answers, pairs, strict=True)]
        shares.append(float(np.mean(right)))
    found = pd.DataFrame({"length": list(pools), "tokens": shares}, dtype=np.float32)
    return found, config.max_src_len, stopped


def _right(answer: list[str], truth: tuple[str, ...]) -> float:
    same = sum(a == b for a, b in zip(answer, truth, strict=False))
    return same / max(len(answer), len(truth))


def _longer(config: TextTaskConfig) -> TextTaskConfig | None:
    """Return the same task up to twice as long, with the same words, where there is one."""
    from tfm_core.data.tasks import text_task

    if config.facts.hides:
        return None  # its size is no length
    own = text_task(config)
    for size in range(min(2 * config.size, config.facts.sizes[-1]), config.size, -1):
        longer = config.replace(size=size)
        task = text_task(longer)
        same_src = task.src_vocabulary.tokens == own.src_vocabulary.tokens
        if same_src and task.tgt_vocabulary.tokens == own.tgt_vocabulary.tokens:
            return longer
    return None


def _pools(config: TextTaskConfig, longer: TextTaskConfig, seed: int) -> dict[int, list[Pair]]:
    """Return pairs by the exact length of their source, up to twice the trained one."""
    from tfm_core.data.tasks import text_task

    if config.name in {"copy", "reverse", "sort"}:
        shares = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0)
        lengths = {max(1, round(config.size * share)) for share in shares}
        task = text_task(longer)
        return {n: _of_length(task, n, seed) for n in sorted(lengths) if n <= longer.size}
    rng = random.Random(seed)
    pools: dict[int, list[Pair]] = {}
    for source in (config, longer):
        task = text_task(source)
        for _ in range(DRAWS):
            pair = task.sample(rng)
            pools.setdefault(len(pair.src), []).append(pair)
    enough = {n: pairs[:PER_LENGTH] for n, pairs in pools.items() if len(pairs) >= PER_LENGTH // 4}
    return dict(sorted(enough.items()))


def _of_length(task: TextTask, length: int, seed: int) -> list[Pair]:
    """Return PER_LENGTH pairs of random symbols with sources of exactly this length."""
    from tfm_core.data.text.task import Pair

    rng = random.Random(f"{seed} {length}")
    symbols = task.src_vocabulary.tokens
    sources = [tuple(rng.choices(symbols, k=length)) for _ in range(PER_LENGTH)]
    return [Pair(source, task.solve(source) or (), ()) for source in sources]
