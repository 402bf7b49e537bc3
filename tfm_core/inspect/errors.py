"""Where a model fails: accuracy by group, the worst answers, the confusion matrix, calibration.

Calibration: Guo et al. 2017, section 2. BLEU: Papineni et al. 2002. chrF: Popovic 2015. A score
without its signature can't be compared (Post 2018). sacrebleu is imported late.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfm_core.choices.config import CorpusTaskConfig, Experiment
from tfm_core.data.caption_words import ENGLISH_PLACES, KOREAN_PLACES
from tfm_core.data.text import sentiment
from tfm_core.data.text.dates import FORMS, pattern, written
from tfm_core.data.text.english_korean import word_classes
from tfm_core.data.text.english_sentences import EnglishClause, parses
from tfm_core.data.text.hidden_words import SENTINELS
from tfm_core.data.text.numbers import ONES
from tfm_core.data.vocabulary import EOS, MASK, SPECIALS
from tfm_core.inspect.answers import Answers, Integers
from tfm_core.inspect.attention.trained import data_of
from tfm_core.inspect.conclusions import Z_95, shares_right
from tfm_core.inspect.text.embeddings import word_class
from tfm_core.runs.run import Run
from tfm_core.sentences import N_

_TOY = ("english-korean", "masked-words", "span-corruption", "grammar")


def token_class(token: str, experiment: Experiment) -> str:
    """Return the kind of a token, in a word or two."""
    if token == SPECIALS[EOS]:
        return N_("end of text")
    if experiment.task.name in _TOY:
        if token in {*SENTINELS, MASK}:
            return N_("sentinel")
        if token in word_classes():
            return word_class("english-korean", token)
    return _appearance(token)


def _appearance(token: str) -> str:
    if token == "\n":
        return N_("line break")
    if token.isspace():
        return N_("space")
    if token.isdigit():
        return N_("number") if len(token) > 1 else N_("digit")
    if not any(character.isalnum() for character in token):
        return N_("sign")
    if len(token) == 1:
        return N_("capital letter") if token.isupper() else N_("letter")
    return N_("word with a capital") if token[0].isupper() else N_("word")


Item = Mapping[str, Any]
Patterns = Callable[[Sequence[str], Sequence[str]], tuple[str, ...]]


def patterns_of(experiment: Experiment, item: Item) -> tuple[str, ...]:
    """Return the patterns of an example, in words; none where its task has none."""
    find = _PATTERNS.get(experiment.task.name)
    return () if find is None else find(tuple(item["src"]), tuple(item["tgt"]))


def _sentence(src: Sequence[str], tgt: Sequence[str]) -> tuple[str, ...]:
    """Return what an English sentence of the toy grammar is made of."""
    clauses = next(iter(parses(list(src), 2)), None)
    if clauses is None:
        return ()
    found = [_order(clauses[0]) if len(clauses) == 1 else N_("two clauses")]
    phrases = [one for clause in clauses for one in (clause.subject, clause.object) if one]
    places = [clause.place for clause in clauses if clause.place]
    if any(len(phrase.nouns) > 1 for phrase in phrases):
        found.append(N_("two nouns joined by “and”"))
    if any(noun[1] is not None for phrase in phrases for noun in phrase.nouns) or any(
        place[1] is not None for place in places
    ):
        found.append(N_("an adjective"))
    if any(clause.time_at is not None for clause in clauses):
        found.append(N_("a time"))
    return tuple(found)


def _order(clause: EnglishClause) -> str:
    if clause.object is None:
        return N_("subject, verb, place") if clause.place else N_("subject, verb")
    return N_("subject, verb, object, place") if clause.place else N_("subject, verb, object")


def _review(src: Sequence[str], tgt: Sequence[str]) -> tuple[str, ...]:
    found = [
        N_("“{word}”", word=word)
        for word in (*sentiment.NEGATIONS, *sentiment.JOINS, *sentiment.INTENSITIES)
        if word in src
    ]
    is_one = not set(sentiment.JOINS) & set(src)
    return (N_("one clause") if is_one else N_("several clauses"), *found)


def _date(src: Sequence[str], tgt: Sequence[str]) -> tuple[str, ...]:
    import re

    text = "".join(src)
    for form in FORMS:
        if re.fullmatch(pattern(form), text, re.ASCII):
            date = "".join(part for _meaning, part in written(form, datetime.date(2019, 3, 5)))
            return (N_("like {date}", date=date),)
    return ()


def _number(src: Sequence[str], tgt: Sequence[str]) -> tuple[str, ...]:
    found = [N_("“{word}”", word=word) for word in ("hundred", "thousand") if word in src]
    if "0" in tgt and len(tgt) > 1:
        found.append(N_("a zero that is not spoken"))
    if set(ONES[10:]) & set(src):
        found.append(N_("ten to nineteen"))
    return tuple(found)


def _sum(src: Sequence[str], tgt: Sequence[str]) -> tuple[str, ...]:
    first, second = "".join(src).split("+")
    carry = n_carries = 0
    for column in range(1, max(len(first), len(second)) + 1):
        digits = [int(one[-column]) for one in (first, second) if column <= len(one)]
        carry = sum(digits) + carry >= 10
        n_carries += carry
    if n_carries == 0:
        return (N_("no carry"),)
    return (N_("one carry") if n_carries == 1 else N_("{n} carries", n=n_carries),)


def _sequence(src: Sequence[str], tgt: Sequence[str]) -> tuple[str, ...]:
    is_twice = len(set(src)) < len(src)
    return (N_("a repeated token") if is_twice else N_("all tokens different"),)


def _spans(src: Sequence[str], tgt: Sequence[str]) -> tuple[str, ...]:
    n = sum(token in SENTINELS for token in src)
    return (N_("one span hidden") if n == 1 else N_("{n} spans hidden", n=n),)


def _scene(src: Sequence[str], tgt: Sequence[str]) -> tuple[str, ...]:
    places = {words[0]: words[0] for words in ENGLISH_PLACES.values()}
    places |= {korean: korean for korean in KOREAN_PLACES.values()}
    return tuple(N_("“{word}”", word=word) for word in places if word in tgt)


_PATTERNS: dict[str, Patterns] = {
    "english-korean": _sentence,
    "sentiment": _review,
    "dates": _date,
    "numbers": _number,
    "addition": _sum,
    "copy": _sequence,
    "reverse": _sequence,
    "sort": _sequence,
    "span-corruption": _spans,
    "captions": _scene,
}


MAX_BANDS = 10
_RANKS = (10, 30, 100, 300, 1000, 3000)
"""The last of each band of ranks, the most frequent token of the training data first."""


_Groups = Iterable[tuple[str, npt.NDArray[np.bool_]]]
"""Labels, and for each answer, or for each text, whether it is in the group."""


@dataclass(frozen=True, slots=True)
class Grouping:
    """A way to group. is_of_texts: it groups whole generated texts, not answers. sort: a column."""

    label: str
    split: Callable[[Answers, Experiment], _Groups]
    is_of_texts: bool = False
    sort: str = ""

    def groups(self, answers: Answers, experiment: Experiment) -> pd.DataFrame:
        """Return a row for each group, of answers or texts.

        What ``shares_right`` returns, and loss: the mean, in nats, with its 95% interval from
        loss_low to loss_high.
        """
        is_right, losses = answers.is_right, answers.loss
        if self.is_of_texts:
            is_right, losses = by_example(answers)
        rows, losses_of = [], []
        for label, inside in self.split(answers, experiment):
            right, loss = is_right[inside], losses[inside]
            rows.append((label, int(right.sum()), len(right)))
            mean = float(loss.mean(dtype=np.float64))
            error = Z_95 * (float(loss.std(ddof=1)) if len(loss) > 1 else 0.0) / len(loss) ** 0.5
            losses_of.append((mean, mean - error, mean + error))
        found = shares_right(rows)
        found[["loss", "loss_low", "loss_high"]] = np.reshape(losses_of, (-1, 3))
        if not self.sort:
            return found
        return found.sort_values(self.sort, ascending=self.sort == "accuracy", kind="stable")


def groupings(answers: Answers, experiment: Experiment) -> dict[str, Grouping]:
    """Return the ways to group that fit, the most telling first."""
    if answers.unit == "picture":
        return {"class": GROUPINGS["class"]}
    if answers.is_language:
        names = ["kind", "frequency", "position"]
    elif answers.unit == "label":
        names = ["class", "length", "pattern"]
    else:
        names = ["length", "pattern", "kind", "position"]
    return {
        name: GROUPINGS[name]
        for name in names
        if name != "pattern" or experiment.task.name in _PATTERNS
    }


def _by_class(answers: Answers, experiment: Experiment) -> _Groups:
    for number in np.unique(answers.truth).tolist():
        yield answers.names[number], answers.truth == number


def _in_bands(values: Integers) -> _Groups:
    for low, high in bands(values):
        yield _range_label(low, high), (values >= low) & (values <= high)


def _by_length(answers: Answers, experiment: Experiment) -> _Groups:
    side = "src" if answers.written is None else "tgt"
    return _in_bands(np.array([len(item[side]) for item in answers.items], np.int64))


def _by_pattern(answers: Answers, experiment: Experiment) -> _Groups:
    shown = [patterns_of(experiment, item) for item in answers.items]
    for label in dict.fromkeys(label for patterns in shown for label in patterns):
        yield label, np.array([label in patterns for patterns in shown])


def _by_kind(answers: Answers, experiment: Experiment) -> _Groups:
    classes = [token_class(name, experiment) for name in answers.names]
    labels = {str(one): one for one in classes}
    meant = np.array(list(map(str, classes)))[answers.truth]
    for kind in np.unique(meant).tolist():
        yield labels[kind], meant == kind


def _by_frequency(answers: Answers, experiment: Experiment) -> _Groups:
    order = np.argsort(-answers.train_counts, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(1, len(order) + 1)
    rank[answers.train_counts == 0] = 0
    meant, first = rank[answers.truth], 1
    for last in (*_RANKS, len(rank)):
        inside = (meant >= first) & (meant <= last)
        if inside.any():
            yield _range_label(first, min(last, len(rank))), inside
        first = last + 1
    if (meant == 0).any():
        yield N_("never in training"), meant == 0


GROUPINGS: dict[str, Grouping] = {
    "class": Grouping(N_("Class"), _by_class),
    "length": Grouping(N_("Length"), _by_length, is_of_texts=True),
    "pattern": Grouping(N_("Pattern"), _by_pattern, is_of_texts=True, sort="accuracy"),
    "kind": Grouping(N_("Kind of token"), _by_kind, sort="loss"),
    "frequency": Grouping(N_("Frequency"), _by_frequency),
    "position": Grouping(N_("Position"), lambda answers, _: _in_bands(answers.position + 1)),
}


def bands(values: Integers, most: int = MAX_BANDS) -> list[tuple[int, int]]:
    """Return ranges that hold all values: each value its own, or as even ones as there can be."""
    known = np.unique(values)
    if len(known) <= most:
        return [(int(value), int(value)) for value in known]
    ends = np.unique(np.quantile(values, np.linspace(0, 1, most + 1)[1:], method="higher"))
    found, low = [], int(known[0])
    for end in ends.tolist():
        found.append((low, int(end)))
        low = int(end) + 1
    return found


def _range_label(low: int, high: int) -> str:
    return str(low) if low == high else f"{low}–{high}"


def by_example(answers: Answers) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.floating]]:
    """Return for each example whether all of it is right, and the mean loss of its answers."""
    n = answers.n_examples
    counts = np.maximum(np.bincount(answers.example, minlength=n), 1)
    loss = np.bincount(answers.example, answers.loss, minlength=n) / counts
    if answers.written is not None:
        return np.array([one.is_right for one in answers.written], np.bool_), loss
    wrong = np.bincount(answers.example, ~answers.is_right, minlength=n)
    return wrong == 0, loss


MAX_CLASSES = 24
"""Classes with a row of their own where there are more; the rest are counted together."""
OTHERS = -1
"""The number of all other classes."""


def confusion(answers: Answers, most: int = MAX_CLASSES) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Count predictions by truth, and how many of them are wrong; truth down, predicted across.

    Rows and columns are numbers of classes; of more than ``most``, those with the most errors, and
    last OTHERS, where an answer is right if the class is the same.
    """
    truth, predicted, n = answers.truth, answers.predicted, len(answers.names)
    used = np.flatnonzero(np.bincount(truth, minlength=n) + np.bincount(predicted, minlength=n))
    if answers.unit == "picture" and n <= most:
        used = np.arange(n)
    shown = used if len(used) <= most else np.sort(_most_confused(answers, used)[: most - 1])
    numbers = [*shown.tolist(), *([OTHERS] if len(shown) < len(used) else [])]
    place = np.full(n, len(shown), np.int64)
    place[shown] = np.arange(len(shown))
    size = len(numbers)
    cells = place[truth] * size + place[predicted]

    def counted(some: npt.NDArray[np.int64]) -> pd.DataFrame:
        counts = np.bincount(some, minlength=size * size).reshape(size, size)
        return pd.DataFrame(counts, numbers, numbers)

    return counted(cells), counted(cells[truth != predicted])


def _most_confused(answers: Answers, used: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Return classes by their number of errors, then by their frequency."""
    n, wrong = len(answers.names), ~answers.is_right
    errors = np.bincount(answers.truth[wrong], minlength=n)
    errors += np.bincount(answers.predicted[wrong], minlength=n)
    often = np.bincount(answers.truth, minlength=n)
    return used[np.lexsort((-often[used], -errors[used]))]


def answers_in_cell(
    answers: Answers, numbers: Sequence[int], cell: tuple[int, int]
) -> npt.NDArray[np.intp]:
    """Return which answers a cell, (truth, predicted) by number, counts; none for one not shown.

    numbers: of the classes that are shown.
    """
    if not set(cell) <= set(numbers):
        return np.array([], np.intp)
    chosen = np.ones(len(answers.truth), np.bool_)
    named = [number for number in numbers if number != OTHERS]
    for values, number in zip((answers.truth, answers.predicted), cell, strict=True):
        chosen &= ~np.isin(values, named) if number == OTHERS else values == number
    return np.flatnonzero(chosen)


N_BINS = 10


def calibration(
    confidence: npt.NDArray[np.float32], is_right: npt.NDArray[np.bool_], n_bins: int = N_BINS
) -> tuple[pd.DataFrame, float]:
    """Share M answers, at least one, out by their confidence; both (M,).

    Return the bins that hold answers: what ``shares_right`` returns, confidence: their mean,
    middle: of the bin. And the expected calibration error, from 0 to 1.
    """
    place = np.clip(np.ceil(confidence.astype(np.float64) * n_bins) - 1, 0, n_bins - 1)
    numbers = np.unique(place).astype(int).tolist()
    counts = [is_right[place == number] for number in numbers]
    bins = shares_right(
        (n, int(one.sum()), len(one)) for n, one in zip(numbers, counts, strict=True)
    )
    bins["confidence"] = [confidence[place == n].mean(dtype=np.float64) for n in numbers]
    bins["middle"] = (np.array(numbers) + 0.5) / n_bins
    gaps = (bins["accuracy"] - bins["confidence"]).abs()
    return bins, float((bins["n"] * gaps).sum() / len(confidence))


N_GRAM = 4
"""Words of the longest n-grams that BLEU counts."""


def n_short(texts: Sequence[str]) -> int:
    """Return how many texts have fewer than N_GRAM words."""
    return sum(len(text.split()) < N_GRAM for text in texts)


def corpus_scores(
    predicted: Sequence[str], truth: Sequence[str], *, are_words: bool = True
) -> dict[str, tuple[float, str]]:
    """Score texts against one target each: a score from 0 to 100, and sacrebleu's signature.

    are_words: tokens are split at spaces as they are (``--tokenize none``). BLEU uses n-grams up to
    four words, so shorter texts have 0; it is left out if tokens are no words, or most texts short.
    """
    from sacrebleu.metrics.bleu import BLEU
    from sacrebleu.metrics.chrf import CHRF

    metrics: dict[str, BLEU | CHRF] = {"chrF": CHRF()}
    if are_words and 2 * n_short(truth) <= len(truth):
        metrics = {"BLEU": BLEU(tokenize="none", force=True), **metrics}
    return {
        name: (
            float(metric.corpus_score(list(predicted), [list(truth)]).score),
            str(metric.get_signature()),
        )
        for name, metric in metrics.items()
    }


CONTEXT = 12
"""Tokens shown before a surprising one."""
_MAX_LETTERS = 400  # of a text in a link


def validation_picture(run: Run, example: int) -> npt.NDArray[np.uint8] | None:
    """Return a validation picture, uint8 (C, height, width); None for texts. Raises ValueError."""
    picture = data_of(run.experiment).validation.pictures(slice(example, example + 1))
    return None if picture is None else np.asarray(picture[0].numpy(), np.uint8)


def n_like_training(run: Run, answers: Answers) -> int:
    """Return how many examples equal a training example but for the hidden words; else 0."""
    from tfm_core.data.text_data import TextData, n_shared_sources

    data = data_of(run.experiment)
    if not (getattr(run.experiment.task.facts, "hides", False) and isinstance(data, TextData)):
        return 0
    return n_shared_sources(data, data.validation.pairs[: answers.n_examples])


def first_difference(answers: Answers, example: int) -> tuple[int, str, str] | None:
    """Return where a generated text first differs from the true one, from 0, and both tokens there.

    A token is empty after an end. None where the texts are the same.
    """
    assert answers.written is not None
    pairs = zip_longest(
        answers.written[example].tokens, answers.items[example]["tgt"], fillvalue=""
    )
    return next(((at, one, other) for at, (one, other) in enumerate(pairs) if one != other), None)


def source_text(run: Run, answers: Answers, example: int) -> str:
    """Return the sentence of an example that gets a label, as a person reads it."""
    from tfm_core.data.tasks import text_task

    task = text_task(run.experiment.task)
    return task.join_src(answers.items[example]["src"])


def surprise_context(run: Run, answers: Answers, place: int) -> tuple[str, str]:
    """Return the text before an answer of a language model, and the text up to it."""
    from tfm_core.data.tasks import corpus_task
    from tfm_core.data.vocabulary import SPECIALS

    config = run.experiment.task_as(CorpusTaskConfig)
    task = corpus_task(config)
    tokens = tuple(answers.items[int(answers.example[place])]["tgt"])
    at = int(answers.position[place])
    truth = answers.names[answers.truth[place]]
    read = tokens[:at] if truth in SPECIALS else (*tokens[:at], truth)
    read = read[-config.max_tgt_len :]
    while len(text := task.join_tgt(read)) > _MAX_LETTERS:
        read = read[1:]
    return task.join_tgt(tokens[max(0, at - CONTEXT) : at]), text


WorstBy = Literal["loss", "sure"]
Places = npt.NDArray[np.intp]
MAX_TOKENS = 25


def worst_answers(answers: Answers, order: WorstBy, chosen: Places | None = None) -> Places:
    """Return the wrong answers, or those of ``chosen``, (M,), the worst first.

    loss: by their loss; sure: by the confidence in the wrong answer. All answers of a language
    model count.
    """
    found = np.arange(len(answers.truth)) if chosen is None else chosen
    wrong = found[~answers.is_right[found]]
    if len(wrong) and not (answers.is_language and order == "loss"):
        found = wrong
    elif chosen is None and not answers.is_language:
        return wrong
    scores = (answers.loss if order == "loss" else answers.confidence)[found]
    return np.asarray(found[np.argsort(-scores, kind="stable")])


def worst_texts(answers: Answers, order: WorstBy, chosen: Places | None = None) -> Places:
    """Return the wrongly generated texts, or those of ``chosen`` answers, the worst first.

    loss: by the mean loss of the target tokens; sure: by the least sure generated token.
    """
    assert answers.written is not None
    is_right, loss = by_example(answers)
    found = np.flatnonzero(~is_right) if chosen is None else np.unique(answers.example[chosen])
    sure = np.array([one.confidence for one in answers.written])
    scores = loss if order == "loss" else sure
    return np.asarray(found[np.argsort(-scores[found], kind="stable")])


def least_confident(answers: Answers, most: int) -> Places:
    """Return the right answers that were least sure; of texts the texts."""
    if answers.written is not None:
        sure = np.array([one.confidence for one in answers.written])
        return np.asarray(np.argsort(sure, kind="stable")[:most])
    return np.asarray(np.argsort(answers.confidence, kind="stable")[:most])


def hard_tokens(answers: Answers, least: int = 1) -> pd.DataFrame:
    """Return the tokens with the highest mean loss, with at least ``least`` targets, by number.

    loss: the mean, in nats; share: of the total loss; n targets; train_count of them in training;
    instead: the most frequent wrong prediction, or -1.
    """
    size = len(answers.names)
    n = np.bincount(answers.truth, minlength=size)
    total = np.bincount(answers.truth, answers.loss, minlength=size)
    known = np.flatnonzero(n >= least)
    order = known[np.argsort(-total[known] / n[known], kind="stable")][:MAX_TOKENS]
    instead = []
    for number in order.tolist():
        predicted = answers.predicted[(answers.truth == number) & ~answers.is_right]
        instead.append(int(np.bincount(predicted).argmax()) if len(predicted) else -1)
    return pd.DataFrame(
        {
            "loss": total[order] / n[order],
            "share": total[order] / total.sum(),
            "n": n[order],
            "train_count": answers.train_counts[order],
            "instead": instead,
        },
        index=order,
    )
