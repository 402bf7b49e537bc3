"""How the texts of each task are cut into tokens and joined again, where a model is used elsewhere.

A generated file and a page do what ``TextTask.tokenize`` and ``join_tgt`` do, and are tested
against them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfm_core.choices.config import (
    CaptionTaskConfig,
    CorpusTaskConfig,
    OwnTextTaskConfig,
    TextTaskConfig,
)
from tfm_core.choices.variants.languages import LANGUAGES
from tfm_core.choices.variants.record import resolve
from tfm_core.data.own.task import own_task
from tfm_core.data.own.tokens import LABEL, Cutter
from tfm_core.data.tasks import corpus_task
from tfm_core.data.text import generated
from tfm_core.data.text.task import Spelling

_OWN_CUTS = {"words": "running", "spaces": "spaces", "characters": "signs", "bpe": "pieces"}
_OWN_JOINS = {
    "words": "running",
    "spaces": "spaced",
    "characters": "plain",
    "bpe": "united",
    LABEL: "spaced",
}


def _of_corpus(task: CorpusTaskConfig) -> Spelling:
    if task.unit == "characters":
        return Spelling("letters", "plain")
    if task.unit == "bpe":
        return Spelling("parts", "plain", merges=_merges(corpus_task(task).cutter))
    if corpus_task(task).generator is not None:
        return Spelling("spaces", "spaced")
    is_text = task.name != "grammar"
    return Spelling("running" if is_text else "words", "running", has_breaks=is_text)


def _of_own(task: OwnTextTaskConfig) -> Spelling:
    src, tgt = own_task(task).cutters
    return Spelling(_OWN_CUTS[src.unit], _OWN_JOINS[tgt.unit], merges=_merges(src))


def _merges(cutter: Cutter) -> tuple[str, ...]:
    return tuple(" ".join(pair) for pair in cutter.merges)


_BY_KIND: dict[str, Callable[[Any], Spelling]] = {
    "text": lambda task: generated(task).spelling,
    "caption": lambda task: Spelling(
        "", "suffixed", suffixes=tuple(sorted(resolve(LANGUAGES[task.language].grammar).joined))
    ),
    "corpus": _of_corpus,
    "own": _of_own,
}


def spelling_of(
    task: TextTaskConfig | CorpusTaskConfig | CaptionTaskConfig | OwnTextTaskConfig,
) -> Spelling:
    """Return how the texts of a task are cut and joined; captions are only joined."""
    return _BY_KIND[task.kind](task)
