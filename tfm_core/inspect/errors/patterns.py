"""What kind of example an example is: the patterns that a task's sentences and sums are made of.

An example may show several patterns, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tfm_core.config import Experiment
from tfm_core.data.caption_words import ENGLISH_PLACES, KOREAN_PLACES
from tfm_core.data.text import sentiment
from tfm_core.data.text.dates import FORMS
from tfm_core.data.text.english_sentences import EnglishClause, parses
from tfm_core.data.text.numbers import ONES
from tfm_core.data.text.span_corruption import SENTINELS
from tfm_core.sentences import N_

Item = Mapping[str, Any]
Patterns = Callable[[Sequence[str], Sequence[str]], tuple[str, ...]]


def patterns_of(experiment: Experiment, item: Item) -> tuple[str, ...]:
    """Return the patterns of an example, in words; none where its task has none."""
    find = _PATTERNS.get(experiment.task.name)
    return () if find is None else find(tuple(item["src"]), tuple(item["tgt"]))


def has_patterns(experiment: Experiment) -> bool:
    """Return whether the task of an experiment has patterns."""
    return experiment.task.name in _PATTERNS


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
    for write, pattern in FORMS:
        if re.fullmatch(pattern, text, re.ASCII):
            return (N_("like {date}", date="".join(part for _says, part in write(2019, 3, 5))),)
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
