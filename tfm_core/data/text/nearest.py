"""The sentence of a task that comes nearest to what a person typed, and what was changed for it.

A task's generator is the only one that knows its grammar, so sentences are drawn from it; the words
that were typed are then put in wherever the sentence stays one that it could draw.
"""

from __future__ import annotations

import difflib
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from tfm_core.choices.config.text_tasks import OWN_TEXT_TASKS
from tfm_core.data.text.english_korean import EnglishKoreanTask
from tfm_core.data.text.english_sentences import is_possible
from tfm_core.data.text.task import EVERYDAY, TextTask
from tfm_core.data.vocabulary import MASK

N_SAMPLED = 2000
_TRIED = 40  # of the drawn sentences, those with most words in common
_LONGEST = 60  # words of a typed text that are read

# What it costs to turn what was typed into a sentence: to swap a word, to leave one out, to add.
_SWAP, _SWAP_ALIKE, _SWAP_UNKNOWN, _SWAP_ARTICLE = 1.2, 0.7, 0.5, 0.1
_DROP, _DROP_UNKNOWN = 1.3, 0.7
_ADD = 0.5
_STRANGE = "?"  # stands before a word that the task does not know

Words = tuple[str, ...]
Swap = Callable[[str, str], float]


class WordChange(NamedTuple):
    """A typed word and the one in its place; empty where a word was added or left out."""

    typed: str
    now: str


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A sentence of the task: its tokens, as a person reads it, and how it differs."""

    tokens: Words
    text: str
    changes: tuple[WordChange, ...]


def is_of_words(task: TextTask) -> bool:
    """Return whether sources of a task are sentences of words, none of them hidden."""
    tokens = task.src_vocabulary.tokens
    return MASK not in tokens and sum(len(token) > 1 for token in tokens) > len(tokens) / 2


def nearest_sentence(task: TextTask, text: str) -> Suggestion | None:
    """Return the sentence that the task could draw which comes nearest to a text.

    None where the task's sources are no sentences, or nothing was typed; nor for sentences of one's
    own, which follow no grammar that one could leave.
    """
    typed = tuple(re.sub(r"[^\w'’]+", " ", text.lower()).split())[:_LONGEST]
    if not typed or not is_of_words(task) or task.name in OWN_TEXT_TASKS:
        return None
    meant = tuple(_meant(word, task) for word in typed)
    is_sentence, sentences, swap = _rule(task), sampled_sentences(task), _swapping(task)
    if not is_sentence(sentences[0]):  # a text that may go on in any way
        return None
    if is_sentence(meant):
        best = meant
    else:
        nearest = sorted(sentences, key=lambda candidate: _difference(meant, candidate, swap))[
            :_TRIED
        ]
        candidates = [_with_typed(candidate, meant, is_sentence, swap) for candidate in nearest]
        best = min(
            candidates, key=lambda candidate: (_costs(meant, candidate, swap)[-1][-1], candidate)
        )
    return Suggestion(best, task.join_src(best), _changes(typed, meant, best, swap))


def _meant(word: str, task: TextTask) -> str:
    """Return the word of the task that a typed one stands for, or itself, marked as strange."""
    known = task.src_vocabulary.tokens
    stem = next((word[: -len(end)] for end in ("ing", "ed", "es", "s") if word.endswith(end)), word)
    for form in (word, EVERYDAY.get(word, ""), f"{stem}s", stem, EVERYDAY.get(stem, "")):
        if form in known:
            return form
    near = task.src_vocabulary.nearest(word[:30], 1, least=0.75)
    return near[0] if near else f"{_STRANGE}{word}"


def _rule(task: TextTask) -> Callable[[Words], bool]:
    if isinstance(task, EnglishKoreanTask):
        return lambda words: is_possible(list(words), task.n_clauses)
    return lambda words: task.solve(words) is not None


@lru_cache(maxsize=16)
def sampled_sentences(task: TextTask) -> tuple[Words, ...]:
    """Return many sentences that the task's generator draws, each once, in order.

    Of a task without sources: what is written.
    """
    rng = random.Random(0)
    pairs = (task.sample(rng) for _ in range(N_SAMPLED))
    return tuple(sorted({pair.src or pair.tgt for pair in pairs}))


@lru_cache(maxsize=16)
def _swapping(task: TextTask) -> Swap:
    """Return what it costs to put one word for another: less where both stand in like places."""
    places: dict[str, set[tuple[str, str]]] = {}
    for words in sampled_sentences(task):
        for before, word, after in zip(("", *words), words, (*words[1:], ""), strict=False):
            places.setdefault(word, set()).add((before, after))

    @lru_cache(maxsize=20_000)
    def swap(word: str, other: str) -> float:
        if word == other:
            return 0.0
        likeness = difflib.SequenceMatcher(None, word.removeprefix(_STRANGE), other).ratio()
        if word.startswith(_STRANGE):
            return _SWAP_UNKNOWN - 0.3 * likeness
        if {word, other} == {"a", "an"}:
            return _SWAP_ARTICLE
        if places.get(word, set()).isdisjoint(places.get(other, set())):
            return _SWAP
        return _SWAP_ALIKE - (0.4 * likeness if likeness > 0.7 else 0)  # likes, like

    return swap


def _difference(meant: Words, candidate: Words, swap: Swap) -> float:
    """Return how little a drawn sentence has of the words that are meant, in any order."""
    remaining, missing = Counter(candidate), []
    for word in meant:
        if remaining[word]:
            remaining[word] -= 1
        else:
            missing.append(word)
    swaps = (min(swap(word, other) for other in candidate) for word in missing)
    return abs(len(candidate) - len(meant)) * _ADD / 2 + sum(swaps)


def _with_typed(
    candidate: Words, meant: Words, is_sentence: Callable[[Words], bool], swap: Swap
) -> Words:
    """Return a drawn sentence with every typed word that it can take, and without what it can
    spare.
    """
    best = candidate
    for word in meant:
        if word in best or word in ("a", "an") or word.startswith(_STRANGE):
            continue  # articles follow their nouns
        places = [at for at, other in enumerate(best) if other not in meant]
        changed = [(*best[:at], word, *best[at + 1 :]) for at in places]
        changed += [_with_article(words, at) for words, at in zip(changed, places, strict=True)]
        changed += [(*best[: at - 1], word, *best[at + 1 :]) for at in places if at]
        fitting = [best, *filter(is_sentence, changed)]
        best = min(fitting, key=lambda words: _costs(meant, words, swap)[-1][-1])
    spare = [at for place, at in _aligned(meant, best, swap) if place is None and at is not None]
    for at in reversed(spare):
        without = (*best[:at], *best[at + 1 :])
        if at < len(best) - 1:
            without = _with_article(without, at)
        if is_sentence(without):
            best = without
    return best


def _with_article(words: Words, at: int) -> Words:
    """Return the words with the article before a place that its sound asks for."""
    if at and words[at - 1] in ("a", "an"):
        article = "an" if words[at][:1] in "aeiou" else "a"
        return (*words[: at - 1], article, *words[at:])
    return words


def _costs(meant: Words, words: Words, swap: Swap) -> list[list[float]]:
    """Return the least cost of turning each beginning of ``meant`` into each one of ``words``."""
    costs = [[_ADD * column for column in range(len(words) + 1)]]
    for row, word in enumerate(meant, 1):
        dropping = _DROP_UNKNOWN if word.startswith(_STRANGE) else _DROP
        line = [costs[-1][0] + dropping]
        for column, other in enumerate(words, 1):
            swapped = costs[row - 1][column - 1] + swap(word, other)
            line.append(min(swapped, costs[row - 1][column] + dropping, line[-1] + _ADD))
        costs.append(line)
    return costs


def _aligned(meant: Words, words: Words, swap: Swap) -> list[tuple[int | None, int | None]]:
    """Return the places of both that belong together, None where one has nothing."""
    costs = _costs(meant, words, swap)
    row, column = len(meant), len(words)
    pairs: list[tuple[int | None, int | None]] = []
    while row or column:
        cost = costs[row][column]
        if row and column:
            swapped = costs[row - 1][column - 1] + swap(meant[row - 1], words[column - 1])
            if abs(swapped - cost) < 1e-9:
                row, column = row - 1, column - 1
                pairs.append((row, column))
                continue
        if column and abs(costs[row][column - 1] + _ADD - cost) < 1e-9:
            column -= 1
            pairs.append((None, column))
        else:
            row -= 1
            pairs.append((row, None))
    return pairs[::-1]


def _changes(typed: Words, meant: Words, words: Words, swap: Swap) -> tuple[WordChange, ...]:
    changes = []
    for place, at in _aligned(meant, words, swap):
        was = "" if place is None else typed[place]
        now = "" if at is None else words[at]
        if was != now:
            changes.append(WordChange(was, now))
    return tuple(changes)
