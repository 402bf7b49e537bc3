"""Hidden words: the model's guesses beside the grammar's; torch is imported late."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tfm_core.choices.config import Experiment
from tfm_core.data.text.english_sentences import entropy_of
from tfm_core.data.text.hidden_words import MAX_GAPS, MaskedWordsTask, word_posterior
from tfm_core.data.vocabulary import MASK
from tfm_core.inspect.attention.trained import cached_by_weights, data_of, model_of
from tfm_core.inspect.text.sentence import CHANCES
from tfm_core.probe.labels import modules_by_kind
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import StudentError

Shares = Mapping[str, float]

__all__ = ["MAX_GAPS", "Blank", "fill", "fills_blanks", "hide", "tokens_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Blank:
    """A hidden word: its position, and word -> probability, likeliest first.

    truth: of every word that the grammar allows, if any fits. heads: (L, H, n), where it looks.
    """

    position: int
    model: Shares
    truth: Shares
    heads: Floats

    @property
    def model_entropy(self) -> float:
        """How unsure the model is, in nats."""
        return entropy_of(list(self.model.values()))

    @property
    def truth_entropy(self) -> float:
        """How unsure one has to be, in nats: no reader can do better."""
        return entropy_of(list(self.truth.values()))

    @property
    def excess(self) -> float:
        """Nats lost by believing the model instead of the truth (Kullback-Leibler divergence)."""
        tiny = 1e-12
        return sum(
            share * math.log(share / max(self.model.get(word, 0.0), tiny))
            for word, share in self.truth.items()
            if share > 0
        )

    def top(self, n: int) -> pd.DataFrame:
        """Return word, truth, model: of the words that are the likeliest for one of the two."""
        best = {
            word: max(share, self.truth.get(word, 0.0))
            for word, share in [*self.truth.items(), *self.model.items()]
        }
        best |= {word: max(self.model.get(word, 0.0), self.truth.get(word, 0.0)) for word in best}
        words = sorted(best, key=lambda word: -best[word])[:n]
        sides = {"truth": self.truth, "model": self.model}
        shares = {side: [of.get(word, 0.0) for word in words] for side, of in sides.items()}
        return CHANCES.table({"word": words, **shares})


def fills_blanks(experiment: Experiment) -> bool:
    """Return whether a model of the experiment guesses hidden words."""
    return experiment.task.facts.answer == "blanks"


def tokens_of(run: Run, text: str) -> tuple[str, ...]:
    """Cut a text as the run's task does, ``___`` being a hidden word. Raises ValueError."""
    return _task(run).tokenize(text)


def words_of(run: Run) -> tuple[str, ...]:
    """Return the words that a run knows, to choose from."""
    return tuple(word for word in _task(run).src_vocabulary.tokens if word.isalpha())


def hide(tokens: Sequence[str], positions: Sequence[int]) -> tuple[str, ...]:
    """Return the tokens with those at ``positions`` hidden too."""
    return tuple(MASK if position in positions else token for position, token in enumerate(tokens))


@cached_by_weights
def fill(run: Run, tokens: tuple[str, ...]) -> tuple[int, tuple[Blank, ...]]:
    """Guess the hidden words with the last checkpoint of a run; return its step and the words.

    Raises StudentError for too many hidden words or none, another task, or no checkpoint.
    """
    import torch

    from tfm_core.data.moving import data_as
    from tfm_core.data.text_data import TextData, encode_src
    from tfm_core.probe.capture import capture

    task = _task(run)
    if MASK not in tokens:
        raise StudentError("No word is hidden: select one or write ___ for it.")
    data = data_as(data_of(run.experiment), TextData)
    truth = word_posterior(tokens, data.n_draws)
    model, step = model_of(run)
    src = encode_src(task, [tokens])
    with capture(model, only={"weights"}) as cache, torch.no_grad():
        shares = model(src, src)[0].float().softmax(-1)  # (n, vocabulary)
    (modules,) = modules_by_kind(run.experiment).values()
    maps = np.stack([cache[f"{name}.weights"][0].float().numpy() for name in modules])
    blanks = []
    for position in (position for position, token in enumerate(tokens) if token == MASK):
        order = shares[position].argsort(descending=True).tolist()
        guesses = {task.src_vocabulary.token(i): float(shares[position, i]) for i in order}
        blanks.append(Blank(position, guesses, truth.get(position, {}), maps[:, :, position]))
    return step, tuple(blanks)


def _task(run: Run) -> MaskedWordsTask:
    from tfm_core.data.tasks import text_task

    if not fills_blanks(run.experiment):
        raise StudentError("This run did not learn to guess hidden words.")
    task = text_task(run.experiment.task)
    assert isinstance(task, MaskedWordsTask)
    return task
