"""Teacher forcing beside free running: predictions after the truth, and after its own tokens.

After its first wrong token a free-running model reads what it never saw in training (exposure bias:
Bengio et al. 2015, "Scheduled Sampling"; Ranzato et al. 2016). torch is imported late.
"""

from __future__ import annotations

import math
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

from tfm_core.inspect.tables import table
from tfm_core.inspect.writing.source import passed
from tfm_core.inspect.writing.steps import Writing

if TYPE_CHECKING:
    import pandas as pd

WAYS = ("truth", "taught", "free")
"""The true text, what is predicted after true tokens, and what running free wrote."""


def beside_truth(writing: Writing) -> tuple[pd.DataFrame, float] | None:
    """Return a text beside the truth, place by place; None if the truth is unknown.

    By WAYS the tokens, None where a text has ended, their probabilities (``truth_chance``), and
    whether they are the true ones (``free_right``). And the logarithm of the truth's probability.
    """
    import torch

    source = writing.source
    if source.truth is None:
        return None
    words = source.vocabulary
    ids = (*words.encode(source.truth), words.specials.eos)[: source.longest]
    logs = passed(source, ids)[0].double().log_softmax(-1)
    own, best = logs.gather(1, torch.tensor(ids)[:, None])[:, 0], logs.max(-1)
    truth = [(words.token(id), chance) for id, chance in zip(ids, own.exp().tolist(), strict=True)]
    taught = [
        (words.token(id), chance)
        for id, chance in zip(best.indices.tolist(), best.values.exp().tolist(), strict=True)
    ]
    free = [(token.own.token, token.own.chance) for token in writing.tokens]
    rows = [
        (a, b, c, p, q, r, a == b, a == c)
        for (a, p), (b, q), (c, r) in zip_longest(truth, taught, free, fillvalue=(None, math.nan))
    ]
    tokens, chances = dict.fromkeys(WAYS, object), {f"{way}_chance": float for way in WAYS}
    return table(rows, **tokens, **chances, taught_right=bool, free_right=bool), float(own.sum())


def parts_at(places: pd.DataFrame) -> int | None:
    """Return the first place, from 0, where running free leaves the truth; None for none."""
    wrong = np.flatnonzero(~places["free_right"])
    return int(wrong[0]) if len(wrong) else None
