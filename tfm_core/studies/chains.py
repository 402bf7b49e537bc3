"""Markov chains in context, and another task in context: lines.

The error of each prediction by how many examples came before it is that of Garg et al. 2022, "What
can Transformers learn in-context?" (arXiv 2208.01066), Figure 2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from tfm_core.choices.config import CorpusTaskConfig, Experiment
from tfm_core.choices.presets import PRESETS
from tfm_core.data.text.in_context import GENERATORS, TENTHS, floors, likelihoods, rounded
from tfm_core.inspect.attention.trained import cached_by_weights
from tfm_core.inspect.knockouts.measure import Score, n_validation, score_without
from tfm_core.inspect.knockouts.parts import Part
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, Paragraph
from tfm_core.studies.phenomenon import (
    Example,
    Levels,
    Phenomenon,
    decoder_of,
    ids_of,
    sequences,
)
from tfm_core.studies.study import Arm

_N_LINES = 400
_SHOWN = 40  # letters of a chain


def _chain(experiment: Experiment) -> Example:
    """Return the beginnings of two chains."""
    pieces = []
    for n, states in enumerate(sequences(experiment, 2), 1):
        pieces += [(f"{n}:", False), ("".join(states[:_SHOWN]) + "…", True)]
    return tuple(pieces)


def _of_chains(experiment: Experiment) -> Levels:
    found = floors(sequences(experiment))
    return {
        N_("guessing evenly"): found.uniform,
        N_("counting letters"): found.unigram,
        N_("counting pairs"): found.bigram,
    }


CHAINS = Phenomenon(
    name="chains",
    title=N_("Markov chains in context"),
    base=PRESETS["chains"].experiment,
    arms=(
        Arm("two-layers", N_("two layers")),
        Arm("one-layer", N_("one layer"), {"model.n_layers": 1}),
    ),
    metrics=("validation-loss",),
    right=N_("in steps: first letters, then pairs"),
    wrong={
        N_("evenly from the start"): Paragraph("discover/chains-even"),
        N_("not at all, because each chain is new"): Paragraph("discover/chains-new"),
    },
    paper="Edelman et al. 2024",
    address="https://arxiv.org/abs/2402.11004",
    levels=_of_chains,
    example=_chain,
)


def with_uniform(run: Run, layers: Sequence[int]) -> Score:
    """Return the score where some layers attend to all tokens so far alike. Raises ValueError."""
    parts = [Part("sublayer", "decoder", layer, "self") for layer in layers]
    return score_without(run, parts, "even", n_validation(run))


def is_lines(experiment: Experiment) -> bool:
    """Whether a model learns lines in context."""
    return experiment.task.name == "lines"


def known(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return what Bayes' rule and least squares predict for each y of lines, (N, K) each."""
    slopes = np.array([[rounded(tenths, int(one)) for tenths in TENTHS] for one in x.ravel()])
    means = slopes.reshape(*x.shape, -1)  # (N, K, slopes), as noise has mean 0
    pairs = zip(x.ravel(), y.ravel(), strict=True)
    likely = np.array([likelihoods(int(a), int(b)) for a, b in pairs]).reshape(means.shape)
    weights = np.cumprod(np.concatenate([np.ones_like(likely[:, :1]), likely[:, :-1]], 1), 1)
    bayes: Floats = (weights * means).sum(-1) / weights.sum(-1)
    before = np.cumsum(x * y, 1) - x * y, np.cumsum(x * x, 1) - x * x
    fitted: Floats = x * before[0] / np.maximum(before[1], 1)
    return bayes, fitted


@cached_by_weights
def errors_of(run: Run) -> pd.DataFrame:
    """Return mean squared errors of y on unseen lines, after 0, 1, … examples, a row each.

    model: of the mean of the distribution of the last weights. bayes: of the mean given the
    examples, which is the least there can be. least_squares: of the line through 0 that fits them
    best; 0 without any. zero: of always 0. Raises ValueError.
    """
    import torch

    task = run.experiment.task_as(CorpusTaskConfig)
    drawn = sequences(run.experiment, _N_LINES)
    rows, n = ids_of(run, drawn), len(drawn[0]) // 2
    numbers = np.array([list(map(int, tokens[: 2 * n])) for tokens in drawn], float)
    x, y = numbers[:, ::2], numbers[:, 1::2]
    names = GENERATORS[task.name].alphabet
    ids = ids_of(run, [names])[0, 1:]
    with torch.inference_mode():
        logits = decoder_of(run)(rows[:, :0], rows[:, :-1])[:, 1::2][:, :n, ids]
    predicted = logits.double().softmax(-1).numpy() @ np.array(list(map(int, names)), float)
    bayes, fitted = known(x, y)
    guesses = {
        "model": predicted,
        "bayes": bayes,
        "least_squares": fitted,
        "zero": np.zeros_like(y),
    }
    return pd.DataFrame({name: ((guess - y) ** 2).mean(0) for name, guess in guesses.items()})
