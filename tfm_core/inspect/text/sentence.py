"""A sentence and its label: the prediction, and which words it depends on.

Three explanations and one test: attention of the answering position, rollout (Abnar & Zuidema
2020), gradient-weighted relevance (Chefer et al. 2021), and the answer without each word. torch is
imported late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfm_core.choices.config import EncoderOnlyConfig, Experiment, TextTaskConfig
from tfm_core.data.text.sentiment import AND, BUT, INTENSITIES, JOINS, Judged, judged
from tfm_core.inspect.attention.pictures import relevance, rollout
from tfm_core.inspect.attention.trained import cached_by_weights, model_of
from tfm_core.inspect.tables import Column, Columns, table
from tfm_core.probe.labels import CLS, modules_by_kind
from tfm_core.probe.types import Floats
from tfm_core.runs.run import Run
from tfm_core.sentences import N_, StudentError, percent

if TYPE_CHECKING:
    from torch import Tensor, nn

    from tfm_core.data.text.task import TextTask


_CHANCE = Column(N_("probability"), ".4f", {"rangemode": "tozero", "tickformat": ".0%"})
CHANCES = Columns(
    word=Column(N_("word")),
    chance=_CHANCE,
    truth=_CHANCE,
    model=_CHANCE,
    value=Column(N_("share of the largest")),
    number=Column(form=".4f"),
)


@dataclass(frozen=True, slots=True, eq=False)
class SentenceReading:
    """A sentence as the checkpoint of ``step`` reads it.

    words: n; keys: with CLS, if any. probabilities: (labels,). heads: (L, H, keys), of the
    answering position. rollout, relevance: (n,), of the predicted label. without: (n, labels), the
    answer without each word. rule: the grammar's label, or None.
    """

    step: int
    words: tuple[str, ...]
    keys: tuple[str, ...]
    labels: tuple[str, ...]
    probabilities: Floats
    heads: Floats
    rollout: Floats
    relevance: Floats
    without: Floats
    rule: Judged | None

    @property
    def predicted(self) -> int:
        """The index of the likeliest label."""
        return int(self.probabilities.argmax())

    @property
    def needed(self) -> Floats:
        """(n,): how much probability the predicted label loses without each word."""
        if not len(self.without):
            return np.zeros(len(self.words), np.float32)
        lost: Floats = self.probabilities[self.predicted] - self.without[:, self.predicted]
        return lost


def chances(reading: SentenceReading) -> pd.DataFrame:
    """Return the probability of each label, as a number and in words."""
    shares = reading.probabilities
    words = [percent(share) for share in shares]
    return CHANCES.table({"label": reading.labels, "chance": shares, "words": words})


def explained(reading: SentenceReading) -> pd.DataFrame:
    """Return what each explanation says of each word: number, and value of 1 for the largest."""
    ways = ("needed", "relevance", "rollout")
    parts = [pd.DataFrame({"number": getattr(reading, name), "name": name}) for name in ways]
    table = pd.concat(parts).reset_index(names="word")
    largest = table.groupby("name")["number"].transform(lambda one: one.abs().max())
    return CHANCES.table(table.assign(value=table["number"] / largest.clip(lower=1e-9)))


def reads_labels(experiment: Experiment) -> bool:
    """Return whether a model of the experiment reads a sentence and gives one label."""
    task = experiment.task
    if not isinstance(task, TextTaskConfig):
        return False
    return task.facts.answer == "label" and task.facts.language is not None


@cached_by_weights
def read(run: Run, text: str) -> SentenceReading:
    """Read a sentence with the last checkpoint of a run.

    Raises StudentError for unknown words, no or too many words, another task, or no checkpoint.
    """
    from tfm_core.probe.capture import capture

    task = _task(run)
    words = task.tokenize(text)
    model, step = model_of(run)
    inputs = _inputs(task, [words])
    with capture(model, only={"weights"}) as cache:
        probabilities = _shares(model, inputs, task)[0]
    (modules,) = modules_by_kind(run.experiment).values()
    maps = [cache[f"{name}.weights"][0].float().numpy() for name in modules]
    is_cls = run.experiment.has_cls
    specials = len(task.tgt_vocabulary) - len(task.tgt_vocabulary.tokens)
    has_residual = run.experiment.model_as(EncoderOnlyConfig).has_residuals
    target = specials + int(probabilities.argmax())
    relevant = relevance(model, inputs, target, has_residual=has_residual).numpy()
    if has_residual:
        relevant = relevant - np.eye(len(relevant))  # each word is about itself before any layer
    return SentenceReading(
        step=step,
        words=words,
        keys=(CLS, *words) if is_cls else words,
        labels=task.tgt_vocabulary.tokens,
        probabilities=probabilities,
        heads=np.stack([_answering(map_, is_cls) for map_ in maps]),
        rollout=_answering(rollout(maps, has_residual=has_residual), is_cls)[int(is_cls) :],
        relevance=_answering(relevant, is_cls)[int(is_cls) :],
        without=_without(model, task, words),
        rule=judged(words),
    )


def words_of(run: Run) -> tuple[str, ...]:
    """Return the words that a run knows, to choose from."""
    return _task(run).src_vocabulary.tokens


@cached_by_weights
def compared(run: Run, sentences: tuple[tuple[str, ...], ...]) -> pd.DataFrame:
    """Return one row a sentence, of its words: sentence, rule, model, agrees, sure.

    Raises StudentError without a checkpoint.
    """
    task = _task(run)
    model, _step = model_of(run)
    labels, rows = task.tgt_vocabulary.tokens, []
    for words in sentences:
        shares = _shares(model, _inputs(task, [words]), task)[0]
        (rule,) = task.solve(words) or ("",)
        predicted = labels[int(shares.argmax())]
        agrees = "✓" if rule == predicted else "✗"
        rows.append((task.join_src(words), rule, predicted, agrees, float(shares.max())))
    return table(rows, sentence=object, rule=object, model=object, agrees=object, sure=float)


def minimal_pairs(words: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the sentence with one thing changed at a time: what was changed -> the words.

    Changes are to the last clause and the last conjunction. Empty outside the grammar.
    """
    verdict = judged(words)
    if verdict is None:
        return {}
    clause = verdict.clauses[-1]
    words = tuple(words)
    start = clause.adjective_at if clause.intensity_at is None else clause.intensity_at
    changed: dict[str, tuple[str, ...]] = {}
    if clause.negations_at:
        first = clause.negations_at[0]
        changed[N_("without “{word}”", word=words[first])] = (*words[:first], *words[first + 1 :])
    changed[N_("with one more “{word}”", word="not")] = (*words[:start], "not", *words[start:])
    if clause.intensity_at is None:
        changed[N_("with “{word}”", word="very")] = (*words[:start], "very", *words[start:])
    else:
        weaker = "slightly" if INTENSITIES[words[start]] > 1 else "very"
        changed[N_("“{new}” for “{old}”", new=weaker, old=words[start])] = (
            *words[:start],
            weaker,
            *words[start + 1 :],
        )
    joins = [index for index, word in enumerate(words) if word in JOINS]
    if joins:
        at = joins[-1]
        other = AND if words[at] != AND else BUT
        changed[N_("“{new}” for “{old}”", new=other, old=words[at])] = (
            *words[:at],
            other,
            *words[at + 1 :],
        )
        swapped = (*words[at + 1 :], words[at], *words[:at])
        if len(joins) == 1:
            changed[N_("halves swapped")] = swapped
    return changed


def _task(run: Run) -> TextTask:
    from tfm_core.data.tasks import text_task

    if not reads_labels(run.experiment):
        raise StudentError("This run did not learn to label sentences.")
    return text_task(run.experiment.task)


def _inputs(task: TextTask, sentences: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
    from tfm_core.data.text_data import encode_src
    from tfm_core.data.vocabulary import BOS

    src = encode_src(task, sentences)
    return src, src.new_full((len(sentences), 1), BOS)


def _shares(model: nn.Module, inputs: tuple[Tensor, Tensor], task: TextTask) -> Floats:
    import torch

    with torch.no_grad():
        shares = model(*inputs)[:, 0].float().softmax(-1)
    result: Floats = shares[:, -len(task.tgt_vocabulary.tokens) :].numpy()
    return result


def _without(model: nn.Module, task: TextTask, words: tuple[str, ...]) -> Floats:
    if len(words) < 2:
        return np.zeros((0, len(task.tgt_vocabulary.tokens)), np.float32)
    shorter = [(*words[:index], *words[index + 1 :]) for index in range(len(words))]
    return _shares(model, _inputs(task, shorter), task)


def _answering(map_: Floats, is_cls: bool) -> Floats:
    """Return of maps (..., T, T) the row of the CLS token, or the mean of all rows: (..., T)."""
    row: Floats = map_[..., 0, :] if is_cls else map_.mean(-2)
    return row
