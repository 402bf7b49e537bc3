"""Accuracy by group: class, length, pattern, position, kind and frequency of tokens."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tfm_core.choices.config import Experiment
from tfm_core.data.caption_words import ENGLISH_PLACES, KOREAN_PLACES
from tfm_core.data.text import korean_words, sentiment
from tfm_core.data.text.dates import FORMS, pattern, written
from tfm_core.data.text.english_korean import word_classes
from tfm_core.data.text.english_sentences import EnglishClause, parses
from tfm_core.data.text.hidden_words import SENTINELS
from tfm_core.data.text.numbers import ONES
from tfm_core.data.vocabulary import EOS, MASK, SPECIALS
from tfm_core.inspect.compare.conclusions import Z_95, shares_right
from tfm_core.inspect.errors.answers import Answers, Integers
from tfm_core.sentences import N_

_TOY = ("english-korean", "masked-words", "span-corruption", "grammar")


def token_class(token: str, experiment: Experiment) -> str:
    """Return the kind of a token, in a word or two."""
    if token == SPECIALS[EOS]:
        return N_("the end")
    if experiment.task.name in _TOY:
        if token in {*SENTINELS, MASK}:
            return N_("sentinel")
        if token in word_classes():
            return _PARTS_OF_SPEECH[word_classes()[token]]
    return _look(token)


_PARTS_OF_SPEECH = {
    **dict.fromkeys(korean_words.NOUNS, N_("noun")),
    **dict.fromkeys(("verb, present", "verb, past"), N_("verb")),
    "adjective": N_("adjective"),
    "place": N_("place"),
    "time": N_("time"),
    "article": N_("article"),
    "preposition": N_("preposition"),
    "and": N_("“and”"),
    "ending": N_("particle or ending"),
}
"""By the classes of ``word_classes``."""


def _look(token: str) -> str:
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
        found.append(N_("a zero without a word"))
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
            is_right, losses = of_examples(answers)
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


def of_examples(answers: Answers) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.floating]]:
    """Return for each example whether all of it is right, and the mean loss of its answers."""
    n = answers.n_examples
    counts = np.maximum(np.bincount(answers.example, minlength=n), 1)
    loss = np.bincount(answers.example, answers.loss, minlength=n) / counts
    if answers.written is not None:
        return np.array([one.is_right for one in answers.written], np.bool_), loss
    wrong = np.bincount(answers.example, ~answers.is_right, minlength=n)
    return wrong == 0, loss
