"""What may come next in a sentence of a task, by the sentences that its generator draws.

A task's generator is the only one that knows its grammar. Torch-free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache

from tfm_core.data.text.nearest import drawn_sentences
from tfm_core.data.text.task import TextTask

Words = tuple[str, ...]


def next_words(task: TextTask, begun: Sequence[str], most: int = 24) -> Words:
    """Return the words that drawn sentences put behind a beginning, the most frequent first.

    Where no drawn sentence begins so, those that follow its last two words, or its last one.
    """
    words = tuple(begun)
    found = _after_beginnings(task).get(words)
    for n in (2, 1):
        if not found and len(words) >= n:
            found = _after_words(task, n).get(words[-n:])
    return tuple(word for word, _n in (found or Counter()).most_common(most))


@lru_cache(maxsize=16)
def _after_beginnings(task: TextTask) -> dict[Words, Counter[str]]:
    return _counted(task, lambda words, at: words[:at])


@lru_cache(maxsize=32)
def _after_words(task: TextTask, n: int) -> dict[Words, Counter[str]]:
    return _counted(task, lambda words, at: words[max(0, at - n) : at])


def _counted(task: TextTask, before: Callable[[Words, int], Words]) -> dict[Words, Counter[str]]:
    found: dict[Words, Counter[str]] = {}
    for words in drawn_sentences(task):
        for at, word in enumerate(words):
            found.setdefault(before(words, at), Counter())[word] += 1
    return found
