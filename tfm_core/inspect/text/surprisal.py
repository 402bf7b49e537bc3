"""Surprisal: -ln p, in nats, of each token of a text; torch is imported late."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfm_core.choices.config import CorpusTaskConfig
from tfm_core.choices.variants.tasks import UNITS
from tfm_core.data.tasks import corpus_task
from tfm_core.inspect.attention.trained import cached_by_weights, model_of
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError

if TYPE_CHECKING:
    from torch import Tensor

    from tfm_core.models.text import DecoderOnly

NO_LANGUAGE_MODEL = N_("This run is not a language model.")
_LENGTH = {"words": 60, "characters": 300, "bpe": 120}


def example_text(run: Run, n: int | None = None) -> str:
    """Return about ``n`` tokens of the end of a run's text, a sentence, or its first example."""
    config = run.experiment.task_as(CorpusTaskConfig)
    task = corpus_task(config)
    if task.is_drawn:
        tokens = task.sample(random.Random(f"{run.experiment.seed} unseen")).tgt
        return task.join_tgt(tokens if n is None else tokens[:n])
    if task.missing is not None:
        item = run.probe().items[0]
        return task.join_tgt([*item["tgt"][: n or _LENGTH[config.unit]]])
    tokens = tuple(task.tokens)
    first = len(tokens) - max(2, len(tokens) // 10)
    for position in range(first, min(first + 80, len(tokens) - 1)):  # not in the middle of a word
        if config.unit == "words" or _begins_word(tokens, position):
            first = position
            break
    piece = tokens[first : first + (n or _LENGTH[config.unit])]
    if config.unit != "words":  # nor ending in one
        ends = [n for n in range(1, len(piece)) if _begins_word(piece, n)]
        piece = piece[: ends[-1]] if ends else piece
    return task.join_tgt(piece).strip()


def _begins_word(tokens: Sequence[str], position: int) -> bool:
    """Return whether a token follows or begins with white space."""
    return tokens[position - 1].isspace() or tokens[position][:1] == " " != tokens[position]


BITS = float(1 / np.log(2))
"""Bits in a nat."""
N_BEST = 10
MAX_TOKENS = 1000


@cached_by_weights
def surprisals(run: Run, text: str) -> pd.DataFrame:
    """Read a text with the last checkpoint of a language model, a row a token.

    token; nats: -ln p, whose mean is the loss on this text; rank: from 1; entropy: of the
    prediction, in nats; best: the likeliest (token, probability). Raises ValueError.
    """
    import torch

    from tfm_core.models.text import DecoderOnly

    config = run.experiment.task_as(CorpusTaskConfig, NO_LANGUAGE_MODEL)
    task = corpus_task(config)
    tokens = task.tokenize(text)
    if len(tokens) > MAX_TOKENS:
        raise StudentError(
            "The text has {n_tokens:,} {unit}; the limit is {most_tokens:,}.",
            n_tokens=len(tokens),
            unit=UNITS[config.unit].plural,
            most_tokens=MAX_TOKENS,
        )
    model, _step = model_of(run)
    assert isinstance(model, DecoderOnly)
    vocabulary = task.tgt_vocabulary
    if task.is_grammar:
        tokens = (*tokens, "<eos>")
    ids = torch.tensor(vocabulary.encode(tokens))
    with torch.inference_mode():
        logs = predictions(model, ids, config.max_tgt_len + 1).double().log_softmax(-1)  # (T, V)
    own = logs.gather(1, ids[:, None])
    best = logs.exp().topk(min(N_BEST, logs.size(1)), -1)
    likeliest = [
        [(vocabulary.token(i), p) for i, p in zip(row_ids, row, strict=True)]
        for row_ids, row in zip(best.indices.tolist(), best.values.tolist(), strict=True)
    ]
    return pd.DataFrame(
        {
            "token": pd.Series(tokens, dtype=object),
            "nats": -own[:, 0].numpy(),
            "rank": ((logs > own).sum(1) + 1).numpy(),
            "entropy": -(logs.exp() * logs).sum(-1).numpy(),
            "best": likeliest,
        }
    )


def predictions(model: DecoderOnly, ids: Tensor, context: int) -> Tensor:
    """Return (T, V): logits for each of ids (T,), from <bos> and the tokens before it.

    A text longer than the context is read in windows that overlap by half.
    """
    import torch

    length, half = len(ids), max(1, context // 2)
    parts, known = [], 0
    for start in range(0, max(1, length - context + half), half):
        window = ids[start : start + context]
        tgt_in = torch.cat([window.new_full((1,), model.bos_id), window[:-1]])[None]
        logits = model(tgt_in[:, :0], tgt_in)[0]
        parts.append(logits[known - start :])
        known = start + len(window)
    return torch.cat(parts)
