"""A language model writes token by token, with the distributions; torch is imported late."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfm_core.choices.config import CorpusTaskConfig
from tfm_core.inspect.attention.trained import model_of
from tfm_core.inspect.tables import Column, Columns
from tfm_core.inspect.text.surprisal import NO_LANGUAGE_MODEL
from tfm_core.runs.run import Run
from tfm_core.sentences import N_

if TYPE_CHECKING:
    from tfm_core.data.corpus.task import CorpusTask
    from tfm_core.decoding import SamplingConfig
    from tfm_core.models.text import DecoderOnly

Ids = tuple[int, ...]
N_BEST = 12


@dataclass(frozen=True, slots=True)
class Sample:
    """One text in the making: ids behind <bos>, the prompt first, and the model's probability of
    each token behind the prompt."""

    ids: Ids
    chances: tuple[float, ...]


def prompt_ids(run: Run, prompt: str) -> Ids:
    """Return a prompt as ids; an empty one is allowed. Raises ValueError, in a sentence."""
    task = _task(run)
    return tuple(task.tgt_vocabulary.encode(task.tokenize(prompt))) if prompt.strip() else ()


def tokens_of(run: Run, ids: Sequence[int]) -> tuple[str, ...]:
    """Return ids as tokens up to the end of the text, with <eos> where it is."""
    vocabulary, words = _task(run).tgt_vocabulary, []
    for id in ids:
        words.append(vocabulary.token(id))
        if id == vocabulary.specials.eos:
            break
    return tuple(words)


def has_ended(run: Run, sample: Sample) -> bool:
    """Return whether a text holds <eos>."""
    return _task(run).tgt_vocabulary.specials.eos in sample.ids


def write_on(
    run: Run, samples: Sequence[Sample], sampling: SamplingConfig, seeds: Sequence[int], *, n: int
) -> Iterator[list[Sample]]:
    """Yield the samples after each of up to ``n`` more tokens; all equally long, or ended."""
    import torch

    from tfm_core.decoding import Constraints, sampled_steps

    model, config = _model(run)
    longest = max(len(sample.ids) for sample in samples)
    rows = [[*sample.ids, *[model.fill_id] * (longest - len(sample.ids))] for sample in samples]
    now = list(samples)
    for step in sampled_steps(
        model,
        torch.empty(1, 0, dtype=torch.int64),
        torch.tensor(rows, dtype=torch.int64).reshape(len(rows), longest),
        max_len=longest + n,
        sampling=sampling,
        seeds=seeds,
        context=config.max_tgt_len + 1,
        constraints=Constraints(never=_never(run)),
    ):
        for i, (row, before) in enumerate(zip(step.ids, step.before, strict=True)):
            if model.eos_id not in now[i].ids:
                id = int(row[-1])
                now[i] = Sample((*now[i].ids, id), (*now[i].chances, float(before[id])))
        yield list(now)


NEXT = Columns(
    place=Column(N_("next token")),
    value=Column(
        N_("probability"), ".5f", {"rangemode": "tozero", "tickformat": ".2~%", "nticks": 6}
    ),
)


def next_token(
    run: Run, ids: Sequence[int], sampling: SamplingConfig
) -> tuple[pd.DataFrame, dict[str, float]]:
    """Return the likeliest tokens that may follow ids, and facts of the whole distribution.

    place, from 0; token; before, after: probabilities without and with temperature, top-k and
    top-p. The facts: left: tokens of all that can still be drawn; before, after: perplexity,
    exp(entropy).
    """
    import torch

    from tfm_core.decoding import filtered_probs, next_logits

    model, config = _model(run)
    with torch.inference_mode():
        row = torch.tensor([list(ids)], dtype=torch.int64).reshape(1, len(ids))
        logits = next_logits(model, row[:, :0], row, config.max_tgt_len + 1)[0]
        logits[list(_never(run))] = -torch.inf
        before, after = logits.softmax(-1), filtered_probs(logits, sampling)
    best = before.topk(min(N_BEST, len(before)))
    vocabulary = _task(run).tgt_vocabulary
    tokens = pd.Series([vocabulary.token(i) for i in best.indices.tolist()], dtype=object)
    shares = {"before": best.values.numpy(), "after": after[best.indices].numpy()}
    return NEXT.table({"place": range(len(tokens)), "token": tokens, **shares}), {
        "left": int((after > 0).sum()),
        "all": len(before) - len(_never(run)),
        "before": _perplexity(before.numpy()),
        "after": _perplexity(after.numpy()),
    }


def _perplexity(chances: npt.NDArray[np.float32]) -> float:
    real = chances[chances > 0].astype(np.float64)
    return float(np.exp(-(real * np.log(real)).sum()))


def _never(run: Run) -> tuple[int, ...]:
    return _task(run).tgt_vocabulary.specials.unwritten


def _task(run: Run) -> CorpusTask:
    from tfm_core.data.tasks import corpus_task

    return corpus_task(run.experiment.task_as(CorpusTaskConfig, NO_LANGUAGE_MODEL))


def _model(run: Run) -> tuple[DecoderOnly, CorpusTaskConfig]:
    from tfm_core.models.text import DecoderOnly

    config = _task(run).config
    model, _step = model_of(run)
    assert isinstance(model, DecoderOnly)
    return model, config
