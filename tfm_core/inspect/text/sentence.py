"""Sentences that a model labels, and hidden words that it guesses, beside what the grammar says.

Three explanations and one test of a label: attention of the answering position, rollout (Abnar &
Zuidema 2020), gradient-weighted relevance (Chefer et al. 2021), and the answer without each word.
torch is imported late.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from tfm_core.choices.config import EncoderOnlyConfig, Experiment, TextTaskConfig
from tfm_core.data.text.english_sentences import entropy_of
from tfm_core.data.text.hidden_words import MaskedWordsTask, word_posterior
from tfm_core.data.text.sentiment import AND, BUT, INTENSITIES, JOINS, Judged, judged
from tfm_core.data.vocabulary import MASK
from tfm_core.inspect.attention.pictures import relevance, rollout
from tfm_core.inspect.attention.trained import cached_by_weights, data_of, model_of
from tfm_core.inspect.questions import Question, choice_question
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


def explanations(reading: SentenceReading) -> pd.DataFrame:
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
def read_sentence(run: Run, text: str) -> SentenceReading:
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
def compare_with_rule(run: Run, sentences: tuple[tuple[str, ...], ...]) -> pd.DataFrame:
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
        changed[N_("“{new}” instead of “{old}”", new=weaker, old=words[start])] = (
            *words[:start],
            weaker,
            *words[start + 1 :],
        )
    joins = [index for index, word in enumerate(words) if word in JOINS]
    if joins:
        at = joins[-1]
        other = AND if words[at] != AND else BUT
        changed[N_("“{new}” instead of “{old}”", new=other, old=words[at])] = (
            *words[:at],
            other,
            *words[at + 1 :],
        )
        swapped = (*words[at + 1 :], words[at], *words[:at])
        if len(joins) == 1:
            changed[N_("with the clauses swapped")] = swapped
    return changed


def _task(run: Run) -> TextTask:
    from tfm_core.data.tasks import text_task

    if not reads_labels(run.experiment):
        raise StudentError("This run was not trained to label sentences.")
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


Shares = Mapping[str, float]


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


def blank_tokens(run: Run, text: str) -> tuple[str, ...]:
    """Cut a text as the run's task does, ``___`` being a hidden word. Raises ValueError."""
    return _blanks_task(run).tokenize(text)


def blank_words(run: Run) -> tuple[str, ...]:
    """Return the words that a run knows, to choose from."""
    return tuple(word for word in _blanks_task(run).src_vocabulary.tokens if word.isalpha())


def hide_words(tokens: Sequence[str], positions: Sequence[int]) -> tuple[str, ...]:
    """Return the tokens with those at ``positions`` hidden too."""
    return tuple(MASK if position in positions else token for position, token in enumerate(tokens))


@cached_by_weights
def fill_blanks(run: Run, tokens: tuple[str, ...]) -> tuple[int, tuple[Blank, ...]]:
    """Guess the hidden words with the last checkpoint of a run; return its step and the words.

    Raises StudentError for too many hidden words or none, another task, or no checkpoint.
    """
    import torch

    from tfm_core.data.moving import data_as
    from tfm_core.data.text_data import TextData, encode_src
    from tfm_core.probe.capture import capture

    task = _blanks_task(run)
    if MASK not in tokens:
        raise StudentError("No word is hidden. Select one or write ___ in its place.")
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


def _blanks_task(run: Run) -> MaskedWordsTask:
    from tfm_core.data.tasks import text_task

    if not fills_blanks(run.experiment):
        raise StudentError("This run was not trained to guess hidden words.")
    task = text_task(run.experiment.task)
    assert isinstance(task, MaskedWordsTask)
    return task


MAX_OPTIONS = 4
"""Words to choose from."""


def about_word(read: SentenceReading) -> Question | None:
    """Ask which word the answer depends on most; None where no two words differ."""
    lost = {word: 0.0 for word in read.words}
    for word, share in zip(read.words, read.needed.tolist(), strict=True):
        lost[word] = max(lost[word], share)
    best = sorted(lost, key=lambda word: -lost[word])
    if len(best) < 2 or lost[best[0]] <= lost[best[1]]:
        return None
    last = [best[0], *best[1 : MAX_OPTIONS - 1], best[-1]]
    why = {
        word: N_(
            "Without “{word}” the answer's probability changes by {points:+.1f} points.",
            word=word,
            points=-100 * lost[word],
        )
        for word in last
    }
    return choice_question(
        N_("Which word does this answer depend on most?"), best[0], why, why[best[0]]
    )


def about_gap(blank: Blank) -> Question | None:
    """Ask which word the model finds likeliest in a gap; None where two are as likely."""
    best = sorted(blank.model, key=lambda word: -blank.model[word])[:MAX_OPTIONS]
    if len(best) < 2 or blank.model[best[0]] == blank.model[best[1]]:
        return None
    why = {
        word: N_(
            "The model gives “{word}” a probability of {share}.",
            word=word,
            share=percent(blank.model[word]),
        )
        for word in best
    }
    return choice_question(
        N_("Which word does the model find most likely?"), best[0], why, why[best[0]]
    )
